"""Broken bots behind tap: an agent asks each, makes the next step, and is told what it did."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bridge.sandbox.stream import Stream
from tests.capture.stage import secured_sandbox
from tests.e2e.bridge_process import BridgeProcess
from tests.servers.server import Account, XmppServer
from tests.tap.tapping import Client, Tap, tapped

AWAITED_SECONDS = 11
"""A bot has ten seconds to answer."""

ANSWER = "<message to='{room}' type='groupchat' id='m1'><body>pong</body></message>"
CHAT = ANSWER.replace("groupchat", "chat")
ENCRYPTED = "<encrypted xmlns='eu.siacs.conversations.axolotl'/>"
CUT = "cut"


@dataclass(frozen=True)
class Kind:
    """What a bot does, and what has to be said of it."""

    deed: str
    """What it sends when it is asked; `{room}` and `{asker}` are addresses. `CUT` comes before."""
    rule: str
    """Of the finding `stream`; empty if the room shows all of it."""
    words: str
    """In that finding, or else in the verdict."""


KINDS = {
    "silent": Kind("", "silent", '"!ping"'),
    "answers in private": Kind(CHAT.replace("{room}", "{asker}"), "misplaced", "in private"),
    "answers the room by chat": Kind(CHAT, "refused", "of type chat, to the whole room"),
    "answers an occupant by groupchat": Kind(
        ANSWER.replace("{room}", "{asker}"), "refused", "of type groupchat, to one occupant"
    ),
    "answers encrypted": Kind(
        ANSWER.replace("<body>pong</body>", ENCRYPTED), "", "answered with an encrypted message"
    ),
    "answers without a body": Kind(
        ANSWER.replace("body>", "x>"), "misplaced", "by a message without a body"
    ),
    "answers what XML cannot have": Kind(
        ANSWER.replace("pong", "\x0b"), "ended", "the client's stanza that cannot be read"
    ),
    "answers an unknown host": Kind(
        CHAT.replace("{room}", "ann@nowhere.invalid"), "refused", 'nowhere.invalid" is not known'
    ),
    "answers with an error": Kind(
        ANSWER.replace("groupchat", "error"), "misplaced", "an error to the whole room"
    ),
    "was cut off before": Kind(CUT, "ended", "after the client's presence"),
    "answers by presence": Kind(
        "<presence to='{room}/bot'><status>pong</status></presence>", "", "then sent presence to"
    ),
    "answers somebody else": Kind(
        CHAT.replace("{room}", "witness@localhost"), "", 'sent a message of type "chat" to an addr'
    ),
    "does not finish its answer": Kind(
        ANSWER.replace("</message>", ""), "", "sent something that is no whole stanza"
    ),
}


async def inside(port: int, anchor: Path | None, account: Account, occupant: str) -> Client:
    """A client by hand that has joined a room."""
    client = await Client.at(port)
    await client.secure(anchor)
    await client.log_in(account.username, account.password)
    join = "<x xmlns='http://jabber.org/protocol/muc'/>"
    client.send(f"<presence to='{occupant}'>{join}</presence>")
    await client.sees("code='110'")
    return client


async def play(
    kind: Kind,
    room: str,
    tap: Tap,
    sandbox: tuple[XmppServer, Sequence[Stream]],
    is_ready: asyncio.Event,
) -> None:
    """Be such a bot: join the room, and do that once one is asked."""
    server, streams = sandbox
    client = await inside(tap.port, tap.anchor, server.bot, f"{room}/bot")
    try:
        if kind.deed == CUT:
            (stream,) = [each for each in streams if each.jid.encode() in client.got]
            stream.cut()
        else:
            is_ready.set()
            await client.sees("!ping")
            client.send(kind.deed.format(room=room, asker=f"{room}/McpDebug"))
        await client.gone()
    finally:
        is_ready.set()
        client.writer.close()


async def ask(bridge: BridgeProcess, room: str) -> list[dict[str, Any]]:
    """The results of an agent's calls: it asks the bot, and then does what it is told to."""
    question = {"message": "!ping", "from": "bot", "awaitSeconds": AWAITED_SECONDS, "room": room}
    asked = await bridge.call("xmppSend", **question)
    step = asked["nextStep"]
    return [asked, await bridge.call(step["tool"], **step["arguments"])]


@pytest.mark.long
async def test_two_calls_say_of_each_whether_it_was_reached_and_what_it_did_then(
    tmp_path: Path,
) -> None:
    async with secured_sandbox() as sandbox:
        server, _ = sandbox
        rooms = [server.room() for _ in KINDS]
        bots = server.environment(MUC_ROOM=",".join(rooms))
        eyes = bots | {
            "XMPP_USERNAME": server.witness.username,
            "XMPP_PASSWORD": server.witness.password,
            "XDG_STATE_HOME": str(tmp_path),
        }
        folder = tmp_path / "xmpp-bridge" / "tap"
        async with tapped(bots, folder) as tap, BridgeProcess(tmp_path, eyes) as bridge:
            await bridge.initialize()
            await bridge.joined()
            ready = [asyncio.Event() for _ in KINDS]
            parts = zip(KINDS.values(), rooms, ready, strict=True)
            playing = [
                asyncio.create_task(play(kind, room, tap, sandbox, event))
                for kind, room, event in parts
            ]
            await asyncio.gather(*(event.wait() for event in ready))
            results = await asyncio.gather(*(ask(bridge, room) for room in rooms))
            for task in playing:
                task.cancel()
            await asyncio.gather(*playing, return_exceptions=True)
    for (name, kind), (asked, diagnosis) in zip(KINDS.items(), results, strict=True):
        is_told = diagnosis["outcome"] == "cause" or "reached" in diagnosis["verdict"]
        assert is_told, (name, diagnosis)
        findings = {each["name"]: each for each in diagnosis["findings"]}
        # Of a cause that is no stream's, the finding says more than the verdict.
        told = findings.get("stream", {"detail": ""})["detail"]
        detail = f"{diagnosis['verdict']} {told}"
        assert kind.words in detail, (name, diagnosis)
        assert f", {kind.rule}: " in detail or not kind.rule, (name, diagnosis)
        # The bot was in the room, and so was reached, unless the finding `present` says otherwise.
        when = findings.get("present", {"detail": ""})["detail"]
        assert ("left the room at" in when) is (kind.rule == "ended"), (name, diagnosis)
        if kind.deed == CUT:
            assert when.split(" at ")[1][:23] < asked["reflectedAt"], (name, asked)
