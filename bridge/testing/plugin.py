"""The pytest plugin, active when the package is installed: fixtures, and what a failure reports.

The rest of the bridge is imported when a test first uses it, so that other runs of pytest stay
fast.
"""

import warnings
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

SERVER = pytest.StashKey[Any]()
"""The key of the session's `FixtureServer`, which is made when it is needed."""


UNSET = 'The configuration option "asyncio_default_fixture_loop_scope" is unset'
"""How pytest-asyncio begins a warning where pytest has no settings. Our fixtures work with any
scope."""

OPTIONS = {
    "--xmpp-env-file": "settings (.env) of a real server to use in place of the sandbox",
    "--xmpp-bot-env-file": "settings with the account of the bot under test, if it is another one",
    "--xmpp-report": "a file for the page of the tests, or with .json at the end for its data",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for a real server."""
    group = parser.getgroup("xmpp", "tests of XMPP bots (xmpp-debug-bridge)")
    for option, what in OPTIONS.items():
        group.addoption(option, type=Path, metavar="PATH", help=what)
    help_ = "on the page of --xmpp-report, replace names, and messages by their length"
    group.addoption("--xmpp-pseudonyms", action="store_true", help=help_)


@pytest.hookimpl(tryfirst=True)  # before pytest-asyncio gives its warning
def pytest_configure(config: pytest.Config) -> None:
    """Read the settings files that the options name, to report errors once and at the start."""
    warnings.filterwarnings("ignore", UNSET, pytest.PytestDeprecationWarning)
    if config.getoption("xmpp_env_file") or config.getoption("xmpp_bot_env_file"):
        _server(config)
    if config.getoption("xmpp_pseudonyms") and config.getoption("xmpp_report") is None:
        raise pytest.UsageError("--pseudonyms is for the page that --report writes; name its file")
    # With `-n`, the process that starts the others writes the page.
    path = config.getoption("xmpp_report")
    if path is not None and not hasattr(config, "workerinput"):
        # Imported here, as the server is.
        from bridge.testing.report import PageReport

        pseudonyms = config.getoption("xmpp_pseudonyms")
        config.pluginmanager.register(PageReport(path, pseudonyms=pseudonyms))


def _server(config: pytest.Config) -> Any:
    """Return the `FixtureServer` of this session; typed `Any`, since its class is imported late."""
    if SERVER not in config.stash:
        # Imported here, since every run of pytest loads this plugin.
        from bridge.testing.server import FixtureServer

        files = (config.getoption("xmpp_env_file"), config.getoption("xmpp_bot_env_file"))
        config.stash[SERVER] = FixtureServer(*files)
    return config.stash[SERVER]


@pytest.fixture(scope="session")
def xmpp_server(pytestconfig: pytest.Config) -> Iterator[Any]:
    """The XMPP server: the sandbox, or the real one that --xmpp-env-file names."""
    with _server(pytestconfig) as server:
        yield server


@pytest.fixture
def xmpp_room(xmpp_server: Any) -> str:
    """The bare JID of the room of the test, its actors and its bot; each test has a new room."""
    return str(xmpp_server.room)


@pytest.fixture
def xmpp_actor(xmpp_server: Any) -> Any:
    """Makes the actor of a nickname, for async tests: await it, and the actor is in the room."""
    return xmpp_server.actor


@pytest.fixture
def xmpp_actor_sync(xmpp_server: Any) -> Any:
    """Makes the actor of a nickname, for plain tests: the actor is in the room on return."""
    return xmpp_server.actor_sync


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failure what an actor saw; end what the test began on the server.

    A report may quote what the bot wrote, so every part of it is masked: it must not show the bot's
    password. A password as short as a word is not masked. Hidden characters are escaped: pytest
    would show them as they are where two texts differ.
    """
    report = yield
    if (server := item.config.stash.get(SERVER, None)) is None:
        return report
    if call.excinfo is not None and report.failed:
        # A scenario handles the actor's error, and raises one of its own.
        error = call.excinfo.value.__context__ or call.excinfo.value
        report.sections += server.report(getattr(error, "nickname", None))
    if item.config.getoption("xmpp_report") and (call.when == "call" or report.failed):
        setattr(report, "xmpp_played", server.played())  # noqa: B010 - `-n` hands it on
    for name in ("sections", "longrepr", "user_properties", "wasxfail", "xmpp_played"):
        if hasattr(report, name):
            setattr(report, name, masked(getattr(report, name), server.clean))
    if not isinstance(report.longrepr, str | tuple | None):
        text = report.longreprtext
        report.longrepr = clean if (clean := server.clean(text)) != text else report.longrepr
    if call.when == "teardown":  # the test's own fixtures have ended
        server.end_test()
    return report


def masked(part: Any, mask: Callable[[str], str]) -> Any:
    """Return the texts in a part of a report without secrets, and all else as it is."""
    if isinstance(part, str):
        return mask(part)
    if type(part) in {list, tuple}:
        return type(part)(masked(item, mask) for item in part)
    return part


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a scenario file."""
    if not file_path.name.endswith(".room.toml"):
        return None
    # Imported here, as the server is.
    from bridge.testing.collector import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)
