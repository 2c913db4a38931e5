"""What the log of a bot says of its stream, as a finding beside those of the room."""

from pathlib import Path

import pytest

from bridge.tools import botlog
from bridge.xmpp.checks.evidence import Evidence
from bridge.xmpp.model.events import MessageReceived
from tests.capture import logs
from tests.capture.logs import IN, ROOM, timed
from tests.xmpp.checks import watching

BOUNCED = [*IN, logs.said("Alice", "!ping", id="q1"), logs.says("pong"), logs.bounce("forbidden")]


def known(nickname: str = "bot", room: str = ROOM) -> Evidence:
    asked = MessageReceived(f"{ROOM}/Alice", "Alice", "!ping", id="q1")
    made = watching.evidence([(1_000_000.0, asked)])
    made.past.nickname = nickname
    return made._replace(nickname=nickname, room=room)


def _log(folder: Path, *lines: str) -> Path:
    log = folder / "bot.log"
    log.write_text("".join(f"{line}\n" for line in timed(*lines)))
    return log


def test_an_error_on_its_stream_is_told_on_the_rooms_clock(tmp_path: Path) -> None:
    found = botlog.stream(_log(tmp_path, *BOUNCED), known())
    assert found.ok is False
    assert 'On the stream of "bot" at 1970-01-12T13:46:40.200Z (line 17 of "' in found.detail
    assert "refused: " in found.detail
    assert found.hint


@pytest.mark.parametrize(
    ("lines", "nickname", "room", "words"),
    [
        (IN, "bot", ROOM, "No error was found."),
        (BOUNCED, "Robot", ROOM, 'has no stream of "Robot" in'),
        (BOUNCED, "Robot", ROOM, 'it names "bot"'),
        (BOUNCED, "bot", "other@muc.example.org", "has no stream of"),
    ],
)
def test_what_a_log_does_not_tell_is_unknown(
    lines: list[str], nickname: str, room: str, words: str, tmp_path: Path
) -> None:
    found = botlog.stream(_log(tmp_path, *lines), known(nickname, room))
    assert found.ok is None
    assert words in found.detail


def test_a_log_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    found = botlog.stream(tmp_path / "none.log", known())
    assert (found.ok, "No such file" in found.detail) == (None, True)
    assert "BRIDGE_BOT_LOGS" in found.hint


def test_of_a_long_log_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = _log(tmp_path, *BOUNCED, *[logs.said("Carl", "x" * 900)] * 20)
    monkeypatch.setattr(botlog, "MAX_LOG_BYTES", 10_000)
    assert botlog.stream(log, known()).ok is None
