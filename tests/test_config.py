import copy
import dataclasses
import json
import os
import pickle
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.config import (
    FORECAST_URL,
    GEOCODING_URL,
    HISTORIES,
    SEND_RATES,
    VARIABLES,
    Candidate,
    ConfigError,
    Configuration,
    Problem,
    Secret,
    Service,
    Settings,
    load,
)
from bridge.environment import (
    MAX_BLANKS,
    MAX_FILE_BYTES,
    MAX_LINES_NAMED,
    MAX_SHOWN,
    MIN_MASKED,
)
from bridge.values import MAX_JID_PART_BYTES

REPOSITORY = Path(__file__).resolve().parent.parent
PASSWORD = "correct-horse-battery"
ACCOUNT = {
    "XMPP_USERNAME": "bot@example.org",
    "XMPP_PASSWORD": PASSWORD,
    "MUC_ROOM": "room@conference.example.org",
}
REQUIRED = {"XMPP_USERNAME", "XMPP_PASSWORD", "MUC_ROOM"}
USED = "used"
MISSING = "missing"
SAYS_NOTHING = "sets none of our variables"
NOT_NEEDED = "not needed, an earlier one was used"
UNREADABLE = "unreadable or not UTF-8"


class Folders:
    """Three places for a `.env`: where the agent starts, beside the package, and elsewhere."""

    def __init__(self, root: Path) -> None:
        self.here, self.package, self.elsewhere = (
            root / name for name in ("here", "package", "elsewhere")
        )
        for folder in (self.here, self.package, self.elsewhere):
            folder.mkdir()

    def load(self, environ: dict[str, str], env_file: Path | None = None) -> Configuration:
        return load(environ, cwd=self.here, package_root=self.package, env_file=env_file)

    def reasons(self, environ: dict[str, str]) -> list[str]:
        return [candidate.reason for candidate in self.load(environ).candidates]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def written(values: dict[str, str]) -> str:
    return "".join(f"{name}='{value}'\n" for name, value in values.items())


def write(folder: Path, values: dict[str, str] | str | bytes, name: str = ".env") -> Path:
    path = folder / name
    text = written(values) if isinstance(values, dict) else values
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def settled(configuration: Configuration) -> Settings:
    assert configuration.problems == ()
    assert configuration.settings is not None
    return configuration.settings


def about(configuration: Configuration, variable: str) -> str:
    (problem,) = (p for p in configuration.problems if p.variable == variable)
    return str(problem)


# --- What the values mean -------------------------------------------------------------------------


def test_three_variables_are_enough_and_all_else_has_its_default(folders: Folders) -> None:
    configuration = folders.load(ACCOUNT)
    assert settled(configuration) == Settings(
        username="bot",
        domain="example.org",
        password=Secret(PASSWORD),
        room="room@conference.example.org",
        nickname="McpDebug",
        service=None,
        room_password=None,
        tls_ca_file=None,
        tls_verify=True,
        allow_plaintext=False,
    )
    assert configuration == Configuration(
        settings=configuration.settings,
        problems=(),
        warnings=(),
        env_file=None,
        candidates=configuration.candidates,
        read_only=False,
        send_rate=60,
        history=10_000,
        traffic_log=None,
        toolsets=(),
        llm_base_url=None,
        llm_api_key=None,
        llm_model=None,
        geocoding_url="https://geocoding-api.open-meteo.com/v1",
        forecast_url="https://api.open-meteo.com/v1",
        log_level="INFO",
    )


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
            "BRIDGE_SEND_RATE": "7",
            "BRIDGE_HISTORY": "500",
            "BRIDGE_TRAFFIC_LOG": "logs/room.jsonl",
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
        room="room@conference.example.org",
        nickname="Bug Hunter",
        service=Service("xmpps", "xmpp.example.org", 5223),
        room_password=Secret("open sesame "),
        tls_ca_file=folders.here / "ca.pem",
        allow_plaintext=True,
    )
    assert configuration.warnings == ()
    assert configuration.read_only
    assert configuration.send_rate == 7
    assert configuration.history == 500
    assert configuration.traffic_log == folders.here / "logs/room.jsonl"
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
        ({"XMPP_USERNAME": "bot", "XMPP_SERVICE": "xmpp://127.0.0.1"}, "127.0.0.1", True),
        ({"XMPP_USERNAME": "bot", "XMPP_SERVICE": "xmpp://[::1]:1"}, "[::1]", True),
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


# --- What is wrong with them ----------------------------------------------------------------------

