"""README.md leaves nothing out: its lists are those of the code, and its links lead somewhere."""

import argparse
import ast
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bridge import cli
from bridge.mcp import revisions
from bridge.mcp.toolset import Toolset
from bridge.registration.clients import KEYS
from bridge.service import MODULES
from bridge.settings.load import load
from bridge.settings.table import HISTORIES, SEND_RATES, VARIABLES, Configuration
from bridge.tools import entries, paging
from bridge.wire import scram
from bridge.xmpp import backoff, stream, traffic
from tests.readme import TEXT, TOP, blocks, prose, quoted, section, tables

PAGES = {name: (TOP / name).read_text("utf-8") for name in ("CHANGELOG.md", "CONTRIBUTING.md")}
PAGES["README.md"] = TEXT


# --- Commands, tools, settings, modules -----------------------------------------------------------


def test_resources_and_prompts_are_all_named() -> None:
    tools = Toolset.of_modules("bridge", *MODULES)
    told = set(quoted(prose(section("## The tools"))))
    assert {one.name for one in tools.prompts} <= told
    assert {one for one in told if "://" in one} == {one.uri for one in tools.resources}


def test_the_revisions_are_those_that_are_spoken() -> None:
    dates = sorted(one.date for one in revisions.ALL)
    assert f"from {dates[0]} to {dates[-1]} is spoken" in " ".join(TEXT.split())


def _options() -> dict[str, set[str]]:
    """The options of each command, as the parser has them; under `` those of none."""
    parser = cli.parser()
    (commands,) = (
        action
        for action in parser._actions  # noqa: SLF001 - no public way to them
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - no public name
    )
    found = {}
    for name, one in {"": parser, **commands.choices}.items():
        actions = one._actions  # noqa: SLF001 - as above
        found[name] = {word for action in actions for word in action.option_strings} - {"-h"}
    return found


OPTIONS = _options()
SPOKEN = [
    *quoted(prose(TEXT)),
    *(line for one in blocks(TEXT, "sh", "console") for line in one.lines),
]
"""Where the README speaks of commands."""


def test_every_command_line_in_it_is_one_that_the_parser_knows() -> None:
    seen = set()
    for line in SPOKEN:
        for call in re.findall(r"(?:^|[ /])xmpp-bridge((?: [^|;&]+)?)", line):
            words = call.partition(" -- ")[0].split()
            command = words.pop(0) if words and not words[0].startswith("-") else ""
            assert command in OPTIONS, line
            used = {word for word in words if word.startswith("--")}
            assert used <= OPTIONS[command] | (OPTIONS["serve"] if not command else set()), line
            seen.add(command)
    assert seen == set(OPTIONS)


def test_every_option_in_it_is_one_that_the_parser_knows() -> None:
    known = set().union(*OPTIONS.values())
    # `uvx --from`, `code --add-mcp` are others'.
    foreign = {"--from", "--add-mcp"}
    used = {word for line in SPOKEN for word in re.findall(r"(?<!\S)--[a-z][a-z-]*", line)}
    assert used - foreign <= known


@pytest.mark.parametrize("command", sorted(OPTIONS.keys() - {""}))
def test_every_option_of_the_parser_is_in_it(command: str) -> None:
    text = section("## Other commands")
    rows = [" ".join(row) for row in tables(text)["command"] if f"xmpp-bridge {command}`" in row[0]]
    assert len(rows) == 1
    rest = re.search(r"^(.+) go with (.+?);", " ".join(prose(text).split("|")[-1].split()))
    assert rest is not None
    told = set(re.findall(r"--[a-z-]+", rows[0]))
    if f"`{command}`" in rest[2]:
        told |= set(re.findall(r"--[a-z-]+", rest[1]))
    assert told == OPTIONS[command] - {"--help"}


def test_every_agent_that_can_be_registered_with_is_in_it() -> None:
    rows = tables(section("## Your agent"))["agent"]
    assert [quoted(row[1])[0] for row in rows] == list(KEYS)


