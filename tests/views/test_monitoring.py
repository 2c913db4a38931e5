import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from bridge.views.monitoring import (
    MAX_LINE_BYTES,
    Level,
    Limits,
    exposition,
    plugin_line,
    plugin_result,
)
from bridge.xmpp.checks.report import CheckStage, Report, Visit, report_of
from bridge.xmpp.model.faults import Fault, Retry

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
LAB, TEAM = "lab@conference.example.org", "team@conference.example.org"
RELAXED = Limits(None, None, 14)
HINT = "Ask that owner."
BANNED = Fault("forbidden", "The owner banned us.", HINT, Retry.LATER)


def _report(ms: float = 500, days: float | None = 60, *, ok: bool = True) -> Report:
    stages = [
        CheckStage("connect", True, 20, "", ""),
        CheckStage("join", ok, ms - 20, "", HINT * (not ok)),
    ]
    report = report_of([LAB], stages, ms / 1000, [Visit(LAB, None if ok else BANNED)], None)
    expires = None if days is None else NOW + timedelta(days=days)
    return replace(report, certificate_expires=expires)


SEVERAL = report_of(
    [LAB, TEAM],
    [
        CheckStage("connect", True, 20, "", ""),
        CheckStage("join", False, 30, "", "", LAB),
        CheckStage("join", True, 40, "", "", TEAM),
    ],
    0.09,
    [Visit(LAB, BANNED), Visit(TEAM)],
    None,
)


@pytest.mark.parametrize(
    ("report", "limits", "level", "reasons"),
    [
        (_report(), RELAXED, Level.OK, 0),
        (_report(), Limits(501, 502, 14), Level.OK, 0),
        (_report(), Limits(500, 501, 14), Level.WARNING, 1),
        (_report(), Limits(499, 500, 14), Level.CRITICAL, 1),
        (_report(), Limits(None, 500, 14), Level.CRITICAL, 1),
        (_report(days=14), RELAXED, Level.OK, 0),
        (_report(days=13.99), RELAXED, Level.WARNING, 1),
        (_report(days=-1), RELAXED, Level.WARNING, 1),
        (_report(days=13), Limits(None, 500, 14), Level.CRITICAL, 2),
        (_report(days=None), RELAXED, Level.OK, 0),
        (_report(ok=False), Limits(400, None, 14), Level.CRITICAL, 1),
        (replace(_report(), created=(LAB,)), RELAXED, Level.WARNING, 0),
        (replace(_report(ok=False), created=(LAB,)), RELAXED, Level.CRITICAL, 0),
    ],
)
def test_a_check_is_judged_by_its_stages_its_time_and_the_certificate(
    report: Report, limits: Limits, level: Level, reasons: int
) -> None:
    judged, told = limits.judge([report], NOW)
    assert (judged, len(told)) == (level, reasons)


def test_of_several_runs_the_median_counts_and_every_failure() -> None:
    limits = Limits(500, None, 14)
    assert limits.judge([_report(10), _report(20), _report(900)], NOW) == (Level.OK, [])
    assert limits.judge([_report(10), _report(10), _report(10, ok=False)], NOW)[0] is Level.CRITICAL


def test_the_line_of_a_plugin_has_the_outcome_and_performance_data() -> None:
    where = "in the room lab@conference.example.org with nobody else, 0.50 s in all."
    assert plugin_result([_report()], RELAXED, NOW) == (
        f"XMPP OK - Everything works: {where} | time=0.500s;;;0 certificate_days=60;14:"
    )
    beyond = plugin_result([_report(days=13.5)], Limits(400, 1500, 30), NOW)
    assert beyond == (
        "XMPP WARNING - The certificate expires in 13 days, limit 30 (--cert-days). Slow: 500 ms, "
        f"limit 400 ms (--warn). All stages passed: {where} "
        "| time=0.500s;0.4;1.5;0 certificate_days=13;30:"
    )
    slow = plugin_result([_report()] * 3, Limits(1, 2, 14), NOW)
    assert slow.startswith(
        "XMPP CRITICAL - Too slow: a median of 500 ms, limit 2 ms (--crit). 3 of 3 passed. All "
    )
    reports = [_report(), _report(ok=False), _report()]
    assert plugin_result(reports, RELAXED, NOW).startswith(
        "XMPP CRITICAL - 2 of 3 passed. join failed [forbidden]: The owner banned us. Ask that "
        "owner. | time="
    )


