"""A real PostgreSQL, with databases for tests."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic, sleep

import psycopg

from bridge.settings.database_url import database_url
from bridge.store.location import Team
from bridge.store.postgresql import PostgresqlDatabase
from tests.servers.certificates import Certificate
from tests.servers.ports import free_ports
from tests.servers.process import dismiss, guard

USER = "postgres"
OWNER = USER if os.geteuid() == 0 else None
"""Who runs the server where the tests are run by root, which it refuses."""
GROUPS: list[int] | None = [] if OWNER else None

PASSWORD = "of-the-tests-4711"
START_SECONDS = 90.0
LOOK_EVERY_SECONDS = 0.02

NUMBERS = count(1)


def missing_postgresql() -> str | None:
    """The program we cannot find, or None when all are there."""
    if _programs() is None:
        return "postgresql"
    return None if shutil.which("pgbouncer", path="/usr/sbin") else "pgbouncer"


def _programs() -> Path | None:
    """The folder with the programs of the server."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return programs[-1].parent if programs else None


@dataclass
class Postgresql:
    """A server with its data in a folder, to stop, kill and start again."""

    folder: Path
    port: int
    programs: Path
    options: Sequence[str] = ()
    _process: "subprocess.Popen[bytes] | None" = None
    _guard: "subprocess.Popen[bytes] | None" = None
    _names: Iterator[int] = field(default_factory=lambda: NUMBERS)

    def url(self, database: str = "postgres", user: str = USER, port: int | None = None) -> str:
        where = f"127.0.0.1:{port or self.port}/{database}"
        return f"postgresql://{user}:{PASSWORD}@{where}?sslmode=disable"

    def make(self) -> None:
        """Make the cluster, with a password and no care for a loss of power."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if OWNER:
            shutil.chown(self.folder, USER)
            shutil.chown(secret, USER)
        self._run(
            "initdb", "--no-sync", "--auth=scram-sha-256", f"--username={USER}", "--encoding=UTF8",
            "--locale=C.UTF-8", f"--pwfile={secret}", f"--pgdata={self.folder / 'data'}",
        )  # fmt: skip

    def secure(self, certificate: Certificate) -> None:
        """Offer TLS with this certificate from the next start on."""
        for name, file in (("chain", certificate.chain), ("key", certificate.key)):
            copy = shutil.copy(file, self.folder / name)
            Path(copy).chmod(0o600)
            if OWNER:
                shutil.chown(copy, USER)
        files = {"ssl_cert_file": "chain", "ssl_key_file": "key"}
        given = (f"--{name}={self.folder / file}" for name, file in files.items())
        self.options = ("--ssl=on", *given)

    def start(self) -> None:
        """Start it, and return when it serves; nothing happens if it runs already."""
        if self._process is not None:
            return
        with (self.folder / "output.log").open("ab") as output:
            self._process = subprocess.Popen(
                [
                    self.programs / "postgres", "-D", self.folder / "data", "-p", str(self.port),
                    "-h", "127.0.0.1", "-k", "", "-F", "-c", "shared_buffers=64MB", *self.options,
                ],
                stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd="/",
                start_new_session=True, user=OWNER, group=OWNER, extra_groups=GROUPS,
            )  # fmt: skip
        # The other processes of the server end when they see that this one is gone.
        self._guard = guard(self._process.pid)
        until = monotonic() + START_SECONDS
        while True:
            with suppress(psycopg.OperationalError), psycopg.connect(self.url()):
                return
            assert self._process.poll() is None, (self.folder / "output.log").read_text()
            assert monotonic() < until
            sleep(LOOK_EVERY_SECONDS)

    def kill(self) -> None:
        """End it without warning (SIGKILL), every process of it; its data is kept."""
        if self._process is not None:
            self._kill()
            self._process.wait()
            self._process = None
        if self._guard is not None:
            dismiss(self._guard)
            self._guard = None

    def _kill(self) -> None:
        assert self._process is not None
        # Each of its processes is a group of its own.
        command = ["pgrep", "-P", str(self._process.pid)]
        children = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        for pid in (self._process.pid, *map(int, children.split())):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def query(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description is not None else []

    def new(self) -> str:
        """Make an empty schema, which is made faster than a database; return its URL."""
        name = f"test{next(self._names)}"
        self.query(f"CREATE SCHEMA {name}")
        return f"{self.url()}&options=-csearch_path%3D{name}"

    def team(self, folder: Path, *, making: bool = True) -> Team:
        place = Team(database_url(self.new()), folder / "team.db", 10)
        if making:
            PostgresqlDatabase(place.url, making=True).close()
        return place

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self.programs / program, *arguments], check=True, capture_output=True, cwd="/",
            user=OWNER, group=OWNER, extra_groups=GROUPS,
        )  # fmt: skip


@contextmanager
def running_postgresql(folder: Path, certificate: Certificate) -> Iterator[Postgresql]:
    """A server that is up and serving, with TLS too; it is killed at the end."""
    programs = _programs()
    assert programs is not None
    (port,) = free_ports(1)
    server = Postgresql(folder, port, programs)
    server.make()
    server.secure(certificate)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def running_pgbouncer(server: Postgresql, schema: str) -> Iterator[str]:
    """PgBouncer in transaction mode before a schema, with two connections; yields the URL."""
    (port,) = free_ports(1)
    folder = Path(mkdtemp())  # the folders of pytest are closed to the user who runs it
    (folder / "users").write_text(f'"{USER}" "{PASSWORD}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"""
[databases]
pooled = host=127.0.0.1 port={server.port} dbname=postgres connect_query='SET search_path={schema}'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = plain
auth_file = {folder / "users"}
pool_mode = transaction
default_pool_size = 2
"""
    )
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None
    with (folder / "output.log").open("ab") as output:
        process = subprocess.Popen(
            [program, folder / "pgbouncer.ini"], stdout=output, stderr=output, cwd="/",
            start_new_session=True, user=OWNER, group=OWNER, extra_groups=GROUPS,
        )  # fmt: skip
    guarding = guard(process.pid)
    url = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/pooled?sslmode=disable"
    try:
        until = monotonic() + START_SECONDS
        while True:
            with suppress(psycopg.OperationalError), psycopg.connect(url):
                break
            assert monotonic() < until, (folder / "output.log").read_text()
            sleep(LOOK_EVERY_SECONDS)
        yield url
    finally:
        process.kill()
        process.wait()
        dismiss(guarding)
        shutil.rmtree(folder)
