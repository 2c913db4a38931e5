"""What `tests/benchmarks` promises, but for the figures themselves, which are the machine's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.bench import Bench, Environments
from tests.benchmarks.chart import chart
from tests.benchmarks.command import MEASURES, main
from tests.benchmarks.figures import Aim, Series, alternated
from tests.benchmarks.peer import called, result_of
from tests.benchmarks.profiling import main as profile
from tests.benchmarks.report import BEGIN, CHART, END, README, RESULTS, Report, outcome_of

KEPT = json.loads(RESULTS.read_text(encoding="utf-8"))
REPORT = Report(KEPT["machine"], [outcome_of(one) for one in KEPT["outcomes"]])
BENCHMARKS = README.parent
PAGE = README.read_text(encoding="utf-8")


def test_every_measure_was_taken_nine_times_and_stands_on_the_page() -> None:
    assert [one.name for one in REPORT.outcomes] == list(MEASURES)
    once = {"memory"}  # a flood of a million messages
    for outcome in REPORT.outcomes:
        for series in outcome.series:
            assert len(series.values) >= (1 if outcome.name in once else 9), series
    assert PAGE.partition(BEGIN)[2].partition(END)[0].strip() == REPORT.as_text()
    assert CHART.read_text(encoding="utf-8") == chart(REPORT.outcomes)


def test_each_aim_that_is_not_met_has_its_reason_on_the_page() -> None:
    reasons = PAGE.partition("## Where an aim is not met")[2].partition("\n## ")[0]
    unmet = [aim for outcome in REPORT.outcomes for aim in outcome.aims if not aim.met]
    assert reasons.count("\n- **") == len(unmet)
    for aim in unmet:
        assert f" for {aim.limit:g}" in reasons, aim


def test_the_contenders_take_turns_after_a_round_that_warms_up() -> None:
    turns: list[str] = []

    def run(name: str) -> int:
        turns.append(name)
        return len(turns)

    found = alternated(2, {"a": lambda: run("a"), "b": lambda: run("b")})
    assert turns == ["a", "b"] * 3
    assert found == {"a": [3, 5], "b": [4, 6]}


def test_a_ratio_is_the_middle_one_of_neighbouring_runs() -> None:
    ours, theirs = Series("a", "p50", "ms", (1, 20, 3)), Series("b", "p50", "ms", (1, 10, 1))
    assert ours.over(theirs) == 2
    assert (ours.median, ours.spread) == (3, (1, 20))


@pytest.mark.parametrize(
    ("bound", "value", "met"),
    [
        ("at most", 2, True),
        ("at most", 2.1, False),
        ("at least", 2, True),
        ("at least", 1.9, False),
    ],
)
def test_an_aim_is_met_at_its_limit(bound: str, value: float, met: bool) -> None:
    assert Aim("times", value, bound, 2.0).met is met  # type: ignore[arg-type]  # one of two words


def test_a_measure_is_printed_as_a_table_and_as_json_with_the_machine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main([sys.executable, sys.executable, "--only", "waits", "--pairs", "1"])
    table, _, text = capsys.readouterr().out.partition("\n{")
    told = json.loads("{" + text)
    assert "| `waits` | message to the last reply | xmpp-bridge |" in table
    assert f"- CPU: {told['machine']['CPU']}" in table
    (outcome,) = told["outcomes"]
    assert outcome["name"] == "waits"
    assert len(outcome["series"][0]["values"]) == 1


@pytest.mark.parametrize("name", ["loop", "sdk"])
def test_a_rival_echoes_as_the_bridge_does(name: str) -> None:
    with Bench(Environments(Path(sys.executable), Path(sys.executable)), 1, 1) as bench:
        rival = {"loop": bench.loop, "sdk": bench.sdk}[name]
        with rival() as peer:
            peer.shake_hands()
            peer.write(called("one", "echo", message="hello"))
            assert result_of(peer.answer_to("one"))["content"][0]["text"] == "Echo: hello"


def test_a_profile_shows_where_the_time_of_a_measure_goes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    profile([sys.executable, "waits", "--top", "5", "--sort", "cumulative"])
    told = capsys.readouterr().out
    assert "Ordered by: cumulative time" in told
    assert "restriction <5>" in told
    assert "bridge/cli.py" in told


@pytest.mark.parametrize(
    ("command", "module", "given"),
    [
        ("run", "tests.benchmarks.command", ["{home}/bridge", "{home}/rivals"]),
        ("profile", "tests.benchmarks.profiling", ["{home}/bridge"]),
    ],
)
def test_a_command_makes_its_environments_and_installs_into_them(
    command: str, module: str, given: list[str], tmp_path: Path
) -> None:
    log, home = tmp_path / "log", tmp_path / "home"
    python = tmp_path / "python"
    # One that makes environments of nothing but itself, and writes down what it is asked.
    python.write_text(
        f'#!/bin/sh\necho "$0 $*" >>{log}\n'
        'if [ "$2" = venv ]; then\n'
        'mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/pip"\nfi\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(python), "BENCHMARK_HOME": str(home)}
    for _ in range(2):
        subprocess.run([BENCHMARKS / command, "--help"], env=environment, check=True, cwd=tmp_path)
    asked = log.read_text(encoding="utf-8").splitlines()
    assert asked.count(f"{python} -m venv {home}/bridge") == 1
    assert asked.count(f"{python} -m venv {home}/rivals") == 1
    ours, theirs = (
        [one.split() for one in asked if one.startswith(f"{home}/{name}/bin/pip install ")]
        for name in ("bridge", "rivals")
    )
    assert len(ours) == len(theirs) == 2
    for one in ours:
        assert ".[expect]" in one
        assert "-e" not in one
    assert all(any(word.startswith("mcp==") for word in one) for one in theirs)
    pythons = " ".join(f"{one}/bin/python" for one in given).format(home=home)
    assert asked.count(f"{home}/bridge/bin/python -m {module} {pythons} --help") == 2
