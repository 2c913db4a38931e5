"""Formats by generation: random heads, words, escapes and views; a direction is never wrong."""

import html
import json
from bisect import bisect_right
from collections.abc import Callable
from random import Random

import pytest

from bridge.capture.stanza import HOLE
from tests.capture import typed
from tests.capture.logs import captured

FORMATS = 60

WORDS = (
    *(("SEND", "RECV"), (">>>", "<<<"), ("==>", "<=="), ("tx", "rx"), ("sent", "got")),
    *(("C:", "S:"), ("out", "in"), ("(0)", "(1)"), ("→", "←"), ("Gesendet", "Empfangen")),
    *(
        ("enviado", "recibido"),
        ("OUTGOING", "INCOMING"),
        ("written", "read"),
        ("kirjoitti", "luki"),
    ),
    *(("dataSent", "dataReceived"), ("to server", "from server"), ("-->", "<--"), ("up", "down")),
)

WAYS: tuple[Callable[[str], str], ...] = (
    str,
    repr,
    lambda xml: repr(xml.encode()),
    json.dumps,
    lambda xml: json.dumps(xml).replace("<", "\\u003c").replace(">", "\\u003e"),
    html.escape,
    lambda xml: xml.replace("<", "«").replace(">", "»"),
    lambda xml: '<<"' + xml.replace("\\", "\\\\").replace('"', '\\"') + '">>',
    lambda xml: xml.replace("><", ">\n  <") if not xml.startswith("<stream:stream") else xml,
)

HEADS = (
    *("", "{time} ", "[{time}] DEBUG ", "{time} D/Conn(41{n}): ", "app.xmpp.conn ", "2021 [{n}] "),
    *("bot@example.org/r1: ", "DEBUG:pkg.XMLStream:", "level=debug ts={time} msg=", "<{n}> "),
)

UNIT = (
    "{word} {xml}",
    "{word}: {xml}",
    "{word}:\n{xml}",
    "{word} ({n}): {xml}",
    "{word} {xml} +{n}ms",
)


def form(random: Random, *, reverses: bool) -> Callable[[bool, str, int], str]:
    """A format: how an entry is written."""
    words, way = random.choice(WORDS), random.choice(WAYS)
    head, unit = random.choice(HEADS), random.choice(UNIT)
    if words[0].startswith("("):
        unit = "{word} {xml}"

    def written(sent: bool, xml: str, n: int) -> str:
        word = words[sent == reverses]
        time = f"10:{n // 60:02}:{n % 60:02}.{n:03}"
        line = f"{head}{unit}".replace("{time}", time).replace("{n}", str(n % 10))
        return line.replace("{word}", word).replace("{xml}", way(xml))

    return written


def directions(log: list[str]) -> list[bool | None]:
    """The direction of each entry of a log; None if it was not read."""
    begins, line = list[int](), 1
    for entry in log:
        begins.append(line)
        line += entry.count("\n") + 1
    ways: list[bool | None] = [None] * len(log)
    for stanza in captured(*"\n".join(log).split("\n")):
        if stanza.element.tag != HOLE:
            ways[bisect_right(begins, stanza.place.line) - 1] = stanza.sent
    return ways


@pytest.mark.parametrize("trouble", ["", "join", "removed"])
@pytest.mark.parametrize("reverses", [False, True], ids=["client", "server"])
def test_a_direction_is_never_wrong_and_seldom_unknown(reverses: bool, trouble: str) -> None:
    ways = list[bool | None]()
    parts = typed.SESSIONS[trouble]
    for seed in range(FORMATS):
        random = Random(f"{seed} {reverses}")  # noqa: S311 - nothing is secret
        form_ = form(random, reverses=reverses)
        log = [form_(sent, xml, n) for n, (sent, xml) in enumerate(parts)]
        for begin in (0, random.randrange(len(parts))):
            read = directions(log[begin:])
            for entry, way, (sent, _) in zip(log[begin:], read, parts[begin:], strict=True):
                assert way in {sent, None}, "\n".join([entry, *log[begin:]])
            ways += read
    assert ways.count(None) <= 0.05 * len(ways)