WRONG = [
    ("XMPP_SERVICE", "chat.example.org", "no scheme; xmpp://chat.example.org would be right"),
    ("XMPP_SERVICE", "localhost:5222", "no scheme; xmpp://localhost:5222 would be right"),
    ("XMPP_SERVICE", "localhost:5223", "no scheme; xmpps://localhost:5223 would be right"),
    ("XMPP_SERVICE", "xmpp:host", "no scheme; xmpp://host[:port]"),
    ("XMPP_SERVICE", "https://example.org/http-bind", "neither BOSH nor WebSocket"),
    ("XMPP_SERVICE", "wss://example.org", "xmpps://host[:port]"),
    ("XMPP_SERVICE", "xmpp://", "names no host"),
    ("XMPP_SERVICE", "xmpp://:5222", "names no host"),
    ("XMPP_SERVICE", "xmpp://host:", "1 to 65535"),
    ("XMPP_SERVICE", "xmpp://host:0", "1 to 65535"),
    ("XMPP_SERVICE", "xmpp://host:65536", "1 to 65535"),
    ("XMPP_SERVICE", "xmpp://host:http", "1 to 65535"),
    ("XMPP_SERVICE", "xmpp://host:\u0665", "1 to 65535"),
    ("XMPP_SERVICE", "xmpp://host/path", "goes on after host and port"),
    ("XMPP_SERVICE", "xmpp://host?x", "goes on after host and port"),
    ("XMPP_SERVICE", "xmpp://::1", "xmpp://[::1]:5222 would be right"),
    ("XMPP_SERVICE", "xmpp://a:b:c", "not a host with a port"),
    ("XMPP_SERVICE", "xmpp://[127.0.0.1]", "no IPv6 address"),
    ("XMPP_SERVICE", "xmpp://[]", "no IPv6 address"),
    ("XMPP_SERVICE", "xmpp://bot@host", "XMPP_USERNAME"),
    ("XMPP_SERVICE", "xmpp://ho st", "letters, digits and dots"),
    ("XMPP_DOMAIN", "other.example", "XMPP_USERNAME is a JID of 'example.org'"),
    ("XMPP_DOMAIN", "xmpp://example.org", "letters, digits and dots"),
    ("XMPP_DOMAIN", "a..b", "letters, digits and dots"),
    ("XMPP_DOMAIN", "a..", "letters, digits and dots"),
    ("XMPP_DOMAIN", ".a", "letters, digits and dots"),
    ("XMPP_DOMAIN", ".", "domain is empty"),
    ("XMPP_USERNAME", "bo t@example.org", "must not have ' '"),
    ("XMPP_USERNAME", "bo\u200bt@example.org", r"must not have '\u200b'"),
    ("XMPP_USERNAME", "bo/t", "must not have '/'"),
    ("XMPP_USERNAME", "@example.org", "local part is empty"),
    ("XMPP_USERNAME", "bot@", "domain is empty"),
    ("XMPP_USERNAME", "a@b@c", "letters, digits and dots"),
    ("XMPP_PASSWORD", "secret\x00word", "control character"),
    ("MUC_PASSWORD", "secret\nword", "control character"),
    ("MUC_PASSWORD", "secret\udc80", "broken UTF-8"),
    ("MUC_ROOM", "room", "room@conference.example.org"),
    ("MUC_ROOM", "conference.example.org", "room@conference.example.org"),
    ("MUC_ROOM", "room@conference.example.org/Nick", "MCP_BOT_NICKNAME"),
    ("MUC_ROOM", "ro om@conference.example.org", "must not have ' '"),
    ("MUC_ROOM", "room@conf erence", "letters, digits and dots"),
    ("MUC_ROOM", "xmpp:room@conference.example.org?join", "a URI"),
    ("MCP_BOT_NICKNAME", "Mcp\nDebug", r"must not have '\n'"),
    ("BOT_NICKNAME", "Mcp\u202eDebug", r"must not have '\u202e'"),
    ("XMPP_TLS_CA_FILE", "nowhere.pem", "(missing)"),
    ("XMPP_TLS_CA_FILE", ".", "(a directory)"),
    ("XMPP_TLS_CA_FILE", "/dev/zero", "(not a regular file)"),
    ("XMPP_TLS_CA_FILE", "a\nb", "control characters"),
    ("NODE_TLS_REJECT_UNAUTHORIZED", "false", "1 (certificates are checked)"),
    ("XMPP_ALLOW_PLAINTEXT", "maybe", "1 or 0"),
    ("BRIDGE_READ_ONLY", "2", "1 or 0"),
    ("BRIDGE_SEND_RATE", "6e1", "from 1 to 6000"),
    ("BRIDGE_SEND_RATE", "-5", "from 1 to 6000"),
    ("BRIDGE_SEND_RATE", "9" * 5000, "from 1 to 6000"),
    ("BRIDGE_HISTORY", "many", "from 100 to 1000000"),
    ("BRIDGE_TRAFFIC_LOG", "a\x00b", "control characters"),
    ("LLM_BASE_URL", "llm.example.org", "https://llm.example.org/v1"),
    ("LLM_BASE_URL", "https://llm.example.org/v1?key=k", "without credentials or query"),
    ("LLM_API_KEY", "two words", "the key alone"),
    ("LLM_MODEL", "mo\u200bdel", "invisible"),
    ("OPEN_METEO_GEOCODING_URL", "geo.example.org", "https://api.example.org/v1"),
    ("OPEN_METEO_FORECAST_URL", "https://met.example.org/?q=1", "without credentials or query"),
    ("LOG_LEVEL", "verbose", "DEBUG, INFO, WARNING, ERROR, CRITICAL"),
]
SECRET_VARIABLES = ("XMPP_PASSWORD", "MUC_PASSWORD", "LLM_API_KEY")
NO_MATTER_OF_THE_PARTICIPANT = re.compile("BRIDGE_|LLM_|OPEN_METEO_|LOG_LEVEL")


