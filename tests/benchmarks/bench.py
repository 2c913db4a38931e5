"""What every measure works with: the contenders' commands, a running Prosody, and how often."""

import json
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.benchmarks.figures import Series
from tests.benchmarks.hall import Hall
from tests.benchmarks.peer import Peer
from tests.servers.certificates import Authority
from tests.servers.postgresql import Postgresql, running_postgresql
from tests.servers.prosody import running_prosody
from tests.servers.server import XmppServer

ROOT = Path(__file__).parents[2]
RIVALS = Path(__file__).parent / "rivals"


@dataclass(frozen=True)
class Environments:
    """The Pythons that the contenders run on."""

    bridge: Path
    rivals: Path


class Bench(ExitStack):
    """The contenders, and the servers that they meet at, from `with` to its end."""

    def __init__(self, environments: Environments, pairs: int) -> None:
        super().__init__()
        self.environments = environments
        self.pairs = pairs
        """How many times each contender runs, after a run that warms up."""

    @cached_property
    def prosody(self) -> XmppServer:
        folder = Path(self.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        authority = Authority(folder / "authority")
        return self.enter_context(running_prosody(folder / "prosody", authority)).server

    @cached_property
    def hall(self) -> Hall:
        """The room that talks faster than a server can."""
        return self.enter_context(Hall())

    @cached_property
    def folder(self) -> Path:
        return Path(self.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))

    @cached_property
    def postgresql(self) -> Postgresql:
        """A server that does not wait for the disk."""
        certificate = Authority(self.folder / "database").issue("db.example")
        # Its user is another one than ours.
        folder = Path(self.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        return self.enter_context(running_postgresql(folder, certificate))

    def bridge(self, settings: Mapping[str, str]) -> Peer:
        return Peer([str(self.environments.bridge.parent / "xmpp-bridge")], settings)

    def participant(self, settings: Mapping[str, str]) -> Peer:
        return Peer([str(self.environments.bridge), str(RIVALS / "participant.py")], settings)

    def series(self, module: str) -> tuple[Series, ...]:
        """What a module measures in a process of its own, and prints as JSON."""
        command = [str(self.environments.bridge), "-m", module, str(self.pairs)]
        ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
        return tuple(
            Series(contender, what, unit, tuple(values))
            for contender, what, unit, values in json.loads(ran.stdout)
        )

    def answering(self, rival: str) -> Peer:
        """A process that answers lines, by the name that tables have for it."""
        environments = self.environments
        python = environments.rivals if rival == SDK else environments.bridge
        return Peer([str(python), str(RIVALS / SCRIPTS[rival])])


BRIDGE = "xmpp-bridge"
FLOOR = "bare asyncio process"
LOOP = "bare loop"
TASKS = "bare asyncio loop"
SDK = "MCP SDK, low level"
PARTICIPANT = "bare slixmpp"
"""The names that tables have for them."""
SCRIPTS = {FLOOR: "floor.py", LOOP: "loop.py", TASKS: "tasks.py", SDK: "sdk.py"}
