"""What a running tool or prompt asks the client: its user, its model, its roots. Pure.

In revisions with a handshake each question is a request to the client. Since 2026-07-28 there are
no such requests: the server answers the call with an `InputRequiredResult`. Then the client calls
again, with its answers and the `requestState` that came with the questions (2026-07-28, "Multi
Round-Trip Requests").
"""

import json
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from bridge.mcp import jsonrpc
from bridge.mcp.errors import McpError
from bridge.mcp.jsonrpc import Json, Object, RpcError
from bridge.mcp.schema import MismatchError, Schema, SchemaError, describe

STATE_SECONDS = 300.0
"""How long after its question we accept an answer: a person may need this time."""

MAX_STATES = 1_000
"""Most calls that wait for answers at once: people answer few within `STATE_SECONDS`."""

PRIMITIVES = frozenset({"string", "number", "integer", "boolean", "array"})
"""The types that a field of a form may have; the items of an array are choices."""

Form = TypeVar("Form", covariant=True)


class Question(NamedTuple):
    """A request to the client."""

    method: str
    """`elicitation/create`, `sampling/createMessage` or `roots/list`."""
    params: Object
    consent: bool = False
    """Whether an answer counts only for the call that asked the question, and only once."""

    def wire(self) -> dict[str, Json]:
        """Return the question as JSON for `inputRequests`."""
        return {"method": self.method, "params": self.params}


class InputRequired(McpError):  # noqa: N818 - no error, and what MCP calls it
    """The call cannot go on until the client has answered; then its function runs again."""

    def __init__(self, questions: Mapping[str, Question]) -> None:
        self.questions = questions
        super().__init__(", ".join(questions))


class Answers(NamedTuple):
    """What the client has answered to the questions of one call, by their names."""

    given: Mapping[str, Object] = {}
    asked: frozenset[str] = frozenset()
    """The names of the answered questions that this call itself asked."""

    def to(self, name: str, question: Question) -> Object | None:
        """Return the answer to a question; None if there is none, or it does not count."""
        return None if question.consent and name not in self.asked else self.given.get(name)


NO_ANSWERS = Answers()


class Elicitation(NamedTuple, Generic[Form]):
    """What the client's user did with a form (MCP, "Elicitation")."""

    action: Literal["accept", "decline", "cancel"]
    content: Form | None
    """The form as it was filled in; None unless the action is `accept`."""


def elicitation(message: str, form: type | Schema, *, consent: bool = False) -> Question:
    """Return the question that shows a person `message` and a form.

    The form is a dataclass whose fields are texts, numbers, booleans, choices (`Literal` or an
    enumeration, with `Titles` for people) or lists of choices, with defaults; or the schema of such
    a form. Raises `SchemaError` for any other form.
    """
    schema = form if isinstance(form, dict) else describe(form)[0]
    properties: Any = schema.get("properties", {})
    kinds = {field.get("type") for field in properties.values()}
    if schema.get("type") != "object" or not kinds <= PRIMITIVES:
        raise SchemaError("a form has texts, numbers, booleans and choices, side by side")
    wanted = {name: schema[name] for name in ("type", "properties", "required") if name in schema}
    params = {"message": message, "requestedSchema": wanted}
    return Question("elicitation/create", params, consent)


def sampling(text: str, *, max_tokens: int, instructions: str | None = None) -> Question:
    """Return the question that has the client's model answer `text` (MCP, "Sampling")."""
    params: dict[str, Json] = {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        "includeContext": "none",
        "maxTokens": max_tokens,
    }
    if instructions is not None:
        params["systemPrompt"] = instructions
    return Question("sampling/createMessage", params)


def read_sampling(answer: Object) -> str:
    """Return the text that the client's model answered; empty if there is none."""
    content = answer.get("content")
    texts = []
    for block in content if isinstance(content, list) else [content]:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
    return "".join(texts)


ROOTS = Question("roots/list", {})
"""Asks for the folders that the client works in (MCP, "Roots"): `roots`, each with a `uri`."""


def read_elicitation(answer: Object, form: type[Form] | Schema) -> Elicitation[Any]:
    """Return a person's answer; raises `MismatchError` if it does not fit the form.

    If `form` is a schema, the content is not checked against it.
    """
    match answer.get("action"):
        case "accept":
            # Some clients write null if there was nothing to fill in.
            content = {} if answer.get("content") is None else answer["content"]
            _, read = describe(dict if isinstance(form, dict) else form)
            return Elicitation("accept", read(content, "content"))
        case "decline" | "cancel" as action:
            return Elicitation(action, None)
    raise MismatchError("action: one of accept, decline, cancel is wanted")


class _Waiting(NamedTuple):
    """A call that was answered with questions."""

    call: bytes
    until: float
    """The time after which the call's answers are too late, on the clock of `RequestStates`."""
    asked: frozenset[str]
    answers: Answers
    """The answers that the call had before these questions."""


class RequestStates:
    """Issues the `requestState` of questions, and accepts it back once, with the answers.

    A state is a random name, and this class keeps the call that it belongs to. So no client can
    invent or change a state, or use it for another call.
    """

    def __init__(self, name: Callable[[], str], clock: Callable[[], float]) -> None:
        """`name` returns a new random name each time; `clock` returns the time in seconds."""
        self._name = name
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}

    def issue(self, call: Json, asked: Iterable[str], answers: Answers) -> str:
        """Return the state of `call`, which `asked` these questions and has these `answers` so far.

        Raises `RpcError` if `MAX_STATES` calls wait for answers.
        """
        now = self._clock()
        for name in [name for name, waiting in self._waiting.items() if waiting.until <= now]:
            del self._waiting[name]
        if len(self._waiting) >= MAX_STATES:
            reason = f"{MAX_STATES} calls wait for answers; give some, or wait"
            raise RpcError(jsonrpc.INVALID_PARAMS, reason)
        state, until = self._name(), now + STATE_SECONDS
        self._waiting[state] = _Waiting(_digest(call), until, frozenset(asked), answers)
        return state

    def take(self, call: Json, params: Object) -> Answers:
        """Return the answers in `params` to the questions of `call`; raises `RpcError`."""
        if "inputResponses" not in params and "requestState" not in params:
            return NO_ANSWERS
        given = params.get("inputResponses", {})
        if not isinstance(given, dict) or {*map(type, given.values())} - {dict}:
            reason = "inputResponses: an object with an object for each answer is wanted"
            raise RpcError(jsonrpc.INVALID_PARAMS, reason)
        if "requestState" not in params:
            return Answers(given)
        state = jsonrpc.param(params, "requestState", str, "a string")
        waiting = self._waiting.get(state)
        if waiting is None or waiting.call != _digest(call) or waiting.until <= self._clock():
            reason = (
                "requestState is not one that this call was given here, or was used before, or has "
                f"expired: it is accepted for {STATE_SECONDS:g} s; call without it to be asked"
            )
            raise RpcError(jsonrpc.INVALID_PARAMS, reason)
        del self._waiting[state]
        answered = {name: answer for name, answer in given.items() if name in waiting.asked}
        former, asked = waiting.answers
        return Answers({**former, **answered}, asked | answered.keys())


def _digest(call: Json) -> bytes:
    try:
        return sha256(json.dumps(call, sort_keys=True).encode()).digest()
    except RecursionError as error:
        reason = "the arguments are nested too deeply for a call that asks"
        raise RpcError(jsonrpc.INVALID_PARAMS, reason) from error
