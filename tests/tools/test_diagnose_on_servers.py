"""Each trouble of a bot on real servers: one call names it, as docs/diagnosis.md shows."""

import json

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.context import Context
from bridge.mcp.toolset import Tool
from bridge.tools.diagnose import xmpp_diagnose
from bridge.tools.entries import RESULT_BYTES
from bridge.tools.send import RateLimiter, xmpp_send
from bridge.xmpp.checks.diagnosis import FINDINGS
from tests.docs.pages import (
    PAGES,
    blocks,
    check,
    elided,
    exchanges,
    pattern,
    quoted,
    shown_as,
    tables,
)
from tests.mcp.sample_tools import UNASKED
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess
from tests.tools.played import arguments, wire
from tests.tools.troubled import TROUBLES, staged

PAGE = PAGES["docs/diagnosis.md"]
CAUSES = {row[0]: row[1:] for row in tables(PAGE)["what is the matter"]}
(EXAMPLE,) = blocks(PAGE, "text")
CAUSE_BYTES = 40_000 // 14
"""Of JSON for the results that name one cause: fourteen causes are named with 40 kB."""

SHOWN = "it answers in private"
"""The trouble that the page shows in full."""


def test_the_page_has_each_trouble_and_each_finding() -> None:
    assert list(CAUSES) == list(TROUBLES)
    for name, (call, _) in CAUSES.items():
        asked = json.dumps({"nickname": TROUBLES[name].asked})
        assert quoted(call) == [f"xmppDiagnose {asked}"]
    assert [quoted(row[0]) for row in tables(PAGE)["finding"]] == [[one] for one in FINDINGS]
    assert {one.finding for one in TROUBLES.values()} == {*FINDINGS, None} - {"said"}


def test_fourteen_causes_take_twenty_five_calls() -> None:
    calls = [1 if one.says is None else 2 for one in TROUBLES.values()]
    assert sum(calls) / len(calls) <= 25 / 14


@pytest.mark.parametrize("name", TROUBLES)
@pytest.mark.parametrize("server", ["prosody", "ejabberd"])
async def test_the_trouble_is_named(
    server: str, name: str, authority: Authority, request: pytest.FixtureRequest
) -> None:
    process: ServerProcess = request.getfixturevalue(f"{server}_process")
    trouble = TROUBLES[name]
    context = Context(lambda *_: None, lambda *_: None, *UNASKED)
    results: dict[str, object] = {}
    async with staged(trouble, process, authority) as stage:
        link, rate = stage.link, RateLimiter(60)
        if trouble.says is not None:
            given = {"message": trouble.says, "awaitSeconds": trouble.seconds}
            sent = wire(await xmpp_send(link, rate, context, **arguments(xmpp_send, given)))
            _check_shape(sent, xmpp_send)
            assert tuple(one["how"] for one in sent["answers"]) == trouble.hows
            assert all(0 <= one["answerMs"] < 60_000 for one in sent["answers"])
            results["xmppSend"] = sent
        found = wire(await xmpp_diagnose(link, nickname=trouble.asked))
        results["xmppDiagnose"] = found
    _check_shape(found, xmpp_diagnose)
    assert [word for word in trouble.verdict if word not in found["verdict"]] == [], found
    wrong = [one for one in found["findings"] if one["ok"] is False]
    assert [one["name"] for one in wrong][:1] == ([trouble.finding] if trouble.finding else [])
    assert all(one["hint"] for one in wrong)
    verdict = CAUSES[name][1]
    assert pattern([verdict]).fullmatch(shown_as(found["verdict"])), found["verdict"]
    # One that floods the room with answers takes more, and another one less.
    most = CAUSE_BYTES * (2 if len(trouble.hows) > 2 else 1)
    assert sum(len(json.dumps(one)) for one in results.values()) <= most
    for exchange in exchanges(EXAMPLE) if name == SHOWN else ():
        check(elided(exchange.answer), results[exchange.tool], exchange.tool)


def _check_shape(result: dict[str, object], tool: Tool) -> None:
    Draft202012Validator(tool.output_schema).validate(result)
    assert len(json.dumps(result)) <= RESULT_BYTES
