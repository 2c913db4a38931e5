import time

from bridge.settings.sources import MAX_STRANGERS_BYTES
from bridge.settings.spelling import MAX_COMPARED, MAX_NAMED, misspelt
from bridge.settings.table import VARIABLES
from tests.settings.folders import ACCOUNT, Folders, settled, write

READ_ONLY, RATE = "BRIDGE_READ_ONLY", "BRIDGE_SEND_RATE"


MISSPELT = {
    "MCP_BOT_NICK": "MCP_BOT_NICKNAME",
    "XMPP_PASS": "XMPP_PASSWORD",
    "XMPP_PASSWORD_": "XMPP_PASSWORD",
    "XMPP_SREVICE": "XMPP_SERVICE",
    "MUC_ROOMS": "MUC_ROOM",
    "MUC_ROON": "MUC_ROOM",
    "muc_room": "MUC_ROOM",
    "BRIDGE_READONLY": READ_ONLY,
    "BRIDGE_REDONLY": READ_ONLY,
    "BRIDGE_STORE_M": "BRIDGE_STORE_MB",
    "XMPP_P\u0410SSWORD": "XMPP_PASSWORD",
}


def test_a_name_like_ours_or_the_start_of_one_is_misspelt() -> None:
    assert misspelt(MISSPELT) == MISSPELT


OTHERS = """
    XMPP_JID XMPP_HOST XMPP_PORT XMPP_NICK XMPP_SERVER XMPP_TIMEOUT MUC_NICK MUC_HOST BRIDGE_URL
    BRIDGE_LOG_LEVEL MCP_BOT_TOKEN XMPP_ MUC_ BRIDGE_ MCP_BOT_ LLM_MODE LOG_LEVE NODE_TLS
"""


def test_names_of_ours_and_those_of_other_programs_are_not_misspelt() -> None:
    assert misspelt([*VARIABLES, *OTHERS.split(), ""]) == {}


def test_what_is_misspelt_in_the_environment_or_the_used_file_is_told(folders: Folders) -> None:
    path = write(folders.here, ACCOUNT | {"MCP_BOT_NICK": "Robot", "MUC_PASSWORT\u202e": "x"})
    write(folders.package, {"XMPP_PASS": "x"})
    configuration = folders.load({"BRIDGE_HISTROY": "500", "XMPP_JID": "bot@example.org"})
    assert settled(configuration).nickname == "McpDebug"
    assert configuration.history == 10_000
    in_environment, in_file = configuration.warnings
    assert "BRIDGE_HISTROY for BRIDGE_HISTORY" in in_environment
    assert "the environment" in in_environment
    assert repr(str(path)) in in_file
    assert "MCP_BOT_NICK for MCP_BOT_NICKNAME" in in_file
    assert "MUC_PASSWORT\\u202e for MUC_PASSWORD" in in_file


def test_a_strangers_misspelling_cannot_loosen_what_is_spelt_right(folders: Folders) -> None:
    write(folders.here, ACCOUNT | {"BRIDGE_READONLY": "0", "BRIDGE_SENDRATE": "6000"})
    assert folders.load({}).send_rate == 60
    configuration = folders.load({READ_ONLY: "1", RATE: "10", "BRIDGE_SENDRATE": "20"})
    assert (configuration.read_only, configuration.send_rate) == (True, 10)


def test_a_strangers_file_full_of_names_like_ours_costs_little(folders: Folders) -> None:
    names = [f"BRIDGE_READ_ONL{chr(0x4E00 + n)}" for n in range(MAX_STRANGERS_BYTES // 30)]
    assert len(misspelt(names)) == MAX_COMPARED
    write(folders.here, "XMPP_DOMAIN=h\n" + "".join(f"{name}=1\n" for name in names))
    began = time.process_time()
    configuration = folders.load({})
    assert time.process_time() - began < 2
    assert configuration.read_only
    assert f"{MAX_COMPARED - MAX_NAMED} more" in configuration.source_of(READ_ONLY)
    assert max(map(len, configuration.warnings)) < 2_000
