"""docs/testing-a-bot.md from top to bottom, as a newcomer does it."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, TOP, blocks, pattern, shown_as
from tests.e2e.bridge_process import run_in
from tests.servers.server import XmppServer

PAGE = PAGES["docs/testing-a-bot.md"]


@dataclass(frozen=True)
class Newcomer:
    """Somebody who has read the page as far as here."""

    folder: Path

    def run(self, command: str, code: int = 0) -> str:
        """Run a command that ends so; return all that it wrote."""
        path = f"{self.folder}/.venv/bin:/usr/bin:/bin"
        ran = run_in(self.folder, "bash", "-c", f"exec 2>&1; {command}", PATH=path)
        assert ran.returncode == code, ran.stdout
        return ran.stdout

    def save(self, name: str, text: str) -> None:
        """Save a block of the page, or what it tells of."""
        assert name in PAGE
        (self.folder / name).write_text(text, "utf-8")


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    """An empty folder in which this environment stands for the one that the first block makes."""
    make, install = blocks(PAGE, "sh")[0].lines
    assert make == "python3 -m venv .venv"
    assert re.fullmatch(r"\.venv/bin/pip install '.*xmpp-debug-bridge\[expect\]'", install)
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    return Newcomer(tmp_path)


def _patched(text: str, diff: str) -> str:
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] in " -")
    assert text.count(old) == 1
    return text.replace(old, "".join(line[1:] for line in lines if line[0] in " +"))


def test_it_goes_from_an_empty_folder_to_red_to_green_and_on(
    newcomer: Newcomer, prosody: XmppServer
) -> None:
    bot, tests = blocks(PAGE, "python")
    (scenario,) = blocks(PAGE, "toml")
    newcomer.save("bot.py", bot.text)
    newcomer.save("ping.room.toml", scenario.text)
    red, green = blocks(PAGE, "console")
    command = red.lines[0].removeprefix("$ ")

    shown = newcomer.run(command, 1)
    assert pattern(red.lines[1:]).fullmatch(shown_as(f"{shown}exit code 1\n")), shown
    assert "not log in" not in shown  # slixmpp tries direct TLS first

    (diff,) = blocks(PAGE, "diff")
    newcomer.save("bot.py", _patched(bot.text, diff.text))
    assert green.lines[0] == red.lines[0]
    shown = newcomer.run(command)
    assert pattern(green.lines[1:]).fullmatch(shown_as(shown)), shown

    newcomer.save("test_bot.py", tests.text)
    newcomer.save("actors.env", _settings(prosody, "witness"))
    newcomer.save("bot.env", _settings(prosody, "bot"))
    commands = [line for block in blocks(PAGE, "sh")[1:] for line in block.lines]
    assert len(commands) == 3
    for line in commands:
        shown = newcomer.run(line)
        assert re.search(r"\d passed in", shown)
        assert "Warning" not in shown or line == "pytest"
    assert (newcomer.folder / "report.xml").exists()


def _settings(server: XmppServer, who: str) -> str:
    account = getattr(server, who)
    settings = server.environment(XMPP_USERNAME=account.username, XMPP_PASSWORD=account.password)
    return "".join(f"{name}='{value}'\n" for name, value in settings.items())


def test_the_first_line_for_editors_names_the_schema() -> None:
    (block,) = blocks(PAGE, "text")
    assert block.text.startswith("#:schema ")
    assert (TOP / block.text.partition("xmpp-debug-bridge/")[2].strip()).exists()
