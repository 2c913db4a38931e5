"""A real bot, good and broken in each way, under scenario files and under the plugin's fixtures."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.servers.server import XmppServer
from tests.testing.servers import env_file

ROBOT = Path(__file__).with_name("robot.py")
SECONDS = 240.0
"""Limit for one run of pytest, with all the bots in it."""

JOIN_SECONDS = 4
WITHIN_SECONDS = 2

FAULTS = {
    "good": [],
    "silent": [f'waited {WITHIN_SECONDS} s for a message from "Robot" that', "Nothing came."],
    "late": ["s too late: ", "<Robot> pong"],
    "private": ["in private: ", "<Robot> (private) pong"],
    "twice": ["for 1 s not to get a message", "<Robot> pong"],
    "looping": ["for 1 s not to get a message", "<Robot> pong to pong to !ping"],
    "wrong": ["another text: ", "<Robot> ping?"],
    "crashing": ["the bot ended with exit code 3", "Oops"],
    "absent": [f'waited {JOIN_SECONDS} s for "Robot" to join', 'In the room: "Alice".'],
    "misnamed": [f'waited {JOIN_SECONDS} s for "Robot" to join', '"Robbie"'],
    "leaving": ["Nothing came.", 'In the room: "Alice".'],
}
"""What is told of each bot; nothing of a good one."""

SCENARIO = f"""
[bot]
command = ["python", '{ROBOT}']
joins_as = "Robot"
within = {JOIN_SECONDS}
environment = {{ FAULT = "%s" }}

[[step]]
actor = "Alice"
say = "!ping"

[[step]]
expect = {{ from = "Robot", contains = "pong", within = {WITHIN_SECONDS} }}

[[step]]
expect_nothing = {{ from = "Robot", during = 1 }}
"""

TESTS = f"""
import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("fault", {[*FAULTS]})
def test_robot(fault, xmpp_server, xmpp_actor_sync):
    alice = xmpp_actor_sync("Alice")
    environ = {{**os.environ, **xmpp_server.environment(), "FAULT": fault}}
    with subprocess.Popen([sys.executable, {str(ROBOT)!r}], env=environ) as robot:
        try:
            alice.expect_join("Robot", within={JOIN_SECONDS})
            alice.say("!ping")
            alice.expect(contains="pong", from_="Robot", within={WITHIN_SECONDS})
            alice.expect_nothing(from_="Robot", during=1)
        finally:
            robot.kill()
"""


@dataclass(frozen=True)
class Run:
    """One run of pytest on all bots."""

    failures: dict[str, str | None]
    """The text of each failure by the name of the bot; None where it passed."""
    output: str


def _run(folder: Path, *arguments: str | Path) -> Run:
    report = folder / "report.xml"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--junit-xml", report, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert report.exists(), ran.stdout + ran.stderr
    failures = {
        case.attrib["name"].removeprefix("test_robot[").removesuffix("]"): (
            None if (failure := case.find("failure")) is None else failure.text
        )
        for case in ElementTree.parse(report).iter("testcase")  # noqa: S314 - pytest's own
    }
    return Run(failures, ran.stdout + ran.stderr)


Make = Callable[[Path], list[str]]


def _files(folder: Path) -> list[str]:
    for fault in FAULTS:
        (folder / f"{fault}.room.toml").write_text(SCENARIO % fault, "utf-8")
    return [f"{fault}.room.toml" for fault in FAULTS]


def _tests(folder: Path) -> list[str]:
    (folder / "test_robot.py").write_text(TESTS, "utf-8")
    return ["test_robot.py"]


def _options(server: XmppServer, folder: Path) -> list[str | Path]:
    if server.name == "sandbox":
        return []
    actors, bot = env_file(server, folder, server.witness), env_file(server, folder, server.bot)
    return ["--xmpp-env-file", actors, "--xmpp-bot-env-file", bot]


@pytest.mark.parametrize(
    ("name", "make"),
    [("prosody", _files), ("sandbox", _tests)],
    ids=["scenarios on prosody", "fixtures on the sandbox"],
)
def test_a_good_bot_passes_and_of_each_other_it_is_told_what_it_did(
    name: str, make: Make, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: XmppServer = request.getfixturevalue(name)
    run = _run(tmp_path, *make(tmp_path), *_options(server, tmp_path))
    assert {fault for fault, failure in run.failures.items() if failure is None} == {"good"}
    expected = FAULTS
    if make is _tests:  # to an actor a crash looks like this
        expected = FAULTS | {"crashing": FAULTS["leaving"]}
    missing = {
        fault: (one, run.failures[fault])
        for fault, told in expected.items()
        for one in told
        if one not in (run.failures[fault] or "")
    }
    assert missing == {}
    if make is _files:  # what a test starts by itself, pytest shows as it is
        told = run.output + "".join(one or "" for one in run.failures.values())
        assert "Robot logged in with ***" in told
        assert "-passes-" not in told  # as all passwords of our servers have it
