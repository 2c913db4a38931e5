from pathlib import Path

from tests.e2e import noise
from tests.e2e.company import in_company
from tests.servers.server import XmppServer

# `BridgeProcess` fails a test by itself when a line on stdout is no frame that was asked for.


async def test_a_thread_that_prints_all_the_time_reaches_stderr_and_no_frame(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    loud = noise.at_start(tmp_path / "site", noise.WRITE, noise.IN_A_THREAD)
    async with in_company(sandbox, tmp_path / "home", **loud) as (bridge, witness):
        for number in range(20):
            await bridge.call("xmppSend", message=f"number {number}")
            await witness.heard(f"number {number}")
        witness.say("hello")
        await bridge.until(lambda it: it["lastIncoming"])
    assert bridge.stderr.count("NOISE thread") > 4
