import copy
import json

import pytest

from bridge.settings.load import MAX_SHOWN, MIN_MASKED
from bridge.settings.values import Secret
from tests.settings.folders import ACCOUNT, PASSWORD, Folders, about


def test_a_secret_shows_itself_to_nobody_but_who_asks() -> None:
    secret = Secret(PASSWORD)
    assert secret.reveal() == PASSWORD
    assert repr(secret) == str(secret) == f"{secret}" == "Secret(***)"
    assert secret == Secret(PASSWORD)
    assert secret != Secret("other")
    assert secret != PASSWORD
    assert len({secret, Secret(PASSWORD)}) == 1
    assert copy.deepcopy(secret) == secret
    with pytest.raises(TypeError):
        json.dumps(secret)
    with pytest.raises(TypeError):
        vars(secret)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("XMPP_SERVICE", "xmpp://bot:{}@example.org"),
        ("XMPP_SERVICE", "xmpp://bot:p@{}/x@example.org"),
        ("XMPP_SERVICE", "bot:{}@example.org"),
        ("XMPP_SERVICE", "xmpp://example.org/?password={}"),
        ("XMPP_USERNAME", "bot:{}"),
        ("LLM_BASE_URL", "https://llm.example.org/v1?key={}"),
    ],
)
def test_a_credential_elsewhere_is_hidden(folders: Folders, variable: str, value: str) -> None:
    configuration = folders.load({**ACCOUNT, variable: value.format("hunter2-hunter2")})
    assert "***" in about(configuration, variable)
    assert "hunter2" not in repr(configuration)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LOG_LEVEL", "{}"),
        ("XMPP_DOMAIN", "{}"),
        ("XMPP_USERNAME", "bot@{}"),
        ("MUC_ROOM", "ro om,{}"),
        ("MUC_ROOM", "{}," + "x" * MAX_SHOWN),
    ],
)
@pytest.mark.parametrize("before", [0, MAX_SHOWN - 5])
def test_no_cut_leaves_a_part_of_it(
    folders: Folders, variable: str, value: str, before: int
) -> None:
    environ = ACCOUNT | {"XMPP_DOMAIN": "other.example"}
    environ[variable] = value.format("x" * before + PASSWORD)
    problems = folders.load(environ).problems
    assert problems
    assert not [each for each in problems if PASSWORD[:4] in str(each)]


def test_what_is_in_effect_is_listed_without_secrets_and_cut(folders: Folders) -> None:
    shown, cut = "m" * MAX_SHOWN, "m" * (MAX_SHOWN + 1)
    for model, listed in ((PASSWORD, "***"), (shown, shown), (cut, f"{shown}…")):
        configuration = folders.load({**ACCOUNT, "LLM_MODEL": model, "LLM_API_KEY": "short"})
        assert configuration.in_effect["LLM_MODEL"].value == listed
        assert configuration.in_effect["LLM_API_KEY"].value == "***"
    # A nickname may have marks that a wrong address is hidden for.
    configuration = folders.load(ACCOUNT | {"MCP_BOT_NICKNAME": "Bot #1: what?"})
    assert configuration.in_effect["MCP_BOT_NICKNAME"].value == "Bot #1: what?"


def test_what_does_not_do_is_not_in_effect(folders: Folders) -> None:
    said = {"XMPP_TLS_CA_FILE": "nowhere.pem", "XMPP_DOMAIN": "other.example", "LOG_LEVEL": "x"}
    configuration = folders.load({**ACCOUNT, **said})
    assert configuration.in_effect.keys() == ACCOUNT.keys()


def test_masking_begins_with_secrets_long_enough_to_be_no_common_word(folders: Folders) -> None:
    short, long = "x" * (MIN_MASKED - 1), "x" * MIN_MASKED
    for secret, shown in ((short, repr(short)), (long, "'***'")):
        configuration = folders.load({"XMPP_PASSWORD": secret, "LOG_LEVEL": secret})
        assert f"holds {shown}," in about(configuration, "LOG_LEVEL")
