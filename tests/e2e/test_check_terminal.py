"""`xmpp-bridge check` on a terminal."""

import asyncio
import re
from pathlib import Path

from tests.e2e.bridge_process import NOWHERE
from tests.e2e.checking import IN_THE_ROOM, SGR, STAGE, STAGES, XTERM, on_screen, run
from tests.e2e.watching import SECONDS, Watching
from tests.servers.server import XmppServer


async def test_on_a_terminal_the_stage_under_way_is_named_and_nothing_is_left_behind(
    prosody: XmppServer, tmp_path: Path
) -> None:
    environment = prosody.environment()
    code, checking = await run(tmp_path, environment | XTERM, columns=80)
    assert code == 0
    assert "\x1b[32m" in checking.out
    shown = on_screen(checking, 80)
    assert max(map(len, shown)) <= 80
    piped_code, piped = await run(tmp_path, environment)
    assert piped_code == 0
    # The same stages in the same places, once: what was drawn on the way is gone.
    for lines in (shown, piped.out.splitlines()):
        heads = [one[1] for line in lines if (one := STAGE.fullmatch(line))]
        assert heads == STAGES + IN_THE_ROOM
    assert not [line for line in shown if line.endswith("...")]
    # On the way the next stage was named under each.
    plain = SGR.sub("", checking.out)
    assert re.findall(r"(?m)^([a-z]+) +\.\.\.$", plain) == [*STAGES[1:], *IN_THE_ROOM]
    assert plain.count("\x1b[J") == len(STAGES[1:] + IN_THE_ROOM)


async def test_ctrl_c_in_the_middle_hangs_up(tmp_path: Path) -> None:
    reached = asyncio.Event()
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        reached.set()
        await reader.read()
        left.set()
        writer.close()

    silent = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    environment = NOWHERE | {"XMPP_SERVICE": f"xmpp://127.0.0.1:{port}"} | XTERM
    async with (
        silent,
        Watching(tmp_path, environment, command="check", columns=80) as checking,
        asyncio.timeout(SECONDS),
    ):
        await reached.wait()
        await checking.shows("tls")
        assert on_screen(checking, 80)[-2] == "tls        ..."
        checking.press(b"\x03")
        await left.wait()
        assert await checking.ended() == 130
