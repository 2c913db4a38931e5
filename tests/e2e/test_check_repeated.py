"""`xmpp-bridge check --repeat`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.checking import IN_THE_ROOM, STAGES, run, stages
from tests.e2e.watching import Watching
from tests.servers.server import XmppServer


async def test_repeated_it_tells_the_median_and_the_worst(
    prosody: XmppServer, tmp_path: Path
) -> None:
    environment = prosody.environment()
    code, checking = await run(tmp_path, environment, "--repeat", "3")
    assert code == 0
    assert [name for name, _, _ in stages(checking.out.splitlines())] == ["settings"]
    assert len(re.findall("(?m)^   [123]  ok +[0-9.]+ ms$", checking.out)) == 3
    row = r"(?m)^([a-z]+) +3/3 +([0-9.]+) ms +([0-9.]+) ms$"
    rows = re.findall(row, checking.out)
    assert [name for name, _, _ in rows] == STAGES[1:] + IN_THE_ROOM
    assert all(float(median) <= float(worst) for _, median, worst in rows)
    assert "3 of 3 passed." in checking.out


async def test_repeated_as_json_it_has_every_run(sandbox: XmppServer, tmp_path: Path) -> None:
    code, checking = await run(tmp_path, sandbox.environment(), "--json", "--repeat", "2")
    assert code == 0
    told: dict[str, Any] = json.loads(checking.out)
    assert told["ok"] is True
    assert [one["ok"] for one in told["runs"]] == [True, True]
    names = STAGES[1:] + IN_THE_ROOM
    assert list(told["medianMs"]) == list(told["worstMs"]) == names
    for name in names:
        taken = [one["ms"] for run in told["runs"] for one in run["phases"] if one["name"] == name]
        assert told["worstMs"][name] == max(taken)
        assert told["medianMs"][name] == pytest.approx(sum(taken) / 2, abs=0.001)


@pytest.mark.parametrize("times", ["0", "1001", "two"])
async def test_a_number_of_times_that_is_none_is_refused(times: str, tmp_path: Path) -> None:
    code, checking = await run(tmp_path, {}, f"--repeat={times}")
    assert code == 2
    assert "is no number from 1 to 1000" in checking.err


async def test_when_nobody_reads_on_no_further_run_is_begun(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    environment = sandbox.environment()
    async with Watching(tmp_path, environment, "--repeat", "1000", command="check") as checking:
        await checking.shows("   2  ok")
        checking.close_stdout()
        assert await checking.ended() == 0
    assert checking.err == ""
