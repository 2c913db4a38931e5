"""The documents leave nothing out: their lists are those of the code, and their links lead on."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bridge.mcp import asking, revisions
from bridge.mcp.schema import object_of
from bridge.registration import KEYS
from bridge.service import OWN
from bridge.settings.load import load
from bridge.settings.table import HISTORIES, SEND_RATES, VARIABLES, Configuration
from bridge.text import MAX_QUOTED_CHARACTERS
from bridge.tools import answers, entries, paging, send
from bridge.wire import scram
from bridge.xmpp.checks import answering, evidence
from bridge.xmpp.checks.report import expected_stages
from bridge.xmpp.link import stream
from bridge.xmpp.model import backoff, faults, formatting, room
from bridge.xmpp.model.events import KINDS, Phase
from bridge.xmpp.model.faults import Fault, Place, Retry, Stage
from bridge.xmpp.muc import reading
from tests.docs.pages import PAGES, README, TOP, blocks, prose, quoted, section, tables
from tests.test_cli import pages_of_commands
from tests.xmpp.conditions import SASL_CONDITIONS, STANZA_CONDITIONS, STREAM_CONDITIONS

# --- Commands, tools, settings --------------------------------------------------------------------


def test_resources_and_prompts_are_all_named() -> None:
    told = set(quoted(section("docs/tools.md", "## Resources and prompts")))
    assert {each.name for each in OWN.prompts} <= told
    assert {each for each in told if "://" in each} == {each.uri for each in OWN.resources}


def test_the_arguments_of_every_tool_are_all_named() -> None:
    tools = {each.name: each for each in OWN.tools}
    rows = tables(section("docs/tools.md", "## Arguments"))
    assert {quoted(row[0])[0] for row in rows["tool"]} == tools.keys()
    listed: set[str] = set()
    for tool, arguments in rows["tool"]:
        schema: dict[str, Any] = {**object_of(tools[quoted(tool)[0]].signature.parameters)}
        properties = schema.get("properties", {})
        assert quoted(arguments) == list(properties)
        defaults = dict(re.findall(r"`(\w+)` \((\"?\w+\"?)\)", arguments))
        real = {name: each["default"] for name, each in properties.items() if "default" in each}
        assert defaults == {name: json.dumps(value) for name, value in real.items()}
        listed |= properties.keys()
        required = {
            quoted(row[0])[0]
            for row in rows["argument"]
            if (said := re.search(r"; required(?: by (`\w+`))?", row[1]))
            and said[1] in {None, tool}
        }
        assert required & properties.keys() == set(schema.get("required", ()))
    assert {each for row in rows["argument"] for each in quoted(row[0])} == listed


def test_the_kinds_of_events_are_all_named() -> None:
    rows = tables(section("docs/tools.md", "## Kinds of events"))["kind"]
    assert [quoted(row[0])[0] for row in rows] == list(KINDS)


def test_the_revisions_are_those_that_are_spoken() -> None:
    dates = sorted(each.date for each in revisions.ALL)
    assert f"from {dates[0]} to {dates[-1]} is spoken" in " ".join(README.split())


OPTIONS = {
    name: {word for action in page._actions for word in action.option_strings} - {"-h"}  # noqa: SLF001 - no public way to them
    for name, page in pages_of_commands().items()
}
"""The options of each command, as the parser has them; under `` those of none."""
SPOKEN = [
    spoken
    for page, text in PAGES.items()
    if page != "CHANGELOG.md"  # which also names what there was
    for spoken in (
        *quoted(prose(text)),
        *(line for each in blocks(text, "sh", "console") for line in each.lines),
    )
]
"""Where the documents speak of commands."""


def test_every_command_line_in_it_is_one_that_the_parser_knows() -> None:
    seen = set()
    for line in SPOKEN:
        for call in re.findall(r"(?:^|[ /])xmpp-bridge((?: [^|;&]+)?)", line):
            if call.split()[:2] == ["help", "agent"]:  # the skill, no command
                continue
            words = call.partition(" -- ")[0].removeprefix(" help").split()
            command = words.pop(0) if words and not words[0].startswith("-") else ""
            assert command in OPTIONS, line
            used = {word for word in words if word.startswith("--")}
            known = OPTIONS[command] | (OPTIONS["serve"] if not command else set())
            assert used <= known or command == "expect", line  # which has all of pytest's
            seen.add(command)
    assert seen == set(OPTIONS)


@pytest.mark.parametrize("command", sorted(OPTIONS.keys() - {""}))
def test_every_option_of_the_parser_is_in_it(command: str) -> None:
    text = PAGES["docs/commands.md"].partition("\n## ")[0]
    rows = [" ".join(row) for row in tables(text)["command"] if f"xmpp-bridge {command}`" in row[0]]
    assert len(rows) == 1
    rest = re.search(r"^(.+) go with (.+?);", " ".join(prose(text).split("|")[-1].split()))
    assert rest is not None
    told = set(re.findall(r"--[a-z-]+", rows[0]))
    if f"`{command}`" in rest[2]:
        told |= set(re.findall(r"--[a-z-]+", rest[1]))
    assert told == OPTIONS[command] - {"--help"}


def test_every_agent_that_can_be_registered_with_is_in_it() -> None:
    rows = tables(section("README.md", "## Your server and your agent"))["agent"]
    assert [quoted(row[1])[0] for row in rows] == list(KEYS)


ROWS = tables(PAGES["docs/settings.md"])["variable"]
SETTINGS = {quoted(row[0])[0]: row[1:] for row in ROWS}


def _load(environ: dict[str, str], folder: Path) -> Configuration:
    return load(environ, cwd=folder, package_root=folder)


def test_the_ranges_in_the_table_are_those_of_the_bridge() -> None:
    for name, numbers in (("BRIDGE_SEND_RATE", SEND_RATES), ("BRIDGE_HISTORY", HISTORIES)):
        assert f"{numbers[0]:,} to {numbers[-1]:,}" in SETTINGS[name][0]


def test_four_lines_are_a_whole_file(tmp_path: Path) -> None:
    (block,) = blocks(section("README.md", "### By hand"), "ini")
    (tmp_path / ".env").write_text(block.text)
    read = _load({}, tmp_path)
    assert (read.problems, read.env_file) == ((), str(tmp_path / ".env"))


# --- Faults ---------------------------------------------------------------------------------------

FAULTS = {
    title: tables(section("docs/faults.md", f"## {title}"))["condition"]
    for title in re.findall(r"^## (.+)$", PAGES["docs/faults.md"], re.MULTILINE)
    if "condition" in tables(section("docs/faults.md", f"## {title}"))
}
"""The rows of each table of conditions, under its heading."""

PLACE = Place(
    service="xmpp://xmpp.example.org",
    domain="example.org",
    account="bot@example.org",
    room="lab@conference.example.org",
    nickname="McpDebug",
)


def _variables(text: str) -> set[str]:
    return {each for each in re.findall(r"[A-Z_]{6,}", text) if each in VARIABLES}


def test_every_phase_is_explained() -> None:
    rows = tables(section("docs/faults.md", "## Phases"))["phase"]
    assert [quoted(row[0]) for row in rows] == [[phase.value] for phase in Phase]
    phases = {each for rows in FAULTS.values() for row in rows for each in quoted(row[1])}
    assert {"waiting", "failed"} <= phases


def test_every_condition_of_the_code_is_in_the_tables_of_faults() -> None:
    known = {each for row in faults._ROWS for each in row.conditions} - {"*"}  # noqa: SLF001 - the table
    assert len(known) > 30
    assert known <= set(quoted(PAGES["docs/faults.md"]))


ANSWERS: dict[str, tuple[Callable[[str], Fault], Sequence[str]]] = {
    "Reaching the server": (
        lambda condition: faults.of_stream_error(condition, None, PLACE, Stage.STANDING),
        ("host-unknown", "host-gone", "see-other-host"),
    ),
    "Logging in": (lambda condition: faults.of_sasl(condition, None, PLACE), SASL_CONDITIONS),
    "Entering the room": (
        lambda condition: faults.of_join_error(condition, None, PLACE, None),
        STANZA_CONDITIONS,
    ),
    "The connection": (
        lambda condition: faults.of_stream_error(condition, None, PLACE, Stage.STANDING),
        STREAM_CONDITIONS,
    ),
}
"""How the bridge classifies what a server or a room answers, and with which conditions."""


@pytest.mark.parametrize("title", ANSWERS)
def test_what_is_said_of_a_refusal_is_what_the_bridge_does(title: str) -> None:
    classify, answered = ANSWERS[title]
    compared = 0
    for row in FAULTS[title]:
        # That no mechanism will do is found before a server answers.
        for condition in {*answered}.intersection(quoted(row[0])) - {"invalid-mechanism"}:
            fault = classify(condition)
            hopeless = fault.retry in {Retry.NEVER, Retry.LATER}
            assert quoted(row[1]) == ["failed" if hopeless else "waiting"], condition
            assert ("no retry" in row[1]) is (fault.retry is Retry.NEVER), condition
            assert _variables(row[-1]) <= _variables(fault.hint), condition
            compared += 1
    assert compared >= 3


# --- Limits ---------------------------------------------------------------------------------------


def test_the_limits_on_the_pages_are_those_of_the_code() -> None:
    for page, figures in {
        "docs/security.md": (
            f"{stream.MAX_STANZA_BYTES >> 20} MiB",
            f"{room.MAX_OCCUPANTS:,} occupants with {reading.MAX_PRESENCE_CHARACTERS:,} characters",
            f"{formatting.MAX_TEXT_CHARACTERS:,} characters of a text",
            f"{stream.MAX_NEGOTIATION_BYTES >> 10} kB",
            f"{entries.RESULT_BYTES:,} bytes",
            f"{paging.MAX_BYTES:,} with `maxBytes`",
            f"{entries.MAX_BODY_BYTES >> 10} kB",
            f"{scram.LEAST_UNTRUSTED_ITERATIONS:,} iterations",
            f"{scram.MAX_ITERATIONS:,}",
            f"one line of at most {MAX_QUOTED_CHARACTERS} characters in quotation marks",
            f"once, for {asking.STATE_SECONDS / 60:g} minutes",
        ),
        "docs/faults.md": (
            f"{backoff.FIRST_SECONDS:g} s to {backoff.MOST_SECONDS:g} s",
            f"{backoff.LATER_SECONDS / 60:g} minutes",
        ),
        "docs/tools.md": (
            f"`maxBytes` of JSON ({entries.RESULT_BYTES:,})",
            f"{send.SECOND_ANSWER_SECONDS:g} s after the first answer",
            f"after {answers.MAX_ANSWERS}.",
            f"They have {asking.STATE_SECONDS / 60:g} minutes",
        ),
        "docs/diagnosis.md": (f"{answering.LATE_MS // 1000} s", f"{evidence.MESSAGES} messages"),
    }.items():
        told = " ".join(prose(PAGES[page]).split())
        assert [each for each in figures if each not in told] == []


def test_the_stages_of_the_check_are_all_explained() -> None:
    rows = tables(section("docs/commands.md", "## check"))["stage"]
    stages = ["settings", *(name for name, _ in expected_stages([PLACE.room], send=True))]
    assert [quoted(row[0]) for row in rows] == [[name] for name in dict.fromkeys(stages)]


# --- The pages hold together ----------------------------------------------------------------------


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", prose(PAGES[page])):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            target = (TOP / page).parent / path if path else TOP / page
            assert target.exists(), link
            assert not anchor or anchor in _anchors(target), link


def test_every_page_is_found_from_the_readme() -> None:
    links = set(re.findall(r"\]\(([^)]+)\)", section("README.md", "## Where to go on")))
    assert {each for each in PAGES if each.startswith("docs/")} <= links


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    named = [
        each for each in quoted(prose(PAGES[page])) if re.match(r"(tests|bridge|docs|\.ci)/", each)
    ]
    assert [each for each in named if not (TOP / each).exists()] == []
