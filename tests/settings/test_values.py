from pathlib import Path

import pytest

from bridge.settings.table import VARIABLES, Configuration, Settings
from bridge.settings.values import Secret, Service
from tests.settings.folders import ACCOUNT, PASSWORD, Folders, settled, write

GEO = "https://geocoding-api.open-meteo.com/v1"
MET = "https://api.open-meteo.com/v1"
ELSEWHERE = ("XMPP_DOMAIN", "BOT_NICKNAME", "TIA_ENV_PATH")
"""What has a test of its own: where the domain, the nickname and a file come from."""
NEEDED = [
    ("XMPP_USERNAME", " bot\t", "username", "bot"),
    ("XMPP_PASSWORD", "  spaced out  ", "password", Secret("  spaced out  ")),
    ("MUC_ROOM", "r@Conference.example", "rooms", ("r@conference.example",)),
]
"""Each variable that is needed, what may stand in it, the setting that it is, and its value."""
OPTIONAL: list[tuple[str, str, str, object, object]] = [
    ("XMPP_SERVICE", " xmpps://h.example ", "service", Service("xmpps", "h.example", 5223), None),
    ("MCP_BOT_NICKNAME", "Bug Hunter", "nickname", "Bug Hunter", "McpDebug"),
    ("MUC_PASSWORD", "open sesame ", "room_password", Secret("open sesame "), None),
    ("XMPP_TLS_CA_FILE", "ca.pem", "tls_ca_file", Path("ca.pem"), None),
    ("NODE_TLS_REJECT_UNAUTHORIZED", "1", "tls_verify", True, True),
    ("XMPP_ALLOW_PLAINTEXT", "Yes", "allow_plaintext", True, False),
    ("BRIDGE_READ_ONLY", "on", "read_only", True, False),
    ("BRIDGE_CONFIRM_SEND", "true", "confirm_send", True, False),
    ("BRIDGE_SEND_RATE", "7", "send_rate", 7, 60),
    ("BRIDGE_HISTORY", "500", "history", 500, 10_000),
    (
        "BRIDGE_BOT_LOGS",
        "R2=/a.log, D=2=/b",
        "bot_logs",
        {"R2": Path("/a.log"), "D=2": Path("/b")},
        {},
    ),
    ("BRIDGE_LOG_FILE", "logs/log", "log_file", Path("logs/log"), None),
    ("BRIDGE_STORE", "rooms.db", "store", Path("rooms.db"), None),
    ("BRIDGE_STORE_DAYS", "7", "store_days", 7, 30),
    ("BRIDGE_STORE_MB", "10", "store_mb", 10, 1024),
    ("BRIDGE_STORE_STANZAS", "1", "store_stanzas", True, None),
    ("BRIDGE_TOOLS", "echo, xmppStatus,", "tools", ("echo", "xmppStatus"), ()),
    ("BRIDGE_TOOLSETS", "weather, llm,,weather", "toolsets", ("weather", "llm"), ()),
    ("LLM_BASE_URL", "https://l.example/v1", "llm_base_url", "https://l.example/v1", None),
    ("LLM_API_KEY", " sk-key\n", "llm_api_key", Secret("sk-key"), None),
    ("LLM_MODEL", "small", "llm_model", "small", None),
    ("OPEN_METEO_GEOCODING_URL", "http://[::1]:8/g", "geocoding_url", "http://[::1]:8/g", GEO),
    ("OPEN_METEO_FORECAST_URL", "https://met.example", "forecast_url", "https://met.example", MET),
    ("LOG_LEVEL", "debug", "log_level", "DEBUG", "INFO"),
]


def _value(configuration: Configuration, name: str) -> object:
    of_the_participant = name in Settings._fields
    return getattr(settled(configuration) if of_the_participant else configuration, name)


def test_three_variables_are_enough_and_all_else_has_its_default(folders: Folders) -> None:
    configuration = folders.load(ACCOUNT)
    settings = settled(configuration)
    assert (settings.jid, settings.password) == ("bot@example.org", Secret(PASSWORD))
    assert settings.rooms == ("room@conference.example.org",)
    assert (configuration.problems, configuration.warnings) == ((), ())
    assert (configuration.env_file, configuration.trusted) == (None, True)
    assert configuration.in_effect.keys() == ACCOUNT.keys()
    defaults = {name: default for _, _, name, _, default in OPTIONAL}
    assert {name: _value(configuration, name) for name in defaults} == defaults


