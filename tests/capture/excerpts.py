"""The excerpts in docs/explain.md: what a real bot on slixmpp wrote, and what was found in it.

python -m tests.capture.excerpts    writes that section anew, from a run on Prosody
"""

import asyncio
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.capture.deeds import DEEDS, Deed
from tests.capture.logs import examined
from tests.capture.stage import SLIXMPP, staged
from tests.docs.pages import TOP
from tests.servers.certificates import Authority
from tests.servers.prosody import running_debugged_prosody
from tests.servers.server import XmppServer

PAGE = TOP / "docs" / "explain.md"
HEADING = "## One of each\n"
CHOSEN = (
    *("a forbidden character", "TLS not begun", "a wrong password", "a negative priority"),
    *("never joined", "went on after a kick", "chat to a room", "a ping never answered"),
    *("silent", "answered in private"),
)
"""A deed for each rule."""

MAX_CHARACTERS = 200
"""The most that is shown of a line."""


async def section(server: XmppServer) -> str:
    """Do each deed; return the section."""
    text = f"{HEADING}\nLines of a log of slixmpp, on Prosody, and what `explain` says of them.\n"
    async with staged(server, SLIXMPP) as stage:
        for name in CHOSEN:
            told = _excerpt(await stage.do(DEEDS[name]), DEEDS[name])
            text += f"\n{name[0].upper()}{name[1:]}:\n\n```text\n{told}```\n"
    return text


def _excerpt(lines: list[str], deed: Deed) -> str:
    findings = [found for each in examined(*lines) for found in each.findings()]
    finding = next(found for found in findings if deed.words in found.message + found.hint)
    told = f"{finding.severity} {finding.sentence}\n  {finding.advice}\n"
    numbers = sorted({finding.place.line, *map(int, re.findall(r"line (\d+)", told))})
    shown = ""
    for number in numbers:
        _, _, line = lines[number - 1].partition("stdout F ")
        line = line.replace("\x0b", "\\x0b")
        more = "..." if len(line) > MAX_CHARACTERS else ""
        shown += f"{number}: {line[:MAX_CHARACTERS]}{more}\n"
    return re.sub(r"\(2026[^)]*\) |room-\w{32}", lambda m: "room" * (m[0][0] == "r"), shown + told)


def main() -> None:
    """Write the section."""
    with TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        with running_debugged_prosody(Path(folder), authority) as process:
            text = asyncio.run(section(process.server))
    before = PAGE.read_text("utf-8").partition(HEADING)[0].rstrip("\n")
    PAGE.write_text(f"{before}\n\n{text}", "utf-8")


if __name__ == "__main__":
    main()
