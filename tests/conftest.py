"""Fixtures that every folder of tests may use: running servers."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from bridge.settings.table import VARIABLES
from bridge.store.location import Place
from tests.servers.certificates import Authority
from tests.servers.ejabberd import missing_ejabberd, running_ejabberd
from tests.servers.newer import SWITCH
from tests.servers.postgresql import Postgresql, missing_postgresql, running_postgresql
from tests.servers.process import ServerProcess
from tests.servers.prosody import missing_prosody, running_prosody
from tests.servers.sandbox import running_sandbox
from tests.servers.server import Endpoint, Transport, XmppServer
from tests.support.environments import with_source
from tests.support.prerequisites import do_without

# How fast the machine is that runs them is not what the property tests are about.
settings.register_profile(
    "patient", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
# For what another Python or another version of a library may do otherwise.
settings.register_profile("few", parent=settings.get_profile("patient"), max_examples=10)
settings.register_profile("long", parent=settings.get_profile("patient"), max_examples=1_000)
settings.load_profile("patient")

ENDPOINTS: tuple[tuple[str, Transport], ...] = (
    ("prosody", "starttls"),
    ("prosody", "direct"),
    ("ejabberd", "starttls"),
    ("ejabberd", "direct"),
    ("sandbox", "plaintext"),
)
"""Every server by every transport it offers."""
SERVERS = "sudo apt-get install prosody ejabberd"
SERVED = {
    *("prosody_process", "ejabberd_process", "server_process"),
    *("real_server", "xmpp_server", "endpoint"),
}
"""The fixtures that lead to Prosody or ejabberd."""

ROOT = Path(__file__).parent.parent

# A shell without job control starts `pytest &` with SIGINT ignored, and `nohup` with SIGHUP. What a
# test starts inherits that; the tests of both signals need them heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A handler is not inherited, so this run outlives its terminal all the same, and so do its workers.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or "PYTEST_XDIST_WORKER" in os.environ:
    signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_configure(config: pytest.Config) -> None:
    """Keep the settings of whoever runs the tests out of them.

    What is started here would read a `.env` beside the package, with the account that is in it.
    So where there is one, it is started from a copy of the package that has none beside it. It
    would read the user's own file, too, which is not where `XDG_CONFIG_HOME` says.

    Hundreds of processes are started. Where Python may not write bytecode, each of them compiles
    the whole bridge and slixmpp, which takes as long as the rest of its start.
    """
    for name in (*VARIABLES, "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
    sys.dont_write_bytecode = False
    if config.getoption("newer_servers"):
        os.environ[SWITCH] = "1"
    starts_workers = not hasattr(config, "workerinput") and config.getoption("numprocesses", None)
    if (ROOT / ".env").exists() and not starts_workers:
        folder = Path(tempfile.mkdtemp())
        config.add_cleanup(lambda: shutil.rmtree(folder))
        shutil.copytree(ROOT / "bridge", folder / "bridge")
        (folder / "tests").symlink_to(ROOT / "tests")
        sys.executable = str(with_source(folder / "environment", folder) / "python")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose what is played; soaks come first, since they mostly wait while others compute."""
    newer, elsewhere = list[pytest.Item](), list[pytest.Item]()
    chosen, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        is_long = item.get_closest_marker("long") is not None
        (chosen if is_long == config.getoption("long") else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = chosen
    for item in items:
        params = [*item.callspec.params.values()] if hasattr(item, "callspec") else []
        fixtures = {*getattr(item, "fixturenames", ())}
        if SERVED & fixtures:
            item.add_marker("servers")
        is_real = "sandbox" not in params and ENDPOINTS[-1] not in params
        is_served = item.get_closest_marker("servers") is not None and is_real
        (newer if is_served else elsewhere).append(item)
        if "postgresql" in fixtures or "postgresql" in params:
            item.add_marker("servers")
    if config.getoption("newer_servers"):
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = newer
    items.sort(key=lambda item: item.get_closest_marker("soak") is None)


def pytest_collection_finish() -> None:
    """Leave the tests themselves out of what is looked through for garbage.

    Half a million objects stay to the end: to look through them took a worker 10 s of 127.
    """
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that only these tests have."""
    parser.addoption(
        "--newer-servers",
        action="store_true",
        help="play the tests of Prosody and ejabberd, and no others, on those of Debian 13",
    )
    parser.addoption(
        "--long",
        action="store_true",
        help="play what is marked `long`, and no others",
    )
    parser.addoption(
        "--update-transcripts",
        action="store_true",
        help="write down what the replayed conversations really are; read the diff",
    )
    parser.addoption(
        "--update-screens",
        action="store_true",
        help="write down what the screens in tests/views/screens really show; read the diff",
    )


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that all servers' certificates come from, unless a test makes its own."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def server_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session's servers keep configuration, data and logs."""
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="session")
def prosody_process(authority: Authority, server_directory: Path) -> Iterator[ServerProcess]:
    """The session's Prosody, to stop, kill and start again."""
    if (program := missing_prosody()) is not None:
        do_without(f"{program} is not installed: {SERVERS}")
    with running_prosody(server_directory, authority) as process:
        yield process


@pytest.fixture(scope="session")
def ejabberd_process(authority: Authority, server_directory: Path) -> Iterator[ServerProcess]:
    """The session's ejabberd, to stop, kill and start again."""
    if (program := missing_ejabberd()) is not None:
        do_without(f"{program} is not installed: {SERVERS}")
    with running_ejabberd(server_directory, authority) as process:
        yield process


@pytest.fixture(scope="session")
def prosody(prosody_process: ServerProcess) -> XmppServer:
    return prosody_process.server


@pytest.fixture(scope="session")
def ejabberd(ejabberd_process: ServerProcess) -> XmppServer:
    return ejabberd_process.server


@pytest.fixture(scope="session")
def sandbox() -> Iterator[XmppServer]:
    with running_sandbox() as server:
        yield server


@pytest.fixture(params=["prosody", "ejabberd"])
def server_process(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    """Each real server in turn, to be killed and started again; up again after the test."""
    process: ServerProcess = request.getfixturevalue(f"{request.param}_process")
    yield process
    process.start()


@pytest.fixture(params=["prosody", "ejabberd"])
def real_server(request: pytest.FixtureRequest) -> XmppServer:
    """Each server of those in the field: they do all of XEP-0045, and TLS."""
    server: XmppServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture(params=["prosody", "ejabberd", "sandbox"])
def xmpp_server(request: pytest.FixtureRequest) -> XmppServer:
    server: XmppServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture(params=ENDPOINTS, ids="-".join)
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    """Each server in turn by each transport it offers."""
    name, transport = request.param
    return Endpoint(request.getfixturevalue(name), transport)


@pytest.fixture(scope="session")
def postgresql(authority: Authority) -> Iterator[Postgresql]:
    if (program := missing_postgresql()) is not None:
        do_without(f"{program} is not installed: sudo apt-get install postgresql pgbouncer")
    # The folders of pytest are closed to the user who runs the server.
    certificate = authority.issue("db.example")
    with (
        tempfile.TemporaryDirectory() as folder,
        running_postgresql(Path(folder), certificate) as server,
    ):
        yield server


def a_place(request: pytest.FixtureRequest, folder: Path) -> Place:
    """A place for a store of the kind that is the parameter of the fixture; without one, a file."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return folder / "rooms.db"
    server: Postgresql = request.getfixturevalue("postgresql")
    return server.team(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for a store, of each kind in turn."""
    return a_place(request, tmp_path)