@pytest.mark.parametrize(("variable", "value", "advice"), WRONG)
def test_a_wrong_value_is_named_with_what_would_be_right(
    folders: Folders, variable: str, value: str, advice: str
) -> None:
    configuration = folders.load({**ACCOUNT, variable: value})
    (problem,) = configuration.problems
    assert str(problem).startswith(f"{variable} ")
    assert advice in str(problem)
    assert "would be right" in str(problem)
    assert str(problem).isprintable()
    if variable in SECRET_VARIABLES:
        assert value not in str(problem)
    participates = not NO_MATTER_OF_THE_PARTICIPANT.match(variable)
    assert (configuration.settings is None) == participates


@pytest.mark.parametrize("character", list("\"&'/:<>@ \t\n\x7f"))
def test_characters_forbidden_in_a_local_part_are_refused_in_the_room_too(
    folders: Folders, character: str
) -> None:
    room = f"r{character}m@conference.example.org"
    assert folders.load({**ACCOUNT, "MUC_ROOM": room}).settings is None
    if character != "@":
        name = f"b{character}t"
        environ = {**ACCOUNT, "XMPP_DOMAIN": "example.org", "XMPP_USERNAME": name}
        assert folders.load(environ).settings is None


def test_every_problem_is_named_at_once(folders: Folders) -> None:
    environ = {variable: value for variable, value, _ in WRONG}
    environ |= {"XMPP_DOMAIN": "a b", "TIA_ENV_PATH": "nowhere"}
    named = [problem.variable for problem in folders.load(environ).problems]
    # BOT_NICKNAME is not read where MCP_BOT_NICKNAME is set; the other two are judged elsewhere.
    unjudged = {"BOT_NICKNAME", "BRIDGE_TOOLSETS", "TIA_ENV_PATH"}
    assert sorted(named) == sorted(set(VARIABLES) - unjudged)


def test_a_secret_among_the_names_of_toolsets_is_left_out_and_not_shown(folders: Folders) -> None:
    environ = {**ACCOUNT, "BRIDGE_TOOLSETS": f"samples,{PASSWORD},a:{PASSWORD}"}
    configuration = folders.load(environ)
    assert configuration.toolsets == ("samples",)
    (problem,) = configuration.problems
    assert problem.variable == "BRIDGE_TOOLSETS"
    assert PASSWORD not in repr(configuration)


def test_nothing_set_at_all_names_what_is_needed(folders: Folders) -> None:
    configuration = folders.load({"XMPP_PASSWORD": "  \t "})
    assert configuration.settings is None
    named = [problem.variable for problem in configuration.problems]
    assert named == ["XMPP_DOMAIN", "XMPP_USERNAME", "XMPP_PASSWORD", "MUC_ROOM"]
    assert all("is not set" in problem.message for problem in configuration.problems)


def test_a_rejected_value_that_might_name_the_domain_brings_no_second_problem(
    folders: Folders,
) -> None:
    environ = {**ACCOUNT, "XMPP_USERNAME": "bot", "XMPP_SERVICE": "nonsense:"}
    assert [p.variable for p in folders.load(environ).problems] == ["XMPP_SERVICE"]


def test_a_config_error_names_every_problem_one_a_line() -> None:
    problems = (Problem("MUC_ROOM", "is not set"), Problem("LOG_LEVEL", "holds 'x'"))
    error = ConfigError(problems)
    assert error.problems == problems
    assert str(error) == "MUC_ROOM is not set\nLOG_LEVEL holds 'x'"


def test_a_bad_number_or_level_leaves_its_default(folders: Folders) -> None:
    configuration = folders.load(
        {**ACCOUNT, "BRIDGE_SEND_RATE": "x", "BRIDGE_HISTORY": "x", "LOG_LEVEL": "x"}
    )
    assert len(configuration.problems) == 3
    assert (configuration.send_rate, configuration.history) == (60, 10_000)
    assert configuration.log_level == "INFO"
    assert configuration.settings is not None


def test_an_unreadable_restriction_is_in_force(folders: Folders) -> None:
    configuration = folders.load({**ACCOUNT, "BRIDGE_READ_ONLY": "maybe"})
    assert len(configuration.problems) == 1
    assert configuration.read_only


