import asyncio
import json
from pathlib import Path
from typing import Any

from bridge.tools import send, wait
from tests.e2e import noise
from tests.e2e.bridge_process import BridgeProcess
from tests.e2e.company import in_company
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

ROUNDS = 30
ANSWER_MS = 30_000
"""Within which a wait of 30 s must end."""


def _answering(witness: Witness) -> None:
    """Let the witness answer each question in the turn in which it hears it."""

    def answer(message: Any) -> None:
        if str(message["body"]).startswith("question"):
            witness.say(str(message["body"]).replace("question", "answer"))

    witness.client.add_event_handler("groupchat_message", answer)


async def test_an_answer_that_comes_at_once_is_never_missed(
    real_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(real_server, tmp_path) as (bridge, witness):
        _answering(witness)
        for number in range(ROUNDS):
            sent = await bridge.call("xmppSend", message=f"question {number}")
            waited = await bridge.call("xmppWait", since=sent["cursor"], **{"from": "Wilma"})
            assert waited["matched"] is True
            assert waited["entry"]["body"] == f"answer {number}"
            assert (waited["seen"], waited["passed"], waited["phase"]) == (0, [], "joined")
            assert not {"gap", "outBecause"} & set(waited)
            assert 0 <= waited["elapsedMs"] < ANSWER_MS


async def test_waits_that_follow_next_miss_nothing_of_a_flood(
    real_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(real_server, tmp_path) as (bridge, witness):
        cursor = (await bridge.status())["cursor"]
        said = [f"{'needle' if number % 7 == 0 else 'hay'} {number}" for number in range(200)]
        for body in said:
            witness.say(body)
        found: list[str] = []
        seen = 0
        while len(found) < sum(body.startswith("needle") for body in said):
            waited = await bridge.call("xmppWait", since=cursor, pattern="^needle")
            assert waited["matched"], waited
            found.append(waited["entry"]["body"])
            seen += sum(one["kind"] == "message" for one in waited["passed"])
            cursor = waited["next"]
        assert found == [body for body in said if body.startswith("needle")]
        assert seen <= len(said)


async def test_many_waits_at_once_hold_nothing_up_and_are_answered_by_one_message(
    real_server: XmppServer, tmp_path: Path
) -> None:
    async with in_company(real_server, tmp_path) as (bridge, witness):
        cursor = (await bridge.status())["cursor"]
        waits = [
            asyncio.create_task(bridge.call("xmppWait", since=cursor, contains="everybody"))
            for _ in range(300)
        ]
        await bridge.call("echo", message="all of them are asked")
        assert (await bridge.call("xmppPing", target="self"))["reachable"] is True
        witness.say("hello everybody")
        entries = [(await one)["entry"] for one in waits]
        assert {one["cursor"] for one in entries} == {entries[0]["cursor"]}
        assert entries[0]["body"] == "hello everybody"


async def test_a_wait_without_a_connection_ends_in_time_and_says_why(tmp_path: Path) -> None:
    settings = {
        "XMPP_SERVICE": "xmpp://127.0.0.1:1",
        "XMPP_DOMAIN": "localhost",
        "XMPP_USERNAME": "bot",
        "XMPP_PASSWORD": "bot-passes-4711",
        "MUC_ROOM": "room@conference.localhost",
    }
    async with BridgeProcess(tmp_path, settings) as bridge:
        await bridge.initialize()
        await bridge.until(lambda it: it.get("lastError"))
        waited = await bridge.call("xmppWait", timeoutSeconds=0.3)
        assert waited["matched"] is False
        assert waited["phase"] != "joined"
        assert "XMPP_SERVICE" in waited["outBecause"]
    async with BridgeProcess(tmp_path) as bridge:
        waited = await bridge.bare("xmppWait", timeoutSeconds=0)
        assert (waited["matched"], waited["phase"]) == (False, "unconfigured")
        assert "xmppStatus" in waited["outBecause"]


async def test_progress_is_told_to_who_asks_and_grows(prosody: XmppServer, tmp_path: Path) -> None:
    assert send.PROGRESS_SECONDS == 1
    often = noise.at_start(
        tmp_path / "site", noise.with_limits(wait.__name__, PROGRESS_SECONDS=0.2)
    )
    async with BridgeProcess(tmp_path / "home", prosody.environment() | often) as bridge:
        await bridge.initialize()
        await bridge.joined()
        params = {
            "name": "xmppWait",
            "arguments": {"timeoutSeconds": 0.7},
            "_meta": {"progressToken": "p1"},
        }
        assert (await bridge.request("tools/call", params))["isError"] is False
        told = [await bridge.frame() for _ in range(bridge.pending_frames)]
        assert {one["method"] for one in told} == {"notifications/progress"}
        assert {one["params"]["progressToken"] for one in told} == {"p1"}
        assert {one["params"]["total"] for one in told} == {0.7}
        grown = [one["params"]["progress"] for one in told]
        assert len(grown) == 3
        assert grown == sorted(set(grown))
        assert told[0]["params"]["message"].startswith("joined; ")


async def test_a_wait_that_is_cancelled_gets_no_reply_and_holds_nothing_up(
    prosody: XmppServer, tmp_path: Path
) -> None:
    async with in_company(prosody, tmp_path) as (bridge, witness):
        bridge.send(
            {
                "jsonrpc": "2.0",
                "id": "given up",
                "method": "tools/call",
                "params": {"name": "xmppWait", "arguments": {"timeoutSeconds": 50}},
            }
        )
        cursor = (await bridge.status())["cursor"]
        bridge.send(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": "given up"},
            }
        )
        witness.say("hello")
        assert (await bridge.call("xmppWait", since=cursor))["entry"]["body"] == "hello"
    assert not any(json.loads(line).get("id") == "given up" for line in bridge.stdout.splitlines())
