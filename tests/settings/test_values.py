"""What the values mean."""

import pytest

from bridge.settings.table import Settings
from bridge.settings.values import Secret, Service
from tests.settings.folders import ACCOUNT, PASSWORD, Folders, settled, write


def test_three_variables_are_enough_and_all_else_has_its_default(folders: Folders) -> None:
    configuration = folders.load(ACCOUNT)
    assert settled(configuration) == Settings(
        username="bot",
        domain="example.org",
        password=Secret(PASSWORD),
        rooms=("room@conference.example.org",),
        nickname="McpDebug",
        service=None,
        room_password=None,
        tls_ca_file=None,
        tls_verify=True,
        allow_plaintext=False,
    )
    assert (configuration.problems, configuration.warnings) == ((), ())
    assert (configuration.env_file, configuration.trusted) == (None, True)
    assert configuration.in_effect.keys() == ACCOUNT.keys()
    unset = {
        "XMPP_DOMAIN": None,
        "XMPP_SERVICE": None,
        "MCP_BOT_NICKNAME": "McpDebug",
        "BOT_NICKNAME": "McpDebug",
        "MUC_PASSWORD": None,
        "XMPP_TLS_CA_FILE": None,
        "NODE_TLS_REJECT_UNAUTHORIZED": True,
        "XMPP_ALLOW_PLAINTEXT": False,
        "BRIDGE_READ_ONLY": False,
        "BRIDGE_CONFIRM_SEND": False,
        "BRIDGE_SEND_RATE": 60,
        "BRIDGE_HISTORY": 10_000,
        "BRIDGE_LOG_FILE": None,
        "BRIDGE_STORE": None,
        "BRIDGE_STORE_DAYS": 30,
        "BRIDGE_STORE_MB": 1024,
        "BRIDGE_STORE_STANZAS": False,
        "BRIDGE_TOOLSETS": (),
        "LLM_BASE_URL": None,
        "LLM_API_KEY": None,
        "LLM_MODEL": None,
        "OPEN_METEO_GEOCODING_URL": "https://geocoding-api.open-meteo.com/v1",
        "OPEN_METEO_FORECAST_URL": "https://api.open-meteo.com/v1",
        "LOG_LEVEL": "INFO",
        "TIA_ENV_PATH": None,
    }
    assert unset.items() <= configuration.loaded.items()


def test_every_variable_reaches_its_setting(folders: Folders) -> None:
    write(folders.here, "certificate", "ca.pem")
    configuration = folders.load(
        {
            "XMPP_SERVICE": " xmpps://xmpp.example.org ",
            "XMPP_DOMAIN": "Example.ORG.",
            "XMPP_USERNAME": " bot\t",
            "XMPP_PASSWORD": "  spaced out  ",
            "MUC_ROOM": "room@Conference.example.org",
            "MCP_BOT_NICKNAME": "Bug Hunter",
            "MUC_PASSWORD": "open sesame ",
            "XMPP_TLS_CA_FILE": "ca.pem",
            "NODE_TLS_REJECT_UNAUTHORIZED": "1",
            "XMPP_ALLOW_PLAINTEXT": "Yes",
            "BRIDGE_READ_ONLY": "on",
            "BRIDGE_CONFIRM_SEND": "true",
            "BRIDGE_SEND_RATE": "7",
            "BRIDGE_HISTORY": "500",
            "BRIDGE_LOG_FILE": "logs/log",
            "BRIDGE_STORE": "rooms.db",
            "BRIDGE_STORE_DAYS": "7",
            "BRIDGE_STORE_MB": "10",
            "BRIDGE_STORE_STANZAS": "1",
            "BRIDGE_TOOLSETS": "weather, llm,,weather",
            "LLM_BASE_URL": "https://llm.example.org/v1",
            "LLM_API_KEY": " sk-key\n",
            "LLM_MODEL": "small",
            "OPEN_METEO_GEOCODING_URL": "http://127.0.0.1:8080/geo",
            "OPEN_METEO_FORECAST_URL": "https://met.example.org",
            "LOG_LEVEL": "debug",
        }
    )
    assert settled(configuration) == Settings(
        username="bot",
        domain="example.org",
        password=Secret("  spaced out  "),
        rooms=("room@conference.example.org",),
        nickname="Bug Hunter",
        service=Service("xmpps", "xmpp.example.org", 5223),
        room_password=Secret("open sesame "),
        tls_ca_file=folders.here / "ca.pem",
        allow_plaintext=True,
    )
    assert sorted(one.partition(" ")[0] for one in configuration.warnings) == [
        "BRIDGE_CONFIRM_SEND",
        "BRIDGE_READ_ONLY",
        "BRIDGE_SEND_RATE",
    ]
    assert configuration.read_only
    assert configuration.confirm_send
    assert configuration.send_rate == 7
    assert configuration.history == 500
    assert configuration.store == folders.here / "rooms.db"
    assert configuration.store_days == 7
    assert configuration.store_mb == 10
    assert configuration.store_stanzas
    assert configuration.log_file == folders.here / "logs/log"
    assert configuration.toolsets == ("weather", "llm")
    assert configuration.llm_base_url == "https://llm.example.org/v1"
    assert configuration.llm_api_key == Secret("sk-key")
    assert configuration.llm_model == "small"
    assert configuration.geocoding_url == "http://127.0.0.1:8080/geo"
    assert configuration.forecast_url == "https://met.example.org"
    assert configuration.log_level == "DEBUG"


