"""Makes the files in this folder, with the program as it was before its store was made anew.

    .venv/bin/python -m tests.store.former.make

It was run once, at the commit that README.md names, and can be run at no later one: a newer program
writes other stores. Two bridges of one user, a recorder and an agent, sit in two rooms of the
sandbox, and people talk. Then the bridges are killed, and come again: first with a file as their
store, then with a database, which is away at the end.
"""

import asyncio
import json
import lzma
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from time import time
from typing import Any
from xml.etree import ElementTree

from slixmpp import JID

from bridge.text import iso
from tests.e2e.bridge_process import BridgeProcess, RpcFailedError
from tests.e2e.watching import Watching, run
from tests.servers.certificates import Authority
from tests.servers.postgresql import Postgresql, running_postgresql
from tests.servers.sandbox import running_sandbox
from tests.servers.server import XmppServer
from tests.servers.witness import Witness
from tests.store.damaged import damage
from tests.store.former.files import FOLDER, LOBBY, SCHEMA, pack
from tests.store.recorded import until

DESK = "desk@rooms.localhost"
ROOMS = (LOBBY, DESK)
ODD = (
    'hidden: \u202egnp.exe\u202c \u200b and "quoted" \\u0041 \x7f <&>\nsecond line',
    "Größe 10 µm, 漢字, \U0001f600 and a\u0301",
    "{}",
    "x" * 3_000,
)


SENT = ("from the agent", "to the desk")
HEARD = (*SENT, "hello", "again", "at the desk", "psst, McpDebug", "psst, McpDebug-record")
SPOOLED = len(HEARD) + 1 + len(SENT)
"""How many messages a talk has: one is said twice, and what is sent is heard, too."""
ABSENT_SECONDS = 16.0
"""Longer than any lease, so that a gap is recorded."""


class Stage:
    """The two rooms, a person in each, and the bridges."""

    def __init__(
        self, home: Path, settings: dict[str, str], wilma: Witness, walter: Witness
    ) -> None:
        self.home, self.settings = home, settings
        self.wilma, self.walter = wilma, walter

    @asynccontextmanager
    async def bridges(self) -> AsyncIterator[tuple[Watching, BridgeProcess]]:
        """A recorder and an agent, both in both rooms, until they are killed or told to end."""
        recording = Watching(self.home, self.settings, command="record")
        agent = BridgeProcess(self.home, self.settings)
        async with recording:
            for witness in (self.wilma, self.walter):
                await witness.joined("McpDebug-record")
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(agent)
                for witness in (self.wilma, self.walter):
                    await witness.joined("McpDebug")
                await agent.until(_is_in_all)
                yield recording, agent

    async def talk(self, agent: BridgeProcess, name: str) -> None:
        """What everybody hears, what only one hears, and what is sent; `name` tells when."""
        for text in (f"{name}: hello", f"{name}: again", f"{name}: again"):
            self.wilma.say(text)
            await self.wilma.heard(text)
        self.walter.say(f"{name}: at the desk")
        await self.walter.heard(f"{name}: at the desk")
        for nickname in ("McpDebug", "McpDebug-record"):
            self.wilma.client.send_message(
                mto=JID(f"{self.wilma.room}/{nickname}"),
                mtype="chat",
                mbody=f"{name}: psst, {nickname}",
            )
        await agent.bare("xmppSend", message=f"{name}: from the agent")
        await agent.bare("xmppSend", message=f"{name}: to the desk", room=DESK)

    async def logged(self, *more: str) -> str:
        """What `log --json` shows now."""
        code, out, _ = await run(self.home, self.settings, "log", "--json", *more)
        assert code == 0
        return out

    async def has(self, name: str, *more: str) -> None:
        """Return once `log` has all of a talk, both what is everybody's and what is not."""
        wanted = {
            *((f"{name}: {text}", "in") for text in HEARD),
            *((f"{name}: {text}", "out") for text in SENT),
            *((text, "in") for text in more),
        }
        async with asyncio.timeout(60):  # a lease is taken over within 15 s
            while wanted:  # the store tells nobody
                events = map(json.loads, (await self.logged()).splitlines())
                shown = {
                    (each.get("body", each.get("subject")), each.get("direction"))
                    for each in events
                }
                wanted -= shown


def _is_in_all(status: dict[str, Any]) -> bool:
    return all(room["phase"] == "joined" for room in status["rooms"])


async def _oddities(stage: Stage, agent: BridgeProcess) -> None:
    for text in ODD:
        stage.wilma.say(text)
        await stage.wilma.heard(text)
    await _moderate(stage.wilma, True)
    await stage.wilma.muc.set_role(stage.wilma.room, "McpDebug", "visitor")
    await agent.until(lambda status: not status["self"]["voice"])
    with suppress(RpcFailedError):
        await agent.bare("xmppSend", message="comes back")
    await _moderate(stage.wilma, False)
    await stage.wilma.muc.set_role(stage.wilma.room, "McpDebug", "participant")
    await agent.until(lambda status: status["self"]["voice"])
    stage.wilma.muc.set_subject(stage.wilma.room, "the subject")
    empty = stage.wilma.client.make_message(mto=stage.wilma.room, mtype="groupchat")
    empty["id"] = "no-body"
    empty.append(_encrypted())
    empty.send()


async def _moderate(witness: Witness, moderated: bool) -> None:
    forms: Any = witness.client.plugin["xep_0004"]
    form = forms.make_form(ftype="submit")
    kind = "http://jabber.org/protocol/muc#roomconfig"
    form.add_field(var="FORM_TYPE", value=kind, ftype="hidden")
    form.add_field(var="muc#roomconfig_moderatedroom", value=moderated)
    await witness.muc.set_room_config(witness.room, form)


