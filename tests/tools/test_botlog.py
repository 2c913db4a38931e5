"""What the log of a bot says of its stream, as a finding beside those of the room."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.settings.load import load
from bridge.text import iso
from bridge.tools import botlog
from bridge.tools.diagnose import NO_CAPTURES, xmpp_diagnose
from bridge.xmpp.checks.diagnosis import find
from bridge.xmpp.checks.evidence import Evidence
from bridge.xmpp.model.events import MessageReceived, MessageSent, Phase
from tests.capture import logs
from tests.capture.logs import IN, ROOM, timed
from tests.capture.test_failures import PYTHON as TRACE
from tests.tools import played
from tests.tools.played import fitting
from tests.tools.standing import standing
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
    finding = botlog.stream(_log(tmp_path, *BOUNCED), known())
    assert finding.ok is False
    assert 'On the stream of "bot" at 1970-01-12T13:46:40.200Z (line 17 of "' in finding.detail
    assert "refused: " in finding.detail
    assert finding.hint


@pytest.mark.parametrize(
    ("lines", "nickname", "room", "words"),
    [
        (IN, "bot", ROOM, "No error was found."),
        (BOUNCED, "Robot", ROOM, 'has no stream of "Robot" in'),
        (BOUNCED, "Robot", ROOM, f'; it has "bot" in "{ROOM}".'),
        (BOUNCED, "bot", "other@muc.example.org", f'; it has "bot" in "{ROOM}".'),
    ],
)
def test_what_a_log_does_not_tell_is_unknown(
    lines: list[str], nickname: str, room: str, words: str, tmp_path: Path
) -> None:
    finding = botlog.stream(_log(tmp_path, *lines), known(nickname, room))
    assert finding.ok is None
    assert words in finding.detail


LEAVES = f">>> <presence to='{ROOM}/bot' type='unavailable'/>"


@pytest.mark.parametrize(("before", "ok"), [([], False), (TRACE.split("\n"), None)])
def test_that_the_client_itself_left_is_why_it_is_not_there_unless_its_program_failed(
    before: list[str], ok: bool | None, tmp_path: Path
) -> None:
    there = known()
    log = _log(tmp_path, *IN, logs.said("Alice", "hello", id="q1"), *before, LEAVES)
    finding = botlog.stream(log, there._replace(occupant=None))
    assert finding.ok is ok
    assert ("The client itself left the room" in finding.detail) is (ok is False)
    assert botlog.stream(log, there).ok is None


FAILED = [*IN, *TRACE.split("\n")]


@pytest.mark.parametrize(
    ("lines", "room", "words"),
    [
        (FAILED, ROOM, "The program failed after the presence in line"),
        (FAILED, "other@muc.example.org", f'it has "bot" in "{ROOM}"'),
    ],
)
@pytest.mark.parametrize("is_there", [True, False])
def test_what_a_log_says_of_who_is_missed_is_in_the_verdict(
    lines: list[str], room: str, words: str, is_there: bool, tmp_path: Path
) -> None:
    evidence = known(room=room)
    if not is_there:
        evidence = evidence._replace(occupant=None)
    finding = botlog.stream(_log(tmp_path, *lines), evidence)
    verdict = find(evidence._replace(stream=finding)).verdict
    assert (finding.detail in verdict) is (bool(words) and not is_there)
    assert words in finding.detail


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (IN, " ends, and the client did not leave: did the program die?"),
        (
            [*IN, logs.said("Carl", "!die")],
            ' ends after "!die", the last message in it, and the cl',
        ),
        ([*IN, "<<< </stream:stream>"], ""),
        (FAILED, " ends, and the client did not leave: did the program die?"),
    ],
)
def test_a_log_that_ends_while_its_stream_goes_on_may_be_of_a_program_that_died(
    lines: list[str], words: str, tmp_path: Path
) -> None:
    evidence, log = known(room=ROOM), _log(tmp_path, *lines)
    gone = evidence._replace(occupant=None)
    told = find(gone._replace(stream=botlog.stream(log, gone)))
    assert ("did the program die?" in told.verdict) is bool(words)
    assert words in told.verdict
    unseen = gone._replace(status=replace(gone.status, phase=Phase.FAILED))
    for other in (evidence, unseen):
        assert "did the program die?" not in botlog.stream(log, other).detail


PINGS = [f"<<< <iq type='get' id='p{n}' from='example.org'><ping/></iq>" for n in range(9)]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([*IN, *logs.LOGIN], "and the log ends before it asks to join the room"),
        ([*IN, *logs.LOGIN, "pause 12", *PINGS], "and did not ask to join it again within 10 s"),
    ],
)
def test_a_bot_that_came_back_and_not_into_its_room_is_told(
    lines: list[str], words: str, tmp_path: Path
) -> None:
    finding = botlog.stream(_log(tmp_path, *lines), known()._replace(occupant=None))
    assert finding.ok is False
    assert words in finding.detail


@pytest.mark.parametrize(
    ("lines", "seconds", "words"),
    [
        ([], 20.0, ', and "!go" was said later: the program may hang since "!ping", the last'),
        ([], 9.0, ""),
        (["pause 24", *PINGS], 20.0, ""),
        (["pause 34", *PINGS], 20.0, '"!go" did not reach "bot".'),
    ],
)
def test_a_log_without_the_bridges_message_says_whether_it_has_come_so_far(
    lines: list[str], seconds: float, words: str, tmp_path: Path
) -> None:
    asked = 1_000_020.0
    acts: list[watching.Act] = [
        (1_000_000.0, MessageReceived(f"{ROOM}/Alice", "Alice", "!ping", id="q1")),
        (asked, MessageSent(f"{ROOM}/me", "me", "!go", "own-1")),
        (asked, MessageReceived(f"{ROOM}/me", "me", "!go", id="own-1", own=True)),
    ]
    bot = replace(watching.BOT, jid=f"{ROOM}/bot", nickname="bot")
    evidence = watching.evidence(acts, occupant=bot, room=ROOM, now=asked + seconds)
    log = _log(tmp_path, *IN, logs.said("Alice", "!ping", id="q1"), *lines)
    told = botlog.stream(log, evidence._replace(nickname="bot")).detail
    assert words in told
    assert ('"!go"' in told) is bool(words)


SENT_ELSEWHERE = logs.says("pong", "bot@example.org", "chat")


@pytest.mark.parametrize(
    ("lines", "seconds", "words"),
    [
        ([], 10.0, "silent: "),
        ([], 9.0, ""),
        ([SENT_ELSEWHERE], 10.0, 'the client sent one of type "chat" to "bot@example.org" inst'),
        ([logs.says("pong"), *TRACE.splitlines()], 5.0, "The program failed after the message"),
        ([logs.says("pong")], 10.0, ""),
    ],
)
def test_a_log_that_has_the_bridges_message_shows_why_it_is_not_answered(
    lines: list[str], seconds: float, words: str, tmp_path: Path
) -> None:
    acts: list[watching.Act] = [
        (1_000_000.0, MessageSent(f"{ROOM}/me", "me", "!go", "own-1")),
        (1_000_000.0, MessageReceived(f"{ROOM}/me", "me", "!go", id="own-1", own=True)),
    ]
    bot = replace(watching.BOT, jid=f"{ROOM}/bot", nickname="bot")
    evidence = watching.evidence(acts, occupant=bot, room=ROOM, now=1_000_000.0 + seconds)
    log = _log(tmp_path, *IN, logs.said("me", "!go", id="own-1"), *lines)
    finding = botlog.stream(log, evidence._replace(nickname="bot"))
    assert (finding.ok is False) is bool(words)
    assert words in finding.detail


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["<<< </stream:stream>"], '"!go" was said later: the program has not connected again.'),
        ([], "the program may hang"),
    ],
)
def test_a_log_that_ends_with_its_stream_is_of_a_program_that_has_not_come_back(
    lines: list[str], words: str, tmp_path: Path
) -> None:
    acts: list[watching.Act] = [
        (1_000_000.0, MessageReceived(f"{ROOM}/Alice", "Alice", "!ping", id="q1")),
        (1_000_020.0, MessageSent(f"{ROOM}/me", "me", "!go", "own-1")),
        (1_000_020.0, MessageReceived(f"{ROOM}/me", "me", "!go", id="own-1", own=True)),
    ]
    evidence = watching.evidence(acts, occupant=None, room=ROOM, now=1_000_040.0)
    log = _log(tmp_path, *IN, logs.said("Alice", "!ping", id="q1"), *lines)
    assert words in botlog.stream(log, evidence._replace(nickname="bot")).detail


@pytest.mark.parametrize(
    ("lines", "room", "words"),
    [
        ([*logs.LOGIN, logs.ASK, logs.refusal("forbidden")], "other@muc.example.org", "banned"),
        ([*logs.LOGIN, "<<< <presence/>"], ROOM, "has asked to join no room"),
    ],
)
def test_why_an_absent_bot_is_in_no_room_or_kept_out_of_another_is_the_cause(
    lines: list[str], room: str, words: str, tmp_path: Path
) -> None:
    finding = botlog.stream(_log(tmp_path, *lines), known(room=room)._replace(occupant=None))
    assert finding.ok is False
    assert words in finding.detail
    assert finding.hint


@pytest.mark.parametrize(
    ("path", "why"), [("/none.log", "No such file"), ("/dev/null", "no regular file")]
)
def test_a_log_that_cannot_be_read_is_unknown(path: str, why: str) -> None:
    finding = botlog.stream(Path(path), known())
    assert (finding.ok, why in finding.detail) == (None, True)
    assert "BRIDGE_BOT_LOGS" in finding.hint


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_it_is_read_as_explain_reads_it(encoding: str, tmp_path: Path) -> None:
    log = _log(tmp_path, *BOUNCED)
    plain = botlog.stream(log, known())
    log.write_text(log.read_text("utf-8"), encoding)
    assert botlog.stream(log, known()) == plain
    assert plain.ok is False


def test_of_a_long_log_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = _log(tmp_path, *BOUNCED, *[logs.said("Carl", "x" * 900)] * 20)
    monkeypatch.setattr(botlog, "MAX_LOG_BYTES", 10_000)
    assert botlog.stream(log, known()).ok is None


def _captured(folder: Path, *lines: str, at: float = 1_000_000.0) -> Path:
    """What tap keeps of these lines, each a tenth of a second after the one before."""
    capture = folder / "bot@example.org.jsonl"
    with capture.open("w", encoding="utf-8") as file:
        for number, line in enumerate(lines):
            direction = "out" if line.startswith(">") else "in"
            entry = {"at": iso(at + number / 10), "direction": direction, "connection": "1"}
            file.write(json.dumps(entry | {"xml": line[4:]}) + "\n")
    return capture


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(9.0, "the log ends before it asks to join"), (12.0, "did not ask to join it again")],
)
def test_while_tap_runs_the_time_shows_that_a_bot_stays_out_of_its_room(
    seconds: float, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(botlog, "is_written", lambda path: True)
    lines = [*IN, "<<< </stream:stream>", *logs.LOGIN]
    _captured(tmp_path, *lines)
    last = 1_000_000.0 + (len(lines) - 1) / 10
    kept = botlog.tapped(tmp_path, known()._replace(occupant=None, now=last + seconds))
    assert kept is not None
    assert kept[1].ok is False
    assert told in kept[1].detail


@pytest.mark.parametrize("nickname", ["bot", "Robot"])
async def test_what_tap_kept_is_looked_at_without_a_setting(nickname: str, tmp_path: Path) -> None:
    link, _ = standing(None, "bot", "Robot", "Alice")
    kept = _captured(tmp_path, *BOUNCED, at=time.time() - 20)
    kept.write_text(kept.read_text("utf-8").replace(ROOM, played.ROOM), "utf-8")
    link.captures = tmp_path
    told = fitting(xmpp_diagnose, await xmpp_diagnose(link, nickname))
    of_the_stream = [it for it in told["findings"] if it["name"] == "stream"]
    assert bool(of_the_stream) is (told["outcome"] == "cause") is (nickname == "bot")
    assert ("refused: " in told["verdict"]) is (nickname == "bot")
    assert ("nextStep" in told) is (nickname != "bot")  # explain would say the same again


@pytest.mark.parametrize("lines", [BOUNCED, IN])
async def test_without_a_nickname_the_known_log_of_a_program_is_read(
    lines: list[str], tmp_path: Path
) -> None:
    link, _ = standing(None, "bot", "Alice")
    log = _captured(tmp_path, *lines, at=time.time() - 20)
    log.write_text(log.read_text("utf-8").replace(ROOM, played.ROOM), "utf-8")
    link.bot_logs = {"bot": log}
    now = time.time() - 15
    for number in range(3):
        for who, body, after in (("Alice", f"!ping {number}", 0.0), ("bot", "pong", 0.1)):
            said = MessageReceived(f"{played.ROOM}/{who}", who, body)
            link.participant.publish(said, at=now + number + after)  # type: ignore[attr-defined]
    told = fitting(xmpp_diagnose, await xmpp_diagnose(link, None))
    assert ("refused: " in told["verdict"]) is (lines is BOUNCED)
    assert (told["outcome"] == "cause") is (lines is BOUNCED)


@pytest.mark.parametrize(("after", "outcome"), [(0.3, "cause"), (500.0, "well")])
def test_an_error_before_the_bots_last_answer_is_no_cause_unless_it_came_again(
    after: float, outcome: str, tmp_path: Path
) -> None:
    asked = 1_000_000.0 + after
    kept = _captured(tmp_path, *BOUNCED, *BOUNCED[-2:])
    assert botlog.stream(kept, known()).ok is False  # it has answered nothing since
    answered = watching.evidence(
        [
            (1_000_000.0, MessageReceived(f"{ROOM}/Alice", "Alice", "!ping", id="q1")),
            (asked, MessageSent(f"{ROOM}/me", "me", "!ping", "own-1")),
            (asked, MessageReceived(f"{ROOM}/me", "me", "!ping", id="own-1", own=True)),
            (asked + 0.2, MessageReceived(f"{ROOM}/bot", "bot", "pong")),
        ],
        occupant=replace(watching.BOT, jid=f"{ROOM}/bot", nickname="bot"),
        answers=[{"how": "public", "answerMs": 100.0}],
        room=ROOM,
    )
    conclusion = find(answered._replace(stream=botlog.stream(kept, answered)))
    assert conclusion.outcome == outcome, conclusion
    assert ('Earlier, on the stream of "bot" at' in conclusion.verdict) is (outcome == "well")


@pytest.mark.parametrize(("times", "outcome"), [(3, "cause"), (1, "well")])
def test_an_answer_does_not_end_cuts_at_a_period(times: int, outcome: str, tmp_path: Path) -> None:
    lines = [*IN, logs.said("Alice", "!ping", id="q1"), "pause 60", "<<< </stream:stream>"]
    asked = 1_000_200.0
    answered = watching.evidence(
        [
            (1_000_000.0, MessageReceived(f"{ROOM}/Alice", "Alice", "!ping", id="q1")),
            (asked, MessageSent(f"{ROOM}/me", "me", "!ping", "own-1")),
            (asked, MessageReceived(f"{ROOM}/me", "me", "!ping", id="own-1", own=True)),
            (asked + 0.1, MessageReceived(f"{ROOM}/bot", "bot", "pong")),
        ],
        occupant=replace(watching.BOT, jid=f"{ROOM}/bot", nickname="bot"),
        answers=[{"how": "public", "answerMs": 100.0}],
        room=ROOM,
    )
    told = botlog.stream(_log(tmp_path, *lines * times), answered)
    assert find(answered._replace(stream=told)).outcome == outcome


@pytest.mark.parametrize(("seconds", "ok"), [(3_500.0, False), (3_700.0, None)])
def test_an_error_of_long_ago_is_no_cause_while_the_bot_is_there(
    seconds: float, ok: bool | None, tmp_path: Path
) -> None:
    kept = _captured(tmp_path, *BOUNCED)
    late = known()._replace(now=1_000_000.0 + seconds)
    assert botlog.stream(kept, late).ok is ok
    assert botlog.stream(kept, late._replace(occupant=None)).ok is False


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_strangers_settings_have_nothing_read_that_tap_kept_which_is_said(
    trusted: bool, tmp_path: Path
) -> None:
    link, _ = standing(None, "Alice")
    configuration = replace(load({}, cwd=tmp_path, package_root=tmp_path), trusted=trusted)
    link.look_into(configuration, {"XDG_STATE_HOME": str(tmp_path)})
    assert link.captures == (tmp_path / "xmpp-bridge" / "tap" if trusted else None)
    told = await xmpp_diagnose(link, "Robot")
    assert (NO_CAPTURES in json.dumps(told)) is not trusted