def test_the_jid_is_the_bare_one(folders: Folders) -> None:
    assert settled(folders.load(ACCOUNT)).jid == "bot@example.org"


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port", "canonical"),
    [
        ("xmpp://h.example", "xmpp", "h.example", 5222, "xmpp://h.example:5222"),
        ("xmpps://h.example", "xmpps", "h.example", 5223, "xmpps://h.example:5223"),
        ("XMPP://H.example:1", "xmpp", "h.example", 1, "xmpp://h.example:1"),
        ("xmpps://h.example:65535", "xmpps", "h.example", 65535, "xmpps://h.example:65535"),
        ("xmpp://127.0.0.1", "xmpp", "127.0.0.1", 5222, "xmpp://127.0.0.1:5222"),
        ("xmpp://[::1]", "xmpp", "::1", 5222, "xmpp://[::1]:5222"),
        ("xmpps://[2001:DB8::1]:99", "xmpps", "2001:db8::1", 99, "xmpps://[2001:db8::1]:99"),
        ("xmpp://xmpp_server", "xmpp", "xmpp_server", 5222, "xmpp://xmpp_server:5222"),
        ("xmpp://münchen.example", "xmpp", "münchen.example", 5222, "xmpp://münchen.example:5222"),
    ],
)
def test_a_service_is_read_and_written_back(
    folders: Folders, url: str, scheme: str, host: str, port: int, canonical: str
) -> None:
    service = settled(folders.load({**ACCOUNT, "XMPP_SERVICE": url})).service
    assert service is not None
    assert (service.scheme, service.host, service.port) == (scheme, host, port)
    assert service.direct_tls == (scheme == "xmpps")
    assert str(service) == canonical
    assert settled(folders.load({**ACCOUNT, "XMPP_SERVICE": canonical})).service == service


@pytest.mark.parametrize(
    ("environ", "domain", "warned"),
    [
        ({"XMPP_USERNAME": "bot@a.example"}, "a.example", False),
        ({"XMPP_USERNAME": "bot@A.example", "XMPP_DOMAIN": "a.EXAMPLE."}, "a.example", False),
        ({"XMPP_USERNAME": "bot", "XMPP_DOMAIN": "b.example"}, "b.example", False),
        ({"XMPP_USERNAME": "bot@a.example", "XMPP_SERVICE": "xmpp://c"}, "a.example", False),
        ({"XMPP_USERNAME": "bot", "XMPP_SERVICE": "xmpp://c.example"}, "c.example", False),
        ({"XMPP_USERNAME": "bot", "XMPP_SERVICE": "xmpp://127.0.0.1"}, "127.0.0.1", False),
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
        ({}, {}, "McpDebug"),
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


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        *((value, True) for value in ("1", "true", "YES", "On")),
        *((value, False) for value in ("0", "False", "no", "OFF", "")),
    ],
)
def test_a_switch_has_many_spellings(folders: Folders, value: str, meaning: bool) -> None:
    configuration = folders.load(
        {**ACCOUNT, "BRIDGE_READ_ONLY": value, "XMPP_ALLOW_PLAINTEXT": value}
    )
    assert settled(configuration).allow_plaintext is meaning
    assert configuration.read_only is meaning


def test_turning_certificate_checks_off_is_warned_about(folders: Folders) -> None:
    configuration = folders.load({**ACCOUNT, "NODE_TLS_REJECT_UNAUTHORIZED": "0"})
    assert settled(configuration).tls_verify is False
    assert "NODE_TLS_REJECT_UNAUTHORIZED" in configuration.warnings[0]
