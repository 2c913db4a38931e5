import json
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.bridge_process import BridgeProcess
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

BODIES = (
    "does anybody hear me?\nsecond line <&>",
    "hidden: \u202egnp.exe\u202c \u200b\u2066\u2028\U000e0041\ufeff.",
    'a "quoted" \\u0041 \\ and \x7f, \x85, \x9b2J',
    "\U0001f469\u200d\U0001f4bb\ufe0f \u0928\u092e",
)
"""What a reader cannot see, or a terminal would obey."""


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def _names(directory: Path) -> set[str]:
    return {one.name for one in directory.iterdir()}


def _bodies_by_jq(path: Path) -> list[str] | None:
    """What `jq` makes of it, where there is one."""
    program = shutil.which("jq")
    if program is None:
        return None
    wanted = 'select(.kind == "message" and .sender == "Wilma") | .body'
    told = subprocess.run(
        [program, "--ascii-output", wanted, path], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in told.stdout.splitlines()]


async def test_the_exact_text_of_the_room_stands_in_the_log_over_two_runs(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    path = tmp_path / "room.jsonl"
    settings = xmpp_server.environment(BRIDGE_TRAFFIC_LOG=str(path))
    async with Witness(xmpp_server, xmpp_server.witness, settings["MUC_ROOM"], "Wilma") as witness:
        for number, bodies in enumerate((BODIES[:2], BODIES[2:])):
            async with BridgeProcess(tmp_path / f"home{number}", settings) as bridge:
                await bridge.joined()
                for body in bodies:
                    witness.say(body)
                    await witness.heard(body)
                sent = await bridge.bare("xmppSend", message=f"run {number} \u202e")
                assert sent["sent"] is True
                assert "warnings" not in await bridge.status()
            await witness.left("McpDebug")
    raw = path.read_bytes()
    assert raw.replace(b"\n", b"").decode("ascii").isprintable()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert xmpp_server.bot.password not in raw.decode("ascii")
    header, *lines = _lines(path)
    assert (header["log"], header["format"]) == ("xmpp-debug-bridge", 1)
    live = [line for line in lines if line["kind"] == "message" and line.get("source") == "live"]
    assert [line["body"] for line in live if line["sender"] == "Wilma"] == list(BODIES)
    ours = [(line["direction"], line["body"]) for line in live if line["sender"] == "McpDebug"]
    said = ["run 0 \u202e", "run 1 \u202e"]
    assert ours == [(direction, body) for body in said for direction in ("out", "in")]
    by_jq = _bodies_by_jq(path)
    assert by_jq is None or set(by_jq) == set(BODIES)


async def test_a_bridge_whose_log_cannot_be_written_is_in_the_room_and_says_so(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_bytes(b"my notes\n")
    settings = xmpp_server.environment(BRIDGE_TRAFFIC_LOG=str(notes))
    async with BridgeProcess(tmp_path / "home", settings) as bridge:
        status = await bridge.joined()
        warning, *_ = status["warnings"]
        assert warning.startswith(f"BRIDGE_TRAFFIC_LOG leads to '{notes}'")
        assert (await bridge.bare("xmppSend", message="hello"))["sent"] is True
        await bridge.stderr_says(warning)
    told = [line for line in bridge.stderr.splitlines() if "BRIDGE_TRAFFIC_LOG" in line]
    first, last = told
    assert first == f"[Server] WARNING: {warning}"
    assert re.fullmatch(re.escape(first) + "; [0-9]+ events were lost", last)
    assert notes.read_bytes() == b"my notes\n"
    assert _names(tmp_path) == {"home", "notes.txt"}


async def test_of_two_bridges_with_one_log_the_second_says_so(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    path = tmp_path / "room.jsonl"
    settings = sandbox.environment(BRIDGE_TRAFFIC_LOG=str(path))
    async with BridgeProcess(tmp_path / "one", settings) as first:
        await first.joined()
        async with BridgeProcess(tmp_path / "two", settings) as second:
            status = await second.joined()
            assert "another bridge is writing to" in status["warnings"][0]
            await second.bare("xmppSend", message="from the second")
        (warning,) = (await first.status())["warnings"]
        assert "Joining made this room" in warning
    assert [line["log"] for line in _lines(path) if "log" in line] == ["xmpp-debug-bridge"]


async def test_without_the_setting_no_file_is_written(sandbox: XmppServer, tmp_path: Path) -> None:
    async with BridgeProcess(tmp_path, sandbox.environment()) as bridge:
        await bridge.joined()
    assert _names(tmp_path) == {"nothing.env"}
