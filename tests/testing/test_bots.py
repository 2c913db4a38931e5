"""A real bot, good and broken in each way, under scenario files."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.servers.server import XmppServer
from tests.testing.servers import env_file

pytest_plugins = ["pytester"]

ROBOT = Path(__file__).with_name("robot.py")
SCENARIO = f"""
[bot]
command = ["python", '{ROBOT}']
joins_as = "Robot"
within = 4
environment = {{ FAULT = "%s" }}

[[step]]
actor = "Alice"
say = "!ping"

[[step]]
expect = {{ from = "Robot", contains = "pong", within = 2 }}

[[step]]
expect_nothing = {{ from = "Robot", during = 1 }}
"""


def _played(pytester: pytest.Pytester, faults: list[str], *given: str | Path) -> dict[str, str]:
    """Return the text of each bot's failure, and all output as `output`."""
    for fault in faults:
        (pytester.path / f"{fault}.room.toml").write_text(SCENARIO % fault, "utf-8")
    run = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--junit-xml=report.xml", *given)
    cases = ElementTree.parse(pytester.path / "report.xml").iter("testcase")  # noqa: S314 - ours
    failures = {case.attrib["name"]: case.findtext("failure") or "" for case in cases}
    return failures | {"output": f"{run.stdout}{run.stderr}"}


def test_a_good_bot_passes_and_what_a_crashed_one_wrote_is_told_without_its_password(
    prosody: XmppServer, pytester: pytest.Pytester
) -> None:
    actors = env_file(prosody, pytester.path, prosody.witness)
    bot = env_file(prosody, pytester.path, prosody.bot)
    options = (f"--xmpp-env-file={actors}", f"--xmpp-bot-env-file={bot}")
    told = _played(pytester, ["good", "crashing"], *options)
    assert told["good"] == ""
    for part in ("the bot ended with exit code 3", "Oops", "Robot logged in with ***"):
        assert part in told["crashing"]
    assert "-passes-" not in "".join(told.values())  # as all passwords of our servers have it


def test_the_sandbox_shows_what_the_server_said_to_the_bot_alone(pytester: pytest.Pytester) -> None:
    untyped = "It was of type normal, to the whole room. The client sent it"
    streams = {
        "locked-out": ("a client that did not log in", "user name and password"),
        "untyped": ("bot@localhost", untyped),
    }
    told = _played(pytester, [*streams], "--xmpp-report=page.json")
    assert 'waited 2 s for a message from "Robot" that' in told["untyped"]
    assert "Nothing came." in told["untyped"]
    parts = json.loads((pytester.path / "page.json").read_text())["parts"]
    for (fault, (stream, finding)), part in zip(streams.items(), parts, strict=True):
        assert part["title"] == f"{fault}.room.toml"
        assert finding in " ".join(f"{each['message']} {each['hint']}" for each in part["findings"])
        output = told["output"]
        assert finding in output[output.index(f"XMPP: the stream of {stream}") :]
