"""What is wrong on the way to a session: SASL, a resource, stream management, who is believed."""

from base64 import b64encode

import pytest

from bridge.capture.verdict import UNKNOWN, verdict
from tests.capture.logs import (
    ACCOUNT,
    BIND,
    HEADER,
    IN,
    LOGIN,
    SASL,
    error,
    examined,
    found,
    said,
    says,
    stream_error,
)

SM = "xmlns='urn:xmpp:sm:3'"
OPEN = [f">>> {HEADER}", f"<<< {HEADER}"]
N, Y, P = "biwsbj1ib3Q=", "eSwsbj1ib3Q=", "cD10bHM="


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def offer(*mechanisms: str) -> str:
    every = "".join(f"<mechanism>{each}</mechanism>" for each in mechanisms)
    offered = f"<mechanisms xmlns='{SASL}'>{every}</mechanisms>"
    return f"<<< <stream:features>{offered}</stream:features>"


def auth(mechanism: str, data: str = "") -> str:
    return f">>> <auth xmlns='{SASL}' mechanism='{mechanism}'>{data}</auth>"


def failure(condition: str) -> str:
    return f"<<< <failure xmlns='{SASL}'><{condition}/></failure>"


CHALLENGE = f"<<< <challenge xmlns='{SASL}'>cj14</challenge>"
EMPTY = f">>> <response xmlns='{SASL}'/>"
CLOSE = ">>> </stream:stream>"
SUCCESS = f"<<< <success xmlns='{SASL}'/>"
ANSWER = f">>> <response xmlns='{SASL}'>Yz1iaXdz</response>"
SCRAM, PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"

