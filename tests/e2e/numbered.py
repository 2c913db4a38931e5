"""A room in which numbers are said, bridges that are killed, and an account of every number.

It looks at the bridges from outside, as a user would: it starts and kills the installed command,
hears the room, and reads `log --json`. What a store promises is in docs/store.md:

- A number is in the log once, or, if it is not there, a gap is there at its time.
- No gap is at a time when a bridge was in the room, unless that bridge was killed within the next
  second.
- What only one bridge hears is there once, unless that bridge was killed within the next second.
"""

import asyncio
import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from slixmpp import JID
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import StanzaPath
from slixmpp.xmlstream.stanzabase import StanzaBase

from bridge.text import seconds_of
from tests.e2e.bridge_process import COMMAND
from tests.e2e.watching import Watching, run
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

RATE = 25.0
"""How many numbers are said in a second."""

ALIKE, WHISPERED = 5, 7
"""Every fifth number is said in the same words as the others; after every seventh, one bridge hears
something alone."""

LOSS_SECONDS = 1.0
"""What a kill may lose."""

LAG_SECONDS = 0.5
"""How much later than the room a bridge, or we, may notice something on a busy machine."""

SETTLE_SECONDS = 45.0
"""A silent machine counts as there for 10 s; and a busy machine takes its time to ship."""

START_SECONDS = 30.0
FOLLOW = ("--follow", "--json", "--since", "1 minute ago")
"""What a reader runs who sees each event as it comes, and once."""
LOOK_EVERY_SECONDS = 3.0
"""Each look starts a process for each home."""


class Stay(NamedTuple):
    """A time that a bridge was in the room."""

    name: str
    start: float
    end: float
    """Infinite while it is there."""


@dataclass
class Bridge:
    """One bridge, which is a new process after each kill."""

    name: str
    """Its nickname."""
    home: Path
    command: str
    settings: Mapping[str, str]
    killed: list[float] = field(default_factory=list)
    process: asyncio.subprocess.Process | None = None

    @property
    def log(self) -> Path:
        """What its processes say on stderr."""
        return self.home / f"{self.name}.log"

    async def start(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "nothing.env").touch()
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                COMMAND,
                *(self.command, "--env-file", "nothing.env"),
                env={"PATH": os.environ["PATH"], "HOME": str(self.home), **self.settings},
                cwd=self.home,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    async def kill(self) -> None:
        """End it without a word."""
        self.killed.append(time.time())
        self.signal(signal.SIGKILL)
        assert self.process is not None
        await self.process.wait()

    async def end(self) -> None:
        """Let it end in order."""
        self.signal(signal.SIGTERM)
        assert self.process is not None
        await self.process.wait()


