"""Asking the client from within a call, over a session."""

import asyncio
import logging
import re
from typing import Any

import pytest

from bridge.mcp.asking import ROOTS, Question, sampling
from bridge.mcp.context import Context
from bridge.mcp.errors import ToolError
from bridge.mcp.framing import Framing
from bridge.mcp.toolset import Toolset, tool
from tests.mcp.client import Client, logged
from tests.mcp.sample_tools import (
    TOOLS,
    Workbench,
    envelope,
    notification,
    request,
    stateless,
    tool_call,
)

METHOD = "sampling/createMessage"


@tool(title="Consult", read_only=True)
async def consult(bench: Workbench, context: Context, /, limit: float = 60.0) -> str:
    """Ask the caller something, and say what came of it."""
    try:
        answers = await context.ask({"it": Question(METHOD, {"about": "everything"})}, limit)
    except ToolError as error:
        # A tool that passes it on is logged as failed.
        return f"{error.condition}: {error.message}" if error.remote else "not remote"
    finally:
        bench.cleaned_up.append("consult")
    return f"heard: {answers['it']}"


@tool(title="Ask nonsense", read_only=True)
async def ask_nonsense(context: Context, /) -> str:
    """Ask what JSON has no words for."""
    return str(await context.ask({"it": Question(METHOD, {"much": float("inf")})}, 60.0))


@tool(title="Consult all", read_only=True)
async def consult_all(bench: Workbench, context: Context, /) -> str:
    """Ask the caller's model and for its roots, side by side."""
    try:
        answers = await context.ask({"model": sampling("?", max_tokens=9), "roots": ROOTS}, 60.0)
    except ToolError as error:
        return f"{error.condition}: {error.message}"
    finally:
        bench.cleaned_up.append("consult_all")
    return ", ".join(f"{name}: {each['n']}" for name, each in answers.items())


QUESTIONS = (consult, consult_all, ask_nonsense)
ASKING = Toolset("asking", (*TOOLS.tools, *QUESTIONS))
ABLE: dict[str, object] = {"sampling": {}, "elicitation": {}, "roots": {}}


async def _client() -> Client:
    client, params = Client(tools=ASKING), {"capabilities": ABLE}
    client.send(request("hi", "initialize", protocolVersion="2025-11-25", **params))
    await client.replies(1)
    client.frames.clear()
    return client


async def _consulted() -> tuple[Client, Any]:
    """A client, and what it is asked by the call with the id 1."""
    client = await _client()
    client.send(tool_call(1, "consult"))
    (question,) = await client.replies(1)
    assert question["method"] == METHOD
    return client, question


def _text(reply: Any) -> str:
    (block,) = reply["result"]["content"]
    return str(block["text"])


