from pathlib import Path
from typing import Any

from tests.e2e.company import in_company
from tests.servers.server import XmppServer

ROUNDS = 30


async def test_an_answer_that_comes_at_once_is_never_missed(
    prosody: XmppServer, tmp_path: Path
) -> None:
    async with in_company(prosody, tmp_path) as (bridge, witness):

        def answer(message: Any) -> None:
            """Answer each question in the turn in which it is heard."""
            if str(message["body"]).startswith("question"):
                witness.say(str(message["body"]).replace("question", "answer"))

        witness.client.add_event_handler("groupchat_message", answer)
        for number in range(ROUNDS):
            sent = await bridge.call("xmppSend", message=f"question {number}")
            waited = await bridge.call("xmppWait", since=sent["cursor"], **{"from": "Wilma"})
            assert waited["matched"] is True
            assert waited["entry"]["body"] == f"answer {number}"
            assert (waited["seen"], waited["passed"], waited["phase"]) == (0, [], "joined")
            assert not {"gap", "outBecause"} & set(waited)
