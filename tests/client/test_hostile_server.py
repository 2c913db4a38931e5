"""A server that lies to the client, or wants to break it or its terminal."""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

from bridge.client.client import Client
from bridge.client.errors import ServerError
from bridge.client.formatting import for_person, listing
from bridge.client.process import MAX_DEPTH
from bridge.mcp.jsonrpc import Json
from tests.client import hostile_server
from tests.client.hostile_server import nested, refusal, reply, structured
from tests.client.piped import run
from tests.client.served import served
from tests.client.terminal import GREETING, Terminal

ESCAPES = "\x1b[31m\x1b]0;title\x07\u202e\x9b\u2028"
HOSTILE = json.dumps(ESCAPES)
HUGE = "9" * 5_000

TEXT = '{"content":[{"type":"text","text":%s}]}'
RESULTS = {
    "nothing": "null",
    "content that is no list": '{"content":3}',
    "odd content": '{"content":[null,3,[],{"type":[]},{"type":{"a":1}},{"type":"resource"}]}',
    "nested content": f'{{"content":{nested(900)}}}',
    "900 levels": f'{{"structuredContent":{nested(900)},"content":[]}}',
    "a level more than is taken": nested(MAX_DEPTH + 1),
    "100,000 levels": nested(100_000),
    "as deep as is taken": nested(MAX_DEPTH),
    "a text that is nested JSON": TEXT % json.dumps(nested(900)),
    "an infinity": '{"structuredContent":{"a":1e999},"content":[]}',
    "an infinity in a text": TEXT % '"1e999"',
    "NaN": '{"structuredContent":{"a":NaN},"content":[]}',
    "a huge integer": f'{{"structuredContent":{{"a":{HUGE}}},"content":[]}}',
    "a lone surrogate": '{"structuredContent":{"\\ud800":"\\udfff"},"content":[]}',
    "escapes": TEXT % HOSTILE,
    "escapes in an object": f'{{"structuredContent":{{{HOSTILE}:{HOSTILE}}},"content":[]}}',
    "entries of odd types": '{"content":[],"structuredContent":{"entries":[{"at":[],"kind":{}}]}}',
    "odd reactions": '{"content":[],"structuredContent":{"entries":[{"at":1,"kind":"message",'
    '"reactsTo":[],"reactions":[[],{}]},{"at":null,"xml":[]}],"next":{}}}',
    "a resource as content": '{"content":[{"type":"resource","resource":{"text":{"a":[]}}}]}',
}
"""Results of a tool."""

WHOLE = {
    "no member that counts": '{"jsonrpc":"2.0","id":$ID}',
    "an error that is a text": refusal(HOSTILE),
    "an empty error": refusal("{}"),
    "an error with escapes": refusal(f'{{"code":{HOSTILE},"message":{HOSTILE},"data":{HOSTILE}}}'),
    "an error with hints": refusal(f'{{"message":[],"data":{{"condition":[],"hint":{HOSTILE}}}}}'),
    "a nested error": refusal(f'{{"code":1,"message":"m","data":{nested(900)}}}'),
    "an infinite error": refusal('{"code":1e999,"message":"m","data":[-1e999]}'),
    "a method that is none": '{"jsonrpc":"2.0","id":$ID,"method":3,"result":{}}',
    "rubbish that names the id": '{"jsonrpc":"2.0","id":$ID,"result":{"a":}}',
}
"""Whole responses."""

ANSWERS = {name: reply(result) for name, result in RESULTS.items()} | WHOLE

REFUSED = {
    *("nested content", "900 levels", "100,000 levels", "a level more than is taken"),
    *("an infinity", "NaN", "a huge integer"),
}
"""Results that cannot be shown as JSON."""


def _refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} is not JSON")


