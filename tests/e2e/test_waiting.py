from pathlib import Path
from typing import Any

from tests.e2e.bridge_process import NOWHERE, BridgeProcess
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
    prosody: XmppServer, tmp_path: Path
) -> None:
    async with in_company(prosody, tmp_path) as (bridge, witness):
        _answering(witness)
        for number in range(ROUNDS):
            sent = await bridge.call("xmppSend", message=f"question {number}")
            waited = await bridge.call("xmppWait", since=sent["cursor"], **{"from": "Wilma"})
            assert waited["matched"] is True
            assert waited["entry"]["body"] == f"answer {number}"
            assert (waited["seen"], waited["passed"], waited["phase"]) == (0, [], "joined")
            assert not {"gap", "outBecause"} & set(waited)
            assert 0 <= waited["elapsedMs"] < ANSWER_MS


async def test_a_wait_without_a_connection_ends_in_time_and_says_why(tmp_path: Path) -> None:
    async with BridgeProcess(tmp_path, NOWHERE) as bridge:
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
