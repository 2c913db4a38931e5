"""Each trouble of a bot on real servers: one call names it in the words of docs/diagnosis.md."""

import asyncio
import json

import pytest

from bridge.tools.diagnose import xmpp_diagnose
from bridge.tools.send import RateLimiter, xmpp_send
from bridge.xmpp.checks.diagnosis import FINDINGS
from tests.docs.pages import (
    PAGES,
    TOP,
    blocks,
    check,
    elided,
    exchanges,
    pattern,
    quoted,
    shown_as,
    tables,
)
from tests.mcp.sample_tools import QUIET
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess
from tests.tools.played import arguments, fitting
from tests.tools.troubled import COMMAND, TROUBLES, staged

PAGE = PAGES["docs/diagnosis.md"]
CAUSES = dict(tables(PAGE)["what is the matter"])
NICKNAME = "Robot"
"""Whom the call above the table names, unless the verdict begins with another nickname."""
EXAMPLE, _ = blocks(PAGE, "text")
SHOWN = "it answers in private"
"""The trouble that the page shows in full."""
SMALL_BYTES = 3_000
"""A model reads the result of each look, so it has to be small."""


def test_the_page_has_each_finding_and_each_has_its_trouble() -> None:
    assert [quoted(row[0]) for row in tables(PAGE)["finding"]] == [[each] for each in FINDINGS]
    assert {each.finding for each in TROUBLES.values()} == {*FINDINGS, None} - {
        *("room", "said", "stream")
    }


def test_of_each_report_it_is_said_which_call_finds_it() -> None:
    reports = tables((TOP / "tests" / "tools" / "reports.md").read_text("utf-8"))["the report"]
    assert len(reports) == 119
    rules = [quoted(row[0])[0] for row in tables(PAGES["docs/explain.md"])["finding"]]
    tools = {"xmppDiagnose": {*FINDINGS}, "explain": {*rules}, "xmppStatus": set[str]()}
    for _, _, finds in reports:
        for part in finds.split(";"):
            tool, *names = quoted(part) or ["xmppDiagnose"]
            if tool not in tools:  # a further finding of the same tool
                tool, names = "xmppDiagnose", [tool, *names]
            if "explain" in names:  # "the cause only by"
                tool, names = "explain", names[names.index("explain") + 1 :]
            assert {*names} <= tools[tool], finds


@pytest.mark.servers
@pytest.mark.parametrize(
    ("server", "name"),
    [("prosody", name) for name in TROUBLES]
    + [("ejabberd", name) for name, trouble in TROUBLES.items() if trouble.on_both],
)
async def test_the_trouble_is_named(
    server: str, name: str, authority: Authority, request: pytest.FixtureRequest
) -> None:
    process: ServerProcess = request.getfixturevalue(f"{server}_process")
    trouble = TROUBLES[name]
    results: dict[str, object] = {}
    async with staged(trouble, process, authority) as stage:
        link, rate = stage.link, RateLimiter(60)
        if trouble.hows is not None:
            given = {"message": COMMAND, "awaitSeconds": trouble.seconds}
            told = await xmpp_send(link, rate, QUIET, **arguments(xmpp_send, given))
            sent = fitting(xmpp_send, told)
            assert " ".join(each["how"] for each in sent["answers"]) == trouble.hows
            assert all(0 <= each["answerMs"] < 60_000 for each in sent["answers"])
            results["xmppSend"] = sent
        asking = (xmpp_diagnose(link, nickname=trouble.asked), xmpp_diagnose(link))
        result, around = (fitting(xmpp_diagnose, each) for each in await asyncio.gather(*asking))
        results["xmppDiagnose"] = result
    assert result["outcome"] == trouble.outcome
    wrong = [each for each in result["findings"] if each["ok"] is False]
    assert [each["name"] for each in wrong][:1] == ([trouble.finding] if trouble.finding else [])
    assert all(each["hint"] for each in wrong)
    assert trouble.further in {None, *(each["name"] for each in wrong)}
    seen = {each["name"] for each in around["findings"] if each["ok"] is False}
    assert seen == ({trouble.finding} - {None} if trouble.around else set())
    assert len(json.dumps(around)) < SMALL_BYTES
    assert len(json.dumps(result)) < SMALL_BYTES + len(json.dumps(result["answers"]))
    verdict = CAUSES[name]
    assert f"`xmppDiagnose {json.dumps({'nickname': NICKNAME})}`" in PAGE
    assert trouble.asked == NICKNAME or verdict.startswith(json.dumps(trouble.asked))
    assert pattern([verdict]).fullmatch(shown_as(result["verdict"])), result["verdict"]
    for exchange in exchanges(EXAMPLE) if name == SHOWN else ():
        check(elided(exchange.answer), results[exchange.tool], exchange.tool)