REFUSALS = {
    "y and malformed": ([offer(SCRAM), auth(SCRAM, Y), failure("malformed-request")], "flag y"),
    "y where PLUS is offered": (
        [offer(SCRAM, PLUS), auth(SCRAM, Y), CHALLENGE, ANSWER, failure("not-authorized")],
        "flag y",
    ),
    "y with nothing offered": (
        [offer(SCRAM), auth(SCRAM, Y), CHALLENGE, ANSWER, failure("not-authorized")],
        "user name and password",
    ),
    "p": ([offer(SCRAM, PLUS), auth(PLUS, P), failure("malformed-request")], "channel binding"),
    "not offered": (
        [offer("PLAIN"), auth(SCRAM, N), failure("invalid-mechanism")],
        "a mechanism that the server offers",
    ),
    "nothing in PLAIN": ([offer("PLAIN"), auth("PLAIN"), failure("malformed-request")], "empty"),
    "a sign for nothing in PLAIN": (
        [offer("PLAIN"), auth("PLAIN", "="), failure("not-authorized")],
        "empty",
    ),
    "nothing in SCRAM": (
        [offer(SCRAM), auth(SCRAM, N), CHALLENGE, EMPTY, failure("not-authorized")],
        "empty",
    ),
    "nothing in DIGEST-MD5": (
        [offer("DIGEST-MD5"), auth("DIGEST-MD5"), CHALLENGE, EMPTY, failure("not-authorized")],
        "empty",
    ),
    "DIGEST-MD5 beside SCRAM": (
        [
            offer("DIGEST-MD5", SCRAM),
            auth("DIGEST-MD5"),
            CHALLENGE,
            ANSWER,
            failure("not-authorized"),
        ],
        SCRAM,
    ),
    "CRAM-MD5 beside PLAIN": (
        [
            offer("PLAIN", "CRAM-MD5"),
            auth("CRAM-MD5"),
            CHALLENGE,
            ANSWER,
            failure("not-authorized"),
        ],
        "another",
    ),
    "DIGEST-MD5 alone": (
        [offer("DIGEST-MD5"), auth("DIGEST-MD5"), CHALLENGE, ANSWER, failure("not-authorized")],
        "user name and password",
    ),
    "malformed": ([offer(SCRAM), auth(SCRAM, N), failure("malformed-request")], "library"),
    "base64 that is none": (
        [offer("PLAIN"), auth("PLAIN", "AAAA"), failure("incorrect-encoding")],
        "library",
    ),
    "a token": (
        [offer("XOAUTH2"), auth("XOAUTH2", N), CHALLENGE, EMPTY, failure("not-authorized")],
        "such as a token",
    ),
    "the whole address as the user name": (
        [offer(SCRAM), auth(SCRAM, base64(b"n,,n=bot@x,r=x")), failure("malformed-request")],
        "part before the at sign",
    ),
    "the whole address as the user name, in PLAIN": (
        [offer("PLAIN"), auth("PLAIN", base64(b"\0bot@x\0x")), failure("not-authorized")],
        "part before the at sign",
    ),
    "no user name": (
        [offer(SCRAM), auth(SCRAM, base64(b"n,,n=,r=x")), failure("malformed-request")],
        "or its user name is",
    ),
    "an at sign in the password": (
        [offer("PLAIN"), auth("PLAIN", base64(b"\0bot\0x@x")), failure("not-authorized")],
        "user name and password",
    ),
    "a certificate": (
        [offer("EXTERNAL", SCRAM), auth("EXTERNAL", "="), failure("not-authorized")],
        "a mechanism that checks a password",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
@pytest.mark.parametrize("whole", [True, False])
def test_a_refused_login_is_about_what_the_client_sent(case: str, whole: bool) -> None:
    log, words = REFUSALS[case]
    (finding,) = found(*(OPEN if whole else []), *log)
    assert (finding.name, finding.severity) == ("login", "error")
    assert words in finding.message + finding.hint


def test_the_flag_is_a_note_where_the_password_is_refused() -> None:
    (stream,) = examined(*OPEN, *REFUSALS["y with nothing offered"][0])
    assert [each.severity for each in stream.findings()] == ["error", "note"]


@pytest.mark.parametrize(
    ("flag", "offered"), [(Y, [SCRAM, PLUS]), (N, [SCRAM, PLUS]), (Y, [SCRAM])]
)
def test_the_flag_y_is_a_warning_where_a_server_that_offers_binding_lets_it_pass(
    flag: str, offered: list[str]
) -> None:
    (stream,) = examined(*OPEN, offer(*offered), auth(SCRAM, flag), CHALLENGE, ANSWER, SUCCESS)
    named = [(each.name, each.severity) for each in stream.findings() if "flag y" in each.message]
    assert named == ([("login", "warning")] if (flag, PLUS in offered) == (Y, True) else [])


def test_nothing_in_common_cites_the_line_of_the_offer() -> None:
    (finding,) = found(*OPEN, offer(SCRAM), CLOSE)
    assert (finding.name, "(in line 3)" in finding.message) == ("login", True)


def test_tls_that_was_not_begun_cites_the_line_of_the_offer() -> None:
    required = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>"
    (finding,) = found(
        *OPEN,
        f"<<< <stream:features>{required}</stream:features>",
        auth("PLAIN", "AAAA"),
        stream_error("policy-violation"),
    )
    assert finding.name == "tls"
    assert finding.message.endswith("TLS (in line 3), and the client did not begin it.")


def test_a_login_of_which_the_log_has_one_side_was_not_given_up() -> None:
    sent = [line for line in LOGIN if line.startswith(">>>")]
    assert found(*sent, *sent) == []


ASK = LOGIN[10]
TAKEN = f"<<< <iq type='error' id='b'>{error('conflict')}</iq>"
BOUND = LOGIN[11]
NO_RESOURCE = {
    "and it closes": ([*LOGIN[:10], ASK, TAKEN, CLOSE], [("session", "error")]),
    "and it connects again": (
        [*LOGIN[:10], ASK, TAKEN, *LOGIN],
        [("session", "error")],
    ),
    "in an excerpt": ([ASK, TAKEN], [("session", "warning")]),
    "in an excerpt of what it got": (
        [TAKEN.replace("<error", f"<bind xmlns='{BIND}'/><error")],
        [("session", "warning")],
    ),
    "with another reason": (
        [ASK, TAKEN.replace("conflict", "resource-constraint"), CLOSE],
        [("session", "error")],
    ),
    "and it takes another": (
        [*LOGIN[:10], ASK, TAKEN, ASK, BOUND, CLOSE],
        [("session", "warning")],
    ),
}


@pytest.mark.parametrize("case", NO_RESOURCE)
def test_a_resource_that_was_refused_is_an_error_if_the_client_gives_up(case: str) -> None:
    log, kinds = NO_RESOURCE[case]
    assert [(each.name, each.severity) for each in found(*log)] == kinds


FORGED = (
    "<<< <iq type='result' id='{}' from='{}' to='bot@example.org/r'>"
    f"<bind xmlns='{BIND}'><jid>evil@evil.example/x</jid></bind></iq>"
)


@pytest.mark.parametrize("id_", ["b", "x"])
@pytest.mark.parametrize("before", [LOGIN, LOGIN[:11], []])
def test_the_answer_of_another_to_bind_names_no_account(id_: str, before: list[str]) -> None:
    (stream,) = examined(*before, FORGED.format(id_, "evil@evil.example/x"))
    assert stream.stream.client.account in {ACCOUNT, ""}


def test_a_second_answer_to_bind_names_no_account() -> None:
    answer = FORGED.format("x", "evil").replace(" from='evil'", "")
    (stream,) = examined(*LOGIN, answer)
    assert stream.stream.client.account == ACCOUNT


ENABLE, ENABLED = f">>> <enable {SM}/>", f"<<< <enabled {SM} id='x'/>"
R, A = f">>> <r {SM}/>", f">>> <a {SM} h='{{}}'/>"
GOT_R, GOT_A = f"<<< <r {SM}/>", f"<<< <a {SM} h='{{}}'/>"
SAID, RESUMED = said("Ann", "a"), f"<<< <resumed {SM} previd='x' h='3'/>"
MANAGED = {
    "r without enable": ([*IN, R, says("a")], ["had not enabled"]),
    "a without enable": ([*IN, A.format(3), says("a")], ["had not enabled"]),
    "a for more than came": (
        [*LOGIN, ENABLE, ENABLED, said("Ann", "a"), GOT_R, A.format(3), says("b"), says("c")],
        ["acknowledged 3 stanzas, and had got 1"],
    ),
    "the server's a for more than went": (
        [*LOGIN, ENABLE, ENABLED, says("b", "a@x", "chat"), R, GOT_A.format(9), said("Ann", "a")],
        ["acknowledged 9 stanzas, and had got 1"],
    ),
    "enabled at once": ([*LOGIN, ENABLE, R, ENABLED, GOT_A.format(0)], []),
    "the log lost that it was enabled": ([*LOGIN, R, GOT_A.format(0)], []),
    "an excerpt": ([R, GOT_A.format(7), A.format(7)], []),
    "what came": (
        [
            *LOGIN,
            ENABLE,
            ENABLED,
            said("Ann", "a"),
            GOT_R,
            A.format(1),
            said("Ann", "b"),
            A.format(2),
        ],
        [],
    ),
    "a just before what it acknowledges": (
        [*LOGIN, ENABLE, ENABLED, GOT_R, A.format(1), said("Ann", "a"), said("Ann", "b")],
        [],
    ),
    "a resumed session": (
        [
            *LOGIN[:10],
            f">>> <resume {SM}/>",
            f"<<< <resumed {SM} previd='x' h='3'/>",
            GOT_R,
            A.format(99),
            said("Ann", "a"),
        ],
        [],
    ),
    "what counts in no number": (
        [*LOGIN, ENABLE, ENABLED, *map(GOT_A.format, ("x", "9" * 5_000)), said("Ann", "a")],
        [],
    ),
    "after a hole": (
        [*LOGIN, ENABLE, ENABLED, "<<< <message from='x", A.format(4), said("A", "b")],
        [],
    ),
    "only failed": ([f"<<< <failed {SM} h='3'/>"], ["refused to resume"]),
    "enable refused": ([*LOGIN, ENABLE, f"<<< <failed {SM}/>"], []),
}


@pytest.mark.parametrize("case", MANAGED)
def test_stream_management_is_judged_by_what_was_enabled_and_counted(case: str) -> None:
    log, words = MANAGED[case]
    findings = [each for each in found(*log) if each.name == "session"]
    assert [each.severity for each in findings] == ["warning"] * len(words)
    assert all(word in each.message for word, each in zip(words, findings, strict=True))


def test_who_is_replaced_by_another_session_was_ended() -> None:
    (finding,) = found(*IN, stream_error("conflict"), "<<< </stream:stream>")
    assert (finding.name, finding.severity) == ("ended", "error")
    assert "Another session took over" in finding.message


@pytest.mark.parametrize(
    ("log", "what"),
    [
        (LOGIN[:4], "auth"),
        (LOGIN[:6], "response"),
        (LOGIN[:8], "stream"),
        ([*LOGIN[:2], ">>> <starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"], "starttls"),
    ],
)
def test_where_the_log_ends_while_the_client_waits_that_is_noted(log: list[str], what: str) -> None:
    notes = [note for each in examined(*log) for note in each.findings()]
    assert notes[-1].cause == "stops-at-question"
    assert f"before the server answered the client's {what} in line" in notes[-1].message
    sent = [line for line in log if line.startswith(">")]
    notes = [note for each in examined(*sent) for note in each.findings()]
    assert "stops-at-question" not in {note.cause for note in notes}


@pytest.mark.parametrize(("entries", "what"), [(2, "stream"), (5, "challenge"), (9, "stream")])
def test_where_the_log_ends_while_the_server_waits_that_is_noted(entries: int, what: str) -> None:
    log = LOGIN[:entries]
    for lines, is_noted in ((log, True), ([each for each in log if each.startswith("<")], False)):
        notes = [note.message for each in examined(*lines) for note in each.findings()]
        words = f"before the client answered the server's {what} in line {entries}"
        assert any(words in each for each in notes) == is_noted, notes


@pytest.mark.parametrize("entries", range(1, len(LOGIN)))
@pytest.mark.parametrize("sides", ["<>", "<", ">"])
def test_a_log_that_stops_on_the_way_to_a_session_clears_nobody(entries: int, sides: str) -> None:
    log = [line for line in LOGIN[:entries] if line[0] in sides]
    findings = [each for it in examined(*log) for each in it.findings()] if log else []
    assert not log or verdict(findings).startswith(UNKNOWN), findings


def test_what_is_no_address_of_a_room_is_named() -> None:
    join = "<presence to='hubot/bot'><x xmlns='http://jabber.org/protocol/muc'/></presence>"
    (finding,) = found(*LOGIN, f">>> {join}")
    assert (finding.name, finding.cause) == ("join", "no-room")
    assert '"hubot/bot", which is no room' in finding.message


TLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'>{}</starttls>"
REQUIRED = f"<<< <stream:features>{TLS}</stream:features>"


@pytest.mark.parametrize(
    ("log", "found_tls"),
    [
        ([*OPEN, auth("PLAIN", "AGI="), REQUIRED.format("<required/>")], True),
        ([*OPEN, offer("PLAIN"), auth("PLAIN", "AGI="), failure("encryption-required")], True),
        ([*OPEN, auth("PLAIN", "AGI="), REQUIRED.format("")], False),
        ([*OPEN, REQUIRED.format("<required/>")], False),
        ([auth("PLAIN", "AGI="), REQUIRED.format("<required/>")], False),
    ],
)
def test_a_login_before_the_server_requires_tls_is_named(log: list[str], found_tls: bool) -> None:
    assert [each.name for each in found(*log) if each.severity == "error"] == ["tls"] * found_tls


REFUSED = [auth("PLAIN", "AGI="), failure("encryption-required")]
SECURED = [f">>> {TLS.format('')}", f"<<< {TLS.format('').replace('starttls', 'proceed')}", *OPEN]


@pytest.mark.parametrize(
    ("log", "name", "words"),
    [
        (
            REFUSED,
            "tls",
            "requires TLS, and the client did not begin it. Switch STARTTLS on in the c",
        ),
        ([*OPEN, REQUIRED.format(""), *REFUSED], "tls", "requires TLS (in line 3), and"),
        (
            [*OPEN, offer("PLAIN"), *REFUSED],
            "tls",
            "no STARTTLS (in line 3), and the client did not begin it. Switch STARTTLS on in the s",
        ),
        ([*OPEN, *SECURED, offer("PLAIN"), *REFUSED], "login", "encryption-required"),
        (
            [*LOGIN[:5], f">>> <abort xmlns='{SASL}'/>", failure("aborted")],
            "login",
            "after the server's challenge",
        ),
    ],
)
def test_a_login_that_was_refused_or_given_up_is_told_by_what_passed_before(
    log: list[str], name: str, words: str
) -> None:
    (finding,) = (each for each in found(*log) if each.severity == "error")
    assert finding.name == name
    assert words in f"{finding.message} {finding.hint}"
