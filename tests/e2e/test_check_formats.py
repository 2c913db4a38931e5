"""`xmpp-bridge check` as a probe: under a monitoring system, for Prometheus, with limits."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e import noise
from tests.e2e.checking import run
from tests.e2e.here import run_here
from tests.e2e.watching import shell
from tests.faults import scripted_server as scripted
from tests.faults.scripted_server import HONEST, ScriptedServer, Wire
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

LINE = re.compile(
    r"XMPP (OK|WARNING|CRITICAL|UNKNOWN) - ([^|<>\n]+?)"
    r"( \| time=[0-9.]+s;[0-9.]*;[0-9.]*;0( certificate_days=-?[0-9]+;[0-9]+:)?)?\n"
)
CODES = {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}
NAGIOS = ("--format", "nagios")


async def _plugin(
    home: Path, environment: dict[str, str], *arguments: str
) -> tuple[str, str, str | None]:
    """Check as a monitoring system does; return the level, the text and the performance data."""
    code, checking = await run(home, environment, *NAGIOS, *arguments)
    line = LINE.fullmatch(checking.out)
    assert line is not None, checking.out
    assert code == CODES[line[1]]
    assert "Traceback" not in checking.err
    return line[1], line[2], line[3]


ELSEWHERE: dict[str, str | None] = {"MUC_ROOM": "x@conference.localhost"}
OUTCOMES: dict[str, tuple[dict[str, str | None], str, str, str]] = {
    "a room with company": ({}, "", "OK", "Everything works:"),
    "a room that only the check made": (ELSEWHERE, "", "WARNING", "All stages passed: in"),
    "a refusal for good": (
        {"XMPP_PASSWORD": "wrong-4711-wrong"},
        "--repeat 5",
        "CRITICAL",
        "sasl failed [not-auth",
    ),
    "a room that must exist": (ELSEWHERE, "--room-must-exist", "CRITICAL", "[item-not-found]: "),
    "a setting that is missing": ({"XMPP_PASSWORD": None}, "", "UNKNOWN", "XMPP_PASSWORD"),
    "an empty warning": ({}, "--warn 3 --crit 2", "UNKNOWN", "3 is above --crit 2"),
    "no message": ({"BRIDGE_READ_ONLY": "1"}, "--send", "UNKNOWN", "BRIDGE_READ_ONLY"),
    "a mistake": ({}, "--warn soon", "UNKNOWN", "the command line is wrong"),
    "a broken installation": ({"PYTHONPATH": "site"}, "", "UNKNOWN", "installation"),
}
"""The settings, the options, the level, and what the line says."""


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_each_outcome_has_its_level(
    outcome: str, prosody: XmppServer, tmp_path: Path
) -> None:
    changed, arguments, level, told = OUTCOMES[outcome]
    settings = prosody.environment()
    room = settings["MUC_ROOM"]
    environment = {name: it for name, it in (settings | changed).items() if it is not None}
    if "PYTHONPATH" in changed:
        environment |= noise.at_start(tmp_path / "site", noise.BROKEN_SLIXMPP)
    async with Witness(prosody, prosody.witness, room, "Wilma"):
        status, text, performance = await _plugin(
            tmp_path / "home", environment, *arguments.split()
        )
    assert (status, told in text, "of 5" in text) == (level, True, False), text
    assert (performance is None) is (level == "UNKNOWN")
    assert level != "OK" or "certificate_days=36" in str(performance)


def test_where_the_line_cannot_be_written_the_level_is_unknown(tmp_path: Path) -> None:
    ran = shell('"$@" > /dev/full', tmp_path, "check", "--sandbox", *NAGIOS)
    assert ran.returncode == 3
    assert "Traceback" not in ran.stderr


def _metrics(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    return {
        each.name.removeprefix("xmpp_bridge_check_"): [
            (sample.labels, sample.value) for sample in each.samples
        ]
        for each in text_string_to_metric_families(text)
    }


def test_prometheus_gets_every_stage_of_every_room(prosody: XmppServer, tmp_path: Path) -> None:
    rooms = [prosody.room(), prosody.room()]
    environment = prosody.environment(MUC_ROOM=",".join(rooms))
    form = ("check", "--format", "prometheus")
    ran = run_here(tmp_path, *form, **environment)
    assert (ran.returncode, ran.stderr) == (0, "")
    metrics = _metrics(ran.stdout)
    assert metrics["up"] == [({"room": room}, 1.0) for room in rooms]
    for room in rooms:
        stages = [labels["stage"] for labels, _ in metrics["seconds"] if labels["room"] == room]
        assert {"resolve", "tls", "sasl", "join", "leave"} <= set(stages)
    assert all(364 < days <= 365 for _, days in metrics["certificate_days"])
    ran = run_here(tmp_path, *form)
    assert (ran.returncode, _metrics(ran.stdout)["up"]) == (2, [({"room": ""}, 0.0)])


def test_a_limit_is_said_and_only_crit_fails(sandbox: XmppServer, tmp_path: Path) -> None:
    environment = sandbox.environment()
    ran = run_here(tmp_path, "check", "--warn", "1", **environment)
    assert (ran.returncode, "limit 1 ms (--warn)" in ran.stdout.splitlines()[-1]) == (0, True)
    ran = run_here(tmp_path, "check", "--crit", "1", "--json", **environment)
    told = json.loads(ran.stdout)
    assert (ran.returncode, told["ok"]) == (1, True)
    (slow,) = told["warnings"]
    assert "limit 1 ms (--crit)" in slow
    assert ran.stderr == f"xmpp-bridge: {slow}\n"


MOST_CHARACTERS = 6_000
"""More than any format takes for a check that failed at the login."""


@pytest.mark.parametrize(
    ("count", "format_", "told"),
    [
        (400, "json", "x" * 40),
        (400, "nagios", "x" * 40),
        (400, "prometheus", "up{"),
        (10_000, "text", "it goes on without end"),
    ],
)
async def test_an_offer_of_many_odd_mechanisms_is_cut_and_escaped(
    count: int, format_: str, told: str, tmp_path: Path
) -> None:
    async def offer(wire: Wire) -> None:
        odd = (f"\u202e\x9b{number}&lt;b>|{'x' * 40}" for number in range(count))
        await wire.open(scripted.mechanisms(*odd))
        await wire.gone()

    async with ScriptedServer(replace(HONEST, authenticate=offer)) as server:
        code, checking = await run(tmp_path, server.environment(), "--format", format_)
    assert (code, told in checking.out) == (2 if format_ == "nagios" else 1, True)
    for out in (checking.out, checking.err):
        assert len(out) < MOST_CHARACTERS
        assert out.replace("\n", "").isprintable()
    if format_ == "nagios":
        assert LINE.fullmatch(checking.out)
