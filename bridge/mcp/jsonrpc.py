"""JSON-RPC 2.0 messages as values: decoding, encoding, batches, error codes. Pure.

https://www.jsonrpc.org/specification, narrowed as MCP narrows it: an id is a string or an
integer and never null, and params are an object.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from bridge.mcp.errors import McpError
from bridge.text import one_line

PARSE_ERROR = -32700
"""The bytes are not JSON."""

INVALID_REQUEST = -32600
"""JSON, but not a JSON-RPC message."""

METHOD_NOT_FOUND = -32601
"""The method is neither a method of MCP nor the name of a tool."""

INVALID_PARAMS = -32602
"""The method is known, but its params are wrong."""

INTERNAL_ERROR = -32603
"""The fault is ours; or, in a bare call, a tool failed."""

TITLES = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid Request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
}
"""The specification's message for each code. Our messages add the reason."""

MAX_BATCH_MESSAGES = 256
"""The most messages in one batch. The responses go out in one piece, and each may have 45 kB."""

LOGGED_CHARACTERS = 200
"""How much of a value the log shows."""

LINE_ENDS = "\x85\u2028\u2029"
"""Characters in a JSON text that some readers take for the end of a line: readline of Node.js the
last two, Python's `str.splitlines` all three."""

NOT_LOGGED = frozenset({"inputResponses", "requestState"})
"""The params that a log leaves out: answers of people, and the secret that goes with them."""

Id: TypeAlias = str | int
Json: TypeAlias = object
"""What `json.loads` gives: None, bool, int, float, str, list, dict."""
Object: TypeAlias = Mapping[str, Json]
"""A JSON object."""
T = TypeVar("T")


class RpcError(McpError):
    """The caller's message cannot be served. It becomes an error response."""

    def __init__(self, code: int, data: Json, message: str | None = None) -> None:
        """`data` is the reason. If a `message` has the reason, `data` is what a program needs.

        Many clients show nothing but the message, so the message has the reason in any case.
        """
        self.code = code
        self.message = message or f"{TITLES[code]}: {data}"
        self.data = data
        super().__init__(self.message)

    def wire(self) -> dict[str, Json]:
        """Return the error object of a response (JSON-RPC 2.0, section 5.1)."""
        return {"code": self.code, "message": self.message, "data": self.data}


class Request(NamedTuple):
    """A message to which the receiver owes one response."""

    id: Id
    method: str
    params: Object | Sequence[Json] | None = None


class Notification(NamedTuple):
    """A message that gets no response."""

    method: str
    params: Object | Sequence[Json] | None = None


class Response(NamedTuple):
    """The response to a request of ours or of the peer."""

    id: Id | None
    result: Json = None
    error: Object | None = None


class Malformed(NamedTuple):
    """Input that is not a message. The response has `error`, and the input's id if it is usable."""

    error: RpcError
    id: Id | None = None


Message: TypeAlias = Request | Notification | Response | Malformed


class Batch:
    """The responses to one batch, which go out together (JSON-RPC 2.0, section 6).

    MCP has them in revision 2025-03-26 only; bare JSON-RPC has them always.
    """

    def __init__(self) -> None:
        self.responses: list[Response] = []
        self.pending = 1
        """How many calls have no response yet, plus one until the whole batch is read."""

    def settle(self, response: Response | None = None) -> list[Response]:
        """Count a call, or the reading of the batch, as done.

        `response` is the call's response; None if the call was cancelled. Return all responses once
        nothing is pending, and none before.
        """
        self.pending -= 1
        if response is not None:
            self.responses.append(response)
        return [] if self.pending else self.responses


def decode(body: bytes | bytearray | str) -> Message | list[Message]:
    """Read one message, or the messages of one batch (JSON-RPC 2.0, section 6).

    Never raises: unreadable input becomes `Malformed`.
    """
    try:
        value = parse(body)
    except ValueError as error:
        return Malformed(RpcError(PARSE_ERROR, str(error)))
    if not isinstance(value, list):
        return _message(value)
    if len(value) > MAX_BATCH_MESSAGES:
        reason = f"a batch holds at most {MAX_BATCH_MESSAGES} messages"
        return Malformed(RpcError(INVALID_REQUEST, reason))
    return [_message(item) for item in value]


