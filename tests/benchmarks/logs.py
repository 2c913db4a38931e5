"""Debug logs of a bot in a busy room, in several formats, as large as is asked for."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from xml.etree.ElementTree import XML, ParseError

from bridge.capture.capture import Capture
from bridge.commands.explain import read_log
from tests.benchmarks.bench import BRIDGE
from tests.capture.healthy import Passed
from tests.capture.logs import ACCOUNT, JOIN, LOGIN, ROOM, USER
from tests.capture.writers import written

EXPAT = "bare expat"
MEGABYTE = 1_000_000
SIZE = 4 * MEGABYTE
OTHER = "2026-11-24 17:49:31,050 DEBUG    Event triggered: groupchat_message, 3 handlers, 0.004 s\n"
"""A line of other output; libraries write several for each stanza."""

FORMATS = {
    "slixmpp": "",
    "slixmpp, other lines": OTHER * 4,
    "aioxmpp": "",
    "@xmpp/debug": "",
    "Prosody": "",
    "ejabberd": "",
    "libstrophe": "",
    "log --stanzas --json": "",
}
"""What stands behind each stanza."""


def room_talk() -> Iterator[Passed]:
    """A bot that logs in, and then what a room says, with some coming and going, for ever."""
    for line in chain(LOGIN, JOIN):
        yield Passed(0.1, line.startswith(">>>"), line[4:])
    for number in count():
        name = f"Occupant{number % 30}"
        if number % 5 == 4:
            yield Passed(
                0.5,
                False,
                f"<presence xml:lang='en' from='{ROOM}/{name}' to='{ACCOUNT}'>"
                "<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' "
                "node='https://gajim.org' ver='4ec2uRjFyMW1FdPiYh2aHo+Wzy8='/>"
                "<idle xmlns='urn:xmpp:idle:1' since='2026-11-24T17:40:00Z'/>"
                "<occupant-id xmlns='urn:xmpp:occupant-id:0' "
                f"id='zoNDzTIRDUmxzyMoAb1vBCvE3Ag7pfrL+qE/ss{number:08}='/>"
                f"<x xmlns='{USER}'><item affiliation='none' role='participant'/></x></presence>",
            )
            continue
        yield Passed(
            0.5,
            False,
            f"<message xml:lang='en' from='{ROOM}/{name}' to='{ACCOUNT}' type='groupchat' "
            f"id='5e1c6a7e-5a33-4b0c-9d3c-{number:012}'><body>I looked at it again, and number "
            f"{number} is not what we thought it was yesterday.</body>"
            f"<origin-id xmlns='urn:xmpp:sid:0' id='5e1c6a7e-5a33-4b0c-9d3c-{number:012}'/>"
            "<active xmlns='http://jabber.org/protocol/chatstates'/>"
            "<markable xmlns='urn:xmpp:chat-markers:0'/>"
            "<occupant-id xmlns='urn:xmpp:occupant-id:0' "
            f"id='zoNDzTIRDUmxzyMoAb1vBCvE3Ag7pfrL+qE/ss{number:08}='/>"
            f"<stanza-id xmlns='urn:xmpp:sid:0' by='{ROOM}' id='2026-11-24-{number:016x}'/>"
            "</message>",
        )


def write_log(path: Path, format_: str, size: int) -> None:
    """Write a log of at least `size` bytes in one of `FORMATS`."""
    talk = room_talk()
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < size:
            batch = [next(talk) for _ in range(100)]
            lines = written(format_.partition(",")[0], batch).splitlines(keepends=True)
            behind = FORMATS[format_]
            file.write("".join(f"{line}{behind}" for line in lines))


def explained(path: Path) -> float:
    """Read a log and look for findings; return the megabytes in a second of processor time."""
    capture, began = Capture(), process_time()
    with path.open("rb") as file:
        read_log(file, path.name, capture)
    capture.finish()
    return path.stat().st_size / MEGABYTE / (process_time() - began)


def parsed(path: Path) -> float:
    """Do no more than parse what is behind each prefix by expat: no program can be faster."""
    began = process_time()
    with path.open(encoding="utf-8") as file:
        for line in file:
            with suppress(ParseError):  # headers
                XML(line[line.index("<") :])
    return path.stat().st_size / MEGABYTE / (process_time() - began)


def main(pairs: int) -> None:
    """Print as JSON how fast logs of each format are read, `pairs` times in turns."""
    with TemporaryDirectory(prefix="benchmark-") as folder:
        contenders: dict[tuple[str, str], Callable[[], float]] = {}
        for number, format_ in enumerate(FORMATS):
            path = Path(folder) / str(number)
            write_log(path, format_, SIZE)
            contenders[BRIDGE, format_] = partial(explained, path)
            if format_ == "slixmpp":
                contenders[EXPAT, format_] = partial(parsed, path)
        speeds_of: dict[tuple[str, str], list[float]] = {key: [] for key in contenders}
        for turn in range(pairs + 1):
            for key, run in contenders.items():
                speed = run()
                if turn:
                    speeds_of[key].append(speed)
    sys.stdout.write(json.dumps([[*key, "MB/s", speeds] for key, speeds in speeds_of.items()]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
