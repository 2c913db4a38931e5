import pytest

from bridge.client.commands import LEAVE, NAMES, PLAIN_NAMES, TOOL_COMMANDS, Command, parse


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("hello there", Command(None, "hello there")),
        ("//etc", Command(None, "/etc")),
        ("status", Command("status")),
        ("status please", Command(None, "status please")),
        ("send two  words", Command("send", "two  words")),
        ("send", Command(None, "send")),
        ("/send", Command("send")),
        ("/diagnose Two Words", Command("diagnose", "Two Words")),
        ('/call NAME {"a": 1}', Command("call", 'NAME {"a": 1}')),
        ("/", Command("")),
        ("/nosuch", Command("nosuch")),
    ],
)
def test_a_line_means(line: str, command: Command) -> None:
    assert parse(line) == command


def test_every_command_is_listed() -> None:
    assert set(TOOL_COMMANDS) < set(NAMES)
    assert set(PLAIN_NAMES) | LEAVE < set(NAMES)
    assert len(NAMES) == len(set(NAMES))
