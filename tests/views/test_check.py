import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.text import one_line
from bridge.views import check, results
from bridge.views.screen import Display, width
from bridge.xmpp.checks.report import CheckStage, Report, Visit, by_stage, report_of
from bridge.xmpp.model.faults import Fault, Retry

HEAD_WIDTH = len(results.INDENT) + results.MARK_WIDTH + len(" 99999.9 ms")
"""Columns before what a stage found."""

SCREENS = Path(__file__).parent / "screens"
ROOM = "lab@conference.example.org"

FIRST = CheckStage(
    "settings", True, 1.4, "/home/ada/lab/.env: missing; /home/ada/bridge.env: used", ""
)
REACHED = (
    CheckStage("resolve", True, 12.5, "XMPP_SERVICE is xmpp://example.org:5222", ""),
    CheckStage("connect", True, 31.25, "192.0.2.7:5222: connected", ""),
    CheckStage(
        "tls",
        True,
        64.062,
        "TLSv1.3, TLS_AES_256_GCM_SHA384; certificate: subject CN=example.org, issuer O=Example "
        "Trust, for example.org and conference.example.org, 61 days left",
        "The certificate was not checked: unset NODE_TLS_REJECT_UNAUTHORIZED.",
    ),
)
PASSED = (
    *REACHED,
    CheckStage("sasl", True, 88.0, "offered: SCRAM-SHA-256; chosen: SCRAM-SHA-256", ""),
    CheckStage("bind", True, 15.9, "full JID bot@example.org/check", ""),
    CheckStage("disco", True, 33.0, "a room service; the room does not exist yet", ""),
    CheckStage("join", True, 41.0, "entered as McpDebug-check", "MUC_ROOM may have a typo."),
    CheckStage("occupants", True, 0.004, "2 besides us: Ada, 東京タワー", ""),
    CheckStage("leave", True, 16.1, "the room confirmed it", ""),
)
REFUSED = Fault(
    "not-authorized",
    "example.org refused the login of bot@example.org.",
    "Check XMPP_USERNAME and XMPP_PASSWORD.",
    Retry.NEVER,
)
WORKS = report_of([ROOM], PASSED, 0.3018, [Visit(ROOM, created=True, others=2)], None)
BREAKS = report_of(
    [ROOM],
    (*REACHED, CheckStage("sasl", False, 2104.6, REFUSED.message, REFUSED.hint)),
    2.2124,
    [],
    REFUSED,
)


BANNED = Fault("forbidden", "The owner of logs@muc.example banned us.", "Ask that owner.")
ROOMS = ("lobby@muc.example", "logs@muc.example", "team@muc.example")
VISITED = tuple(
    replace(stage, hint="", room=room)
    for room in ROOMS
    for stage in PASSED[-4:]
    if room != ROOMS[1] or stage.name == "disco"
)
REFUSED_IN_ONE = (
    *(replace(stage, hint="") for stage in PASSED[:-4]),
    *VISITED[:5],
    CheckStage("join", False, 20.5, BANNED.message, BANNED.hint, ROOMS[1]),
    *VISITED[5:],
)
SEVERAL = report_of(
    ROOMS,
    REFUSED_IN_ONE,
    0.431,
    [Visit(ROOMS[0], others=2), Visit(ROOMS[1], BANNED), Visit(ROOMS[2], others=1)],
    None,
)


def _at(columns: int | None, *, paint: bool = False) -> Display:
    return Display(paint, lambda: columns)


def _once(display: Display, report: Report) -> str:
    rooms = [ROOM] if report.rooms is None else [each.room for each in report.rooms]
    shown_lines = results.lines_of(report.preceded_by(FIRST).encode(), display)
    return "".join(f"{line}\n" for line in [*check.title(rooms, display), *shown_lines])


def _often(display: Display, *reports: Report, times: int) -> str:
    runs = enumerate(reports, 1)
    lines = [line for number, each in runs for line in check.run_lines(number, each, display)]
    lines += ["", *check.spread(reports, display)]
    lines += ["", *check.several_outcome(reports, times, display)]
    return "".join(f"{line}\n" for line in lines)


def _slower(report: Report, factor: float) -> Report:
    stages = [replace(stage, ms=stage.ms * factor) for stage in report.phases]
    return replace(report, phases=stages, ms=report.ms * factor)


