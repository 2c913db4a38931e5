"""What is asked and not answered, and what comes back: of whom an error is believed."""

import pytest

from bridge.capture.verdict import UNKNOWN, verdict
from bridge.capture.waiting import MAX_WAITING
from tests.capture.logs import (
    ACCOUNT,
    IN,
    LOGIN,
    ROOM,
    bounce,
    error,
    examined,
    found,
    out,
    said,
    says,
    timed,
)

SM = "xmlns='urn:xmpp:sm:3'"
ASKED, GIVEN = f"<<< <r {SM}/>", f">>> <a {SM} h='1'/>"
ASKS, GOT = f">>> <r {SM}/>", f"<<< <a {SM} h='1'/>"
PINGS = [
    f"<<< <iq type='get' id='q{n}' from='u{n}@x/y'><ping xmlns='urn:xmpp:ping'/></iq>"
    for n in range(300)
]
ITEMS = "<query xmlns='http://jabber.org/protocol/disco#items'/>"
DISCO = f">>> <iq type='get' id='i1' to='rooms.example.org'>{ITEMS}</iq>"
SHOWN = f"<<< <iq type='result' id='i9' from='rooms.example.org'>{ITEMS}</iq>"
TALK = [said("Ann", str(number)) for number in range(8)]


def kinds(*log: str) -> set[tuple[str, str]]:
    return {(each.name, each.severity) for each in found(*log)}


UNANSWERED = {
    "ten a second": (timed(*IN, *PINGS), "unanswered"),
    "a hundred at once": (timed(*IN, *PINGS[:100], "pause 11", *TALK, step=0.01), "unanswered"),
    "more than we follow": (
        timed(*IN, *PINGS[: MAX_WAITING + 9], "pause 11", *TALK, step=0.001),
        "unanswered",
    ),
    "what another answered": (
        [*IN, DISCO, SHOWN.replace("rooms", "other"), *TALK],
        "unanswered",
    ),
    "what the client answered by another id": (
        [*IN, PINGS[0], PINGS[0].replace("get", "result").replace("<<<", ">>>"), *TALK],
        "unanswered",
    ),
    "r of the server": (timed(*IN, ASKED, "pause 11", *TALK), "session"),
    "r of the server, without times": ([*IN, ASKED, *TALK], "session"),
    "r of the server, again and again": (timed(*IN, *[ASKED, "pause 4"] * 5), "session"),
    "r of the client, again and again": (timed(*IN, *[ASKS, "pause 4", TALK[0]] * 5), "session"),
}


@pytest.mark.parametrize("case", UNANSWERED)
def test_what_is_never_answered_is_named_however_often_it_is_asked(case: str) -> None:
    log, rule = UNANSWERED[case]
    assert kinds(*log) == {(rule, "warning")}


ANSWERED = {
    "r of the server": timed(*IN, *[ASKED, GIVEN, "pause 4"] * 5),
    "a question by an answer of the same kind that was pasted beside it": [
        *IN,
        DISCO,
        SHOWN,
        *TALK,
    ],
    "several r by one a": timed(*IN, ASKED, ASKED, ASKED, GIVEN, "pause 11", *TALK),
    "a before its r": [*IN, *[GOT, ASKS, *TALK] * 3],
    "its a before the r of the server": [*IN, *[GIVEN, ASKED, *TALK] * 3],
    "only what was received": timed(PINGS[0], ASKED, "pause 11", *TALK, said("Ann", "bot: hi")),
    "of its server, before the log names the client": timed(
        ">>> <iq type='get' id='1' to='x.org'><ping xmlns='urn:xmpp:ping'/></iq>",
        "<<< <iq type='result' id='1' to='a@x.org/r' from='x.org'/>",
        "pause 11",
        *TALK,
    ),
    "only what was sent": [
        ">>> <iq type='get' id='1' to='a@b'><ping xmlns='urn:xmpp:ping'/></iq>",
        *[says(str(number)) for number in range(8)],
    ],
}


@pytest.mark.parametrize("case", ANSWERED)
def test_what_is_answered_or_cannot_be_known_is_not_named(case: str) -> None:
    assert kinds(*ANSWERED[case]) == set()


def no_id(line: str) -> str:
    return line.replace(" id='m1'", "")