def test_every_variable_reaches_its_setting(folders: Folders) -> None:
    write(folders.here, "certificate", "ca.pem")
    rows = [*NEEDED, *(row[:4] for row in OPTIONAL)]
    assert {*VARIABLES} == {row[0] for row in rows} | {*ELSEWHERE}
    environ = {variable: written for variable, written, _, _ in rows}
    configuration = folders.load(environ | {"XMPP_DOMAIN": "Example.ORG."})
    for variable, _, name, meant in rows:
        expected = folders.here / meant if isinstance(meant, Path) else meant
        assert _value(configuration, name) == expected, variable
    assert settled(configuration).domain == "example.org"
    assert sorted(each.partition(" ")[0] for each in configuration.warnings) == [
        "BRIDGE_CONFIRM_SEND",
        "BRIDGE_READ_ONLY",
        "BRIDGE_SEND_RATE",
    ]


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("xmpps://h.example", "xmpps://h.example:5223"),
        ("XMPP://H.example:1", "xmpp://h.example:1"),
        ("xmpps://h.example:65535", "xmpps://h.example:65535"),
        ("xmpp://127.0.0.1", "xmpp://127.0.0.1:5222"),
        ("xmpps://[2001:DB8::]:99", "xmpps://[2001:db8::]:99"),
        ("xmpp://xmpp_server", "xmpp://xmpp_server:5222"),
        ("xmpp://münchen.example", "xmpp://münchen.example:5222"),
    ],
)
def test_a_service_is_read_and_written_back(folders: Folders, url: str, canonical: str) -> None:
    service = settled(folders.load({**ACCOUNT, "XMPP_SERVICE": url})).service
    assert service is not None
    assert str(service) == canonical
    assert service.direct_tls == canonical.startswith("xmpps:")
    assert settled(folders.load({**ACCOUNT, "XMPP_SERVICE": canonical})).service == service


@pytest.mark.parametrize(
    ("environ", "domain", "warned"),
    [
        ({"XMPP_USERNAME": "bot@a.example"}, "a.example", False),
        ({"XMPP_USERNAME": "bot@A.example", "XMPP_DOMAIN": "a.EXAMPLE."}, "a.example", False),
        ({"XMPP_USERNAME": "bot", "XMPP_DOMAIN": "b.example"}, "b.example", False),
        ({"XMPP_USERNAME": "bot@a.example", "XMPP_SERVICE": "xmpp://c"}, "a.example", False),
        ({"XMPP_USERNAME": "bot", "XMPP_SERVICE": "xmpp://c.example"}, "c.example", False),
        ({"XMPP_USERNAME": "bot", "XMPP_SERVICE": "xmpp://[::1]:1"}, "[::1]", False),
        ({"XMPP_USERNAME": "bot", "XMPP_DOMAIN": "[::1]"}, "[::1]", False),
        ({"XMPP_USERNAME": "bot@a.example/phone"}, "a.example", True),
    ],
)
def test_the_domain_comes_from_the_account_then_from_the_service(
    folders: Folders, environ: dict[str, str], domain: str, warned: bool
) -> None:
    configuration = folders.load({**ACCOUNT, **environ})
    assert settled(configuration).domain == domain
    assert settled(configuration).username == "bot"
    assert bool(configuration.warnings) == warned


@pytest.mark.parametrize(
    ("in_file", "in_environment", "nickname"),
    [
        ({}, {"BOT_NICKNAME": "B"}, "B"),
        ({"MCP_BOT_NICKNAME": "M"}, {"BOT_NICKNAME": "B"}, "M"),
        ({"BOT_NICKNAME": "B"}, {"MCP_BOT_NICKNAME": "M"}, "M"),
        ({"BOT_NICKNAME": "B"}, {"MCP_BOT_NICKNAME": " "}, "B"),
        ({}, {"MCP_BOT_NICKNAME": "👩\u200d🚀"}, "👩\u200d🚀"),
    ],
)
def test_the_nickname_of_this_bridge_goes_before_the_general_one(
    folders: Folders, in_file: dict[str, str], in_environment: dict[str, str], nickname: str
) -> None:
    write(folders.package, ACCOUNT | in_file)
    assert settled(folders.load(in_environment)).nickname == nickname


def test_a_switch_has_many_spellings(folders: Folders) -> None:
    for meaning, values in ((True, "1 true YES On"), (False, "0 False no OFF ")):
        for value in values.split(" "):
            switches = {"BRIDGE_READ_ONLY": value, "XMPP_ALLOW_PLAINTEXT": value}
            configuration = folders.load(ACCOUNT | switches)
            assert settled(configuration).allow_plaintext is configuration.read_only is meaning


def test_turning_certificate_checks_off_is_warned_about(folders: Folders) -> None:
    configuration = folders.load({**ACCOUNT, "NODE_TLS_REJECT_UNAUTHORIZED": "0"})
    assert settled(configuration).tls_verify is False
    assert "NODE_TLS_REJECT_UNAUTHORIZED" in configuration.warnings[0]