def parse(text: bytes | bytearray | str) -> Json:
    """Return the JSON value in `text`; raises `ValueError`, which says what is wrong."""
    try:
        return decoder.decode(text if isinstance(text, str) else text.decode("utf-8"))
    except UnicodeDecodeError as error:
        reason = f"not UTF-8: {error.reason} at byte {error.start}"
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.pos}"
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:  # from `int`, for thousands of digits, or `_refuse_constant`
        reason = str(error).partition(";")[0]
    raise ValueError(reason)


def encode(message: Request | Notification | Response | list[Response]) -> bytes:
    """Write one message (or the replies to a batch) as one line of UTF-8, without its newline.

    `LINE_ENDS` are written as escapes. A lone surrogate, for which UTF-8 has no form, is written as
    U+FFFD.
    """
    value = [_wire(item) for item in message] if isinstance(message, list) else _wire(message)
    text = compact(value)
    for character in LINE_ENDS:
        text = text.replace(character, f"\\u{ord(character):04x}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()


def read_id(value: Json) -> Id | None:
    """Return `value` if it can be an id or a token, else None. In JSON a boolean is no number.

    Languages without integers write 1 as 1.0, which is the same number.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None


def is_notification(method: Json) -> bool:
    """Whether a method of MCP is by its name a notification, which has no id and no response."""
    return isinstance(method, str) and method.startswith("notifications/")


def as_object(value: Json) -> Json:
    """Return `value`, or an empty object for an empty array: clients in PHP write both as `[]`."""
    return {} if value == [] else value


def param(params: Object, name: str, kind: type[T], wanted: str, default: T | None = None) -> T:
    """Return the parameter `name`; raises `RpcError` if it is not of this type.

    If it is absent or null, and there is a `default`, return that.
    """
    value = as_object(params.get(name)) if kind is dict else params.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind):
        raise RpcError(INVALID_PARAMS, f"{name}: {wanted} is wanted")
    return value


def objects(value: Json, name: str) -> list[dict[str, Json]]:
    """Return the objects in the list `name` of the object `value`; leave out all else."""
    items = value.get(name) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def preview(value: Json) -> str:
    """Return any value as JSON, escaped and cut to one line, for a log, without `NOT_LOGGED`."""
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if name not in NOT_LOGGED}
    try:
        text = compact(value)
        if (start := text[:LOGGED_CHARACTERS]) != one_line(start):
            text = json.dumps(value)  # hidden characters as JSON escapes them
        return one_line(text, LOGGED_CHARACTERS)
    except RecursionError:
        return "(nested too deeply)"
    except ValueError:  # infinity, which JSON writes as 1e999
        return "(with a number beyond what computers count with)"


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


decoder = json.JSONDecoder(parse_constant=_refuse_constant)
"""Decodes JSON alone; it may raise `RecursionError`, too."""

compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""Encodes a value as JSON in one line, for the wire and for models."""


def _wire(message: Request | Notification | Response) -> dict[str, Json]:
    if isinstance(message, Response):
        error, result = message.error, message.result
        outcome = {"result": result} if error is None else {"error": error}
        return {"jsonrpc": "2.0", "id": message.id, **outcome}
    members = {name: value for name, value in message._asdict().items() if value is not None}
    return {"jsonrpc": "2.0", **members}


def _message(value: Json) -> Message:
    if not isinstance(value, dict):
        return Malformed(RpcError(INVALID_REQUEST, "a message is a JSON object"))
    id_ = read_id(value.get("id"))
    method, params = value.get("method"), value.get("params")
    # Programs with one class for all messages write null for members that a message does not have.
    has_id = "id" in value and not (value["id"] is None and is_notification(method))
    if method is None and ("result" in value or "error" in value):
        error = value.get("error")
        return Response(id_, value.get("result"), error if isinstance(error, dict) else None)
    problem = ""
    if value.get("jsonrpc") != "2.0":
        problem = '"jsonrpc" is not "2.0"'
    elif "method" not in value:
        problem = 'there is no "method"'
    elif has_id and id_ is None:
        problem = '"id" is neither a string nor an integer'
    elif params is not None and not isinstance(params, (dict, list)):
        problem = '"params" is neither an object nor an array'
    elif isinstance(method, str):
        return Notification(method, params) if id_ is None else Request(id_, method, params)
    return Malformed(RpcError(INVALID_REQUEST, problem or '"method" is not a string'), id_)
