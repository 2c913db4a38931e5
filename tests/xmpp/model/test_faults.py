import re
import socket
import ssl
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.settings.table import VARIABLES, Settings
from bridge.settings.values import Secret
from bridge.wire.meaning import Row
from bridge.xmpp.model import faults
from bridge.xmpp.model.faults import Fault, Place, Retry, Stage
from tests.xmpp.conditions import SASL_CONDITIONS, STANZA_CONDITIONS, STREAM_CONDITIONS
from tests.xmpp.place import PLACE

UNTRUSTED = "certificate-verify-failed"
DIRECT = PLACE._replace(service="xmpps://chat.example:5222")


def _verification(message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, f"certificate verify failed: {message}")
    error.verify_message = message
    return error


def _tls(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


GONE = socket.gaierror(-2, "Name or service not known")
EXCEPTIONS: tuple[tuple[Stage, BaseException, str, str], ...] = (
    (Stage.RESOLVE, GONE, "remote-server-not-found", "XMPP_SERVICE"),
    (Stage.CONNECT, ConnectionRefusedError(111, "refused"), "connection-refused", "XMPP_SERVICE"),
    (Stage.CONNECT, OSError(113, "No route to host"), "network-unreachable", "XMPP_SERVICE"),
    (Stage.CONNECT, TimeoutError(), "connection-timeout", "XMPP_SERVICE"),
    (Stage.TLS, ConnectionResetError(104, "reset"), "connection-reset", "xmpps:// in XMPP_SERVICE"),
    (Stage.TLS, _verification("unable to get local issuer"), UNTRUSTED, "XMPP_TLS_CA_FILE"),
    (Stage.TLS, _verification("Hostname mismatch, not for 'a'."), UNTRUSTED, "XMPP_DOMAIN"),
    (Stage.TLS, _verification("certificate has expired"), UNTRUSTED, "clock"),
    (Stage.TLS, _tls("WRONG_VERSION_NUMBER"), "tls-handshake-failed", "TLS settings"),
    (Stage.STANDING, _tls("DECRYPTION_FAILED_OR_BAD_RECORD_MAC"), "tls-failed", "garbles"),
    (Stage.STANDING, BrokenPipeError(32, "broken pipe"), "connection-reset", "by itself"),
    (Stage.JOIN, TimeoutError(), "remote-server-timeout", "MUC_ROOM"),
    (Stage.JOIN, KeyError("a mistake of ours"), "internal-server-error", "LOG_LEVEL=DEBUG"),
)


def _assert_fit_to_be_read(fault: Fault) -> None:
    for sentence in (fault.message, fault.hint):
        assert sentence
        assert not re.search(r"[{}]|\bNone\b|\(\)", sentence), sentence
        assert sentence.isprintable()
    assert re.fullmatch("[a-z]+(-[a-z]+)*", fault.condition)
    assert fault.message.endswith((".", "!"))
    assert fault.hint.endswith(".")


@pytest.mark.parametrize(("stage", "error", "condition", "hinted"), EXCEPTIONS)
def test_errors_have_hints(stage: Stage, error: BaseException, condition: str, hinted: str) -> None:
    fault = faults.of_exception(stage, error, PLACE)
    assert fault.condition == condition
    # A certificate is for a person to mend.
    assert fault.retry is (Retry.LATER if condition.startswith("certificate") else Retry.SOON)
    assert hinted in fault.hint
    _assert_fit_to_be_read(fault)


def test_a_place_has_the_default_room_unless_another_one_is_named() -> None:
    rooms = ("lobby@muc.example", "logs@other.example")
    settings = Settings(username="bot", domain="example", password=Secret("s"), rooms=rooms)
    place = Place.of(settings)
    assert Place.of(settings, rooms[0]) == place
    other = Place.of(settings, rooms[1])
    assert other == place._replace(room=rooms[1], default=False)
    assert (place.room, other.room_service) == (rooms[0], "other.example")


def test_a_room_that_gets_no_password_is_not_said_to_have_refused_ours() -> None:
    fault = faults.of_join_error("not-authorized", None, PLACE._replace(default=False), None)
    assert "MUC_PASSWORD is for the default room only" in fault.message
    assert "first in MUC_ROOM" in fault.hint
    _assert_fit_to_be_read(fault)


def test_what_the_service_says_of_itself_decides_what_is_hinted() -> None:
    fault = faults.of_exception(Stage.TLS, _tls("WRONG_VERSION_NUMBER"), DIRECT)
    assert (fault.condition, fault.retry) == ("wrong-version-number", Retry.LATER)
    assert "xmpp:// instead of xmpps:// in XMPP_SERVICE" in fault.hint
    _assert_fit_to_be_read(fault)
    fault = faults.of_exception(Stage.RESOLVE, GONE, PLACE._replace(service="xmpp://chat.example"))
    assert (fault.condition, fault.retry) == ("remote-server-not-found", Retry.SOON)
    assert "chat.example" in fault.message
    assert "Check XMPP_DOMAIN" in fault.hint
    _assert_fit_to_be_read(fault)


def test_a_mistake_of_ours_is_told_without_its_text() -> None:
    fault = faults.of_exception(Stage.SASL, ValueError("hunter2"), PLACE)
    assert "hunter2" not in fault.message + fault.hint
    assert "ValueError" in fault.message
    assert "sasl" in fault.message


HOPELESS = {"not-authorized", "credentials-expired", "account-disabled", "invalid-authzid"}
"""Logins that cannot succeed, and may lock the account."""


def test_each_refused_login_keeps_its_condition_and_names_a_setting() -> None:
    for condition in SASL_CONDITIONS:
        fault = faults.of_sasl(condition, None, PLACE)
        assert fault.condition == condition
        passes = condition == "temporary-auth-failure"
        assert any(name in fault.hint for name in VARIABLES) or passes
        assert (fault.retry is Retry.NEVER) == (condition in HOPELESS)
        assert (fault.retry is Retry.SOON) == passes
        _assert_fit_to_be_read(fault)


@pytest.mark.parametrize("genuine", [True, False])
def test_a_refused_login_says_which_settings_cannot_be_wrong(genuine: bool) -> None:
    fault = faults.of_sasl("not-authorized", None, PLACE, genuine=genuine)
    assert "XMPP_PASSWORD: one of them may be wrong" in fault.hint
    assert ("XMPP_SERVICE and the domain are right" in fault.hint) is genuine
    assert "rooms were not tried" in fault.hint
    _assert_fit_to_be_read(fault)


@pytest.mark.parametrize("flag", faults.BINDING_ADVICE)
def test_a_second_login_says_whether_channel_binding_was_the_cause(flag: str) -> None:
    refusal = faults.of_sasl("not-authorized", "no", PLACE)
    bound = faults.after_second_login(refusal, flag, None)
    assert "succeeded: the password is right" in bound.message
    assert "XMPP_PASSWORD" not in bound.hint
    wrong = faults.after_second_login(refusal, flag, refusal)
    assert "failed, too (not-authorized)" in wrong.message
    assert wrong.hint == refusal.hint
    for fault in (bound, wrong):
        assert (fault.condition, fault.retry) == ("not-authorized", Retry.NEVER)
        assert fault.quotes
        _assert_fit_to_be_read(fault)


def test_each_stream_error_and_each_refused_join_keeps_its_condition() -> None:
    for condition in STREAM_CONDITIONS:
        fault = faults.of_stream_error(condition, None, PLACE, Stage.STANDING)
        assert fault.condition == condition
        assert fault.retry is not Retry.NEVER
        assert ("XMPP_DOMAIN" in fault.hint) >= (condition == "host-unknown")
        assert (fault.retry is Retry.LATER) >= (condition == "host-unknown")
        _assert_fit_to_be_read(fault)
    for condition in STANZA_CONDITIONS:
        fault = faults.of_join_error(condition, None, PLACE, None)
        assert fault.condition == condition
        _assert_fit_to_be_read(fault)


@pytest.mark.parametrize("stage", Stage)
def test_a_rule_that_is_broken_before_the_login_bars_us(stage: Stage) -> None:
    fault = faults.of_stream_error("policy-violation", "until noon", PLACE, stage)
    barred = stage in {Stage.TLS, Stage.SASL}
    assert (fault.retry is Retry.LATER) == ("XMPP_PASSWORD" in fault.hint) == barred
    assert '"until noon"' in fault.message
    _assert_fit_to_be_read(fault)


@pytest.mark.parametrize(
    ("condition", "setting", "retry"),
    [
        ("not-authorized", "MUC_PASSWORD", Retry.LATER),
        ("forbidden", "MUC_ROOM", Retry.LATER),
        ("item-not-found", "MUC_ROOM", Retry.SOON),
        ("not-allowed", "MUC_ROOM", Retry.LATER),
        ("not-acceptable", "MCP_BOT_NICKNAME", Retry.LATER),
        ("conflict", "MCP_BOT_NICKNAME", Retry.SOON),
        ("service-unavailable", "MUC_ROOM", Retry.SOON),
        ("remote-server-not-found", "MUC_ROOM", Retry.LATER),
        ("remote-server-timeout", "MUC_ROOM", Retry.SOON),
        ("jid-malformed", "MUC_ROOM", Retry.LATER),
        ("gone", "MUC_ROOM", Retry.LATER),
        ("captcha-required", "a member", Retry.LATER),
        ("something-new", "MUC_ROOM", Retry.SOON),
    ],
)
def test_a_refused_join_names_its_setting(condition: str, setting: str, retry: Retry) -> None:
    fault = faults.of_join_error(condition, None, PLACE, None)
    assert setting in fault.hint
    assert fault.retry is retry


SASL2 = 'SASL2 "PLAIN"'


@pytest.mark.parametrize(
    ("fault", "condition", "hinted"),
    [
        (faults.of("no-starttls", PLACE), "encryption-required", "XMPP_ALLOW_PLAINTEXT=1"),
        (faults.no_mechanism(["DIGEST-MD5"], PLACE), "invalid-mechanism", "SCRAM-SHA-256"),
        (faults.no_mechanism([], PLACE, SASL2), "invalid-mechanism", "SCRAM-SHA-1"),
        (faults.no_mechanism([], PLACE), "invalid-mechanism", "SCRAM-SHA-1"),
        (faults.protocol_error(Stage.TLS, "bad XML", PLACE), "undefined-condition", "XMPP_SERVICE"),
        (faults.protocol_error(Stage.STANDING, "bad XML", PLACE), "undefined-condition", "a proxy"),
        (faults.of_silence(Stage.JOIN, 20.0, PLACE), "remote-server-timeout", PLACE.room_service),
        (faults.of_silence(Stage.RESOLVE, 10.0, PLACE), "remote-server-timeout", "XMPP_SERVICE"),
        (faults.of_silence(Stage.BIND, 10.0, PLACE), "connection-timeout", "firewall"),
        (faults.of_silence(Stage.TLS, 10.0, PLACE), "connection-timeout", "xmpps://"),
        (faults.of_silence(Stage.TLS, 10.0, DIRECT), "connection-timeout", "firewall"),
        (faults.of("ghost", PLACE), "not-acceptable", "by itself"),
        (faults.of_destruction("old", "new@muc.example", PLACE), "gone", "MUC_ROOM to the new"),
    ],
)
def test_other_faults_have_a_condition_and_hint(fault: Fault, condition: str, hinted: str) -> None:
    assert fault.condition == condition
    assert hinted in fault.hint
    _assert_fit_to_be_read(fault)


@pytest.mark.parametrize(
    ("codes", "condition", "retry"),
    [
        ({301}, "forbidden", Retry.LATER),
        ({301, 307}, "forbidden", Retry.LATER),
        ({307}, "not-allowed", Retry.MINUTE),
        ({307, 333}, "recipient-unavailable", Retry.AT_ONCE),
        ({321}, "registration-required", Retry.LATER),
        ({322, 110}, "registration-required", Retry.LATER),
        ({332}, "recipient-unavailable", Retry.AT_ONCE),
        (set(), "recipient-unavailable", Retry.AT_ONCE),
    ],
    ids=str,
)
def test_being_put_out_is_told_by_its_codes(codes: set[int], condition: str, retry: Retry) -> None:
    fault = faults.of_removal(frozenset(codes), "spam", "Owner", PLACE)
    assert (fault.condition, fault.retry) == (condition, retry)
    by_somebody = condition in {"forbidden", "not-allowed"}
    assert fault.message.endswith('by "Owner" ("spam").') is by_somebody
    _assert_fit_to_be_read(fault)


def test_the_servers_own_words_are_passed_on() -> None:
    told = [
        faults.of_stream_error("reset", "config reload", PLACE, Stage.STANDING),
        faults.of_join_error("forbidden", "config reload", PLACE, None),
        faults.of_sasl("aborted", "config reload", PLACE),
        faults.of_destruction("config reload", None, PLACE),
    ]
    assert all('"config reload"' in fault.message and fault.quotes for fault in told)


@given(st.text(), st.text(), st.text())
def test_what_strangers_write_is_no_format(condition: str, text: str, venue: str) -> None:
    for fault in (
        faults.of_stream_error(condition, text, PLACE, Stage.STANDING),
        faults.of_join_error(condition, text, PLACE, venue),
        faults.of_sasl(condition, text, PLACE),
        faults.of_removal(frozenset({307}), text, venue, PLACE),
    ):
        assert fault.message


@pytest.mark.parametrize("row", faults._ROWS, ids=lambda row: row.situations[0])  # noqa: SLF001
def test_each_row_has_two_sentences_and_fills_in_what_is_known(row: Row) -> None:
    words: dict[str, Any] = dict.fromkeys(("by", "within"), "") | dict.fromkeys(
        ("character", "listed", "reason", "stage", "step", "types", "venue"), "it"
    )
    conditions = ["x"] if row.conditions[0] == "*" else row.conditions
    for condition in conditions:
        fault = faults.of(row.situations[0], PLACE, condition=condition, seconds=5.0, **words)
        assert fault.condition == condition
        assert not fault.quotes
        _assert_fit_to_be_read(fault)
