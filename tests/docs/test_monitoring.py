"""What docs/monitoring.md tells to run does what it says."""

import json
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.docs.pages import PAGES, blocks, quoted, section, tables
from tests.e2e.bridge_process import run_in
from tests.servers.server import XmppServer, write_settings

PAGE = PAGES["docs/monitoring.md"]
(TEXTFILE, CI) = (each.text for each in blocks(PAGE, "sh"))
(MAIL, METRICS) = (each.text for each in blocks(PAGE, "cron"))
(ICINGA,) = blocks(PAGE, "icinga")
(ALERTS,) = blocks(PAGE, "promql")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of somebody who works in a clone, as far as the page begins with it."""
    for folder in (".config", "xmpp-debug-bridge"):
        (tmp_path / folder).mkdir()
    (tmp_path / "xmpp-debug-bridge" / ".venv").symlink_to(Path(sys.executable).parent.parent)
    return tmp_path


def _settings(home: Path, environment: Mapping[str, str]) -> None:
    write_settings(home / ".config" / "xmpp-bridge.env", environment)


def _run(command: str, home: Path, **environ: str) -> tuple[int, str, str]:
    """Run it as cron does: in `sh`, and with a short PATH."""
    ran = run_in(home, "sh", "-c", command, **environ)
    return ran.returncode, ran.stdout, ran.stderr


def _crontab(line: str) -> str:
    """The command of a line of a crontab, in which a `%` would be a line break."""
    assert "%" not in line
    times, command = re.fullmatch(r"((?:\S+ ){5})(.+)\n", line).groups()  # type: ignore[union-attr]
    assert re.fullmatch(r"\*/[0-9]+ (\* ){4}", times)
    return str(command)


def _metrics(home: Path) -> dict[str, float]:
    assert [path.name for path in (home / "metrics").iterdir()] == ["xmpp.prom"]
    text = (home / "metrics" / "xmpp.prom").read_text()
    return {each.name: each.samples[0].value for each in text_string_to_metric_families(text)}


def test_the_collector_finds_the_metrics_of_every_check(home: Path, prosody: XmppServer) -> None:
    path = f"{home}/xmpp-debug-bridge/.venv/bin:/usr/bin:/bin"
    _settings(home, prosody.environment())
    assert _run(TEXTFILE, home, PATH=path)[0] == 0
    well = _metrics(home)
    assert _run(_crontab(MAIL), home) == (0, "", "")
    rows = tables(section("docs/monitoring.md", "## Prometheus"))["metric"]
    assert {quoted(row[0])[0] for row in rows} == well.keys()
    _settings(home, prosody.environment(XMPP_PASSWORD="wrong-4711-wrong"))
    _run(_crontab(METRICS), home)
    assert (well["xmpp_bridge_check_up"], _metrics(home)["xmpp_bridge_check_up"]) == (1, 0)
    assert {*re.findall(r"xmpp_bridge_[a-z_]+", ALERTS.text)} <= well.keys()
    assert "[not-authorized]" in _run(_crontab(MAIL), home)[1]


def test_a_job_keeps_the_outcome_of_its_checks(home: Path, sandbox: XmppServer) -> None:
    path = f"{home}/xmpp-debug-bridge/.venv/bin:/usr/bin:/bin"
    assert _run(CI, home, **sandbox.environment(), PATH=path)[0] == 0
    told = json.loads((home / "check.json").read_text())
    assert (told["ok"], len(told["runs"])) == (True, 3)


def test_the_command_of_icinga_is_one_that_runs(home: Path, sandbox: XmppServer) -> None:
    command = json.loads(re.findall(r"command = (\[.+\])", ICINGA.text)[0])
    values = {"xmpp_env_file": ".config/xmpp-bridge.env", "xmpp_warn": "9000"}
    values |= {"xmpp_crit": "10000", "xmpp_cert_days": "21"}
    for option, name in re.findall(r'"(--[a-z-]+)" = "\$(\w+)\$"', ICINGA.text):
        command += [option, values.pop(name)]
    assert not values
    command[0] = command[0].replace("/home/you", str(home))
    _settings(home, sandbox.environment(MUC_ROOM="lobby@rooms.localhost"))
    code, shown, _ = _run(shlex.join(command), home)
    assert (code, shown[:10]) == (0, "XMPP OK - ")
