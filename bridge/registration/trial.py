"""The registered command, started once as a client would, to see that it answers."""

import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bridge.console.client import Client
from bridge.console.errors import RequestError, ServerError
from bridge.console.process import ServerProcess
from bridge.escaping import one_line

PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""All that a careful client lets a server have of its own environment: none of our settings."""

LIST_SECONDS = 10.0
"""How long the list of tools may take; it is made before anything is connected."""


class TrialError(Exception):
    """The registered command does not do what a client needs; the text says what happened."""


def listed_tools(command: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Start `command` with the environment of its entry, and return the names of its tools.

    It runs in an empty folder, since a client starts it in whatever project it works on. Raises
    `TrialError`.
    """
    return asyncio.run(_listed_tools(command, env))


async def _listed_tools(command: Sequence[str], env: Mapping[str, str]) -> list[str]:
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        try:
            server = await ServerProcess.start(
                command, environment={**kept, **env}, cwd=Path(folder), stderr=log
            )
            try:
                return await _ask(server)
            finally:
                await server.stop()
        except ServerError as error:
            log.seek(0)
            said = log.read().decode("utf-8", "replace").strip().splitlines()
            last = f"\nIts last words: {one_line(said[-1], 300)}" if said else ""
            raise TrialError(f"{one_line(str(error), 300)}{last}") from error


async def _ask(server: ServerProcess) -> list[str]:
    client = Client(server)
    await client.open()
    try:
        async with asyncio.timeout(LIST_SECONDS):
            result = (await client.list_all("tools")).result
    except TimeoutError as error:
        raise ServerError(f"no list of tools within {LIST_SECONDS:g} s") from error
    except RequestError as error:
        raise ServerError(f"it lists no tools: {error}") from error
    return [one_line(str(tool.get("name"))) for tool in result["tools"]]
