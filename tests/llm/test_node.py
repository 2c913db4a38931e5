import json
from dataclasses import dataclass, field
from typing import Annotated

import pytest

from bridge.llm import node
from bridge.llm.node import DEADLINE_SECONDS, TASK, LlmNode
from bridge.llm.prompt import Material, ModelPrompt
from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.schema import Bounds, MismatchError, SchemaError, describe


@dataclass(frozen=True)
class Report:
    text: str


@dataclass(frozen=True)
class Verdict:
    severity: Annotated[int, Bounds(minimum=1, maximum=5), "from mild to grave"]


def _check(report: Report, verdict: Verdict) -> None:
    if verdict.severity > len(report.text):
        raise MismatchError("answer.severity is graver than the report is long")


TRIAGE = LlmNode(
    instruction="You judge reports.",
    input=Report,
    output=Verdict,
    write=lambda report: Material("Judge this report.", [report]),
    check=_check,
)
FITTING = '{"severity": 3}'


@dataclass
class Played:
    """A model that says one thing after the other."""

    answers: list[str | Exception]
    prompts: list[ModelPrompt] = field(default_factory=list)

    async def __call__(self, prompt: ModelPrompt) -> str:
        self.prompts.append(prompt)
        answer = self.answers[len(self.prompts) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("misfit", "problem"),
    [
        ("no idea", "the answer is not JSON: there is no object in it"),
        ('{"severity": 9}', "answer.severity is 9; the most is 5"),
        ('{"severity": 5}', "answer.severity is graver than the report is long"),
    ],
)
async def test_what_does_not_fit_is_asked_once_more_with_what_is_wrong(
    misfit: str, problem: str
) -> None:
    model = Played([misfit, FITTING])
    assert await TRIAGE.run(model, Report("fire")) == Verdict(3)
    first, second = model.prompts
    assert first.instructions == second.instructions
    assert '{"text":"fire"}' in second.message
    assert json.dumps({"answer": misfit, "problem": problem}, separators=(",", ":")) in (
        second.message
    )
    assert problem not in first.message


async def test_twice_is_enough() -> None:
    model = Played(["no", '{"severity": 0}', FITTING])
    with pytest.raises(ToolError) as caught:
        await TRIAGE.run(model, Report("fire"))
    assert len(model.prompts) == 2
    assert (caught.value.condition, caught.value.remote) == ("not-acceptable", True)
    assert "2 times" in caught.value.message


async def test_a_model_that_fails_is_not_asked_again() -> None:
    failure = ToolError("gone", condition="gone", hint="")
    model = Played([failure, FITTING])
    with pytest.raises(ToolError) as caught:
        await TRIAGE.run(model, Report("fire"))
    assert caught.value is failure
    assert len(model.prompts) == 1


async def test_each_request_has_a_code_of_its_own() -> None:
    model = Played(["no", FITTING, FITTING])
    await TRIAGE.run(model, Report("fire"))
    await TRIAGE.run(model, Report("fire"))
    codes = {each.message.partition("\n<<<DATA ")[2].partition(">>>")[0] for each in model.prompts}
    assert len(codes) == 3
    assert {len(each) for each in codes} == {32}


def test_an_output_that_json_has_no_words_for_shows_when_the_node_is_written() -> None:
    with pytest.raises(SchemaError):
        LlmNode(instruction="", input=Report, output=complex)


async def test_a_node_is_a_tool_whose_arguments_are_the_fields_of_its_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Played([FITTING])
    monkeypatch.setattr(node, "model_for", lambda configuration, context: model)
    triage = TRIAGE.as_tool(name="triage", title="Judge a report", description="Judge a report.")
    assert (triage.name, triage.read_only, triage.open_world) == ("triage", True, True)
    assert triage.deadline == DEADLINE_SECONDS
    assert triage.input_schema == describe(Report)[0]
    assert triage.output_schema == describe(Verdict)[0]
    with pytest.raises(ArgumentError, match=r"triage: arguments\.text is missing"):
        await triage(None, None, arguments={})
    assert model.prompts == []
    assert await triage(None, None, arguments={"text": "it burns"}) == Verdict(3)
    assert '{"text":"it burns"}' in model.prompts[0].message


async def test_what_a_node_is_for_describes_its_tool_and_its_input_is_the_task() -> None:
    model = Played([FITTING])
    plain = LlmNode(instruction="You judge reports.", input=Report, output=Verdict)
    assert plain.as_tool(name="a", title="A").description == "You judge reports."
    assert not plain.as_tool(name="a", title="A", read_only=False).read_only
    assert await plain.run(model, Report("it burns")) == Verdict(3)
    assert TASK in model.prompts[0].message
    assert '{"text":"it burns"}' in model.prompts[0].message