def _run(
    home: Path, table: dict[str, str], said: str, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    ran = run(home, said, *arguments, "--", *hostile_server.command(home, table))
    assert "Traceback" not in ran.stderr, ran.stderr
    for shown in (ran.stdout, ran.stderr):
        assert not set(shown) & set(ESCAPES) - set("[31m]0;title"), shown
    return ran


def _calls(answers: Iterable[str]) -> tuple[dict[str, str], str]:
    """Return the table of a server with a tool for each answer, and the lines that call them.

    Behind each call stands an echo.
    """
    table = {f"tools/call odd{number}": answer for number, answer in enumerate(answers)}
    names = ["echo", *(f"odd{number}" for number in range(len(table)))]
    table["tools/list"] = reply(json.dumps({"tools": [{"name": name} for name in names]}))
    return table, "".join(f"/call {name} {{}}\nthere\n" for name in names[1:])


def test_each_hostile_answer_of_a_tool_is_one_plain_line_and_the_client_goes_on(
    tmp_path: Path,
) -> None:
    ran = _run(tmp_path, *_calls(ANSWERS.values()))
    lines = ran.stdout.splitlines()
    assert lines[1::2] == ["Echo: there"] * len(ANSWERS)
    shown = dict(zip(ANSWERS, lines[::2], strict=True))
    for name, line in shown.items():
        if line.startswith('{"'):
            told = json.loads(line, parse_constant=_refuse)
            assert ("error" in told) == (name in WHOLE or name in REFUSED), name
    assert shown["as deep as is taken"] == nested(MAX_DEPTH)
    assert "more than 100 values inside one another" in shown["a level more than is taken"]
    assert "beyond what computers count with" in shown["an infinity"]
    assert "NaN is not JSON" in shown["NaN"]
    assert ran.returncode == 1


LISTS = {
    "tools/list": '{"tools":[null,{"name":[]},{"name":"echo","inputSchema":[]},{"name":"odd",'
    '"inputSchema":{"properties":{"a":3,"b":{"type":[[]],"enum":{},"minimum":{}}},'
    f'"required":[[]]}}}},{{"name":{HOSTILE},"title":{HOSTILE},"description":{HOSTILE}}}]}}',
    "resources/list": f'{{"resources":[3,{{"uri":[]}},{{"uri":{HOSTILE},"title":[]}}]}}',
    "prompts/list": f'{{"prompts":[{{"name":{{}}}},{{"name":{HOSTILE},"arguments":[3,{{}}]}}]}}',
}


@pytest.mark.parametrize("odd", ["types", "900 levels"])
def test_hostile_lists_break_nothing(odd: str, tmp_path: Path) -> None:
    lists = LISTS if odd == "types" else dict.fromkeys(LISTS, RESULTS[odd])
    table = {method: reply(answer) for method, answer in lists.items()}
    ran = _run(tmp_path, table, "/tools\n/resources\n/prompts\n/tools odd\nthere\n")
    assert len(ran.stdout.splitlines()) == 5
    assert GREETING in ran.stderr


def test_a_long_name_does_not_widen_every_line_of_a_list() -> None:
    names = ["x" * 100_000, *(f"tool{number}" for number in range(1_000))]
    tools: list[Json] = [{"name": each, "title": each} for each in names]
    assert len(for_person(listing("tools", {"tools": tools}))) < 300_000


def test_hostile_resources_and_prompts_break_nothing(tmp_path: Path) -> None:
    texts = (HOSTILE, json.dumps(nested(900)))
    read = '{"contents":[{"text":%s},{"blob":3},{"text":"1e999"},{"text":%s}]}'
    got = '{"messages":[{"role":%s,"content":{"type":"text","text":%s}},{"content":[]}]}'
    reads = [*(read % each for each in (texts, texts[::-1])), *RESULTS.values()]
    gets = [*(got % each for each in (texts, texts[::-1])), *RESULTS.values()]
    table = {f"resources/read {number}": reply(each) for number, each in enumerate(reads)}
    table |= {f"prompts/get {number}": reply(each) for number, each in enumerate(gets)}
    said = "".join(f"/resources {n}\n/prompts {n}\nthere\n" for n in range(len(reads)))
    ran = _run(tmp_path, table, said)
    lines = ran.stdout.splitlines()
    assert lines[2::3] == ["Echo: there"] * len(reads)
    assert len(lines) == 3 * len(reads)


HANDSHAKES = {
    "lines and escapes": refusal(f'{{"message":"one\\n[Server] two","data":{HOSTILE}}}'),
    "length": refusal(f'{{"message":{json.dumps("x" * 1_000_000)}}}'),
    "rubbish": '{"jsonrpc":"2.0","id":$ID,"result":{"a":}}',
}


@pytest.mark.parametrize("name", HANDSHAKES)
async def test_a_refused_handshake_is_one_bounded_line_without_escapes(
    name: str, tmp_path: Path
) -> None:
    table = dict.fromkeys(("initialize", "server/discover"), HANDSHAKES[name])
    async with served(*hostile_server.command(tmp_path, table)) as server:
        with pytest.raises(ServerError) as refused:
            await Client(server).open()
    told = str(refused.value)
    assert told.startswith("the server refused the handshake: ")
    assert told.isprintable()
    assert len(told) < 500


UNASKED = {
    "a level that is a list": '"method":"notifications/message","params":{"level":[],"data":[]}',
    "escapes": f'"method":"notifications/message","params":{{"level":{HOSTILE},"data":{HOSTILE}}}',
    "a long level": f'"method":"notifications/message","params":{{"level":"{"x" * 100_000}"}}',
    "nested data": f'"method":"notifications/message","params":{{"data":{nested(900)}}}',
    "infinite data": '"method":"notifications/message","params":{"level":-1e999,"data":1e999}',
    "an update of nothing": '"method":"notifications/resources/updated","params":{"uri":[]}',
    "progress": f'"method":"notifications/progress","params":{{"message":{HOSTILE}}}',
    "a request": f'"id":{HOSTILE},"method":{HOSTILE},"params":{nested(900)}',
    "an error without an id": f'"error":{{"message":{HOSTILE},"data":{nested(900)}}}',
    "no message": f"starting up {ESCAPES}",
    "a response to nobody": f'"id":{HOSTILE},"result":{nested(900)}',
}


def test_what_comes_unasked_is_at_most_a_bounded_line(tmp_path: Path) -> None:
    table, said = _calls(f'{{"jsonrpc":"2.0",{each}}}\n{reply("{}")}' for each in UNASKED.values())
    ran = _run(tmp_path, table, said)
    assert ran.stdout.splitlines() == ["{}", "Echo: there"] * len(UNASKED)
    told = ran.stderr.splitlines()
    assert GREETING in told
    assert "[Client] the server wrote to stdout what is no message" in ran.stderr
    assert len(told) <= len(UNASKED)
    assert all(len(each) < 500 for each in told)


def test_lines_of_the_servers_log_are_escaped_where_a_terminal_shows_them(tmp_path: Path) -> None:
    command = hostile_server.command(tmp_path, {"stderr": f"{ESCAPES}\n"})
    with Terminal(tmp_path, ["--", *command], stdin=subprocess.DEVNULL) as terminal:
        assert terminal.end() == 0
    assert "\\u{1B}[31m" in terminal.written
    assert not set(terminal.written) & set(ESCAPES) - set("[31m]0;title")


def test_odd_occupants_break_no_terminal(tmp_path: Path) -> None:
    odd = f'[3,null,"nickname",{{"nickname":[]}},{{"nickname":{HOSTILE}}}]'
    table = {"tools/call xmppOccupants": structured(f'{{"occupants":{odd}}}')}
    with Terminal(tmp_path, ["--", *hostile_server.command(tmp_path, table)]) as terminal:
        terminal.prompts()
        terminal.type("send \t\t")
        terminal.prompts("send ")
        terminal.type("\x03there\r")
        terminal.shows("Echo: there")
        terminal.prompts()
        terminal.type("\x04")
        assert terminal.end() == 0
    assert "Traceback" not in terminal.written
