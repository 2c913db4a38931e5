"""Lines from a pipe, a file, or a terminal that edits them itself."""

import sys
from collections.abc import AsyncIterator

from bridge.mcp.stdio import read_chunks


async def stdin_lines() -> AsyncIterator[str]:
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
