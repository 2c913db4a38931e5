"""A real XMPP server as a child process: started, stopped, killed, and started again."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from tests.servers.certificates import Authority, Certificate
from tests.servers.greeting import presented_certificate
from tests.servers.newer import inside, version
from tests.servers.ports import free_ports
from tests.servers.server import Account, XmppServer

START_SECONDS = 90.0
"""Limit for a start; ejabberd needs up to 3 s on two idle cores, far more on busy ones."""
STOP_SECONDS = 60.0
"""Limit for an orderly stop, after which the server is killed."""
GREETING_SECONDS = 5.0
"""Limit for one answer while we look whether the server is up."""
LOOK_EVERY_SECONDS = 0.02
"""Pause between two looks; a wait for the process to die, which ends the start at once."""
ENDS_ROOMS = "ends-rooms"
"""A file in a server's directory, on which a server that is made for it ends its room service. It
deletes the file then."""
LAUNCH_ATTEMPTS = 5
"""How many sets of ports are tried before we give up."""

DOMAIN = "localhost"
MUC = "conference.localhost"
BOT = Account("bot", "bot-passes-4711", DOMAIN)
WITNESS = Account("witness", "witness-passes-0815", DOMAIN)
ROBOT = Account("robot", "robot-passes-2342", DOMAIN)


class ServerError(Exception):
    """A server did not do what it was told; the message ends with its own last words."""


class PortTakenError(ServerError):
    """Somebody else answers at the port, or the server died before it listened."""


@dataclass(frozen=True)
class Program:
    """How a server is run once its configuration lies in its directory."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    ready_file: Path | None = None
    """A file the server writes when its accounts exist, where that is later than it listens."""


Configure = Callable[[Path, XmppServer, Certificate], Program]
"""Writes a server's configuration into a directory of its own and says how to run it."""


class ServerProcess:
    """One server, with ports, accounts and data that outlive its process."""

    def __init__(
        self, server: XmppServer, certificate: Certificate, program: Program, directory: Path
    ) -> None:
        self.server = server
        self.directory = directory
        self.certificate = certificate
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Run the server and return when it serves; nothing happens if it runs already."""
        if self.running:
            return
        self._forget()
        if self._program.ready_file is not None:
            self._program.ready_file.unlink(missing_ok=True)
        with self._output.open("ab") as output:
            process = subprocess.Popen(
                inside(self._program.command),
                cwd=self.directory,
                env=os.environ | self._program.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._process = process
        self._guard = guard(process.pid)
        with ExitStack() as failing:
            failing.callback(self.kill)
            self._await_greeting(process)
            failing.pop_all()

    def stop(self) -> None:
        """Ask the server to end (SIGTERM) and return when it has."""
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        self._forget()

    def kill(self) -> None:
        """End the server without warning (SIGKILL); its connections are cut."""
        self._forget()

    async def end_rooms(self) -> None:
        """Let a server that is made for it end its room service, and serve all else."""
        cue = self.directory / ENDS_ROOMS
        cue.touch()
        async with asyncio.timeout(STOP_SECONDS):
            while cue.exists():  # noqa: ASYNC110 - another process deletes it
                await asyncio.sleep(LOOK_EVERY_SECONDS)

    def last_words(self) -> str:
        """The end of what the server wrote, for whoever must find out why it failed."""
        logs = [self._output, *sorted(self.directory.glob("*.log"))]
        return "\n".join(
            f"--- {log.name}\n{log.read_text(encoding='utf-8', errors='replace')[-4000:]}"
            for log in dict.fromkeys(logs)
            if log.exists()
        )

    @property
    def _output(self) -> Path:
        return self.directory / "output.log"

    def _await_greeting(self, process: subprocess.Popen[bytes]) -> None:
        deadline = monotonic() + START_SECONDS
        while not self._serves():
            if monotonic() > deadline:
                raise ServerError(
                    f"{self.server.name} is not up after {START_SECONDS:.0f} s\n{self.last_words()}"
                )
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(LOOK_EVERY_SECONDS)
                raise PortTakenError(
                    f"{self.server.name} ended with {code} instead of serving\n{self.last_words()}"
                )

    def _serves(self) -> bool:
        if self._program.ready_file is not None and not self._program.ready_file.exists():
            return False
        server = self.server
        for transport in server.transports:
            port = server.port(transport)
            try:
                presented = presented_certificate(
                    server.host, port, server.domain, transport, seconds=GREETING_SECONDS
                )
            except OSError:
                return False
            # Prosody runs on when it cannot bind; then another worker's server answers here.
            if presented != self.certificate.der:
                raise PortTakenError(f"another server than our {server.name} answers at {port}")
        return True

    def _forget(self) -> None:
        if self._process is not None:
            # The whole group: Erlang keeps small children beside its virtual machine.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        if self._guard is not None:
            dismiss(self._guard)
            self._guard = None


def guard(group: int) -> subprocess.Popen[bytes]:
    """A shell that kills the process group once we are gone, however we went.

    It waits for the end of a pipe that only we hold open. A test run that is itself killed, or an
    xdist worker that crashes, runs no fixture's end.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; kill -s KILL -- "-$1"', "guard", str(group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def dismiss(guard: subprocess.Popen[bytes]) -> None:
    """End a guard whose group has ended."""
    guard.kill()
    guard.wait()
    if guard.stdin is not None:
        guard.stdin.close()


@contextmanager
def running(
    name: str,
    configure: Configure,
    directory: Path,
    authority: Authority,
    certificate: Certificate | None = None,
) -> Iterator[ServerProcess]:
    """A server of this name, up and serving; killed at the end, since its data is thrown away.

    It has `certificate` in place of a good one from `authority`.
    """
    presented = certificate or authority.issue(DOMAIN, MUC)
    process = _launch(name, configure, directory, authority.ca_file, presented)
    try:
        yield process
    finally:
        process.kill()


def _launch(
    name: str,
    configure: Configure,
    directory: Path,
    ca_file: Path,
    certificate: Certificate,
) -> ServerProcess:
    for attempt in range(1, LAUNCH_ATTEMPTS + 1):
        starttls_port, direct_tls_port = free_ports(2)
        server = XmppServer(
            name=name,
            domain=DOMAIN,
            host="127.0.0.1",
            starttls_port=starttls_port,
            direct_tls_port=direct_tls_port,
            plaintext_port=None,
            ca_file=ca_file,
            muc=MUC,
            version=version(name),
            bot=BOT,
            witness=WITNESS,
            robot=ROBOT,
        )
        home = directory / f"{name}-{attempt}"
        home.mkdir(parents=True)
        process = ServerProcess(server, certificate, configure(home, server, certificate), home)
        try:
            process.start()
        except PortTakenError:
            if attempt == LAUNCH_ATTEMPTS:
                raise
        else:
            return process
    raise AssertionError("unreachable: the last attempt returns or raises")
