"""A file that was found only because it lies in the current directory."""

import pytest

from tests.settings.folders import (
    ACCOUNT,
    MISSING,
    NAMED,
    PASSWORD,
    USED,
    Folders,
    settled,
    write,
)
from tests.settings.wrong import SECRET_VARIABLES

IGNORED = {
    "BRIDGE_STORE": "rooms.db",
    "BRIDGE_STORE_DAYS": "1",
    "BRIDGE_STORE_MB": "10",
    "BRIDGE_STORE_STANZAS": "1",
    "BRIDGE_BOT_LOGS": "Robot=/home/you/.ssh/id",
    "BRIDGE_LOG_FILE": "log",
    "LLM_BASE_URL": "https://evil.example",
    "LLM_API_KEY": "k",
    "LLM_MODEL": "m",
    "OPEN_METEO_GEOCODING_URL": "https://geo.evil.example",
    "OPEN_METEO_FORECAST_URL": "https://met.evil.example",
    "BRIDGE_TOOLSETS": "tools:ALL",
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


@pytest.mark.parametrize("store", ["rooms.db", f"postgresql://bot:{PASSWORD}@evil.example/x"])
def test_a_strangers_file_chooses_no_tools_models_or_stores(store: str, folders: Folders) -> None:
    path = write(folders.here, ACCOUNT | IGNORED | {"BRIDGE_STORE": store})
    configuration = folders.load({})
    settled(configuration)
    defaults = folders.load(ACCOUNT, env_file=write(folders.elsewhere, "", "empty")).loaded
    assert {name: configuration.loaded[name] for name in IGNORED} == {
        name: defaults[name] for name in IGNORED
    }
    assert len(configuration.warnings) == len(IGNORED)
    warned = "".join(configuration.warnings)
    assert [name for name in IGNORED if f"{name} in '{path}' is ignored" not in warned] == []
    assert PASSWORD not in warned


def test_a_strangers_file_may_name_installed_sets_of_tools_and_no_code(folders: Folders) -> None:
    named = {"BRIDGE_TOOLSETS": "samples, evil.module:TOOLS,dice ,:"}
    path = write(folders.here, ACCOUNT | named)
    configuration = folders.load({})
    assert configuration.toolsets == ("samples", "dice")
    (warning,) = configuration.warnings
    ignored = f"BRIDGE_TOOLSETS in '{path}' is ignored, but for 'samples,dice', because"
    assert warning.startswith(ignored)
    assert folders.load({"BRIDGE_TOOLSETS": "llm"}).toolsets == ("llm",)


def test_a_model_that_is_set_up_switches_its_tools_on(folders: Folders) -> None:
    model = {"LLM_BASE_URL": "https://llm.example.org/v1", "LLM_MODEL": "m"}
    for named, served in (
        ({}, ("llm",)),
        ({"BRIDGE_TOOLSETS": "samples"}, ("samples", "llm")),
        ({"BRIDGE_TOOLSETS": "llm,samples"}, ("llm", "samples")),
    ):
        configuration = folders.load({**model, **named})
        assert configuration.toolsets == served
        assert ("BRIDGE_TOOLSETS" in configuration.in_effect) is bool(named)
    for each in model:
        assert folders.load({each: model[each], "LLM_API_KEY": "k"}).toolsets == ()
    # A stranger's file completes no model of the environment's.
    write(folders.here, ACCOUNT | model)
    assert folders.load({"LLM_BASE_URL": model["LLM_BASE_URL"]}).toolsets == ()


@pytest.mark.parametrize("variable", REFUSED)
def test_a_strangers_file_cannot_say_where_our_secrets_go(folders: Folders, variable: str) -> None:
    path = write(folders.here, {"XMPP_DOMAIN": "x.example", variable: REFUSED[variable]})
    for secret in SECRET_VARIABLES:
        configuration = folders.load({secret: PASSWORD})
        (message,) = (str(p) for p in configuration.problems if "is not set" not in p.message)
        assert variable in message
        for part in (str(path), secret, "--env-file", "TIA_ENV_PATH", REFUSED[variable]):
            assert part in message
        assert configuration.settings is None
        assert PASSWORD not in repr(configuration)
    write(folders.here, REFUSED)
    (problem,) = folders.load({"XMPP_PASSWORD": PASSWORD}).problems
    assert all(f"{name} holds {value!r}" in str(problem) for name, value in REFUSED.items())
    assert f"type xmpp-bridge --env-file {path} COMMAND" in str(problem)


def test_a_strangers_file_may_have_its_own_account_or_be_overruled(folders: Folders) -> None:
    write(folders.here, {"XMPP_USERNAME": "bot@evil.example", "MUC_ROOM": "room@evil.example"})
    assert settled(folders.load(ACCOUNT)).jid == "bot@example.org"
    write(folders.here, ACCOUNT | {"XMPP_SERVICE": "xmpp://evil.example"})
    assert settled(folders.load({"MCP_BOT_NICKNAME": "Bot"})).service is not None


@pytest.mark.parametrize("how", NAMED)
def test_a_file_that_is_named_or_ours_is_trusted_anywhere(folders: Folders, how: str) -> None:
    write(folders.here, "certificate", "evil.pem")
    write(folders.here, REFUSED | IGNORED)
    configuration = folders.load_named(how, {"XMPP_PASSWORD": PASSWORD})
    assert settled(configuration).tls_ca_file is not None
    assert configuration.toolsets == ("tools:ALL", "llm")
    assert configuration.llm_model == "m"
    # A file that two places name is listed once.
    listed = [USED, MISSING] if how == "TIA_ENV_PATH" else [USED]
    assert [candidate.reason for candidate in configuration.candidates] == listed


def test_a_link_to_our_file_does_not_move_the_files_that_it_names(folders: Folders) -> None:
    ours = write(folders.elsewhere, {**ACCOUNT, "XMPP_TLS_CA_FILE": "ca.pem"})
    write(folders.elsewhere, "ours", "ca.pem")
    write(folders.here, "a stranger's", "ca.pem")
    (folders.here / ".env").symlink_to(ours)
    configuration = folders.load({"TIA_ENV_PATH": str(ours)})
    assert settled(configuration).tls_ca_file == folders.elsewhere / "ca.pem"
