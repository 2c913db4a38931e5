"""The pages of the documents taken apart: their blocks, tables and examples, and whether what they
show is real.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bridge

TOP = Path(bridge.__file__).parent.parent

PAGES = {
    str(path.relative_to(TOP)): path.read_text("utf-8")
    for path in (*sorted(TOP.glob("*.md")), *sorted((TOP / "docs").glob("*.md")))
}
"""The text of each page under its path from the top of the repository."""

README = PAGES["README.md"]

ELISION = "..."
"""What stands in an example for what was left out of it."""

_FENCE = re.compile(r"(?:^<!-- (\w+) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VARYING = re.compile(r"(?<=room-)[0-9a-z]{12,}|[0-9a-f]{8,}|[0-9]+(\.[0-9]+)?")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\.\.\.|[{}\[\]]')


@dataclass(frozen=True)
class Block:
    mark: str
    """Of the comment right before it; empty if there is none."""
    language: str
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def __str__(self) -> str:
        return next(iter(self.lines), "")


@dataclass(frozen=True)
class Exchange:
    """One call of a tool, and what is shown of the answer."""

    tool: str
    arguments: dict[str, Any]
    answer: str


def blocks(text: str, *languages: str) -> list[Block]:
    fenced = [Block(mark, language, body) for mark, language, body in _FENCE.findall(text)]
    return [each for each in fenced if each.language in languages]


def prose(text: str) -> str:
    return _FENCE.sub("", text)


def section(page: str, title: str) -> str:
    """Return what stands under this heading of a page, down to the next of its rank."""
    hashes = title.partition(" ")[0]
    _, heading, rest = PAGES[page].partition(f"\n{title}\n")
    assert heading, f"{page} has no {title!r}"
    return re.split(rf"^#{{2,{len(hashes)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def tables(text: str) -> dict[str, list[list[str]]]:
    """Return the rows of each table under the first cell of its head."""
    by_head: dict[str, list[list[str]]] = {}
    for table in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        head, _, *rows = [
            [cell.strip() for cell in row.split("|")[1:-1]] for row in table.split("\n")[:-1]
        ]
        by_head[head[0]] = rows
    return by_head


def quoted(text: str) -> list[str]:
    return [" ".join(each.split()) for each in re.findall(r"`([^`]+)`", text)]


def exchanges(block: Block) -> Iterator[Exchange]:
    """Yield the calls in a block of `/call NAME {JSON}` and answers."""
    for part in re.split(r"^/call ", block.text, flags=re.MULTILINE)[1:]:
        asked, _, answer = part.partition("\n")
        tool, _, arguments = asked.partition(" ")
        yield Exchange(tool, json.loads(arguments), answer.strip())


def elided(text: str) -> Any:
    """Read JSON that has `...` among the members of an object or the items of an array."""
    within: list[str] = []

    def fill(token: re.Match[str]) -> str:
        word = token[0]
        if word in "{[":
            within.append(word)
        elif word in "}]":
            within.pop()
        elif word == ELISION:
            return f'"{ELISION}"' if within[-1] == "[" else f'"{ELISION}": "{ELISION}"'
        return word

    return json.loads(_TOKEN.sub(fill, text))


def alike(text: str) -> str:
    """Return `text` without what differs from run to run: numbers, times, ids."""
    return " ".join(_VARYING.sub("#", text).split())


def pattern(lines: list[str]) -> "re.Pattern[str]":
    """Return what matches these lines after `alike`; `...` is anything, or any lines."""
    parts = []
    for line in lines:
        if line.strip() == ELISION:
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(map(re.escape, alike(line).split(ELISION))) + r"\n")
    return re.compile("".join(parts))


def shown_as(output: str) -> str:
    """Return what a command wrote, as `pattern` wants it."""
    return "".join(f"{alike(line)}\n" for line in output.splitlines())


def check(shown: Any, real: Any, where: str = "", same: dict[str, str] | None = None) -> None:
    """Fail unless `real` has all that is `shown`, of the same type and, as `alike` has it, text.

    Every text that is shown goes into `same` with the real one, so that cursors can be followed.
    """
    __tracebackhide__ = True
    match shown, real:
        case dict(), dict():
            expected = shown.keys() - {ELISION}
            assert expected <= real.keys(), f"{where}: {expected - real.keys()} is not there"
            assert ELISION in shown or expected == real.keys(), f"{where}: more is there, say `...`"
            for name in expected:
                check(shown[name], real[name], f"{where}.{name}", same)
        case list(), list():
            _check_items(shown, real, where, same)
        case str(), str():
            assert alike(shown) == alike(real), f"{where}: {real!r}"
            if same is not None:
                same[shown] = real
        case _:
            assert type(shown) is type(real), f"{where}: {real!r}"
            assert shown == real or not isinstance(shown, bool), f"{where}: {real!r}"


def _check_items(
    shown: list[Any], real: list[Any], where: str, same: dict[str, str] | None
) -> None:
    """Each item is there, in this order; none is missing but at a `...`."""
    __tracebackhide__ = True
    if ELISION not in shown:
        assert len(shown) == len(real), f"{where}: there are {len(real)} items"
    left = iter(enumerate(real))
    for item in (each for each in shown if each != ELISION):
        for number, each in left:
            try:
                check(item, each, f"{where}[{number}]", same)
            except AssertionError:
                if ELISION not in shown:
                    raise
            else:
                break
        else:
            raise AssertionError(f"{where} has no {item!r} in its place")
