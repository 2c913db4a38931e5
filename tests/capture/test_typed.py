"""Formats that nobody looked up: each session of each is read, and its trouble named."""

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
