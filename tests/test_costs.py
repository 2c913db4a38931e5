"""What things cost, in counts that no other load on the machine changes.

`tests/benchmarks` has the timings. Each bound is a tenth to a quarter above what was counted on
CPython 3.11, so that it holds on newer ones and still tells of a step up.
"""

import asyncio
import gc
import json
import logging
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest

from bridge.logs import StderrHandler
from bridge.mcp.asking import RequestStates
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.server import Implementation, Server
from bridge.mcp.session import Session
from bridge.mcp.toolset import Toolset
from bridge.recording.recording import Recording
from bridge.settings.table import Settings
from bridge.settings.values import Secret
from bridge.tools import status
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.trace import Trace
from bridge.xmpp.model.events import MessageReceived
from bridge.xmpp.model.formatting import format_event
from bridge.xmpp.model.journal import Journal, Record
from bridge.xmpp.muc.participant import Participant
from tests.e2e.bridge_process import COMMAND
from tests.prerequisites import do_without
from tests.xmpp.elements import append

ROOT = Path(__file__).parent.parent
ROOM = "room@conference.localhost"
OWN = f"{ROOM}/McpDebug"
MANY = 500
"""Of which twice as many cost twice as much: what happens once falls out of the difference."""
SLICE = 20
"""Messages in `stream.SLICE_BYTES`."""
SECONDS = 60.0
"""Limit for a child process."""

MODULES = 225
"""Imported before the first answer; counted: 215."""
DATACLASSES = 33
"""Made by our modules before the first answer, 0.4 ms each without `__eq__`, 1.3 ms where they are
frozen; counted: 29. A named tuple takes 0.2 ms."""
COMPILED = 160
"""Texts compiled before the first answer, a tenth of a millisecond each: two to six functions of
a dataclass, one of a named tuple; counted: 138."""
ECHO_CALLS = 127
"""Functions called for one `tools/call` of echo, those in C among them; counted: 121."""
MESSAGE_CALLS = 240
"""Functions called for one message in the room: read, traced, kept, told to log and store; counted:
227."""
JOURNAL_BYTES = 125
"""Memory that a journal keeps for one message beside the event itself; counted: 105."""
MESSAGE_BYTES = 2_600
"""Memory that a journal and a trace keep for one message of 400 bytes, its event and element;
counted: 2,251."""
GROWTH_BYTES = 10
"""What may be left per message where a full history takes in one more and drops the oldest."""
REPLY_SYSCALLS = 4.5
"""System calls from the wait for one call of echo to the wait for the next; counted: 4.0."""

SETTINGS = {
    "XMPP_SERVICE": "xmpp://127.0.0.1:1",
    "XMPP_DOMAIN": "localhost",
    "XMPP_USERNAME": "bot",
    "XMPP_PASSWORD": "secret",
    "MUC_ROOM": ROOM,
}

HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tests", "version": "0"},
    },
}


