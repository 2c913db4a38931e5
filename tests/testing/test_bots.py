"""A real bot, good and broken in each way, under scenario files."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

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
    "crashing": ["the bot ended with exit code 3", "Oops"],
    "absent": [f'waited {JOIN_SECONDS} s for "Robot" to join', 'In the room: "Alice".'],
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


@dataclass(frozen=True)
class Run:
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
        case.attrib["name"]: (None if (failure := case.find("failure")) is None else failure.text)
        for case in ElementTree.parse(report).iter("testcase")  # noqa: S314 - pytest's own
    }
    return Run(failures, ran.stdout + ran.stderr)


def test_a_good_bot_passes_and_of_each_other_it_is_told_what_it_did(
    prosody: XmppServer, tmp_path: Path
) -> None:
    for fault in FAULTS:
        (tmp_path / f"{fault}.room.toml").write_text(SCENARIO % fault, "utf-8")
    actors = env_file(prosody, tmp_path, prosody.witness)
    bot = env_file(prosody, tmp_path, prosody.bot)
    files = [f"{fault}.room.toml" for fault in FAULTS]
    run = _run(tmp_path, *files, "--xmpp-env-file", actors, "--xmpp-bot-env-file", bot)
    assert {fault for fault, failure in run.failures.items() if failure is None} == {"good"}
    missing = {
        fault: (one, run.failures[fault])
        for fault, told in FAULTS.items()
        for one in told
        if one not in (run.failures[fault] or "")
    }
    assert missing == {}
    told = run.output + "".join(one or "" for one in run.failures.values())
    assert "Robot logged in with ***" in told
    assert "-passes-" not in told  # as all passwords of our servers have it


TOLD = {
    "untyped": ("bot@localhost", "It was of type normal, to the whole room. The client sent it"),
    "locked-out": ("a client that did not log in", "user name and password"),
}
"""On whose stream what is found of each bot."""


def test_the_sandbox_shows_what_the_server_said_to_the_bot_alone(tmp_path: Path) -> None:
    for fault in TOLD:
        (tmp_path / f"{fault}.room.toml").write_text(SCENARIO % fault, "utf-8")
    run = _run(tmp_path, *(f"{fault}.room.toml" for fault in TOLD), "--xmpp-report", "page.json")
    parts = json.loads((tmp_path / "page.json").read_text())["parts"]
    for (fault, (stream, told)), part in zip(TOLD.items(), parts, strict=True):
        assert part["title"] == f"{fault}.room.toml"
        assert told in " ".join(f"{each['message']} {each['hint']}" for each in part["findings"])
        assert told in run.output[run.output.index(f"XMPP: the stream of {stream}") :]