NEEDED = {
    "XMPP_USERNAME": "bot@example.org",
    "XMPP_PASSWORD": "secret",
    "MUC_ROOM": "room@conference.example.org",
}
SETTINGS = {quoted(row[0])[0]: row[1:] for row in tables(section("## Settings"))["variable"]}
SOUGHT = {"XMPP_DOMAIN", "XMPP_SERVICE"}
"""Whose defaults are found out, as the table says in words."""


def _load(environ: dict[str, str], folder: Path) -> Configuration:
    return load(environ, cwd=folder, package_root=folder)


def test_the_table_of_settings_has_every_variable() -> None:
    assert len(SETTINGS) == len(tables(section("## Settings"))["variable"])
    assert set(SETTINGS) == set(VARIABLES)


def test_the_defaults_in_the_table_are_those_of_the_bridge(tmp_path: Path) -> None:
    plain = _load(NEEDED, tmp_path)
    assert plain.problems == ()
    example = (TOP / ".env.example").read_text("utf-8")
    for name, (_, default) in SETTINGS.items():
        if default == "required":
            without = {other: value for other, value in NEEDED.items() if other != name}
            assert name in {problem.variable for problem in _load(without, tmp_path).problems}
            assert f"\n{name}=\n" in example
        elif default == "none":
            assert plain.loaded[name] in (None, ())
        elif name not in SOUGHT:
            (value,) = quoted(default)
            said = _load({**NEEDED, name: value}, tmp_path)
            assert replace(said, in_effect=plain.in_effect) == plain
            assert f"\n#{name}={value}\n" in example


def test_the_ranges_in_the_table_are_those_of_the_bridge() -> None:
    for name, numbers in (("BRIDGE_SEND_RATE", SEND_RATES), ("BRIDGE_HISTORY", HISTORIES)):
        assert f"{numbers[0]:,} to {numbers[-1]:,}" in SETTINGS[name][0]


def test_four_lines_are_a_whole_file(tmp_path: Path) -> None:
    (block,) = blocks(section("## Your own server"), "ini")
    (tmp_path / ".env").write_text(block.text)
    read = _load({}, tmp_path)
    assert (read.problems, read.env_file) == ((), str(tmp_path / ".env"))


def test_every_condition_in_the_table_of_faults_is_one_that_a_test_has_seen() -> None:
    tested = "".join(
        path.read_text("utf-8")
        for folder in ("faults", "e2e", "xmpp")
        for path in (TOP / "tests" / folder).glob("test_*.py")
    )
    rows = tables(section("## When something is wrong"))["what happened"]
    conditions = {one for row in rows for one in quoted(row[2])}
    assert len(conditions) > 20
    assert [one for one in sorted(conditions) if f'"{one}"' not in tested] == []
    named = {one for row in rows for one in quoted(row[3]) if re.fullmatch("[A-Z_]{6,}", one)}
    assert named <= set(VARIABLES)


def test_the_limits_in_it_are_those_of_the_code() -> None:
    told = " ".join(prose(TEXT).split())
    for sentence in (
        f"A stanza has {stream.MAX_STANZA_BYTES >> 20} MiB at most",
        f"a result {entries.RESULT_BYTES:,} bytes of JSON, where",
        f"more up to {paging.MAX_BYTES:,}, a body in it {entries.MAX_BODY_BYTES >> 10} kB",
        f"fewer than {scram.LEAST_UNTRUSTED_ITERATIONS:,} iterations",
        f"none for more than {scram.MAX_ITERATIONS:,}",
        f"from {backoff.FIRST_SECONDS:g} s to {backoff.MOST_SECONDS:g} s",
        f"looks again every {backoff.LATER_SECONDS / 60:g} minutes",
        f"At {traffic.MAX_BYTES >> 20} MiB it becomes",
    ):
        assert sentence in told