def _line(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _echo(id_: int) -> bytes:
    params = {"name": "echo", "arguments": {"message": "hello"}}
    return _line({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params})


def _message(number: int) -> Element:
    return fromstring(  # noqa: S314 - ours
        f"<message xmlns='jabber:client' type='groupchat' from='{ROOM}/Wilma' id='m{number}'>"
        f"<body>number {number}: what somebody says in a room is about as long as this</body>"
        f"<stanza-id xmlns='urn:xmpp:sid:0' by='{ROOM}' id='archived-{number}'/>"
        "<occupant-id xmlns='urn:xmpp:occupant-id:0' id='dd72603deec90a38ba552f7c68cbcc61'/>"
        "</message>"
    )


def _calls(work: Callable[[], object]) -> int:
    """How many functions were called by `work`."""
    count = 0

    def called(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture(scope="module")
def first_imports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What the real command has loaded by its first answer."""
    return _loaded_first(tmp_path_factory.mktemp("home"), SETTINGS)


def _loaded_first(home: Path, environment: dict[str, str]) -> dict[str, list[str]]:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tests/benchmarks/modules.py")],
        input=_line(HELLO),
        capture_output=True,
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), **environment},
        timeout=SECONDS,
        check=True,
    )
    for line in ran.stdout.splitlines():
        if (told := json.loads(line))["id"] == "modules of hello":
            result: dict[str, list[str]] = told["result"]
            return result
    raise AssertionError(ran.stdout + ran.stderr)


def test_few_modules_are_imported_before_the_first_answer(
    first_imports: dict[str, list[str]],
) -> None:
    modules = first_imports["modules"]
    assert len(modules) <= MODULES, modules


@pytest.mark.parametrize(
    "late",
    ["slixmpp", "re2", "prompt_toolkit", "wcwidth", "tomlkit", "httpx", "json5"],
)
def test_what_is_large_is_not_imported_before_the_first_answer(
    late: str, first_imports: dict[str, list[str]]
) -> None:
    assert late not in first_imports["modules"]


def test_an_end_of_input_before_any_question_loads_nothing_to_say_goodbye(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "bridge"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(ROOT),
            **SETTINGS,
        },
        timeout=SECONDS,
        check=True,
    )
    imported = [line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()]
    assert "bridge.service" in imported
    assert "[Server] Ready to accept connections" in ran.stderr
    assert [one for one in imported if one in {"bridge.xmpp.muc.participant", "slixmpp"}] == []


def test_few_dataclasses_are_made_before_the_first_answer(
    first_imports: dict[str, list[str]],
) -> None:
    dataclasses = first_imports["dataclasses"]
    assert len(dataclasses) <= DATACLASSES, dataclasses


def test_little_is_compiled_before_the_first_answer(first_imports: dict[str, list[str]]) -> None:
    compiled = first_imports["compiled"]
    assert len(compiled) <= COMPILED, compiled


def test_an_echo_calls_few_functions() -> None:
    def converse(count: int) -> None:
        async def chunks() -> AsyncIterator[bytes]:
            yield _line(HELLO)
            yield b"".join(map(_echo, range(count)))

        server = Server(
            Implementation("tests", "tests", "0", ""),
            Catalogue(replace(Toolset.of_modules("bridge", status), tools=(status.echo,)), ()),
            RequestStates(str, lambda: 0.0),
        )
        written: list[bytes] = []
        asyncio.run(Session(server, written.append).run(chunks()))
        assert b"".join(written).count(b"Echo: hello") == count

    few, many = (_calls(partial(converse, count)) for count in (MANY, 2 * MANY))
    assert (many - few) / MANY <= ECHO_CALLS


class _Taker:
    """What the bridge does with elements of the room, from the parsed element to both logs."""

    def __init__(self, folder: Path, stderr: int) -> None:
        settings = Settings(
            username="bot", domain="localhost", password=Secret("secret"), rooms=(ROOM,)
        )
        self._participant = Participant(settings)
        self._trace = self._participant.trace.of_connection(lambda: 1_700_000_000.123)
        self._recording = Recording(self._participant, folder / "rooms.db")
        self._log = logging.getLogger(f"costs.{folder.name}")
        self._log.setLevel(logging.INFO)
        self._log.propagate = False
        self._log.addHandler(StderrHandler("[Server]", stderr))
        self._untold: list[Record] = []
        self._participant.listen(lambda record: self._untold.append(record))

    def __call__(self, elements: Sequence[Element]) -> None:
        """Take them in, as many in a turn as a slice of the stream has."""
        for first in range(0, len(elements), SLICE):
            for element in elements[first : first + SLICE]:
                self._trace("in", element, b"")
                for event in stanzas.read(element, room=ROOM, own=OWN):
                    self._participant.publish(event)
            self._tell()

    def close(self) -> None:
        """Let go of the disk."""
        self._recording.recorder.close()

    def _tell(self) -> None:
        records, self._untold = self._untold, []
        events = list(map(self._participant.journal.encode, records))
        self._log.info("\n".join(map(format_event, events)))


async def test_a_message_in_the_room_calls_few_functions(tmp_path: Path) -> None:
    elements = [_message(number) for number in range(4 * MANY)]
    with (
        (tmp_path / "stderr").open("wb") as stderr,
        closing(_Taker(tmp_path, stderr.fileno())) as take,
    ):
        take(elements[:MANY])
        few = _calls(lambda: take(elements[MANY : 2 * MANY]))
        many = _calls(lambda: take(elements[2 * MANY :]))
        assert (tmp_path / "stderr").read_bytes().count(b"\n") == 4 * MANY
    assert (many - few) / MANY <= MESSAGE_CALLS


def _kept(work: Callable[[], object]) -> int:
    """How many bytes `work` left allocated."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = work()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
        del result
    finally:
        tracemalloc.stop()
    return after - before


def test_the_journal_keeps_little_beside_the_event() -> None:
    journal = Journal("epoch", 4 * MANY)
    event = MessageReceived(f"{ROOM}/Wilma", "Wilma", "hello", id="m", stanza_id="s")

    def keep() -> None:
        for _ in range(MANY):
            journal.append(event, 0.0)

    keep()
    assert _kept(keep) / MANY <= JOURNAL_BYTES


def test_a_message_in_the_room_keeps_little_memory() -> None:
    journal = Journal("epoch", 4 * MANY)
    trace = Trace(journal.numbering, 4 * MANY)
    kept = iter(range(2 * MANY))

    def keep() -> None:
        for number in islice(kept, MANY):
            element = _message(number)
            append(trace, "in", "1", element, 0.0)
            for event in stanzas.read(element, room=ROOM, own=OWN):
                journal.append(event, 0.0)

    keep()
    assert _kept(keep) / MANY <= MESSAGE_BYTES


def test_a_full_history_grows_no_further() -> None:
    journal = Journal("epoch", MANY)
    trace = Trace(journal.numbering, MANY)

    def keep() -> None:
        for number in range(2 * MANY):
            element = _message(number)
            append(trace, "in", "1", element, 0.0)
            for event in stanzas.read(element, room=ROOM, own=OWN):
                journal.append(event, 0.0)

    keep()
    tracemalloc.start()
    try:
        keep()
        keep()  # all that is kept from here on was seen coming
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        keep()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before <= MANY * GROWTH_BYTES


def _system_calls(folder: Path, count: int) -> int:
    """How many system calls the bridge makes for so many echoes, one at a time, and its start."""
    counted = folder / f"counted-{count}"
    # One thread is followed: the other loads slixmpp, which is a matter of the moment.
    nothing = folder / "nothing.env"
    nothing.touch()
    # What concerns descriptors: memory is the allocator's business.
    command = [
        "strace",
        "-e",
        "trace=desc",
        "-o",
        str(counted),
        COMMAND,
        "--env-file",
        str(nothing),
    ]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for id_ in range(count):
            process.stdin.write(_echo(id_))
            process.stdin.flush()
            if not process.stdout.readline():
                assert process.stderr is not None
                # Some containers forbid it, wherever that is.
                pytest.skip(f"strace may not trace here: {process.stderr.read().decode()}")
        process.stdin.close()
        process.wait(SECONDS)
    return len(counted.read_bytes().splitlines())


def test_a_reply_takes_few_system_calls(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        do_without("apt-get install strace")
    few, many = (_system_calls(tmp_path, count) for count in (MANY, 2 * MANY))
    assert (many - few) / MANY <= REPLY_SYSCALLS
