"""The URL of a team's database: what is taken of it, and what is shown."""

import pytest

from bridge.settings.database_url import DatabaseUrl, password_in, store
from bridge.settings.values import FlawError
from tests.settings.folders import Folders

PASSWORD = "s%3Acret-4711"
PLAIN = "s:cret-4711"


@pytest.mark.parametrize(
    ("url", "host", "sslmode", "warned"),
    [
        ("postgresql://bot:pw@db.example/x", "db.example", "verify-full", False),
        ("POSTGRES://db.example:5433/x?sslmode=verify-full", "db.example", "verify-full", False),
        ("postgresql://db.example/x?sslmode=require", "db.example", "require", True),
        ("postgresql://127.8.8.8/x", "127.8.8.8", None, False),
        ("postgresql://[::1]:99/x", "::1", None, False),
        ("postgresql:///x", None, None, False),
        ("postgresql://%2Frun%2Fpg/x", "/run/pg", None, False),
        ("postgresql:///x?host=db.example", "db.example", "verify-full", False),
        ("postgresql://localhost,db.example/x", "localhost,db.example", "verify-full", False),
        ("postgresql://localhost/x?hostaddr=192.0.2.1", "localhost", "verify-full", False),
        ("postgresql://127.0.0.1.example/x", "127.0.0.1.example", "verify-full", False),
    ],
)
def test_the_certificate_is_checked_unless_nobody_is_on_the_way(
    url: str, host: str | None, sslmode: str | None, warned: bool
) -> None:
    value = store(url)
    assert isinstance(value, DatabaseUrl)
    assert (value.parameters.get("host"), value.sslmode) == (host, sslmode)
    assert (value.warning is not None) is warned


@pytest.mark.parametrize(
    ("url", "variables", "checked"),
    [
        ("postgresql:///x", {"PGHOST": "db.example"}, True),
        ("postgresql:///x", {"PGHOST": "localhost"}, False),
        ("postgresql:///x", {"PGSERVICE": "team"}, True),
        ("postgresql://localhost/x", {"PGHOST": "db.example", "PGSERVICE": "team"}, False),
        ("postgresql://localhost/x", {"PGHOSTADDR": "192.0.2.1"}, True),
        ("postgresql:///x?service=team", {}, True),
        ("postgresql://", {"PGUSER": "team"}, False),
    ],
)
def test_what_libpq_takes_from_elsewhere_is_another_database_and_on_the_way(
    url: str, variables: dict[str, str], checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = [store(url).name for url in ("postgresql:///x", "postgresql://")]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    url_of_store = store(url)
    assert isinstance(url_of_store, DatabaseUrl)
    assert (url_of_store.sslmode == "verify-full") == checked
    assert url_of_store.name not in usual


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://bot:{PASSWORD}@db.example/x",
        f"postgresql://bot@db.example/x?password={PASSWORD}&sslpassword={PASSWORD}",
    ],
)
def test_the_password_is_shown_nowhere(url: str, folders: Folders) -> None:
    value = store(url)
    assert isinstance(value, DatabaseUrl)
    assert value.password is not None
    assert value.password.reveal() == password_in(url) == PLAIN
    configuration = folders.load({"BRIDGE_STORE": url, "MUC_ROOM": PLAIN})
    shown = configuration.in_effect["BRIDGE_STORE"].value
    assert shown.startswith("postgresql://bot@db.example/x")
    for text in (repr(value), str(value), shown, repr(configuration.problems)):
        assert "cret-4711" not in text


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bot:cret-4711/x",
        "postgresql://bot:cret-4711#2@db.example/x",
        "postgresql://bot:cret-4711@db.example:port/x",
        "mysql://bot:cret-4711@db.example/x",
        "postgresql:bot:cret-4711@db.example/x",
        "postgresql:/bot:cret-4711@db.example/x",
        "postgresql:///bot:cret-4711@db.example/x",
        "postgresql://bot:47/cret@db.example/x",
        "postgresql://bot:47?cret-4711=@db.example/x",
        "postgresql//bot:cret-4711@db.example/x",
        "//bot:cret-4711@db.example/x",
        "bot:cret-4711@db.example/x",
        '"postgresql://bot:cret-4711@db.example/x"',
        "jdbc:postgresql://bot:cret-4711@db.example/x",
        "host=db.example password = cret-4711 dbname=x",
    ],
)
def test_a_wrong_url_is_refused_and_not_shown(url: str, folders: Folders) -> None:
    with pytest.raises(FlawError):
        store(url)
    configuration = folders.load({"BRIDGE_STORE": url})
    (problem,) = (each for each in configuration.problems if each.variable == "BRIDGE_STORE")
    assert "cret" not in problem.message
    assert password_in(url) == ""