def _encrypted() -> ElementTree.Element:
    return ElementTree.Element("{eu.siacs.conversations.axolotl}encrypted")


def _copy(path: Path, folder: Path) -> Path:
    """Copy a file and its `-wal`, which nobody has open."""
    folder.mkdir()
    for each in (path, path.with_name(f"{path.name}-wal")):
        if each.exists():
            shutil.copy(each, folder)
    return folder


async def _make_file(stage: Stage, folder: Path) -> None:
    path = stage.home / ".local/state/xmpp-bridge/rooms.db"
    async with stage.bridges() as (recording, agent):
        await stage.talk(agent, "first")
        await _oddities(stage, agent)
        await stage.has("first", "the subject")
        _kill(recording, agent)
    await stage.wilma.left("McpDebug-record")
    stage.wilma.say("heard by no bridge")
    await stage.wilma.heard("heard by no bridge")
    await asyncio.sleep(ABSENT_SECONDS)
    async with stage.bridges() as (recording, agent):
        await stage.talk(agent, "second")
        await stage.has("second")
        _kill(recording, agent)
    copied = _copy(path, folder / "wal")
    assert (copied / "rooms.db-wal").exists()
    (FOLDER / "wal.jsonl").write_text(await stage.logged())
    pack(copied, "wal")
    async with stage.bridges() as (recording, agent):
        await stage.talk(agent, "third")
        await stage.has("third")
        recording.signal(signal.SIGTERM)
        await recording.ended()
    for id_, value in (
        (_row(path, "{}"), "CAST(x'7bff7d' AS TEXT)"),
        (_row(path, "first: hello"), "substr(event, 1, 20)"),
    ):
        damage(path, "events", id_, "event", value)
    copied = _copy(path, folder / "store")
    assert not (copied / "rooms.db-wal").exists()
    (FOLDER / "store.jsonl").write_text(await stage.logged())
    (FOLDER / "stanzas.jsonl.xz").write_bytes(
        lzma.compress((await stage.logged("--stanzas")).encode())
    )
    pack(copied, "store")


def _row(path: Path, body: str) -> int:
    """The id of what everybody heard with this body."""
    with closing(sqlite3.connect(path)) as store:
        ((id_,),) = store.execute(
            "SELECT id FROM events WHERE shared AND event ->> '$.body' = ?", [body]
        )
    return int(id_)


def _kill(recording: Watching, agent: BridgeProcess) -> None:
    recording.signal(signal.SIGKILL)
    agent.process.kill()


async def _make_database(stage: Stage, server: Postgresql, folder: Path) -> None:
    spool = stage.home / ".local/state/xmpp-bridge/spool.db"
    async with stage.bridges() as (recording, agent):
        await stage.talk(agent, "first")
        await stage.has("first")
        _kill(recording, agent)
    await stage.wilma.left("McpDebug-record")
    await asyncio.sleep(ABSENT_SECONDS)
    async with stage.bridges() as (recording, agent):
        await stage.talk(agent, "second")
        # Both leases are taken over within 15 s.
        await stage.has("second")
        (FOLDER / "database.jsonl").write_text(await stage.logged())
        _dump(server, FOLDER / "database.sql")
        await asyncio.to_thread(server.kill)
        await stage.talk(agent, "away")
        await until(lambda: _spooled(spool))
        _kill(recording, agent)
    end = iso(time())
    copied = _copy(spool, folder / "spool")
    await asyncio.to_thread(server.start)
    pack(copied, "spool")
    async with stage.bridges() as (recording, agent):
        await stage.has("away")
        recording.signal(signal.SIGTERM)
        await recording.ended()
    told = [line for line in (await stage.logged()).splitlines() if json.loads(line)["at"] <= end]
    (FOLDER / "spool.jsonl").write_text("".join(f"{line}\n" for line in told))


def _spooled(path: Path) -> bool:
    """Whether the whole talk is in the spool: what is said and sent, and the room's copies."""
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as spool,
    ):
        parts = "".join(text for (text,) in spool.execute("SELECT parts FROM batches"))
        return parts.count('"body": "away: ') == SPOOLED
    return False


def _dump(server: Postgresql, file: Path) -> None:
    options = ("--inserts", "--no-owner", "--no-privileges", f"--schema={SCHEMA}")
    dumped = subprocess.run(
        ["pg_dump", *options, f"--dbname={server.url()}"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    lines = (each for each in dumped.splitlines() if each and not each.startswith(("--", "\\")))
    file.write_text("".join(f"{line}\n" for line in lines))


async def _make(sandbox: XmppServer, server: Postgresql, folder: Path) -> None:
    common = sandbox.environment(
        MUC_ROOM=",".join(ROOMS), BRIDGE_STORE_STANZAS="1", XMPP_DOMAIN=sandbox.domain
    )
    server.query(f"CREATE SCHEMA {SCHEMA}")
    url = f"{server.url()}&options=-csearch_path%3D{SCHEMA}"
    for name, settings in (("file", common), ("database", common | {"BRIDGE_STORE": url})):
        async with (
            Witness(sandbox, sandbox.witness, LOBBY, "Wilma") as wilma,
            Witness(sandbox, sandbox.robot, DESK, "Walter") as walter,
        ):
            stage = Stage(folder / name, settings, wilma, walter)
            if name == "file":
                await _make_file(stage, folder)
            else:
                await _make_database(stage, server, folder)


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as name,
        tempfile.TemporaryDirectory() as data,
        running_sandbox() as sandbox,
        running_postgresql(Path(data), Authority(Path(name)).issue("db.example")) as server,
    ):
        asyncio.run(_make(sandbox, server, Path(name)))
