"""`xmpp-bridge check` as a person runs it, and what it shows."""

import re
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.watching import Watching
from tests.views.screen import Screen

STAGES = ["settings", "resolve", "connect", "tls", "sasl", "bind"]
IN_THE_ROOM = ["disco", "join", "occupants", "leave"]
STAGE = re.compile(r"([a-z]+) +(ok|FAILED) +([0-9]+\.[0-9]) ms(?:  (.*))?")
XTERM = {"TERM": "xterm"}
SGR = re.compile("\x1b\\[[0-9;]*m")


async def run(
    home: Path, environment: Mapping[str, str], *arguments: str, columns: int | None = None
) -> tuple[int, Watching]:
    """Check once; no secret is ever seen."""
    async with Watching(
        home, environment, *arguments, command="check", columns=columns
    ) as checking:
        code = await checking.ended()
    for name in ("XMPP_PASSWORD", "MUC_PASSWORD"):
        if secret := environment.get(name):
            assert secret not in checking.out + checking.err
    return code, checking


def stages(lines: list[str]) -> list[tuple[str, bool, str]]:
    """What was found, as (name, passed, detail), up to the diagnosis."""
    matches = [STAGE.fullmatch(line) for line in lines[: lines.index("")]]
    return [(each[1], each[2] == "ok", each[4] or "") for each in matches if each is not None]


def on_screen(checking: Watching, columns: int) -> list[str]:
    """What stands on the terminal at the end."""
    screen = Screen(columns)
    screen.feed(checking.out.replace("\n", "\r\n"))
    return screen.lines
