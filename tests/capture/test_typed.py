"""Formats that nobody looked up: each session of each is read, and its trouble named."""

from itertools import product

import pytest

from bridge.capture.finding import Severity
from tests.capture import typed
from tests.capture.logs import captured, examined

FORMATS = typed.FIRST | typed.SECOND | typed.THIRD
SESSIONS = typed.SESSIONS | typed.MIDDLES


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_format_typed_from_memory_is_read(name: str, session: str) -> None:
    parts, trouble = SESSIONS[session], session.removesuffix("in the middle").strip()
    lines = typed.written(FORMATS[name], parts).split("\n")
    assert [each.sent for each in captured(*lines)] == [sent for sent, _ in parts]
    findings = [finding for stream in examined(*lines) for finding in stream.findings()]
    errors = {each.name for each in findings if each.severity is Severity.ERROR}
    assert errors == ({trouble} if trouble not in {"", "removed"} else set())
    assert (trouble == "removed") == any(each.name == "removed" for each in findings)


@pytest.mark.parametrize("written", ["{} {}:", "[{} / {}]", "({}=>{})", "{}->{}", "from {} to {}"])
def test_two_names_in_turns_tell_of_every_stanza_who_sent_it(written: str) -> None:
    parts = [*SESSIONS[next(iter(SESSIONS))], *product((True, False), ["<message id='1'/>"])]
    names = {True: written.format("bot", "prosody"), False: written.format("prosody", "bot")}
    lines = [f"{names[sent]} {xml}" for sent, xml in parts]
    assert [each.sent for each in captured(*lines)] == [sent for sent, _ in parts]
