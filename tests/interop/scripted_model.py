"""A model on 127.0.0.1 that does what a test says, for the clients that ask a model over HTTP.

It answers at the two addresses that agents ask: `/v1/responses` (OpenAI's Responses API, which
Codex speaks) and `/v1/messages` (Anthropic's Messages API, which Claude Code speaks), always as a
stream of server-sent events, and with the few fields that these clients read.
"""

import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

Script: TypeAlias = Generator[Json, str, None]
"""Yields one call of a tool a turn, and is sent what came back; at its end the model is done.

A call is an item as the client's API has it, without its id.
"""

DONE = "Done."


@dataclass
class ScriptedModel:
    """The model behind the address, and what it was asked."""

    script: Script
    address: str = ""
    requests: list[Json] = field(default_factory=list)
    """The bodies of all requests, in order."""
    failure: Exception | None = None
    """What went wrong in answering; the client saw status 400."""
    _calls: list[Json | None] = field(default_factory=list)

    @property
    def results(self) -> list[str]:
        """What the calls came back with, as the model saw it at last."""
        return _results(self.requests[-1])

    def answer(self, path: str, body: Json) -> list[Json]:
        self.requests.append(body)
        results = _results(body)
        turn = len(results)
        if turn == len(self._calls):  # else the client asks again for a turn that it had
            try:
                self._calls.append(self.script.send(results[-1]) if turn else next(self.script))
            except StopIteration:
                self._calls.append(None)
        call = self._calls[turn]
        match path.partition("?")[0]:
            case "/v1/responses":
                return _responses_events(turn, call)
            case "/v1/messages":
                return _messages_events(turn, call)
            case other:
                raise ValueError(f"no API has the address {other}")


@contextmanager
def scripted_model(script: Script) -> Iterator[ScriptedModel]:
    """A model that can be asked from now until the end of the block; raises what failed in it."""
    model = ScriptedModel(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                events = model.answer(self.path, body)
            except Exception as error:  # noqa: BLE001 - it belongs to the test, in another thread
                model.failure = error
                self.send_error(400)  # any other failure would be tried again and again
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in events:
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()
            if model.failure is not None:
                raise model.failure


def _results(body: Json) -> list[str]:
    if "messages" in body:
        blocks = [
            block
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        return [_text(block["content"]) for block in blocks if block["type"] == "tool_result"]
    outputs = [each["output"] for each in body["input"] if each["type"].endswith("_call_output")]
    # Codex writes in front how long the call took: as a line, or as a part of its own.
    return [
        output.partition("Output:\n")[2] if isinstance(output, str) else _text(output[1:])
        for output in outputs
    ]


def _text(content: str | list[Json]) -> str:
    """The text of a result, which both APIs also take in parts."""
    return (
        content if isinstance(content, str) else "".join(each.get("text", "") for each in content)
    )


def _responses_events(turn: int, call: Json | None) -> list[Json]:
    said = {"role": "assistant", "content": [{"type": "output_text", "text": DONE}]}
    item = {"call_id": f"call_{turn}", **call} if call else {"type": "message", **said}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        {"type": "response.created", "response": {"id": f"response_{turn}"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": f"response_{turn}", "usage": usage}},
    ]


def _messages_events(turn: int, call: Json | None) -> list[Json]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: Json = {
        "id": f"message_{turn}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    if call:
        block = {"id": f"call_{turn}", **call, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call["input"])}
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": DONE}
    stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    ]
