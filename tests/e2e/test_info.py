from pathlib import Path

from tests.e2e.bridge_process import BridgeProcess
from tests.e2e.company import in_company
from tests.faults.scene import configure
from tests.faults.scripted_server import NICKNAME
from tests.servers.server import XmppServer


async def test_a_server_tells_what_it_is_and_how_we_are_connected(
    real_server: XmppServer, tmp_path: Path
) -> None:
    async with BridgeProcess(tmp_path, real_server.environment()) as bridge:
        status = await bridge.joined()
        told = await bridge.call("xmppInfo", target="server", features=True)
        assert (told["target"], told["address"]) == ("server", real_server.domain)
        assert [(it["category"], it["type"]) for it in told["identities"]] == [("server", "im")]
        assert told["featureCount"] == len(told["features"])
        names = {it["feature"]: (it.get("xep"), it.get("name")) for it in told["features"]}
        assert names["urn:xmpp:ping"] == ("XEP-0199", "XMPP Ping")
        assert names["urn:xmpp:carbons:2"] == ("XEP-0280", "Message Carbons")
        nameless = {feature for feature, (xep, _) in names.items() if xep is None}
        assert nameless <= {"iq", "presence"}  # ejabberd's own
        assert told["software"]["name"].lower() == real_server.name
        assert told["software"]["version"][0].isdigit()
        assert 0 <= told["uptimeSeconds"] < 86_400
        assert told["connection"] == {
            "jid": status["jid"],
            "service": status["service"],
            "tls": status["tls"],
            "sasl": status["sasl"],
            # No channel binding: neither offers one that Python's TLS 1.3 has.
            "streamManagement": True,
            "resumable": True,
        }
        assert {"room", "rooms", "self", "notes"}.isdisjoint(told)


async def test_a_room_tells_how_its_owner_set_it_up_and_what_we_are_in_it(
    real_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(real_server, tmp_path) as (bridge, owner):
        room = owner.room
        before = await bridge.call("xmppInfo", target="room")
        assert before["address"] == room
        assert before["room"]["membersOnly"] is False
        assert before["room"]["persistent"] is False
        assert before["room"]["passwordProtected"] is False
        assert before["room"]["anonymity"] == "semi-anonymous"
        assert before["room"]["archived"] is True
        assert before["room"]["occupants"] == 2
        assert (before["self"]["nickname"], before["self"]["self"]) == (NICKNAME, True)
        assert (before["self"]["role"], before["self"]["affiliation"]) == ("participant", "none")

        await owner.muc.set_affiliation(room, "member", jid=real_server.bot.jid)
        await configure(
            owner,
            membersonly="1",
            moderatedroom="1",
            persistentroom="1",
            publicroom="0",
            whois="anyone",
            roomname="The Lobby",
            roomdesc="for tests",
        )
        after = await bridge.call("xmppInfo", target=room)
        assert after["room"] == before["room"] | {
            "membersOnly": True,
            "moderated": True,
            "persistent": True,
            "public": False,
            "anonymity": "non-anonymous",
            "title": "The Lobby",
            "description": "for tests",
        }
        assert after["self"]["affiliation"] == "member"
        assert "connection" not in after
        await owner.muc.destroy(room)
