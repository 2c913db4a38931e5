"""What happens in a room on a real server, and what the agent is told of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from tests.e2e.bridge_process import BridgeProcess
from tests.faults.scene import NICKNAME, configure
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


class Reader:
    """Follows what the bridge tells of a room."""

    def __init__(self, bridge: BridgeProcess, cursor: str) -> None:
        self.bridge = bridge
        self.cursor = cursor

    async def next(self, kind: str, **filters: object) -> dict[str, Any]:
        """Return the next entry of this kind; history must tell it as waiting did."""
        asked = {"since": self.cursor, "kinds": [kind], **filters}
        waited = await self.bridge.call("xmppWait", timeoutSeconds=15, **asked)
        assert waited["matched"], (kind, waited, self.bridge.stderr)
        history = await self.bridge.call("xmppHistory", limit=500, **asked)
        assert "gap" not in history
        assert history["entries"][0] == waited["entry"]
        full = await self.bridge.call("xmppHistory", limit=500, detail="full", **asked)
        entry: dict[str, Any] = full["entries"][0]
        assert waited["entry"].items() <= entry.items()
        self.cursor = entry["cursor"]
        return {name: value for name, value in entry.items() if name not in {"cursor", "at"}}


@asynccontextmanager
async def _following(server: XmppServer, home: Path) -> AsyncIterator[tuple[Reader, Witness, str]]:
    """The bridge in a room that a witness owns, and what comes from then on."""
    environment = server.environment()
    room = environment["MUC_ROOM"]
    async with Witness(server, server.witness, room, "Wilma") as wilma:
        await configure(wilma, whois="anyone")
        async with BridgeProcess(home, environment) as bridge:
            await bridge.initialize()
            status = await bridge.joined()
            await wilma.joined(NICKNAME)
            yield Reader(bridge, status["cursor"]), wilma, room


def _say(wilma: Witness, body: str | None, *about: Element) -> str:
    message = wilma.client.make_message(mto=wilma.room, mtype="groupchat")
    message["id"] = wilma.client.new_id()
    if body is not None:
        message["body"] = body
    for each in about:
        message.xml.append(each)
    message.send()
    return str(message["id"])


def _reactions(id_: str, *texts: str) -> Element:
    namespace = "urn:xmpp:reactions:0"
    reactions = Element(f"{{{namespace}}}reactions", {"id": id_})
    for text in texts:
        SubElement(reactions, f"{{{namespace}}}reaction").text = text
    return reactions


async def test_what_is_said_of_what_was_said_is_told_as_that(
    real_server: XmppServer, tmp_path: Path
) -> None:
    async with _following(real_server, tmp_path) as (reader, wilma, room):
        first = _say(wilma, "helo")
        told = await reader.next("message")
        assert (told["id"], told["body"], told["source"]) == (first, "helo", "live")
        assert told["jid"] == str(wilma.client.boundjid)
        given = told["stanzaId"]

        _say(wilma, "hello", Element("{urn:xmpp:message-correct:0}replace", {"id": first}))
        told = await reader.next("message")
        assert (told["body"], told["replaces"]) == ("hello", first)

        reply = {"to": f"{room}/Wilma", "id": given}
        _say(wilma, "to myself", Element("{urn:xmpp:reply:0}reply", reply))
        told = await reader.next("message")
        assert (told["body"], told["replyTo"]) == ("to myself", given)

        for texts in (["\U0001f44d", "\u2764\ufe0f"], []):
            _say(wilma, None, _reactions(given, *texts))
            told = await reader.next("message")
            assert (told["reactsTo"], told["reactions"]) == (given, texts)
            assert "body" not in told

        _say(wilma, None, Element("{urn:xmpp:message-retract:1}retract", {"id": given}))
        told = await reader.next("message")
        assert told["retracts"] == given


async def test_who_may_do_what_and_by_whom_is_told(real_server: XmppServer, tmp_path: Path) -> None:
    async with _following(real_server, tmp_path) as (reader, wilma, room):
        await wilma.muc.set_role(room, NICKNAME, "visitor", reason="too noisy")
        told = await reader.next("role")
        assert (told["sender"], told["self"]) == (NICKNAME, True)
        assert (told["formerRole"], told["role"]) == ("participant", "visitor")
        assert told["reason"] == "too noisy"
        assert told.get("actor", "Wilma") in {"Wilma", f"{room}/Wilma", real_server.witness.jid}

        await wilma.muc.set_affiliation(room, "member", jid=real_server.bot.jid, reason="welcome")
        told = await reader.next("role")
        assert (told["formerAffiliation"], told["affiliation"]) == ("none", "member")
        assert (told["sender"], told["reason"]) == (NICKNAME, "welcome")

        wilma.client.send_presence(pto=f"{room}/Wilma", pshow="away", pstatus="out for lunch")
        told = await reader.next("role", **{"from": "Wilma", "contains": "LUNCH"})
        assert (told["show"], told["status"]) == ("away", "out for lunch")
        assert not {"formerRole", "formerAffiliation", "self"} & set(told)

        wilma.client.send_presence(pto=f"{room}/Betty", pshow="away", pstatus="out for lunch")
        told = await reader.next("nick")
        assert (told["sender"], told["newNickname"]) == ("Wilma", "Betty")

        # Who is not here gets affiliations too.
        absent = f"fred@{real_server.domain}"
        await wilma.muc.set_affiliation(room, "member", jid=absent, reason="welcome")
        told = await reader.next("role")
        assert (told["jid"], told["affiliation"]) == (absent, "member")
        assert told.get("reason", "welcome") == "welcome"  # ejabberd leaves it out
        assert not {"sender", "from", "self"} & set(told)
