"""The bridge, which adds to each of its first answers a line that names what was imported."""

import json
import sys

compiled: list[str] = []


def note(event: str, given: tuple[object, ...]) -> None:
    """Keep what is compiled out of a text that is no file."""
    if event == "compile" and str(given[1]).startswith("<"):
        compiled.append(str(given[0]))


sys.addaudithook(note)

from bridge.cli import main  # noqa: E402 - what importing it compiles counts
from bridge.mcp.stdio import Stdio  # noqa: E402

write = Stdio.write


def telling(self: Stdio, data: bytes) -> None:
    write(self, data)
    for asked in ("hello", "list"):
        if f'"id":"{asked}"'.encode() in data:
            told = {"jsonrpc": "2.0", "id": f"modules of {asked}", "result": imported()}
            write(self, json.dumps(told).encode() + b"\n")


def imported() -> dict[str, list[str]]:
    """The modules, the dataclasses that ours have made, and the texts that were compiled."""
    modules = dict(sys.modules)
    classes = {
        f"{one.__module__}.{one.__qualname__}"
        for name, module in modules.items()
        if name.startswith("bridge")
        for one in vars(module).values()
        if isinstance(one, type) and "__dataclass_fields__" in vars(one)
    }
    return {"modules": sorted(modules), "dataclasses": sorted(classes), "compiled": compiled}


Stdio.write = telling  # type: ignore[method-assign]
sys.exit(main())
