"""The official SDK's client is asked for its user, its model and its roots, in every mode."""

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.interop.test_sdk_client import MODES, everything, text_of

pytestmark = pytest.mark.parametrize("mode", MODES)


class Person:
    """The client's user, as a callback of the SDK: accepts with these values, or refuses."""

    def __init__(self, action: Any = "accept", **content: Any) -> None:
        self.forms: list[types.ElicitRequestFormParams] = []
        self._answer = types.ElicitResult(action=action, content=content or None)

    async def __call__(
        self, context: object, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.forms.append(params)
        return self._answer


async def samples(context: object, params: types.CreateMessageRequestParams) -> Any:
    """The client's model."""
    content = types.TextContent(type="text", text=f"{params.max_tokens} tokens")
    return types.CreateMessageResult(role="assistant", content=content, model="theirs")


async def lists_roots(context: object) -> types.ListRootsResult:
    """The client's folders."""
    return types.ListRootsResult.model_validate({"roots": [{"uri": "file:///home/you/project"}]})


async def test_a_user_fills_in_a_form(mode: str, tmp_path: Path) -> None:
    person = Person(name="Anna")
    async with everything(tmp_path, mode, elicitation_callback=person) as client:
        greeted = await client.call_tool("test_input_required_result_elicitation")
    assert text_of(greeted) == "Hello, Anna!"
    (form,) = person.forms
    assert form.message == "What is your name?"
    assert form.requested_schema["required"] == ["name"]


async def test_a_form_shows_its_defaults(mode: str, tmp_path: Path) -> None:
    person = Person(name="Anna", age=5)
    async with everything(tmp_path, mode, elicitation_callback=person) as client:
        told = text_of(await client.call_tool("test_elicitation_sep1034_defaults"))
    assert "name='Anna', age=5, score=95.5, status='active', verified=True" in told
    shown = person.forms[0].requested_schema["properties"]
    assert {name: one["default"] for name, one in shown.items()} == {
        "name": "John Doe",
        "age": 30,
        "score": 95.5,
        "status": "active",
        "verified": True,
    }


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_may_refuse(mode: str, action: str, tmp_path: Path) -> None:
    async with everything(tmp_path, mode, elicitation_callback=Person(action)) as client:
        told = text_of(await client.call_tool("test_elicitation", {"message": "?"}))
    assert told == f"User response: {action}, None"


async def test_what_does_not_fit_the_form_fails_the_call(mode: str, tmp_path: Path) -> None:
    async with everything(tmp_path, mode, elicitation_callback=Person(name=5)) as client:
        failed = await client.call_tool("test_input_required_result_elicitation")
        assert failed.is_error
        assert "content.name is a number" in text_of(failed)


async def test_one_thing_is_asked_after_another(mode: str, tmp_path: Path) -> None:
    class Both(Person):
        async def __call__(
            self, context: object, params: types.ElicitRequestParams
        ) -> types.ElicitResult:
            await super().__call__(context, params)
            asked = self.forms[-1].requested_schema["required"]
            return types.ElicitResult(action="accept", content=dict.fromkeys(asked, "blue"))

    person = Both()
    async with everything(tmp_path, mode, elicitation_callback=person) as client:
        told = text_of(await client.call_tool("test_input_required_result_multi_round"))
    assert told == "Name(name='blue'), Colour(color='blue')"
    assert [one.message[:6] for one in person.forms] == ["Step 1", "Step 2"]


async def test_user_model_and_roots_are_asked_at_once(mode: str, tmp_path: Path) -> None:
    callbacks = {
        "elicitation_callback": Person(name="Anna"),
        "sampling_callback": samples,
        "list_roots_callback": lists_roots,
    }
    async with everything(tmp_path, mode, **callbacks) as client:
        told = await client.call_tool("test_input_required_result_multiple_inputs")
        assert text_of(told) == "user_name, greeting, client_roots"
        told = await client.call_tool("test_input_required_result_sampling")
        assert text_of(told) == "100 tokens"
        told = await client.call_tool("test_input_required_result_list_roots")
        assert "file:///home/you/project" in text_of(told)


async def test_a_prompt_asks_too(mode: str, tmp_path: Path) -> None:
    person = Person(context="the build")
    async with everything(tmp_path, mode, elicitation_callback=person) as client:
        written = await client.get_prompt("test_input_required_result_prompt")
    (message,) = written.messages
    assert isinstance(message.content, types.TextContent)
    assert "the build" in message.content.text


async def test_a_client_that_takes_no_questions_is_told_so(mode: str, tmp_path: Path) -> None:
    async with everything(tmp_path, mode) as client:
        failed = await client.call_tool("test_input_required_result_elicitation")
        assert failed.is_error
        assert "it takes no elicitation/create" in text_of(failed)
        with pytest.raises(MCPError, match="it takes no elicitation/create"):
            await client.get_prompt("test_input_required_result_prompt")