@pytest.mark.parametrize(
    ("variable", "bounds"), [("BRIDGE_SEND_RATE", SEND_RATES), ("BRIDGE_HISTORY", HISTORIES)]
)
def test_a_number_may_be_at_its_bounds_and_not_beyond(
    folders: Folders, variable: str, bounds: range
) -> None:
    def problems(number: int) -> int:
        return len(folders.load({**ACCOUNT, variable: str(number)}).problems)

    low, high = bounds[0], bounds[-1]
    assert [problems(n) for n in (low - 1, low, high, high + 1)] == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("XMPP_USERNAME", "{}@example.org"),
        ("XMPP_USERNAME", "bot@{}"),
        ("MUC_ROOM", "{}@conference.example.org"),
        ("MUC_ROOM", "room@{}"),
        ("MCP_BOT_NICKNAME", "{}"),
    ],
)
def test_a_part_of_a_jid_has_at_most_1023_bytes(
    folders: Folders, variable: str, value: str
) -> None:
    longest = "é" * (MAX_JID_PART_BYTES // 2) + "x"
    assert len(longest.encode()) == MAX_JID_PART_BYTES == 1023
    settled(folders.load({**ACCOUNT, variable: value.format(longest)}))
    problem = about(folders.load({**ACCOUNT, variable: value.format(longest + "x")}), variable)
    assert "1,024 bytes" in problem


def test_a_problem_shows_no_more_than_the_start_of_a_long_value(folders: Folders) -> None:
    at_the_edge, beyond = "x" * MAX_SHOWN, "x" * MAX_SHOWN + "y"
    assert f"'{at_the_edge}'" in about(folders.load({"MUC_ROOM": at_the_edge}), "MUC_ROOM")
    shown = about(folders.load({"MUC_ROOM": beyond}), "MUC_ROOM")
    assert f"'{at_the_edge}…'" in shown


# --- Secrets --------------------------------------------------------------------------------------


def test_a_secret_shows_itself_to_nobody_but_who_asks() -> None:
    secret = Secret(PASSWORD)
    assert secret.reveal() == PASSWORD
    assert repr(secret) == str(secret) == f"{secret}" == "Secret(***)"
    assert secret == Secret(PASSWORD)
    assert secret != Secret("other")
    assert secret != PASSWORD
    assert len({secret, Secret(PASSWORD)}) == 1
    assert copy.copy(secret) is copy.deepcopy(secret) is secret
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        json.dumps(secret)
    with pytest.raises(TypeError):
        vars(secret)


def test_a_secret_cannot_be_changed() -> None:
    secret = Secret(PASSWORD)
    for name in ("_value", "other"):
        with pytest.raises(AttributeError):
            setattr(secret, name, "other")
        with pytest.raises(AttributeError):
            delattr(secret, name)
    assert secret.reveal() == PASSWORD


def test_settings_taken_apart_do_not_show_the_password(folders: Folders) -> None:
    assert PASSWORD not in repr(dataclasses.asdict(folders.load(ACCOUNT)))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("XMPP_SERVICE", "xmpp://bot:{}@example.org"),
        ("XMPP_SERVICE", "xmpp://bot:p@{}/x@example.org"),
        ("XMPP_SERVICE", "https://bot:{}@example.org"),
        ("XMPP_SERVICE", "bot:{}@example.org"),
        ("XMPP_SERVICE", "xmpp://example.org/?password={}"),
        ("XMPP_USERNAME", "bot:{}@example.org"),
        ("XMPP_USERNAME", "bot:{}"),
        ("MUC_ROOM", "xmpp:room@example.org?join;password={}"),
        ("LLM_BASE_URL", "https://user:{}@llm.example.org"),
        ("LLM_BASE_URL", "https://llm.example.org/v1?key={}"),
    ],
)
def test_a_credential_inside_another_value_is_not_echoed(
    folders: Folders, variable: str, value: str
) -> None:
    configuration = folders.load({**ACCOUNT, variable: value.format("hunter2-hunter2")})
    assert "***" in about(configuration, variable)
    assert "hunter2" not in repr(configuration)


def test_a_password_that_strayed_into_another_variable_is_not_echoed(folders: Folders) -> None:
    configuration = folders.load({**ACCOUNT, "LOG_LEVEL": PASSWORD, "XMPP_SERVICE": PASSWORD})
    assert len(configuration.problems) == 2
    assert PASSWORD not in repr(configuration)


def test_masking_begins_with_secrets_long_enough_to_be_no_common_word(folders: Folders) -> None:
    short, long = "x" * (MIN_MASKED - 1), "x" * MIN_MASKED
    for secret, shown in ((short, repr(short)), (long, "'***'")):
        configuration = folders.load({"XMPP_PASSWORD": secret, "LOG_LEVEL": secret})
        assert f"holds {shown}," in about(configuration, "LOG_LEVEL")


# --- Which .env is used ---------------------------------------------------------------------------


def test_the_first_file_that_says_something_is_used_alone(folders: Folders) -> None:
    here = write(folders.here, {**ACCOUNT, "XMPP_USERNAME": "here@example.org"})
    write(folders.package, {**ACCOUNT, "MCP_BOT_NICKNAME": "package"})
    named = write(folders.elsewhere, ACCOUNT, "named")
    configuration = folders.load({"TIA_ENV_PATH": str(named)})
    assert settled(configuration).username == "here"
    assert settled(configuration).nickname == "McpDebug"
    assert configuration.env_file == str(here)
    assert configuration.candidates == (
        Candidate(str(here), USED),
        Candidate(str(named), NOT_NEEDED),
        Candidate(str(folders.package / ".env"), NOT_NEEDED),
    )