NO_FROM = bounce("forbidden").replace(f" from='{ROOM}'", "").replace("<message ", "<message  ")
REFUSED = {
    "chat to the room, without ids": (
        [*IN, no_id(says("a", type_="chat")), no_id(bounce("bad-request"))],
        "to the whole room",
    ),
    "normal to the room, without ids": (
        [*IN, no_id(says("a", type_="normal")), no_id(bounce("service-unavailable"))],
        "to the whole room",
    ),
    "groupchat to an occupant, without ids": (
        [*IN, no_id(says("a", f"{ROOM}/Ann")), no_id(bounce("bad-request", f"{ROOM}/Ann"))],
        "to one occupant",
    ),
    "groupchat to an occupant, whose room answers": (
        [*IN, no_id(says("a", f"{ROOM}/Ann")), no_id(bounce("bad-request"))],
        "to one occupant",
    ),
    "groupchat to an address without a room": (
        [says("a", "lab"), bounce("jid-malformed", "lab")],
        "which is no room",
    ),
    "groupchat to a service, with the room behind it": (
        [*IN, says("a", "muc.example.org/lab"), bounce("item-not-found", "muc.example.org/lab")],
        'to "muc.example.org/lab", which is no room',
    ),
    "chat to a room of which the log has only talk": (
        [said("Ann", "hi"), says("a", type_="chat"), bounce("jid-malformed")],
        "to the whole room",
    ),
    "a subject in place of a body": (
        [*IN, says("a").replace("body>", "subject>"), bounce("forbidden")],
        "it has a subject and no body",
    ),
    "a subject beside a body": (
        [*IN, says("a").replace("<body", "<subject>a</subject><body"), bounce("forbidden")],
        "no voice",
    ),
    "without from": ([*IN, says("a"), NO_FROM], "no voice"),
    "from the client's server": ([*IN, says("a"), bounce("forbidden", "example.org")], "no voice"),
    "from the room's service": (
        [*IN, says("a"), bounce("remote-server-timeout", "muc.example.org")],
        "could not be reached",
    ),
    "an address in capitals": ([*IN, says("a"), bounce("forbidden", ROOM.upper())], "no voice"),
    "in an excerpt, what was said before it": ([says("x", id_="m9"), bounce("forbidden")], "voice"),
    "only what was received": ([bounce("forbidden", f"{ROOM}/Ann")], "no voice"),
    "the client's presence": (
        [
            ">>> <presence/>",
            f"<<< <presence to='{ACCOUNT}' type='error'>{error('not-authorized')}</presence>",
        ],
        "presence",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_came_back_is_named_with_or_without_ids(case: str) -> None:
    log, words = REFUSED[case]
    (finding,) = found(*log)
    assert (finding.name, finding.severity) == ("refused", "error")
    assert words in finding.message


NORMAL = says("a", type_="normal")


@pytest.mark.parametrize(
    ("log", "causes"),
    [
        ([*IN, NORMAL, "pause 12", *TALK], ["unread"]),
        ([*IN, NORMAL, *TALK[:3]], []),
        ([*IN, NORMAL, bounce("service-unavailable"), "pause 12", *TALK], ["bounced-chat"]),
        (
            [*IN, NORMAL, "pause 12", *TALK, bounce("service-unavailable"), *TALK],
            ["bounced-chat"],
        ),
        ([*IN, says("a", f"{ROOM}/Ann", type_="chat"), "pause 12", *TALK], []),
        ([*IN, NORMAL.replace("<body>a</body>", "<active/>"), "pause 12", *TALK], []),
        ([NORMAL, "pause 12", *TALK], []),
    ],
)
def test_a_type_that_no_room_passes_on_is_named_though_the_room_is_silent(
    log: list[str], causes: list[str]
) -> None:
    assert [each.cause for each in found(*timed(*log))] == causes


TYPING = "<composing xmlns='http://jabber.org/protocol/chatstates'/>"
RECEIPT = "<received xmlns='urn:xmpp:receipts' id='4'/><store xmlns='urn:xmpp:hints'/>"


@pytest.mark.parametrize(
    ("payload", "to", "kind", "cause"),
    [
        (f"<thread>t</thread>{TYPING}", "ann@x/y", "chat", "bounced-signal"),
        (RECEIPT, "ann@x/y", "normal", "bounced-signal"),
        (f"<body>hi</body>{TYPING}", "ann@x/y", "chat", "bounced"),
        (f"<encrypted xmlns='urn:xmpp:omemo:2'/>{TYPING}", "ann@x/y", "chat", "bounced"),
        (f"<data>hi</data>{TYPING}", "ann@x/y", "chat", "bounced"),
        (TYPING, f"{ROOM}/Ann", "chat", "bounced"),
        (TYPING, ROOM, "groupchat", "bounced"),
    ],
)
def test_a_signal_that_came_back_is_no_error_unless_a_room_refused_it(
    payload: str, to: str, kind: str, cause: str
) -> None:
    sent = says("", to, kind).replace("<body></body>", payload)
    (stream,) = examined(*IN, sent, bounce("service-unavailable", to))
    assert [each.cause for each in stream.findings()] == [cause]


@pytest.mark.parametrize("payload", [TYPING, RECEIPT, "<body>hi</body>"])
def test_an_error_may_repeat_the_signal_that_it_refuses(payload: str) -> None:
    back = bounce("service-unavailable", "ann@x").replace("<error", f"{payload}<error", 1)
    (stream,) = examined(back)
    is_error = any(each.severity == "error" for each in stream.findings())
    assert is_error == ("body" in payload)
    assert verdict(stream.findings()).startswith(UNKNOWN) != is_error


FRIEND = "<<< <{} from='ann@x/y' to='bot@example.org/r' type='error' id='z'>{}</{}>"
OTHERS = {
    "an occupant bounces in the room's name": [
        *[*IN, says("a"), bounce("forbidden", f"{ROOM}/Eve")],
    ],
    "a stranger, with the message's id": [*IN, says("a"), bounce("gone", "eve@evil.example/x")],
    "a stranger, without a message": [*IN, FRIEND.format("message", error("gone"), "message")],
    "a friend who is not there": [*IN, FRIEND.format("presence", error("gone"), "presence")],
    "what was asked of a friend": [
        *[*IN, ">>> <iq type='get' id='z' to='ann@x/y'><q xmlns='urn:q'/></iq>"],
        FRIEND.format("iq", error("service-unavailable"), "iq"),
    ],
}


@pytest.mark.parametrize("case", OTHERS)
def test_an_error_of_others_accuses_nobody_and_is_not_passed_over(case: str) -> None:
    log = OTHERS[case]
    assert found(*log) == []
    (note,) = examined(*log)[0].findings()
    assert note.severity == "note"
    assert verdict([note]).startswith(f"No error was found. bot.log:{len(log)}: ")


STRAY = "<<< <message from='a@x/y' to='bot@example.org/r'>x<body>hi</body></message>"
ODD = "<<< <iq from='a@x/y' type='set' id='9'><a/><b/></iq>"


@pytest.mark.parametrize("odd", [STRAY, ODD])
def test_an_odd_stanza_of_a_stranger_hides_nothing(odd: str) -> None:
    log = [*IN, said("Ann", "bot: ping"), PINGS[0], "pause 5", odd, "pause 6", *TALK]
    assert {each.name for each in found(*timed(*log))} == {"silent", "unanswered"}


def test_the_verdict_counts_the_errors_of_others() -> None:
    log = OTHERS["a friend who is not there"]
    (stream,) = examined(*log, log[-1].replace("gone", "forbidden"))
    assert "Others of that kind: 1." in verdict(stream.findings())


def test_a_request_before_bind_is_told_to_wait_for_it() -> None:
    roster = "<query xmlns='jabber:iq:roster'/>"
    for login in ([], LOGIN[:9]):
        asked = f">>> <iq type='get' id='r1'>{roster}</iq>"
        answer = f"<<< <iq type='error' id='r1'>{roster}{error('not-authorized')}</iq>"
        (finding,) = found(*login, asked, answer)
        assert (finding.name, "resource" in finding.hint) == ("session", True)


def test_the_advice_for_a_message_after_a_ban_is_to_have_it_lifted() -> None:
    log = [*IN, out(301), says("a", f"{ROOM}/Ann", "chat"), bounce("not-acceptable", f"{ROOM}/Ann")]
    (refused,) = (each for each in found(*log) if each.name == "refused")
    assert "lift the ban" in refused.hint


@pytest.mark.parametrize(
    ("address", "condition", "cause"),
    [
        (f"{ROOM}/bot", "not-acceptable", "refused-outside"),
        (f"{ROOM}/bot", "service-unavailable", "refused-request"),
        (ROOM, "not-acceptable", "refused-request"),
        ("rooms.example.org", "not-acceptable", "refused-request"),
    ],
)
def test_who_pings_itself_in_a_room_learns_that_it_is_not_in_it(
    address: str, condition: str, cause: str
) -> None:
    ping = f">>> <iq type='get' id='s1' to='{address}'><ping xmlns='urn:xmpp:ping'/></iq>"
    refused = f"<<< <iq type='error' id='s1' from='{address}'>{error(condition)}</iq>"
    (stream,) = examined(*LOGIN, ping, refused)
    (finding,) = (each for each in stream.findings() if each.name == "refused")
    assert (finding.cause, finding.severity) == (cause, "note")
    assert condition in verdict([finding])
