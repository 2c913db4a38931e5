"""The interactive test client: a prompt in front of an MCP server."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

from bridge import __version__
from bridge.console.peer import Peer, PeerError
from bridge.escaping import visible
from bridge.log import complain
from bridge.mcp.stdio import read_chunks

GREETING = 'Connected! Type a message or "help" for commands.'
PROMPT = "echo> "
VERDICT_SECONDS = 10.0
"""How long the greeting waits for the room, or for a verdict on it."""
VERDICTS = frozenset({"joined", "failed", "waiting", "unconfigured"})
"""Phases that are worth greeting with: nothing will change in the next moment."""
POLL_SECONDS = 0.05
"""Between two looks at the phase while it is undecided."""

HELP = """\
TEXT         send TEXT to the tool `echo`
status       ask the tool `xmppStatus`
send TEXT    say TEXT in the chat room
help         this list
exit, quit   leave (Ctrl-D does too)"""


class ToolFailedError(Exception):
    """The tool answered, with a failure; the text is its own."""


async def run_client(command: Sequence[str], *, waits_for_room: bool) -> int:
    """Talk to the MCP server that `command` starts; return the exit code.

    From a pipe, stdout carries answers only, one a line; the greeting goes to stderr. The exit
    code is 1 if any call failed.
    """
    if sys.stdout is None:
        complain("[Client] stdout is closed, so no answer could be read")
        return 1
    try:
        peer = await Peer.start(command)
    except PeerError as error:
        complain(f"[Client] {error}")
        return 1
    try:
        await _shake_hands(peer)
        if waits_for_room:
            await _await_verdict(peer)
        return await _converse(peer)
    except PeerError as error:
        complain(f"[Client] {error}")
        return 1
    except BrokenPipeError:
        # Python flushes stdout once more at the end, and would complain about that too.
        sys.stdout = None
        complain("[Client] nobody reads the answers any more")
        return 1
    finally:
        await peer.stop()


async def _shake_hands(peer: Peer) -> None:
    await peer.initialize(
        {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "xmpp-bridge client", "version": __version__},
        }
    )
    await peer.notify("notifications/initialized")


async def _await_verdict(peer: Peer) -> None:
    deadline = asyncio.get_running_loop().time() + VERDICT_SECONDS
    while True:
        status = await _structured(peer, "xmppStatus", {})
        if status["phase"] in VERDICTS or asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(POLL_SECONDS)
    if status["phase"] == "joined":
        complain(f"[Client] in the room {status['room']} as {status['nickname']}")
    elif status["lastError"] is not None:
        complain(f"[Client] not in the room: {status['lastError']['message']}")
    else:
        complain(f"[Client] not in the room: {status['phase']}")


async def _converse(peer: Peer) -> int:
    interactive = sys.stdin is not None and sys.stdin.isatty()
    failed = False
    if interactive:
        _say(GREETING)
    else:
        complain(GREETING)
    if interactive:
        _prompt()
    async for line in _lines():
        if line in {"exit", "quit"}:
            break
        if line:
            try:
                _say(await _obey(peer, line, pretty=interactive))
            except ToolFailedError as error:
                failed = True
                if interactive:
                    _say(visible(str(error)))
                else:
                    _say(_shown({"error": str(error)}, pretty=False))
        if interactive:
            _prompt()
    if interactive:
        _say("")
    return 1 if failed else 0


async def _obey(peer: Peer, line: str, *, pretty: bool) -> str:
    """Carry out one line and return what to show for it."""
    command, _, rest = line.partition(" ")
    if line == "help":
        return HELP
    if line == "status":
        return _shown(await _structured(peer, "xmppStatus", {}), pretty=pretty)
    if command == "send" and rest.strip():
        return _shown(await _structured(peer, "xmppSend", {"message": rest.strip()}), pretty=pretty)
    result = await _call(peer, "echo", {"message": line})
    return visible(str(result["content"][0]["text"]))


def _shown(value: object, *, pretty: bool) -> str:
    # Within the strings, since JSON has another escape for the same characters.
    return json.dumps(_visible(value), ensure_ascii=False, indent=2 if pretty else None)


def _visible(value: object) -> object:
    match value:
        case str():
            return visible(value)
        case list():
            return [_visible(one) for one in value]
        case dict():
            return {visible(name): _visible(one) for name, one in value.items()}
        case _:
            return value


async def _structured(peer: Peer, tool: str, arguments: dict[str, object]) -> Any:
    return (await _call(peer, tool, arguments))["structuredContent"]


async def _call(peer: Peer, tool: str, arguments: dict[str, object]) -> Any:
    result = await peer.request("tools/call", {"name": tool, "arguments": arguments})
    if result.get("isError"):
        raise ToolFailedError(result["content"][0]["text"])
    return result


async def _lines() -> AsyncIterator[str]:
    """Yield the lines of stdin, trimmed; a closed stdin has none."""
    if sys.stdin is None:
        return
    rest = b""
    async for chunk in read_chunks(sys.stdin.fileno()):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace").strip()
    if rest:
        yield rest.decode("utf-8", "replace").strip()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _prompt() -> None:
    sys.stdout.write(PROMPT)
    sys.stdout.flush()
