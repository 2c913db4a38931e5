"""A page declares the options of a command; what its lines say is what is parsed."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from bridge.arguments import MAX_REPEATS, add_options
from bridge.cli import parser

LINES = """
    --first: a switch
    --timeout SECONDS: a number
    --say TEXT: a text, of which
        the help goes on
    --await SECONDS: its name is a word of Python
    --fault NAME[:KEY=VALUE,...]...: may be given again
    --format text|json: one of these
    --env-file PATH: given once
    NICKNAME: must be there
    [FILES...]: as many as you like
"""
USUAL: dict[str, Any] = {
    "first": False,
    "timeout": None,
    "say": None,
    "await_seconds": None,
    "faults": [],
    "format": "text",
    "env_file": None,
    "nickname": "Robot",
    "files": [],
}


def _parsed(*words: str) -> dict[str, Any]:
    command = argparse.ArgumentParser(exit_on_error=False)
    add_options(command, LINES)
    return vars(command.parse_args([*words]))


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("Robot", {}),
        ("Robot --first --timeout 10", {"first": True, "timeout": 10}),
        ("--say hello Robot a.log b.log", {"say": "hello", "files": ["a.log", "b.log"]}),
        ("Robot --await 3 --format json", {"await_seconds": 3, "format": "json"}),
        ("Robot --fault drop --fault kick:room=x", {"faults": ["drop", "kick:room=x"]}),
        ("Robot --env-file .env", {"env_file": Path(".env")}),
    ],
)
def test_a_line_declares_an_option_with_its_value(words: str, given: dict[str, Any]) -> None:
    assert _parsed(*words.split()) == USUAL | given


@pytest.mark.parametrize("words", ["Robot --timeout soon", "Robot --format xml", "--first"])
def test_what_a_line_does_not_allow_is_refused(words: str) -> None:
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        _parsed(*words.split())


def test_the_help_of_an_option_is_all_that_its_line_says() -> None:
    command = argparse.ArgumentParser()
    add_options(command, LINES)
    page = " ".join(command.format_help().split())
    assert "--say TEXT a text, of which the help goes on" in page
    assert "--fault NAME[:KEY=VALUE,...] may be given again" in page
    assert "[FILE ...]" in page


@pytest.mark.parametrize(
    ("words", "usual"),
    [
        ("check", {"cert_days": 14, "repeat": 1, "format": "text", "room_must_exist": False}),
        ("send x", {"await_seconds": 0, "timeout": 10, "sender": ""}),
        ("diagnose", {"await_seconds": 10, "timeout": 10, "nickname": None}),
        ("register codex", {"name": "xmpp", "module": "register"}),
        ("serve", {"toolsets": [], "only_sets": []}),
    ],
)
def test_what_is_not_given_is_as_the_page_says(words: str, usual: dict[str, Any]) -> None:
    given = vars(parser(words.split()[0]).parse_args(words.split()))
    assert {name: given[name] for name in usual} == usual


def test_a_number_has_the_bound_of_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser().parse_args(["check", "--repeat", f"{MAX_REPEATS}"]).repeat == MAX_REPEATS
    with pytest.raises(SystemExit):
        parser().parse_args(["check", "--repeat", f"{MAX_REPEATS + 1}"])
    assert f"is no number from 1 to {MAX_REPEATS}" in capsys.readouterr().err