THREE = (WORKS, _slower(WORKS, 1.5), _slower(WORKS, 4))
MIXED = (WORKS, _slower(WORKS, 2), BREAKS)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("check-passed-pipe.txt", _once(_at(None), WORKS)),
        ("check-passed-80-columns.txt", _once(_at(80), WORKS)),
        ("check-passed-80-columns-colour.txt", _once(_at(80, paint=True), WORKS)),
        ("check-passed-50-columns.txt", _once(_at(50), WORKS)),
        ("check-passed-30-columns.txt", _once(_at(30), WORKS)),
        ("check-failed-80-columns.txt", _once(_at(80), BREAKS)),
        ("check-failed-80-columns-colour.txt", _once(_at(80, paint=True), BREAKS)),
        ("check-repeated-pipe.txt", _often(_at(None), *THREE, times=3)),
        ("check-repeated-80-columns.txt", _often(_at(80), *MIXED, times=10)),
        ("check-repeated-80-columns-colour.txt", _often(_at(80, paint=True), *MIXED, times=10)),
        ("check-rooms-80-columns.txt", _once(_at(80), SEVERAL)),
        ("check-rooms-80-columns-colour.txt", _once(_at(80, paint=True), SEVERAL)),
        ("check-rooms-repeated-pipe.txt", _often(_at(None), SEVERAL, SEVERAL, times=2)),
    ],
)
def test_the_screen_is_as_it_was_written_down(
    name: str, shown: str, request: pytest.FixtureRequest
) -> None:
    shown = shown.replace("\x1b", "␛")
    if request.config.getoption("--update-screens"):
        (SCREENS / name).write_text(shown, encoding="utf-8")
    assert shown == (SCREENS / name).read_text("utf-8"), "--update-screens if it is meant to be so"


def test_a_median_of_several_rooms_is_of_one_stage_in_one_room() -> None:
    first = replace(SEVERAL, phases=SEVERAL.phases[:6])
    shown_lines = by_stage([first, SEVERAL])
    assert list(shown_lines) == [(stage.name, stage.room) for stage in SEVERAL.phases]
    assert [stage.ms for stage in shown_lines["disco", ROOMS[0]]] == [33.0, 33.0]
    assert [stage.ms for stage in shown_lines["disco", ROOMS[2]]] == [33.0]


def test_advice_is_given_once_however_often_there_was_cause() -> None:
    shown = _often(_at(None), *THREE, BREAKS, times=4)
    assert shown.count("The certificate was not checked") == 1
    assert shown.count("[not-authorized] Check XMPP_USERNAME and XMPP_PASSWORD.") == 1
    assert "3 of 4 passed." in shown


def test_several_runs_say_of_a_room_that_one_of_them_made_what_one_run_says() -> None:
    there = report_of([ROOM], PASSED, 0.3, [Visit(ROOM, others=2)], None)
    alike = Visit(ROOM, created=True, candidates=["lab2@conference.example.org"])
    made = report_of([ROOM], PASSED, 0.3, [alike], None)
    remarks = made.diagnosis.removeprefix(
        there.diagnosis.replace("2 other occupants", "nobody else")
    )
    assert "made by joining it" in remarks
    assert "lab2" in remarks
    assert f"3 of 3 passed.{remarks}\n" in _often(_at(None), there, made, there, times=3)
    assert "2 of 2 passed.\n" in _often(_at(None), there, there, times=2)


def test_advice_has_the_condition_of_its_own_room() -> None:
    full = Fault("service-unavailable", "team@muc.example is full.", "Ask for space.")
    stages = (*SEVERAL.phases[:-3], CheckStage("join", False, 1.0, "", full.hint, ROOMS[2]))
    visits = [Visit(ROOMS[0]), Visit(ROOMS[1], BANNED), Visit(ROOMS[2], full)]
    last = _once(_at(None), report_of(ROOMS, stages, 0.4, visits, None)).splitlines()[-2:]
    assert last == ["[forbidden] Ask that owner.", "[service-unavailable] Ask for space."]


HOSTILE = [
    "x; 12:00 leave      ok         0.1 ms  forged",
    "x" + " " * 49 + "leave      ok         0.1 ms  forged",
    "x" * 49 + "leave      ok         0.1 ms  forged",
    "日" * 60 + "leave      ok         0.1 ms  forged",
    "a\rleave      ok         0.1 ms",
    "a\x1b[2J\x1b[1;1Hleave      ok",
    "a\x9b2Jforged\u2028forged\x85forged\u202eforged",
]


@given(
    text=st.sampled_from(HOSTILE) | st.text(st.characters() | st.sampled_from(" \n1leav")),
    columns=st.none() | st.integers(1, 200) | st.sampled_from([80, 50, 20, 5, 1]),
)
def test_whatever_a_server_says_stays_behind_its_stage(text: str, columns: int | None) -> None:
    display = _at(columns)
    # As a probe makes them: `one_line` has been over all texts but the fault's.
    failed = CheckStage("join", False, 1.0, one_line(text), one_line(text))
    fault = Fault(text, text, text)
    report = report_of([ROOM], (failed,), 0.1, [], fault)
    for lines, begins in (
        (results.stage(vars(failed), {}, display), "join"),
        (check.run_lines(1, report, display), "run 1"),
        (results.outcome(report.diagnosis, [report.encode()], display)[:1], ""),
        (check.title([text], display), "Checking"[: columns or 99]),
    ):
        first, *rest = lines
        assert first.startswith(begins) or (columns or 99) < HEAD_WIDTH
        assert all(line.startswith(" ") or columns == 1 for line in rest)
        for line in lines:
            assert not re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]", line)
            if columns is not None and columns >= HEAD_WIDTH:
                assert width(line) <= columns