@pytest.mark.parametrize("text", ["", "DATABASE_URL=x\n", "MUC_ROOM=\nLOG_LEVEL=DEBUG\n"])
def test_another_projects_file_does_not_stand_in_front_of_ours(folders: Folders, text: str) -> None:
    write(folders.here, text)
    named = write(folders.elsewhere, ACCOUNT)
    configuration = folders.load({"TIA_ENV_PATH": str(named)})
    assert settled(configuration).username == "bot"
    assert configuration.log_level == "INFO"
    assert configuration.env_file == str(named)
    reasons = [candidate.reason for candidate in configuration.candidates]
    assert reasons == [SAYS_NOTHING, USED, NOT_NEEDED]


def test_the_file_beside_the_package_comes_last(folders: Folders) -> None:
    write(folders.package, ACCOUNT)
    assert settled(folders.load({})).username == "bot"
    assert folders.reasons({}) == [MISSING, USED]
    assert folders.reasons({"TIA_ENV_PATH": "nowhere/.env"}) == [MISSING, MISSING, USED]


@pytest.mark.parametrize("name", ["XMPP_SERVICE", "XMPP_DOMAIN", *sorted(REQUIRED)])
def test_one_deciding_variable_is_enough_to_use_a_file(folders: Folders, name: str) -> None:
    write(folders.here, {name: "x"})
    assert folders.reasons({}) == [USED, NOT_NEEDED]


def test_the_environment_wins_over_the_file_one_by_one_and_blank_is_unset(
    folders: Folders,
) -> None:
    write(folders.package, {**ACCOUNT, "BRIDGE_SEND_RATE": "5", "LOG_LEVEL": "ERROR"})
    configuration = folders.load({"BRIDGE_SEND_RATE": "6", "LOG_LEVEL": "  "})
    assert configuration.send_rate == 6
    assert configuration.log_level == "ERROR"


def test_a_relative_path_of_the_environment_starts_in_the_current_directory(
    folders: Folders,
) -> None:
    named = write(folders.here, ACCOUNT, "named")
    configuration = folders.load({"TIA_ENV_PATH": " named "})
    assert configuration.env_file == str(named)
    home = folders.load({"TIA_ENV_PATH": "~/named", "HOME": str(folders.here)})
    assert home.env_file == str(named)


def test_a_relative_path_in_a_file_starts_in_its_folder(folders: Folders) -> None:
    write(folders.elsewhere, "certificate", "ca.pem")
    named = write(
        folders.elsewhere,
        {**ACCOUNT, "XMPP_TLS_CA_FILE": "ca.pem", "BRIDGE_TRAFFIC_LOG": "~/room.jsonl"},
    )
    configuration = folders.load({"TIA_ENV_PATH": str(named), "HOME": "/home/bot"})
    assert settled(configuration).tls_ca_file == folders.elsewhere / "ca.pem"
    assert configuration.traffic_log == Path("/home/bot/room.jsonl")


def test_tia_env_path_counts_in_the_process_environment_only(folders: Folders) -> None:
    named = write(folders.elsewhere, ACCOUNT)
    write(folders.here, {"TIA_ENV_PATH": str(named)})
    assert folders.load({}).env_file is None


def test_nothing_is_expanded(folders: Folders) -> None:
    write(folders.package, 'XMPP_PASSWORD="${HOME}"\nMUC_PASSWORD=$HOME\n')
    configuration = folders.load(
        {**ACCOUNT, "XMPP_PASSWORD": "", "HOME": "/home/bot", "MCP_BOT_NICKNAME": "${HOME}"}
    )
    assert settled(configuration).password == Secret("${HOME}")
    assert settled(configuration).room_password == Secret("$HOME")
    assert settled(configuration).nickname == "${HOME}"


def test_byte_order_mark_and_carriage_returns_are_tolerated(folders: Folders) -> None:
    text = "\ufeff" + written(ACCOUNT).replace("\n", "\r\n") + "export BOT_NICKNAME=Bot\r\n"
    write(folders.here, text)
    assert settled(folders.load({})).nickname == "Bot"


def test_lines_that_cannot_be_read_are_named_in_warnings(
    folders: Folders, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = write(folders.package, f"# ours\r\n\r\n\r\n=secret-line\r\n{written(ACCOUNT)}")
    configuration = folders.load({})
    settled(configuration)
    (warning,) = configuration.warnings
    assert f"'{path}', line 4" in warning
    assert "secret-line" not in warning
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


@pytest.mark.parametrize("rubbish", [MAX_LINES_NAMED, MAX_LINES_NAMED + 1])
def test_many_unreadable_lines_are_counted_rather_than_named(
    folders: Folders, rubbish: int
) -> None:
    write(folders.package, written(ACCOUNT) + "=\n" * rubbish)
    warnings = folders.load({}).warnings
    assert len(warnings) == rubbish
    assert ("1 more lines" in warnings[-1]) == (rubbish > MAX_LINES_NAMED)


def test_a_passed_over_file_is_criticised_only_if_it_is_ours(folders: Folders) -> None:
    text = "MUC_ROOM\n=\n"
    write(folders.here, text)
    assert folders.load({}).warnings == ()
    write(folders.package, text)
    assert len(folders.load({}).warnings) == 1


def unreadable(path: Path, kind: str) -> None:
    text = written(ACCOUNT).encode()
    match kind:
        case "directory":
            path.mkdir()
        case "FIFO":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path)
        case "Latin-1":
            path.write_bytes(text + b"# \xe9\n")
        case "UTF-16":
            path.write_bytes(written(ACCOUNT).encode("utf-16-le"))
        case "large":
            path.write_bytes(text + b"#" * (MAX_FILE_BYTES + 1 - len(text)))
        case "blanks":
            path.write_bytes(text + b"A=x" + b" " * (MAX_BLANKS + 1) + b"y\n")