class Room:
    """The room, who is in it when, and what is said in it."""

    def __init__(self, wilma: Witness, bridges: Sequence[Bridge]) -> None:
        self.bridges = bridges
        self.said: dict[int, float] = {}
        """When each number was said."""
        self.heard: dict[int, float] = {}
        """When the room sent it out, by our clock."""
        self.whispered: dict[int, tuple[str, float]] = {}
        """Who heard what alone, and when it was sent."""
        self.deeds: list[tuple[float, str]] = []
        """What was done to the bridges, and when."""
        self.following: Watching | None = None
        """A `log` that follows, on the first bridge's machine."""
        self._wilma = wilma
        self._since: dict[str, float] = {}
        self._stays: list[Stay] = []
        self._news = asyncio.Event()
        self._talk: asyncio.Task[None] | None = None
        for path, handle in (("presence", self._see), ("message", self._hear)):
            handler = Callback(f"numbered {path}", StanzaPath(path), handle)
            wilma.client.register_handler(handler)

    @property
    def stays(self) -> list[Stay]:
        here = [Stay(name, start, float("inf")) for name, start in self._since.items()]
        return sorted([*self._stays, *here], key=lambda stay: stay.start)

    def note(self, deed: str) -> None:
        self.deeds.append((time.time(), deed))

    async def until(self, count: int) -> None:
        """Return once so many more numbers were said: this is how time passes here."""
        end = len(self.heard) + count
        while len(self.heard) < end:
            self._news.clear()
            await self._news.wait()

    async def until_all_are_in(self) -> None:
        """Return once every bridge is in the room."""
        async with asyncio.timeout(START_SECONDS):
            while not all(bridge.name in self._since for bridge in self.bridges):
                self._news.clear()
                await self._news.wait()

    async def restart(self, *bridges: Bridge) -> None:
        """Kill these bridges at once, and start them at once, as systemd does."""
        self.note(f"kill and start {', '.join(bridge.name for bridge in bridges)}")
        await asyncio.gather(*(bridge.kill() for bridge in bridges))
        await asyncio.gather(*(bridge.start() for bridge in bridges))

    @asynccontextmanager
    async def talking(self) -> AsyncIterator[None]:
        """Let the numbers be said until the end of the block, or `hush`."""
        self._talk = asyncio.create_task(self._say_all())
        try:
            yield
        finally:
            await self.hush()

    async def hush(self) -> None:
        """Say no more numbers; returns once the room has sent out the last."""
        assert self._talk is not None
        self._talk.cancel()
        await asyncio.wait([self._talk])
        async with asyncio.timeout(START_SECONDS):
            while self.said.keys() - self.heard.keys():
                self._news.clear()
                await self._news.wait()

    async def _say_all(self) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while True:
            number = len(self.said) + 1
            self._say(number)
            await asyncio.sleep(begun + number / RATE - loop.time())

    def _say(self, number: int) -> None:
        client = self._wilma.client
        body = "again" if number % ALIKE == 0 else f"number {number}"
        message = client.make_message(mto=JID(self._wilma.room), mbody=body, mtype="groupchat")
        message["id"] = f"n{number}"
        self.said[number] = time.time()
        message.send()
        if number % WHISPERED == 0 and self._since:
            names = sorted(self._since)
            name = names[number // WHISPERED % len(names)]
            self.whispered[number] = (name, time.time())
            to = JID(f"{self._wilma.room}/{name}")
            message = client.make_message(mto=to, mbody=f"psst {number}", mtype="chat")
            message["id"] = f"p{number}"
            message.send()

    def _see(self, presence: StanzaBase) -> None:
        name = presence["from"].resource
        if name == self._wilma.nick or presence["from"].bare != self._wilma.room:
            return
        if presence["type"] == "unavailable":
            if (start := self._since.pop(name, None)) is not None:
                self._stays.append(Stay(name, start, time.time()))
        else:
            self._since.setdefault(name, time.time())
        self._news.set()

    def _hear(self, message: StanzaBase) -> None:
        id_ = str(message["id"])
        if message["type"] == "groupchat" and id_.startswith("n"):
            self.heard[int(id_[1:])] = time.time()
            self._news.set()


@dataclass
class Account:
    """What became of each number, by what a user reads."""

    room: Room
    events: Sequence[Mapping[str, Any]]
    """The lines of `log --json`."""

    @property
    def gaps(self) -> list[tuple[float, float, Mapping[str, Any]]]:
        """The gaps of this room."""
        gaps = [event for event in self.events if event["kind"] == "gap" and "from" in event]
        return [(_time(gap["from"]), _time(gap["to"]), gap) for gap in gaps]

    def faults(self) -> list[str]:
        """What is not as it should be, each in a line or more; empty if all is well."""
        stored = self.stored("n")
        wanted = self.room.heard.keys()
        missing = sorted(wanted - stored.keys())
        faults = [
            f"neither stored nor in a gap: {_spans(gone)}"
            for gone in [[number for number in missing if not self._is_in_gap(number)]]
            if gone
        ]
        faults += self.doubles()
        whispers = sorted(self._missing_whispers())
        if whispers:
            named = [f"p{number} to {self.room.whispered[number][0]}" for number in whispers]
            faults.append(f"heard by one bridge, which was not killed, and not stored: {named}")
        for start, end, gap in self.gaps:
            for stay in self._witnesses(start, end):
                numbers = [n for n, at in self.room.heard.items() if start <= at <= end]
                faults.append(
                    f"a false gap {self._clock(start)} to {self._clock(end)}"
                    f" ({gap.get('reason')}): numbers {_spans(numbers)}; {stay.name} was in the"
                    f" room from {self._clock(stay.start)} to {self._clock(stay.end)}"
                )
                break
        return faults

    def doubles(self) -> list[str]:
        """What is there twice, with some of the rows."""
        faults = []
        for kind in ("n", "p"):
            doubles = {number: each for number, each in self.stored(kind).items() if len(each) > 1}
            if doubles:
                faults.append(f"there twice ({kind}): {_spans(doubles)}")
            for number in [*doubles][:5]:
                faults += [f"  {kind}{number}: {_row(row)}" for row in doubles[number]]
        return faults

    def __str__(self) -> str:
        room = self.room
        missing = sorted(room.heard.keys() - self.stored("n").keys())
        lines = [
            f"{len(room.heard)} numbers, said in {self._clock(max(room.heard.values()))}",
            *self.faults(),
            f"missing, in a gap or not: {_spans(missing)}",
            *(
                f"gap {self._clock(start)} to {self._clock(end)}: {gap.get('reason')}"
                f" {gap.get('events', '')}"
                for start, end, gap in self.gaps
            ),
            *(f"{self._clock(at)} {deed}" for at, deed in room.deeds),
            *(
                f"{stay.name} in the room {self._clock(stay.start)} to {self._clock(stay.end)},"
                f" {_spans(n for n, at in room.heard.items() if stay.start <= at <= stay.end)}"
                for stay in room.stays
            ),
        ]
        return "\n".join(lines + [words for bridge in room.bridges for words in _words(bridge)])

    def stored(self, kind: str) -> dict[int, list[Mapping[str, Any]]]:
        """The rows of each number: `n` for what the room heard, `p` for what one bridge did."""
        rows = defaultdict[int, list[Mapping[str, Any]]](list)
        for event in self.events:
            if event["kind"] == "message" and str(event.get("id", "")).startswith(kind):
                rows[int(event["id"][1:])].append(event)
        return dict(sorted(rows.items()))

    def _is_in_gap(self, number: int) -> bool:
        said, heard = self.room.said[number], self.room.heard[number] + LAG_SECONDS
        return any(start <= heard and said <= end for start, end, _ in self.gaps)

    def _missing_whispers(self) -> Iterable[int]:
        stored = self.stored("p")
        for number, (name, at) in self.room.whispered.items():
            sure = any(stay.name == name and _holds(stay, at) for stay in self.room.stays)
            if sure and number not in stored:
                yield number

    def _witnesses(self, start: float, end: float) -> Iterable[Stay]:
        """The stays of which a gap leaves out what that bridge has surely written."""
        for stay in self.room.stays:
            # Where a bridge came just before the gap begins, or the gap ends as it comes in, both
            # clocks are a little late.
            first = max(start, stay.start + LAG_SECONDS)
            last = min(end, stay.end - LOSS_SECONDS - LAG_SECONDS)
            if first < last:
                yield stay

    def _clock(self, at: float) -> str:
        begun = min(self.room.said.values())
        return "the end" if at == float("inf") else f"{at - begun:+.2f} s"


@asynccontextmanager
async def numbered(
    server: XmppServer,
    settings: Mapping[str, str],
    names: Mapping[str, Path],
    *,
    stores: Mapping[str, str] | None = None,
) -> AsyncIterator[Room]:
    """A room in which numbers are said, and the bridges, all of which are in it.

    `names` has the nickname of each bridge and its home. Those that end with `-record` are
    recorders, which add this to their nickname themselves; the others serve an agent. `stores`
    has another `BRIDGE_STORE` for some nicknames.
    """
    bridges = []
    for name, home in names.items():
        recorder = name.removesuffix("-record")
        other = {"BRIDGE_STORE": stores[name]} if stores and name in stores else {}
        command = "serve" if name == recorder else "record"
        mine = {**settings, "MCP_BOT_NICKNAME": recorder, **other}
        bridges.append(Bridge(name, home, command, mine))
    async with AsyncExitStack() as stack:
        witness = Witness(server, server.witness, settings["MUC_ROOM"], "Wilma")
        room = Room(await stack.enter_async_context(witness), bridges)
        for bridge in bridges:
            await bridge.start()
            stack.push_async_callback(bridge.kill)
        await room.until_all_are_in()
        first = bridges[0]
        following = Watching(first.home, first.settings, *FOLLOW, command="log")
        room.following = await stack.enter_async_context(following)
        # A reader who begins while a database is away is not shown what others had recorded.
        await following.shows('"connection"')
        async with room.talking():
            yield room


async def account_of(room: Room, seed: object = None) -> None:
    """Let the bridges settle and end; then fail with the account, unless all is well.

    Every home's log has to tell the same, before the bridges end and after.
    """
    await room.until_all_are_in()
    await room.until(int(RATE * 2))
    await room.hush()
    homes = {bridge.home: bridge.settings for bridge in room.bridges}
    end = time.monotonic() + SETTLE_SECONDS
    for ended in (False, True):
        if ended:
            await asyncio.gather(*(bridge.end() for bridge in room.bridges))
        for home, settings in homes.items():
            account = await _account(room, home, settings)
            while account.faults() and time.monotonic() < end and not ended:
                await asyncio.sleep(LOOK_EVERY_SECONDS)  # the store tells nobody
                account = await _account(room, home, settings)
            faults = account.faults()
            assert not faults, f"seed {seed}, {home.name}, ended: {ended}\n{account}"
        if not ended:
            await _followed(room, account, seed)


async def _followed(room: Room, wanted: Account, seed: object) -> None:
    """Fail unless the reader who followed has seen each number of the log, and once."""
    assert room.following is not None
    stored = wanted.stored("n")
    for number in stored.keys() - _read(room).stored("n").keys():
        with suppress(TimeoutError):
            await room.following.shows(f'"id": "n{number}"')
    read = _read(room)
    missing = stored.keys() - read.stored("n").keys()
    assert not missing, f"seed {seed}: not followed: {_spans(missing)}\n{wanted}"
    doubles = "\n".join(read.doubles())
    assert not doubles, f"seed {seed}: followed, but\n{doubles}\n{wanted}"


def _read(room: Room) -> Account:
    assert room.following is not None
    lines = room.following.out.splitlines(keepends=True)
    return Account(room, [json.loads(line) for line in lines if line.endswith("\n")])


async def _account(room: Room, home: Path, settings: Mapping[str, str]) -> Account:
    code, out, err = await run(home, settings, "log", "--json")
    assert code == 0, err
    return Account(room, [json.loads(line) for line in out.splitlines()])


def _holds(stay: Stay, at: float) -> bool:
    """Whether a bridge surely keeps what it hears at a time."""
    return stay.start + LAG_SECONDS <= at <= stay.end - LOSS_SECONDS - LAG_SECONDS


def _time(text: str) -> float:
    seconds = seconds_of(text)
    assert seconds is not None
    return seconds


def _spans(numbers: Iterable[int]) -> str:
    """Numbers as spans: `1-4, 7`."""
    spans = []
    for _, group in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        span = [number for _, number in group]
        spans.append(f"{span[0]}-{span[-1]}" if len(span) > 1 else str(span[0]))
    return ", ".join(spans) or "none"


def _row(row: Mapping[str, Any]) -> str:
    names = ("cursor", "at", "source", "observer", "direction", "stanzaId")
    return ", ".join(f"{name} {row[name]}" for name in names if name in row)


def _words(bridge: Bridge) -> list[str]:
    """What a bridge said of its store."""
    lines = bridge.log.read_text("utf-8", "replace").splitlines()
    warnings = [line for line in lines if "WARNING" in line]
    return [f"--- {bridge.name} ({bridge.home.name})", *warnings[-12:]]
