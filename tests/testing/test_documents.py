"""The schema and the page list what a scenario file can say, and so does the prompt."""

import re
import tomllib
from typing import Literal, get_args, get_origin

import jsonschema  # type: ignore[import-untyped]
import pytest

from bridge.testing import plugin
from bridge.testing.collector import VERBS
from bridge.testing.scenario import Bot, parameters, parse
from bridge.tools.prompts import SCENARIO, write_scenario
from tests.docs.pages import blocks, prose, quoted, section, tables
from tests.testing import test_scenario
from tests.testing.documents import PATH, schema, written

PAGE = "docs/testing-a-bot.md"


def test_the_schema_is_that_of_the_types() -> None:
    assert PATH.read_text("utf-8") == written(schema()), "python -m tests.testing.documents"
    jsonschema.Draft7Validator.check_schema(schema())


@pytest.mark.parametrize(("right", "wrong", "_"), test_scenario.MISTAKES)
def test_the_schema_refuses_what_the_reader_refuses(right: str, wrong: str, _: str) -> None:
    validator = jsonschema.Draft7Validator(schema(test_scenario.VERBS))
    validator.validate(tomllib.loads(test_scenario.FILE))
    try:
        document = tomllib.loads(test_scenario.FILE.replace(right, wrong, 1))
    except tomllib.TOMLDecodeError:
        return
    # NaN is beyond JSON.
    assert validator.is_valid(document) is (wrong == "within = nan")


def test_the_page_lists_every_key_and_every_verb() -> None:
    documented = tables(section(PAGE, "## What a file can say"))
    assert [quoted(row[0])[0] for row in documented["`[bot]`"]] == [*parameters(Bot)]
    rows = [quoted(row[0]) for row in documented["step"]]
    assert {each.partition(" ")[0] for row in rows for each in row} == VERBS.keys()
    for step in (each for row in rows for each in row):
        parse(f"[[step]]\n{step}", VERBS)
    told = {word for row in documented["step"] for word in re.findall(r"[\w-]+", " ".join(row))}
    for function in VERBS.values():
        for key, each in parameters(function).items():
            named = get_args(each.annotation) if get_origin(each.annotation) is Literal else ()
            assert {key, *named} <= told


def test_the_page_lists_every_fixture() -> None:
    fixtures = {name for name in vars(plugin) if name.startswith("xmpp_")}
    rows = tables(section(PAGE, "## The same in Python"))["fixture"]
    assert {quoted(row[0])[0] for row in rows} == fixtures


def test_the_example_of_the_prompt_is_a_scenario_and_has_the_verbs_in_words() -> None:
    told = write_scenario.function(since="2026-11-23T03:00:00Z", nickname="Robot")
    (block,) = blocks(told, "toml")
    assert block.text == SCENARIO
    scenario = parse(block.text, VERBS)
    assert scenario.bot is not None
    named = {each for text in quoted(prose(told)) for each in re.findall(r"\w+", text)}
    assert set(VERBS) - named - {"expect", "expect_nothing", "say"} == {"wait"}