KINDS = ["directory", "FIFO", "device", "loop", "Latin-1", "UTF-16", "large", "blanks"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_plain_utf8_file_is_passed_over_at_once(folders: Folders, kind: str) -> None:
    write(folders.package, ACCOUNT)
    unreadable(folders.here / ".env", kind)
    unreadable(folders.elsewhere / "named", kind)
    began = time.monotonic()
    reasons = folders.reasons({"TIA_ENV_PATH": str(folders.elsewhere / "named")})
    assert time.monotonic() - began < 2
    # Two links to one device are one file.
    assert len(reasons) == (2 if kind == "device" else 3)
    assert all(reason.startswith(f"{UNREADABLE}: ") for reason in reasons[:-1])
    assert reasons[-1] == USED


NOBODY = 65534
"""Root may read everything; whoever this is may not."""


@pytest.fixture
def unprivileged() -> Iterator[None]:
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    yield
    os.seteuid(before)


@pytest.fixture
def locked(folders: Folders) -> Path:
    path = write(folders.here, ACCOUNT)
    path.chmod(0)
    return path


@pytest.mark.usefixtures("locked", "unprivileged")
def test_a_file_without_permission_is_passed_over(folders: Folders) -> None:
    assert folders.reasons({})[0] == f"{UNREADABLE}: Permission denied"


def test_a_file_may_be_as_large_and_as_blank_as_its_limits(folders: Folders) -> None:
    text = written(ACCOUNT) + "A=x" + " " * MAX_BLANKS + "y\n"
    write(folders.here, text + "#" * (MAX_FILE_BYTES - len(text)))
    assert folders.reasons({})[0] == USED


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 5000, ".env/below"])
def test_a_name_that_no_file_can_have_is_no_accident(folders: Folders, path: str) -> None:
    write(folders.here, ACCOUNT)
    write(folders.package, "")
    configuration = folders.load({"TIA_ENV_PATH": path})
    assert settled(configuration).username == "bot"
    assert folders.load({}, env_file=folders.here / path).settings is None


def test_env_file_names_the_one_file_outright(folders: Folders) -> None:
    write(folders.here, ACCOUNT)
    write(folders.package, ACCOUNT)
    path = write(folders.elsewhere, {"LOG_LEVEL": "ERROR"})
    environ = ACCOUNT | {"TIA_ENV_PATH": str(folders.here / ".env")}
    configuration = folders.load(environ, env_file=path)
    assert configuration.candidates == (Candidate(str(path), USED),)
    assert configuration.env_file == str(path)
    assert configuration.log_level == "ERROR"
    assert folders.load({}, env_file=Path("../elsewhere/.env")).log_level == "ERROR"


@pytest.mark.parametrize("kind", ["nothing", *KINDS])
def test_an_unusable_env_file_is_the_one_problem(folders: Folders, kind: str) -> None:
    write(folders.here, ACCOUNT)
    path = folders.elsewhere / "named"
    unreadable(path, kind)
    configuration = folders.load({}, env_file=path)
    assert [problem.variable for problem in configuration.problems] == ["--env-file"]
    assert repr(str(path)) in str(configuration.problems[0])
    assert configuration.settings is None
    assert configuration.env_file is None
    assert folders.load(ACCOUNT, env_file=path).settings is None


# --- A file that was found only because it lies in the current directory --------------------------

IGNORED = {
    "BRIDGE_TRAFFIC_LOG": "room.jsonl",
    "BRIDGE_TOOLSETS": "llm",
    "LLM_BASE_URL": "https://evil.example",
    "LLM_API_KEY": "k",
    "LLM_MODEL": "m",
    "OPEN_METEO_GEOCODING_URL": "https://geo.evil.example",
    "OPEN_METEO_FORECAST_URL": "https://met.evil.example",
}
REFUSED = {
    "XMPP_SERVICE": "xmpp://evil.example",
    "XMPP_DOMAIN": "evil.example",
    "XMPP_USERNAME": "bot@evil.example",
    "MUC_ROOM": "room@evil.example",
    "XMPP_TLS_CA_FILE": "evil.pem",
    "NODE_TLS_REJECT_UNAUTHORIZED": "0",
    "XMPP_ALLOW_PLAINTEXT": "1",
}
Trust = Callable[[Folders], Configuration]


def named_by_option(folders: Folders) -> Configuration:
    return folders.load({"XMPP_PASSWORD": PASSWORD}, env_file=Path(".env"))


