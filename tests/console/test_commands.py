import pytest

from bridge.console.commands import (
    ECHO,
    SHORTCUTS,
    USAGES,
    WORDS,
    Call,
    Command,
    Help,
    Leave,
    Raw,
    Show,
    Switch,
    Unclear,
    is_room_text,
    parse,
)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("hello there", Call("echo", "hello there", ECHO)),
        ("  padded  ", Call("echo", "padded", ECHO)),
        ("status", Call("xmppStatus", "", SHORTCUTS["status"])),
        ("/status", Call("xmppStatus", "", SHORTCUTS["status"])),
        ("status please", Call("echo", "status please", ECHO)),
        ("/ping", Call("xmppPing", "server", SHORTCUTS["ping"])),
        ("/ping room", Call("xmppPing", "room", SHORTCUTS["ping"])),
        ("/info", Call("xmppInfo", "server", SHORTCUTS["info"])),
        ("send two  words", Call("xmppSend", "two  words", SHORTCUTS["send"])),
        ("/send two  words", Call("xmppSend", "two  words", SHORTCUTS["send"])),
        ("send", Call("echo", "send", ECHO)),
        ("//etc", Call("echo", "/etc", ECHO)),
        ("/call NAME", Call("NAME")),
        ('/call NAME {"a": 1}', Call("NAME", '{"a": 1}')),
        ("/tools", Show("tools")),
        ("/tools echo", Show("tools", "echo")),
        ("/prompts greet name=Ada", Show("prompts", "greet", "name=Ada")),
        ("/raw {}", Raw("{}")),
        ("/framing", Switch("framing")),
        ("/revision 2025-06-18", Switch("revision", "2025-06-18")),
        ("/bare on", Switch("bare", "on")),
        ("help", Help()),
        ("/help", Help()),
        ("exit", Leave()),
        ("/quit", Leave()),
    ],
)
def test_a_line_means(line: str, command: Command) -> None:
    assert parse(line) == command


@pytest.mark.parametrize("line", ["/", "/nosuch", "/call", "/raw"])
def test_what_begins_like_a_command_and_is_none_says_so(line: str) -> None:
    assert isinstance(parse(line), Unclear)


def test_every_word_is_a_command_and_every_command_is_listed() -> None:
    listed = " ".join(one.line for one in USAGES)
    for word in WORDS:
        assert not isinstance(parse(f"/{word} x"), Unclear)
        assert word in listed


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("send hi", True),
        ("/send hi", True),
        ('/call xmppSend {"message": "hi"}', True),
        ('/raw {"method": "xmppSend"}', True),
        ("sending", False),
        ("/history limit=3", False),
        ("", False),
    ],
)
def test_what_is_said_in_the_room_is_told_from_the_rest(line: str, is_one: bool) -> None:
    assert is_room_text(line) is is_one