HOSTILE = st.text(st.characters() | st.sampled_from("|<>\n\r\\;='\u202e\u2028\x9b"))


@given(text=HOSTILE)
def test_nothing_that_a_server_says_ends_the_line_or_begins_performance_data(text: str) -> None:
    line = plugin_line(Level.CRITICAL, text, "time=1s;;;0")
    said, _, performance = line.partition(" | ")
    assert said.startswith("XMPP CRITICAL - ")
    assert performance == "time=1s;;;0"
    assert not re.search("[|<>\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", said)


def test_the_text_of_a_plugin_is_bounded() -> None:
    longest = "x" * MAX_LINE_BYTES
    assert plugin_line(Level.OK, longest) == f"XMPP OK - {longest}"
    assert plugin_line(Level.OK, f"{longest}y") == f"XMPP OK - {longest}..."
    for wide in "<\U0001f600":
        assert len(plugin_line(Level.OK, wide * 400, "time=1s").encode()) < MAX_LINE_BYTES + 30


def _samples(rooms: list[str], *reports: Report) -> dict[tuple[str, ...], float]:
    """What Prometheus reads, by the name without its prefix, and the labels; each family once."""
    text = "\n".join(exposition(rooms, reports, NOW)) + "\n"
    families = list(text_string_to_metric_families(text))
    assert len({each.name for each in families}) == len(families)
    assert all(each.type == "gauge" and each.documentation for each in families)
    return {
        (
            sample.name.removeprefix("xmpp_bridge_check_"),
            *(sample.labels[name] for name in ("room", "stage") if name in sample.labels),
        ): sample.value
        for each in families
        for sample in each.samples
    }


def test_prometheus_reads_whether_it_is_up_how_long_it_took_and_the_days() -> None:
    assert _samples([LAB], _report()) == {
        ("up", LAB): 1,
        ("seconds", LAB, "connect"): 0.02,
        ("seconds", LAB, "join"): 0.48,
        ("room_created", LAB): 0,
        ("certificate_days", LAB): 60,
    }
    assert ("certificate_days", LAB) not in _samples([LAB], _report(days=None))


def test_of_several_runs_prometheus_gets_the_medians_and_up_only_if_all_passed() -> None:
    samples = _samples([LAB], _report(120), _report(220), _report(920, ok=False))
    assert (samples["up", LAB], samples["seconds", LAB, "join"]) == (0, 0.2)


def test_each_of_several_rooms_has_its_own_way() -> None:
    assert _samples([LAB, TEAM], replace(SEVERAL, created=(TEAM,)), SEVERAL) == {
        ("up", LAB): 0,
        ("up", TEAM): 1,
        ("room_created", LAB): 0,
        ("room_created", TEAM): 1,
        ("seconds", LAB, "connect"): 0.02,
        ("seconds", LAB, "join"): 0.03,
        ("seconds", TEAM, "connect"): 0.02,
        ("seconds", TEAM, "join"): 0.04,
    }


@pytest.mark.parametrize(
    ("room", "label"),
    [
        ('a"b\\c@muc', 'a"b\\c@muc'),
        ("a\nb@muc", "a\\u{A}b@muc"),
        ("\u202ea@muc", "\\u{202E}a@muc"),
        ("日本@muc", "日本@muc"),
    ],
)
def test_a_room_is_a_label_whatever_it_is_called(room: str, label: str) -> None:
    assert _samples([room], _report())["up", label] == 1