def named_by_variable(folders: Folders) -> Configuration:
    return folders.load({"XMPP_PASSWORD": PASSWORD, "TIA_ENV_PATH": "../here/.env"})


def beside_the_package(folders: Folders) -> Configuration:
    return load({"XMPP_PASSWORD": PASSWORD}, cwd=folders.here, package_root=folders.here)


def test_a_strangers_file_cannot_choose_tools_models_and_logs(folders: Folders) -> None:
    path = write(folders.here, ACCOUNT | IGNORED)
    configuration = folders.load({})
    settled(configuration)
    assert configuration.traffic_log is None
    assert configuration.toolsets == ()
    assert configuration.llm_base_url is None
    assert configuration.llm_api_key is None
    assert configuration.llm_model is None
    assert configuration.geocoding_url == GEOCODING_URL
    assert configuration.forecast_url == FORECAST_URL
    assert [warning.split()[0] for warning in configuration.warnings] == list(IGNORED)
    assert all(str(path) in warning for warning in configuration.warnings)


@pytest.mark.parametrize("secret", SECRET_VARIABLES)
@pytest.mark.parametrize("variable", REFUSED)
def test_a_strangers_file_cannot_say_where_a_secret_of_the_environment_goes(
    folders: Folders, variable: str, secret: str
) -> None:
    path = write(folders.here, {"XMPP_DOMAIN": "x.example", variable: REFUSED[variable]})
    configuration = folders.load({secret: PASSWORD})
    message = about(configuration, variable)
    for part in (str(path), secret, "--env-file", "TIA_ENV_PATH", REFUSED[variable]):
        assert part in message
    assert configuration.settings is None
    assert PASSWORD not in repr(configuration)


def test_all_that_a_strangers_file_is_refused_is_named_at_once(folders: Folders) -> None:
    write(folders.here, REFUSED)
    configuration = folders.load({"XMPP_PASSWORD": PASSWORD})
    assert [problem.variable for problem in configuration.problems] == list(REFUSED)
    assert configuration.warnings == ()


def test_what_the_environment_says_itself_is_no_quarrel_with_a_strangers_file(
    folders: Folders,
) -> None:
    write(folders.here, {"XMPP_USERNAME": "bot@evil.example", "MUC_ROOM": "room@evil.example"})
    assert settled(folders.load(ACCOUNT)).jid == "bot@example.org"


def test_a_strangers_file_may_use_its_own_password_at_its_own_server(folders: Folders) -> None:
    write(folders.here, ACCOUNT | {"XMPP_SERVICE": "xmpp://evil.example"})
    assert settled(folders.load({"MCP_BOT_NICKNAME": "Bot"})).service is not None


@pytest.mark.parametrize("trust", [named_by_option, named_by_variable, beside_the_package])
def test_a_file_that_is_named_or_ours_is_trusted_even_in_the_current_directory(
    folders: Folders, trust: Trust
) -> None:
    write(folders.here, "certificate", "evil.pem")
    write(folders.here, REFUSED | IGNORED)
    configuration = trust(folders)
    assert settled(configuration).tls_ca_file is not None
    assert configuration.toolsets == ("llm",)
    assert configuration.llm_model == "m"
    assert [candidate.reason for candidate in configuration.candidates].count(USED) == 1


def test_a_file_that_two_places_name_is_listed_once(folders: Folders) -> None:
    write(folders.here, ACCOUNT)
    assert [c.reason for c in beside_the_package(folders).candidates] == [USED]
    assert [c.reason for c in named_by_variable(folders).candidates] == [USED, NOT_NEEDED]


def test_a_link_to_our_file_does_not_move_the_files_that_it_names(folders: Folders) -> None:
    ours = write(folders.elsewhere, {**ACCOUNT, "XMPP_TLS_CA_FILE": "ca.pem"})
    write(folders.elsewhere, "ours", "ca.pem")
    write(folders.here, "a stranger's", "ca.pem")
    (folders.here / ".env").symlink_to(ours)
    configuration = folders.load({"TIA_ENV_PATH": str(ours)})
    assert settled(configuration).tls_ca_file == folders.elsewhere / "ca.pem"


# --- Whatever comes -------------------------------------------------------------------------------

HIDDEN = "7h1s-1s-h1dd3n"
anything = st.one_of(
    st.sampled_from([value for _, value, _ in WRONG] + list(ACCOUNT.values())),
    st.text(max_size=30),
    st.sampled_from(["{}", "u:{}@h", "xmpp://u:{}@h", "https://u:{}@h/p", "h?{}", " {} "]).map(
        lambda form: form.format(HIDDEN)
    ),
)
environments = st.dictionaries(st.sampled_from([*VARIABLES, "HOME"]), anything)
contents = st.one_of(
    st.binary(max_size=200),
    environments.map(lambda values: written(values).encode(errors="replace")),
    st.lists(
        st.sampled_from([*VARIABLES, "=", "'", '"', "#", "\\", "\n", "\r", " ", HIDDEN, "export "])
    ).map(lambda pieces: "".join(pieces).encode()),
)


@pytest.fixture(scope="module")
def shared_folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders(tmp_path_factory.mktemp("any"))