WINGS = {
    "on top": "",
    "the commands, `commands/`": "commands",
    "the MCP wing, `mcp/`": "mcp",
    "the hall, `tools/`": "tools",
    "the XMPP wing, `xmpp/`": "xmpp",
    "the client, `console/`": "console",
    "telling agents, `registration/`": "registration",
    "tools that think, `llm/`": "llm",
    "tools for example, `samples/`": "samples",
    "what the user said, `settings/`": "settings",
    "what bridge and sandbox share, `wire/`": "wire",
    "the server for trying out, `sandbox/`": "sandbox",
}


def test_every_module_has_its_place_in_how_it_is_built() -> None:
    found = tables(section("## How it is built"))
    assert set(found) == set(WINGS)
    packages = {path.parent.name for path in (TOP / "bridge").glob("*/__init__.py")}
    assert packages == set(WINGS.values()) - {""}
    for head, folder in WINGS.items():
        modules = {path.stem for path in (TOP / "bridge" / folder).glob("*.py")} - {"__init__"}
        named = [one for row in found[head] for one in quoted(row[0])]
        assert sorted(named) == sorted(modules), head


def test_the_drawing_shows_what_is_there() -> None:
    (drawing,) = blocks(section("## How it is built"), "text")
    shown = re.findall(r"\b[a-z]+(?:\.py|/)", drawing.text)
    assert [one for one in shown if not (TOP / "bridge" / one).exists()] == []
    assert {one for one in shown if one.endswith("/")} == {
        f"{one}/" for one in WINGS.values() if one
    }


def test_the_import_law_is_the_one_that_is_held() -> None:
    law = " ".join(section("## How it is built").partition("The import law")[2].split())
    tree = ast.parse((TOP / "tests" / "test_layers.py").read_text("utf-8"))
    held = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for told, test in {
        "do not import each other": "test_the_two_wings_do_not_know_of_each_other",
        "`tools/` but `service.py`": "test_only_the_composition_root_imports_the_tools",
        "Nothing below imports": "test_nothing_below_imports_what_is_above",
        "knows neither wing": (
            "test_registration_is_for_the_command_line_alone_and_knows_neither_wing"
        ),
        "`console/terminal.py` and": "test_only_the_terminal_imports_what_edits_lines",
        "one corner of `xmpp/`": "test_slixmpp_is_imported_in_one_corner_only",
        "nobody while loading": "test_nothing_imports_that_corner_when_it_is_loaded",
        "calls itself pure": "test_a_pure_module_touches_nothing_outside",
        "standard library alone": (
            "test_what_stands_on_the_standard_library_stands_on_nothing_else"
        ),
    }.items():
        assert told in law
        assert test in held


# --- The pages hold together ----------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)]+)\)", prose(PAGES[page]))
    headings = re.findall(r"^#+ (.+)$", prose(PAGES[page]), re.MULTILINE)
    anchors = {"#" + re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}
    for link in links:
        if not link.startswith("https://"):
            assert link in anchors or (TOP / link).exists(), link


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    named = [one for one in quoted(prose(PAGES[page])) if re.match(r"(tests|bridge|\.ci)/", one)]
    assert [one for one in named if not (TOP / one).exists()] == []


def test_what_contributors_are_told_to_run_is_what_ci_runs() -> None:
    ci = (TOP / ".ci" / "run").read_text("utf-8")
    (test,) = (one for one in blocks(TEXT, "sh") if one.mark == "test")
    told = [
        line.partition("  #")[0]
        for one in blocks(PAGES["CONTRIBUTING.md"], "sh")
        for line in one.lines
    ]
    assert told
    for line in told:
        known = line in ci or line in test.text or line.split()[-1] == ".ci/run"
        assert known or line.startswith(".venv/bin/python -m pytest "), line
        for word in line.split():
            if word.startswith("tests/"):
                assert (TOP / word).exists()
    assert os.access(TOP / ".ci" / "run", os.X_OK)
