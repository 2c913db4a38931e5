"""The stanzas behind entries, on real servers."""

from pathlib import Path

from tests.e2e.company import in_company
from tests.servers.server import XmppServer

BURST = 15


async def test_behind_each_entry_of_a_burst_is_its_own_stanza(
    real_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(real_server, tmp_path) as (bridge, wilma):
        cursor = (await bridge.status())["cursor"]
        for number in range(BURST):
            wilma.say("again")
            wilma.client.send_presence(pto=f"{wilma.room}/Wilma", pstatus=f"status {number}")
            wilma.say(f"said {number}.")
        await bridge.call("xmppWait", since=cursor, contains=f"said {BURST - 1}.")
        kinds = ["message", "role"]
        page = await bridge.call(
            "xmppHistory", since=cursor, kinds=kinds, limit=500, maxBytes=45_000
        )
        assert len(page["entries"]) == 3 * BURST
        before = 0
        for entry in page["entries"]:
            shown = await bridge.call("xmppTrace", of=entry["cursor"])
            (stanza,) = shown["entries"]
            assert f">{entry.get('body') or entry.get('status')}<" in stanza["xml"]
            position = int(stanza["cursor"].rpartition("-")[2])
            assert before < position < int(entry["cursor"].rpartition("-")[2])
            before = position


async def test_behind_what_the_bridge_said_are_both_stanzas_and_behind_the_archive_its_result(
    real_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(real_server, tmp_path) as (bridge, wilma):
        wilma.say("meanwhile")
        sent = await bridge.call("xmppSend", message="seen on the wire")
        out, back = (await bridge.call("xmppTrace", of=sent["cursor"]))["entries"]
        assert (out["direction"], back["direction"]) == ("out", "in")
        for stanza in (out, back):
            assert sent["id"] in stanza["xml"]
            assert "seen on the wire" in stanza["xml"]
        (entry,) = (await bridge.call("xmppHistory", archive=True, contains="seen on the wire"))[
            "entries"
        ]
        (result,) = (await bridge.call("xmppTrace", of=entry["cursor"]))["entries"]
        assert "<result" in result["xml"]
        assert "seen on the wire" in result["xml"]
        steps = await bridge.call("xmppHistory", kinds=["connection"])
        shown = await bridge.call("xmppTrace", of=steps["entries"][-1]["cursor"])
        assert (shown["entries"], "since" in shown["note"]) == ([], True)
        assert (await bridge.call("xmppPing", target="self"))["reachable"] is True
        for keepalives in (False, True):
            shown = await bridge.call(
                "xmppTrace", contains="urn:xmpp:ping", direction="out", keepalives=keepalives
            )
            assert (shown["entries"] != []) is keepalives