@given(environ=environments, here=contents, package=contents, outright=st.booleans())
@settings(max_examples=300, deadline=None)
def test_load_never_raises_and_settings_are_missing_only_with_a_reason(
    shared_folders: Folders, environ: dict[str, str], here: bytes, package: bytes, outright: bool
) -> None:
    write(shared_folders.here, here)
    write(shared_folders.package, package)
    configuration = shared_folders.load(environ, env_file=Path(".env") if outright else None)
    participates = [
        problem
        for problem in configuration.problems
        if not NO_MATTER_OF_THE_PARTICIPANT.match(problem.variable)
    ]
    assert (configuration.settings is None) == bool(participates)
    assert all(str(problem).isprintable() for problem in configuration.problems)
    assert all(warning.isprintable() for warning in configuration.warnings)


@given(
    secrets=st.dictionaries(
        st.sampled_from(SECRET_VARIABLES),
        st.sampled_from(["{}", " {} ", "{}\n", "\t{}"]),
        min_size=1,
    ),
    others=environments,
    astray=st.fixed_dictionaries(
        {},
        optional={
            "XMPP_SERVICE": st.sampled_from(["{}:", "xmpp://u:{}@h", "h?{}", "u:{}@h", "{0}/{0}"]),
            "XMPP_USERNAME": st.sampled_from(["u:{}", "u:{}@h", "u:{}@h/r"]),
            "MUC_ROOM": st.sampled_from(["{}", "xmpp:r@h?join;password={}"]),
            "BRIDGE_TOOLSETS": st.sampled_from(["{}", "llm,{}", "a:{}"]),
            "LLM_BASE_URL": st.sampled_from(["{}", "https://u:{}@h", "https://h/?key={}"]),
            "LOG_LEVEL": st.just("{}"),
        },
    ),
    in_file=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_no_secret_is_ever_shown(
    shared_folders: Folders,
    secrets: dict[str, str],
    others: dict[str, str],
    astray: dict[str, str],
    in_file: bool,
) -> None:
    hidden = {name: form.format(HIDDEN) for name, form in secrets.items()}
    # Only where a value does not do: a nickname that *is* the password is shown to the whole room.
    others = {
        name: value for name, value in others.items() if name not in secrets and HIDDEN not in value
    }
    others |= {name: form.format(HIDDEN) for name, form in astray.items()}
    # The room's domain makes it a file that is used; what other files hold is not known to us.
    write(shared_folders.here, written({"XMPP_DOMAIN": "h"} | hidden) if in_file else "")
    write(shared_folders.package, "")
    configuration = shared_folders.load(others if in_file else others | hidden)
    texts = [repr(configuration), *map(str, configuration.problems), *configuration.warnings]
    assert not any(HIDDEN in text for text in texts)


# --- The example, and the cost of looking ---------------------------------------------------------


def test_the_example_names_every_variable_with_its_true_default(folders: Folders) -> None:
    example = (REPOSITORY / ".env.example").read_text("utf-8")
    assert set(re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE)) == set(VARIABLES)

    pristine = folders.load({}, env_file=write(folders.here, example, "pristine"))
    assert {problem.variable for problem in pristine.problems} == REQUIRED | {"XMPP_DOMAIN"}

    blank = re.compile(r"^([A-Z_]+)=$", re.MULTILINE)
    filled = blank.sub(lambda match: f"{match[0]}{ACCOUNT[match[1]]}", example)
    defaults = folders.load({}, env_file=write(folders.here, filled, "filled"))
    settled(defaults)

    write(folders.here, "certificate", "ca.pem")
    uncommented = re.sub(r"^#(?=[A-Z_]+=)", "", filled, flags=re.MULTILINE)
    everything = folders.load({}, env_file=write(folders.here, uncommented, "everything"))
    settled(everything)
    assert everything.warnings == ()
    for name in ("read_only", "send_rate", "history", "log_level"):
        assert getattr(everything, name) == getattr(defaults, name)
    for name in ("nickname", "tls_verify", "allow_plaintext", "domain"):
        assert getattr(everything.settings, name) == getattr(defaults.settings, name)


def child(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=REPOSITORY
    ).stdout.strip()


def test_importing_config_brings_nothing_that_the_bridge_does_not_need_anyway() -> None:
    code = """
import asyncio, dataclasses, json, pathlib, sys
before = set(sys.modules)
import bridge.config
print(*sorted(set(sys.modules) - before))
"""
    assert child(code).split() == [
        "bridge",
        "bridge.config",
        "bridge.environment",
        "bridge.frozen",
        "bridge.values",
    ]


@pytest.mark.parametrize(
    ("text", "imported"), [("DATABASE_URL=x\n", "False"), ("MUC_ROOM=x\n", "True")]
)
def test_dotenv_is_imported_only_for_a_file_that_may_be_ours(
    folders: Folders, text: str, imported: str
) -> None:
    write(folders.here, text)
    code = """
import pathlib, sys
from bridge.config import load
here = pathlib.Path(sys.argv[1])
load({}, cwd=here, package_root=here / "nowhere")
print("dotenv" in sys.modules)
"""
    assert child(code, str(folders.here)) == imported
