"""A new user's day: the commands of the README in a terminal, from trying it out to the cause."""

import re
import shlex
from asyncio import gather, to_thread
from collections.abc import Callable
from pathlib import Path

from tests.client.terminal import Terminal
from tests.docs.pages import blocks, section
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

(TRYING,) = (it for it in blocks(section("README.md", "## Try it"), "sh") if it.mark == "run")
ASKING, DIAGNOSING = blocks(section("README.md", "## Your server and your agent"), "text")
WIDTHS = (40, 120)
SEQUENCE = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")
"""What a terminal does not show (ECMA-48)."""


def play(home: Path, line: str, columns: int, converse: Callable[[Terminal], None]) -> str:
    """Run a command as the README has it; return what it writes, all of which fits."""
    _, command, *arguments = shlex.split(line.rpartition(" && ")[2].removeprefix("$ "))
    with Terminal(home, arguments, command=command, columns=columns) as terminal:
        converse(terminal)
        code = terminal.end()
    written = SEQUENCE.sub("", terminal.written)
    assert "Traceback" not in written
    assert code == (1 if command == "diagnose" else 0), written
    # Of what is being typed, each state is in one line.
    lines = [it for it in re.split(r"[\r\n]+", written) if terminal.prompt not in it]
    assert [it for it in lines if len(it) > columns] == []
    return " ".join(written.split())


def talk(terminal: Terminal) -> None:
    terminal.prompts()
    terminal.type("hello\r")
    terminal.shows("said: hello")
    terminal.type("/exit\r")


def answering(server: XmppServer, room: str) -> Callable[[Terminal], None]:
    answers = {
        "JID: ": server.bot.jid,
        "Password: ": server.bot.password,
        "Server [-]: ": f"{server.host}:{server.starttls_port}",
        "Trust this certificate? (y/n) [n]: ": "y",
        "Room: ": room,
        "Nickname [McpDebug]: ": "",
    }

    def converse(terminal: Terminal) -> None:
        for question, typed in answers.items():
            terminal.ends_with(question)
            terminal.type(f"{typed}\r")

    return converse


async def diagnosed(server: XmppServer, home: Path, columns: int) -> None:
    room = f"day-{columns}@{server.muc}"  # what is typed has to fit, too
    async with (
        Witness(server, server.witness, room, "Wilma") as wilma,
        Witness(server, server.robot, room, "Robot") as robot,
    ):
        asked = await to_thread(play, home, str(ASKING), columns, answering(server, room))
        assert "Everything works: " in asked

        async def put_out() -> None:
            await robot.heard("!ping")
            await wilma.kick("Robot", "flooding")

        diagnosing = to_thread(play, home, str(DIAGNOSING), columns, lambda _: None)
        told, _ = await gather(diagnosing, put_out())
    assert re.match('"Robot" left the room at [^ ]+ kicked by "Wilma", saying "flooding"', told)


async def test_the_commands_of_the_readme_lead_to_the_cause_in_terminals_of_any_width(
    prosody: XmppServer, tmp_path: Path
) -> None:
    """All at once, since `diagnose` waits ten seconds for an answer."""
    tried = (to_thread(play, tmp_path, str(TRYING), columns, talk) for columns in WIDTHS)
    homes = [tmp_path / str(columns) for columns in WIDTHS]
    for home in homes:
        home.mkdir()
    days = (diagnosed(prosody, *each) for each in zip(homes, WIDTHS, strict=True))
    await gather(*tried, *days)