def _answer(question: Any, **answer: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": question["id"], **answer}


async def test_a_question_is_framed_as_the_call_that_asks_it() -> None:
    client = await _client()
    client.send(tool_call(1, "consult"), framing=Framing.HEADERS)
    client.send(request(2, "ping"))
    await client.replies(2)
    framings = {METHOD.encode() in each.body: each.framing for each in client.frames}
    assert framings == {True: Framing.HEADERS, False: Framing.LINES}
    await client.stop()


async def test_others_are_served_while_a_question_is_open() -> None:
    client = await _client()
    client.send(*(tool_call(number, "consult") for number in (1, 2)))
    first, second = await client.replies(2)
    assert first["id"] != second["id"]
    client.send(request(3, "ping"), request(4, "say", message="x"))
    assert [each["id"] for each in (await client.replies(4))[2:]] == [3, 4]
    client.send(_answer(second, result={"n": 2}), _answer(first, result={"n": 1}))
    texts = {each["id"]: _text(each) for each in (await client.end())[4:]}
    assert texts == {1: "heard: {'n': 1}", 2: "heard: {'n': 2}"}


@pytest.mark.parametrize(
    ("answer", "condition", "said"),
    [
        ({"error": {"message": "\n" + "x" * 299}}, "not-allowed", "... (300 characters)"),
        ({"error": {"code": "x", "message": ["y"]}}, "not-allowed", "['y']"),
        ({"error": {}}, "not-allowed", "without a reason"),
        ({"result": "yes"}, "undefined-condition", "has no result that is an object."),
    ],
)
async def test_what_a_client_says_when_it_refuses_is_escaped_and_cut(
    answer: dict[str, object], condition: str, said: str
) -> None:
    client, question = await _consulted()
    client.send(_answer(question, **answer))
    text = _text((await client.end())[1])
    assert text.startswith(f"{condition}: The client")
    assert METHOD in text
    assert text.endswith(said)
    assert "\n" not in text


async def test_a_request_of_the_client_may_have_the_id_of_one_of_ours() -> None:
    client, question = await _consulted()
    client.send(request(question["id"], "ping"))
    assert (await client.replies(2))[1] == {"jsonrpc": "2.0", "id": question["id"], "result": {}}
    client.send(_answer({"id": "ask-9"}, result={"n": 9}), _answer({"id": 1}, result={"n": 1}))
    client.send(_answer(question, result={"n": 0}))
    assert _text((await client.end())[2]) == "heard: {'n': 0}"


async def test_no_answer_in_time_withdraws_the_question_and_a_late_one_is_ignored() -> None:
    client = await _client()
    client.send(tool_call(1, "consult", limit=0.01))
    question, withdrawn, reply = await client.replies(3)
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == question["id"]
    text = f"remote-server-timeout: The client gave no answer to {METHOD} within 0.01 s."
    assert _text(reply) == text
    client.send(_answer(question, result={}))
    assert len(await client.settled()) == 3
    await client.end()


async def test_a_call_that_is_cancelled_withdraws_its_question() -> None:
    client, question = await _consulted()
    client.send(notification("notifications/cancelled", requestId=1))
    _, withdrawn = await client.replies(2)
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == question["id"]
    assert len(await client.end()) == 2
    assert client.bench.cleaned_up == ["consult"]


async def test_an_answer_that_comes_with_the_cancellation_is_let_pass() -> None:
    client, question = await _consulted()
    client.send(notification("notifications/cancelled", requestId=1), _answer(question, result={}))
    assert len(await client.end()) == 1  # answered, so there is nothing to withdraw


async def test_when_the_client_closes_its_side_nobody_waits_for_its_answer() -> None:
    client, _ = await _consulted()
    async with asyncio.timeout(5):  # the drain alone would take 10 s
        replies = await client.end()
    assert [each.get("method") for each in replies] == [METHOD, "notifications/cancelled", None]
    assert _text(replies[2]).startswith("remote-server-timeout: The client has closed its side")


async def test_an_answer_in_its_last_words_still_counts() -> None:
    client, question = await _consulted()
    client.send_bytes(b'{"jsonrpc":"2.0","id":"%s","result":{}}' % question["id"].encode())
    assert _text((await client.end())[1]) == "heard: {}"


async def test_a_question_that_is_no_json_breaks_its_call_alone() -> None:
    client = await _client()
    client.send(tool_call(1, "ask_nonsense"), request(2, "ping"))
    replies = {each["id"]: each for each in await client.replies(3) if "id" in each}
    assert "broke (ValueError)" in replies[1]["error"]["data"]
    await client.end()


async def test_the_log_has_one_line_for_each_without_what_was_answered() -> None:
    with logged(logging.DEBUG) as lines:
        client, question = await _consulted()
        client.send(_answer(question, result={"secret": "x" * 10}), _answer(question, result={}))
        await client.end()
    ours = [re.sub(r"\d+ bytes", "N bytes", line) for line in lines if "ask-1" in line]
    assert [line.partition(": ")[0] for line in ours] == [
        f'-> 2025-11-25 {METHOD} id "ask-1", N bytes',
        '<- ? ? id "ask-1", N bytes',
        '<- ? ? id "ask-1", N bytes',
    ]
    others = [line for line in lines if "tools/call" not in line]  # whose reply repeats the answer
    assert not [line for line in others if "xxxxxxxxxx" in line]


async def test_several_questions_of_one_call_are_open_side_by_side() -> None:
    client = await _client()
    client.send(tool_call(1, "consult_all"))
    model, roots = await client.replies(2)
    assert (model["method"], roots["method"]) == (METHOD, "roots/list")
    client.send(_answer(roots, result={"n": 2}), _answer(model, result={"n": 1}))
    assert _text((await client.end())[2]) == "model: 1, roots: 2"


async def test_one_that_is_refused_withdraws_the_others() -> None:
    client = await _client()
    client.send(tool_call(1, "consult_all"))
    model, roots = await client.replies(2)
    client.send(_answer(model, error={"code": -1, "message": "No"}))
    withdrawn, reply = (await client.replies(4))[2:]
    if "method" not in withdrawn:
        withdrawn, reply = reply, withdrawn
    assert withdrawn["params"]["requestId"] == roots["id"]
    assert _text(reply) == f"not-allowed: The client refused {METHOD}: No"
    await client.end()


# 2026-07-28: a result that needs input, and the call again with the answers


def _call(id_: object, capabilities: object = ABLE, /, **params: object) -> dict[str, object]:
    meta = envelope(clientCapabilities=capabilities)
    return stateless(id_, "tools/call", **params, _meta=meta)


async def _result(client: Client, message: dict[str, object]) -> Any:
    client.frames.clear()
    client.send(message)
    (reply,) = await client.replies(1)
    return reply["result"] if "result" in reply else reply["error"]


async def test_only_what_is_not_answered_yet_is_asked_again() -> None:
    client = Client(tools=ASKING)
    first = await _result(client, _call(1, name="consult_all", arguments={}))
    assert first["resultType"] == "input_required"
    assert first["inputRequests"]["roots"] == {"method": "roots/list", "params": {}}
    half = {"requestState": first["requestState"], "inputResponses": {"roots": {"n": 2}}}
    second = await _result(client, _call(2, name="consult_all", arguments={}, **half))
    assert [*second["inputRequests"]] == ["model"]
    rest = {"requestState": second["requestState"], "inputResponses": {"model": {"n": 1}}}
    done = await _result(client, _call(3, name="consult_all", arguments={}, **rest))
    assert done["content"][0]["text"] == "model: 1, roots: 2"
    await client.end()


@pytest.mark.parametrize("lacking", ["sampling", "roots"])
async def test_a_call_that_declares_no_such_capability_is_asked_nothing(lacking: str) -> None:
    client = Client(tools=ASKING)
    able = {name: each for name, each in ABLE.items() if name != lacking}
    result = await _result(client, _call(1, able, name="consult_all", arguments={}))
    assert result["resultType"] == "complete"
    text = result["content"][0]["text"]
    assert text.startswith("feature-not-implemented: The client cannot be asked")
    await client.end()
