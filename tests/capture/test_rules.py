"""Each rule, by a log of the trouble that it names, and its silence where there is none."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import escape
from itertools import chain

import pytest

from bridge.capture import causes
from bridge.capture.capture import Capture
from bridge.capture.stanza import HOLE
from tests.capture.deeds import DEEDS
from tests.capture.healthy import Passed
from tests.capture.logs import (
    ACCOUNT,
    ASK,
    HEADER,
    IN,
    JOIN,
    LOGIN,
    MECHANISMS,
    PUZZLE,
    ROOM,
    SASL,
    STARTTLS,
    USER,
    bounce,
    captured,
    error,
    examined,
    found,
    out,
    refusal,
    said,
    says,
    stream_error,
    timed,
)
from tests.capture.writers import WRITERS, written
from tests.docs.pages import PAGES, quoted, tables

QUIET = ["<<< <presence from='a@b' to='c@d'/>"] * 6


def history(nickname: str, body: str) -> str:
    delay = "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>"
    return said(nickname, body).replace("</message>", f"{delay}</message>")


REFUSES = f">>> <message to='{ROOM}/Ann' type='error'>{error('bad-request')}</message>"
ANNS = (
    f"<<< <presence from='{ROOM}/Ann' to='{ACCOUNT}'><x xmlns='{USER}'>"
    "<item affiliation='none' role='participant' jid='a.n@example.net/y'/></x></presence>"
)

SECRET = (
    f"<<< <message from='ROOM' to='{ACCOUNT}' type='chat'>"
    "<encrypted xmlns='eu.siacs.conversations.axolotl'/><body>OMEMO</body></message>"
)
GROUP_SECRET = SECRET.replace("ROOM", f"{ROOM}/Ann").replace("'chat'", "'groupchat'")
SENT_SECRET = (
    ">>> <message to='ann@example.net' type='chat'>"
    "<encrypted xmlns='eu.siacs.conversations.axolotl'/></message>"
)

CASES = {
    "ended by an error": (
        [*IN, says("hi"), stream_error("policy-violation")],
        ("ended", "error", 16, "one of its rules"),
    ),
    "cut at a period": (
        timed(*[*IN, "pause 60", "<<< </stream:stream>"] * 3),
        ("ended", "error", 15, "3 streams"),
    ),
    "ended for a forbidden character": (
        [*IN, says("a\x0bb"), stream_error("not-well-formed")],
        ("ended", "error", 16, "U+000B"),
    ),
    "closed after a silence": (
        timed(*IN, "pause 60", "<<< </stream:stream>"),
        ("ended", "error", 15, "60 s"),
    ),
    "broken without a word": ([*IN, *LOGIN], ("ended", "error", 14, "neither side")),
    "TLS not begun": (
        [
            f">>> {HEADER}",
            f"<<< <stream:features>{STARTTLS}{MECHANISMS}</stream:features>",
            f">>> <auth xmlns='{SASL}' mechanism='PLAIN'>AA==</auth>",
        ],
        ("tls", "error", 3, "requires TLS"),
    ),
    "TLS not begun, and the login not either": (
        [
            f">>> {HEADER}",
            f"<<< <stream:features>{STARTTLS}</stream:features>",
            stream_error("connection-timeout"),
        ],
        ("tls", "error", 3, "requires TLS"),
    ),
    "a forbidden character, and more behind it": (
        [*IN, says("a\x0bb"), says("b"), stream_error("not-well-formed")],
        ("ended", "error", 17, "U+000B"),
    ),
    "login refused": (
        [*LOGIN[:6], f"<<< <failure xmlns='{SASL}'><not-authorized/></failure>"],
        ("login", "error", 7, "user name and password"),
    ),
    "login refused for its channel binding": (
        [
            *LOGIN[:3],
            f">>> <auth xmlns='{SASL}' mechanism='SCRAM-SHA-1-PLUS'>cD10bHM=</auth>",
            f"<<< <failure xmlns='{SASL}'><not-authorized/></failure>",
        ],
        ("login", "error", 5, "channel binding"),
    ),
    "login taken for a downgrade": (
        [
            *LOGIN[:2],
            LOGIN[2].replace("SHA-1<", "SHA-1-PLUS<"),
            f">>> <auth xmlns='{SASL}' mechanism='SCRAM-SHA-1'>eSwsbj1ib3Q=</auth>",
            f"<<< <failure xmlns='{SASL}'><not-authorized/></failure>",
        ],
        ("login", "error", 5, "flag y"),
    ),
    "no mechanism in common": (
        [*LOGIN[:3], ">>> </stream:stream>"],
        ("login", "error", 4, "SCRAM-SHA-1"),
    ),
    "login given up": (
        [*LOGIN[:5], ">>> </stream:stream>"],
        ("login", "error", 6, "gave up its login"),
    ),
    "conflict of resources": (
        [*LOGIN, stream_error("conflict")],
        ("ended", "error", 13, "same account and resource"),
    ),
    "resumption refused": (
        [*LOGIN[:10], ">>> <resume xmlns='urn:xmpp:sm:3'/>", "<<< <failed xmlns='urn:xmpp:sm:3'/>"],
        ("session", "warning", 12, "resume"),
    ),
    "no acknowledgement": (
        timed(*LOGIN, ">>> <r xmlns='urn:xmpp:sm:3'/>", "pause 11", *QUIET),
        ("session", "warning", 13, "acknowledgement"),
    ),
    "negative priority": (
        [*LOGIN, ">>> <presence><priority>-1</priority></presence>"],
        ("session", "warning", 13, "-1"),
    ),
    "never joined": ([*LOGIN, says("hi")], ("join", "error", 13, "never asked")),
    "joined without a nickname": (
        [*LOGIN, ASK.replace("/bot", "", 1)],
        ("join", "error", 13, "nickname"),
    ),
    "joined without muc": (
        [*LOGIN, f">>> <presence to='{ROOM}/bot'/>", refusal("not-acceptable")],
        ("join", "error", 14, "muc element"),
    ),
    "refused by the room": (
        [*LOGIN, ASK, refusal("registration-required")],
        ("join", "error", 14, "members only"),
    ),
    "a CAPTCHA to solve": ([*LOGIN, ASK, PUZZLE], ("join", "error", 14, "https://x/1")),
    "refused, and not noticed": (
        [*LOGIN, ASK, refusal("registration-required"), says("hi")],
        ("join", "error", 15, "line 14"),
    ),
    "spoke too early": (
        [*LOGIN, ASK, says("hi"), refusal("forbidden"), bounce("not-acceptable")],
        ("join", "error", 14, "before its own presence"),
    ),
    "answers to the name that was taken": (
        [
            *LOGIN,
            ASK,
            refusal("conflict"),
            *[line.replace("/bot", "/bot2") for line in JOIN],
            said("Ann", "bot: hello"),
            says("hello"),
        ],
        ("join", "error", 18, '"bot"'),
    ),
    "answers to its old name": (
        [
            *LOGIN,
            ASK,
            JOIN[1]
            .replace("/bot", "/bot2")
            .replace("code='110'/>", "code='110'/><status code='210'/>"),
            said("Ann", "bot: hello"),
            says("hello"),
        ],
        ("join", "error", 16, '"bot"'),
    ),
    "kicked": ([*IN, out(307)], ("removed", "warning", 15, "kicked")),
    "banned, and went on": ([*IN, out(301), says("hi")], ("removed", "error", 16, "went on")),
    "put out of a room for members": ([*IN, out(321)], ("removed", "warning", 15, "members only")),
    "destroyed": (
        [*IN, out().replace("<item", "<destroy/><item")],
        ("removed", "warning", 15, "destroyed"),
    ),
    "shut down": ([*IN, out(307, 332)], ("removed", "warning", 15, "dropped")),
    "dropped with a reason in the status": (
        [*IN, out(333).replace("<x ", "<status>no DNS</status><x ")],
        ("removed", "warning", 15, 'dropped the client ("no DNS")'),
    ),
    "no voice": ([*IN, says("hi"), bounce("forbidden")], ("refused", "error", 16, "voice")),
    "not in the room": (
        [*IN, says("hi"), bounce("not-acceptable")],
        ("refused", "error", 16, "is not in it"),
    ),
    "too fast": (
        [*IN, says("hi"), bounce("resource-constraint")],
        ("refused", "error", 16, "too fast"),
    ),
    "disco not answered": (
        [
            *LOGIN,
            (
                "<<< <iq type='get' id='p' from='a@b'>"
                "<query xmlns='http://jabber.org/protocol/disco#info'/></iq>"
            ),
            *QUIET,
        ],
        ("unanswered", "warning", 13, "disco"),
    ),
    "chat to a room": (
        [*IN, says("hi", type_="chat"), bounce("bad-request")],
        ("refused", "error", 16, "groupchat"),
    ),
    "groupchat to an occupant": (
        [*IN, says("hi", f"{ROOM}/Ann"), bounce("bad-request", f"{ROOM}/Ann")],
        ("refused", "error", 16, "groupchat"),
    ),
    "unknown host": (
        [*LOGIN, says("hi", "a@nowhere", "chat"), bounce("remote-server-not-found", "a@nowhere")],
        ("refused", "error", 14, "a@nowhere"),
    ),
    "a ping not answered": (
        [*LOGIN, "<<< <iq type='get' id='p' from='a@b'><ping xmlns='urn:xmpp:ping'/></iq>", *QUIET],
        ("unanswered", "warning", 13, "ping"),
    ),
    "a request with an id that was used before not answered": (
        [
            *LOGIN,
            ">>> <iq type='get' id='q' to='a@b'><x xmlns='urn:x'/></iq>",
            "<<< <iq type='result' id='q' from='a@b'/>",
            ">>> <iq type='get' id='q' to='a@b'><x xmlns='urn:x'/></iq>",
            *QUIET,
        ],
        ("unanswered", "warning", 15, "a@b"),
    ),
    "its request not answered": (
        timed(
            *LOGIN, ">>> <iq type='get' id='q' to='a@b'><x xmlns='urn:x'/></iq>", "pause 10", *QUIET
        ),
        ("unanswered", "warning", 13, "a@b"),
    ),
    "silent": (
        timed(*IN, said("Ann", "bot: ping"), "pause 10", *QUIET),
        ("silent", "error", 15, "bot: ping"),
    ),
    "answered in private": (
        timed(*IN, said("Ann", "bot: ping"), says("pong", f"{ROOM}/Ann", "chat")),
        ("misplaced", "error", 16, "private"),
    ),
    "a command answered in private": (
        timed(*IN, said("Ann", "!ping"), says("pong", f"{ROOM}/Ann", "chat")),
        ("misplaced", "error", 16, "private"),
    ),
    "a command answered to the room with another type": (
        timed(*IN, said("Ann", "!ping"), says("pong", ROOM, "chat"), bounce("bad-request")),
        ("refused", "error", 17, "type chat"),
    ),
    "a command answered to who gave it, by the address in the presence": (
        timed(*IN, ANNS, said("Ann", "!ping"), says("pong", "a.n@example.net", "chat")),
        ("misplaced", "error", 17, "private"),
    ),
    "a command answered to who gave it, by the same name": (
        timed(*IN, said("Ann", "!ping"), says("pong", "ann@example.net/x", "normal")),
        ("misplaced", "error", 16, "private"),
    ),
    "words answered in private again": (
        timed(*IN, *[said("Ann", "what time?"), says("noon", f"{ROOM}/Ann", "chat")] * 2),
        ("misplaced", "error", 18, "private"),
    ),
    "a command answered in XHTML alone": (
        timed(
            *IN,
            said("Ann", "!ping"),
            f">>> <message to='{ROOM}' type='groupchat'><html xmlns='http://jabber.org/protocol/"
            "xhtml-im'><body xmlns='http://www.w3.org/1999/xhtml'><p>pong</p></body></html>"
            "</message>",
        ),
        ("misplaced", "error", 16, "without a body"),
    ),
    "answered in another room": (
        timed(
            *IN,
            *(line.replace("room@", "other@") for line in JOIN),
            said("Ann", "bot: ping"),
            says("pong", "other@muc.example.org"),
        ),
        ("misplaced", "error", 18, "other@"),
    ),
    "answered encrypted": (
        timed(
            *IN,
            said("Ann", "bot: ping"),
            says("x").replace("</mess", "<encrypted xmlns='urn:xmpp:omemo:1'/></mess"),
        ),
        ("misplaced", "error", 16, "encrypted"),
    ),
    "asked in private, encrypted": (
        timed(*IN, SECRET.replace("ROOM", "ann@example.net/x")),
        ("misplaced", "warning", 15, "OMEMO"),
    ),
    "asked encrypted by whom it answered before": (
        timed(*IN, said("Ann", "!ping"), says("pong"), GROUP_SECRET),
        ("misplaced", "warning", 17, "OMEMO"),
    ),
    "answered without a body": (
        timed(
            *IN,
            said("Ann", "bot: ping"),
            f">>> <message to='{ROOM}' type='groupchat'><x xmlns='a:b'/></message>",
        ),
        ("misplaced", "error", 16, "without a body"),
    ),
    "answered by hidden characters": (
        timed(*IN, said("Ann", "bot: ping"), says("\u200b\u2060")),
        ("misplaced", "error", 16, "without a body that people can see"),
    ),
    "answers itself": (
        timed(*IN, *[says("ho"), said("bot", "ho")] * 7),
        ("misplaced", "error", 27, "its own"),
    ),
    "answers the history": (
        timed(*LOGIN, JOIN[0], JOIN[1], history("Ann", "bot: ping"), says("Ann: pong")),
        ("misplaced", "error", 16, "history"),
    ),
    "answers commands of the history with their arguments": (
        timed(*IN, *[history("Ann", f"!ping {n}") for n in "12"], says("(1)"), says("(2)")),
        ("misplaced", "error", 18, "history"),
    ),
    "answers one command of the history with its long argument": (
        timed(*IN, history("Ann", "!echo good morning"), says("good morning")),
        ("misplaced", "error", 16, "history"),
    ),
    "answers commands of the history alike": (
        timed(*IN, *[history("Ann", "!ping")] * 2, *[says("pong")] * 2),
        ("misplaced", "error", 18, "history"),
    ),
    "answers the history as it answers later": (
        timed(
            *IN,
            history("Ann", "!ping"),
            says("pong"),
            "pause 9",
            said("Ann", "!ping"),
            says("pong"),
        ),
        ("misplaced", "error", 16, "history"),
    ),
    "in a loop without times": (
        [*IN, *[said("Other", "what?"), says("I do not know 1"), said("bot", "I do not know")] * 7],
        ("misplaced", "error", 31, "answer each other"),
    ),
    "silent though somebody stamped the question": (
        timed(*IN, said("Ben", "hi"), history("Ann", "bot: ping"), "pause 11", *QUIET),
        ("silent", "error", 16, "bot: ping"),
    ),
    "named without an answer": (
        timed(*IN, said("Ann", "is the bot asleep?"), "pause 11", *QUIET),
        ("silent", "warning", 15, "asleep"),
    ),
    "in a loop": (
        timed(*IN, *[said("Other", "bot: hi"), says("Other: hi")] * 6),
        ("misplaced", "error", 26, "answer each other"),
    ),
    "in a loop of three": (
        timed(*IN, *[said("Other", "so"), said("Third", "oh"), says("what?")] * 6),
        ("misplaced", "error", 32, '"Other" and "Third" answer each other'),
    ),
    "in a loop of bursts": (
        timed(*IN, *[said("Other", "so"), said("Other", "oh"), says("a"), says("b")] * 6),
        ("misplaced", "error", 37, "answer each other"),
    ),
    **{
        f"a private message against the room's rule, {condition}": (
            [*IN, says("psst", f"{ROOM}/Ann", "chat"), bounce(condition, f"{ROOM}/Ann")],
            ("refused", "error", 16, "muc#roomconfig_allowpm"),
        )
        for condition in ("policy-violation", "forbidden")
    },
    "a private message that came too fast": (
        [
            *IN,
            says("psst", f"{ROOM}/Ann", "chat"),
            bounce("resource-constraint", f"{ROOM}/Ann"),
        ],
        ("refused", "error", 16, "too fast"),
    ),
    "a message that came too fast": (
        [*IN, says("hi"), bounce("policy-violation")],
        ("refused", "error", 16, "too fast"),
    ),
    "put out without an item": (
        [*IN, re.sub("<item.*</item>", "", out(307))],
        ("removed", "warning", 15, "was kicked from the room"),
    ),
    "an answer after ten seconds": (
        timed(*IN, said("Ann", "bot: do it"), "pause 15", *QUIET, says("done")),
        ("silent", "error", 15, "within 10 s"),
    ),
    "another question answered": (
        [*IN, said("Ann", "bot: a"), *QUIET, said("Ben", "!b"), says("pong")],
        ("silent", "error", 15, "bot: a"),
    ),
    "speaking before the room lets it in, as others do inside": (
        [*LOGIN, ASK, says("hi"), said("Ann", "x"), bounce("not-acceptable")],
        ("join", "error", 14, "did not take it"),
    ),
    "an error to the room": (
        [*IN, f">>> <message to='{ROOM}' type='error'>{error('bad-request')}</message>"],
        ("misplaced", "error", 15, "error"),
    ),
    "an error to an occupant, for which the room puts it out": (
        timed(*IN, said("Ann", "hi"), REFUSES, out(333)),
        ("misplaced", "error", 16, "to an occupant of the room"),
    ),
    "a presence of type error to an occupant, for which the room puts it out": (
        timed(*IN, said("Ann", "hi"), REFUSES.replace("message", "presence"), out(333)),
        ("misplaced", "error", 16, "to an occupant of the room"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_rule_names_its_trouble_and_the_line(case: str) -> None:
    log, (name, severity, line, word) = CASES[case]
    findings = found(*log)
    assert (name, severity, line) in {(f.name, f.severity, f.place.line) for f in findings}, (
        findings
    )
    assert any(word in f.message + f.hint for f in findings if f.place.line == line), findings


@pytest.mark.parametrize("body", ["&#x110000;", "&#9999999;", r"\ud800", r"\x{110000}"])
def test_a_log_is_read_on_behind_what_stands_for_no_character(body: str) -> None:
    line = f">>> {says(body)[4:]!r}".replace(r"\\", "\\")
    (finding,) = found(*IN, line, said("Ann", "x"), stream_error("not-well-formed"))
    assert finding.cause == "not-xml"


@pytest.mark.parametrize("result", ["5", "null", '"<iq/>"'])
def test_an_object_with_a_result_of_another_program_is_read_on(result: str) -> None:
    line = f'{{"structuredContent": {result}, "xml": "<iq/>"}}'
    assert [each.cause for each in found(*IN, line, stream_error("conflict"))] == ["taken-over"]


def test_streams_that_end_after_different_times_are_cut_at_no_period() -> None:
    streams = ([*IN, f"pause {seconds}", "<<< </stream:stream>"] for seconds in (60, 90, 200))
    assert [each.cause for each in found(*timed(*chain(*streams)))] == ["closed"] * 3


def test_what_goes_to_the_whole_room_is_not_called_private_until_the_room_refuses_it() -> None:
    shown = list[str]()
    capture = Capture(on_new=lambda finding: shown.append(finding.name))
    for stanza in captured(*CASES["a command answered to the room with another type"][0]):
        capture.take(stanza)
    assert shown == ["refused"]


HEALTHY = timed(
    *LOGIN,
    ">>> <presence/>",
    *JOIN,
    history("Ann", "hello"),
    said("Ann", "bot: ping"),
    says("pong"),
    said("bot", "pong"),
    "<<< <iq type='get' id='p' from='a@b'><ping xmlns='urn:xmpp:ping'/></iq>",
    ">>> <iq type='result' id='p' to='a@b'/>",
    ">>> <iq type='get' id='q' to='a@b'><ping xmlns='urn:xmpp:ping'/></iq>",
    "<<< <iq type='result' id='q' from='a@b'/>",
    ">>> <r xmlns='urn:xmpp:sm:3'/>",
    "<<< <a xmlns='urn:xmpp:sm:3' h='1'/>",
    "pause 30",
    *[said("Ann", "well"), said("Ben", "yes")] * 20,
    f">>> <presence to='{ROOM}/bot' type='unavailable'/>",
    out(),
    ">>> </stream:stream>",
    "<<< </stream:stream>",
)


def test_a_healthy_stream_has_no_finding() -> None:
    assert found(*HEALTHY) == []
    assert found(*[line.partition(" ")[2] for line in HEALTHY]) == []


TYPING = "<composing xmlns='http://jabber.org/protocol/chatstates'/>"
REACTION = "<reactions xmlns='urn:xmpp:reactions:0' id='x'/><store xmlns='urn:xmpp:hints'/>"
FIX = "<replace xmlns='urn:xmpp:message-correct:0' id='m1'/>"
CROWD = [f"<<< <presence from='{ROOM}/n{number}' to='{ACCOUNT}'/>" for number in range(8)]
ELSEWHERE = "other@muc.example.org"
ASKED = said("Ann", "bot: do it")
MEMBERS = f"<<< <iq type='result' id='q' from='{ROOM}'/>"

EVENT = (
    f"<<< <message from='{ROOM}' to='{ACCOUNT}'><event xmlns='http://jabber.org/protocol/pubsub#"
    "event'><items node='urn:xmpp:mucsub:nodes:messages'/></event></message>"
)


def sends(content: str, type_: str = "groupchat") -> str:
    return f">>> <message to='{ROOM}' type='{type_}'>{content}</message>"


def admin(request: str) -> str:
    query = f"<query xmlns='http://jabber.org/protocol/muc#admin'>{request}</query>"
    return f">>> <iq type='set' id='q' to='{ROOM}'>{query}</iq>"


RIGHT = {
    "types, in a thread": [*IN, ASKED, sends(f"{TYPING}<thread>x</thread>"), says("ok")],
    "types, and stores nothing": [*IN, ASKED, sends(f"{TYPING}<no-store xmlns='urn:xmpp:hints'/>")],
    "reacts": [*IN, ASKED, sends(REACTION), "pause 11", *QUIET],
    "sets the subject": [*IN, ASKED, sends("<subject>x</subject>"), "pause 11", *QUIET],
    "kicks": [*IN, ASKED, admin("<item nick='Ben' role='none'/>"), MEMBERS, "pause 11", *QUIET],
    "asks for voice": [*IN, ASKED, sends("<x xmlns='jabber:x:data'/>", "normal"), says("ok")],
    "greets twice": [*LOGIN, *JOIN, history("Ann", "bot: ping"), says("I am bot."), says("Hi.")],
    "greets after the history of a": [*LOGIN, *JOIN, history("a", "bot: ping"), says("I am back")],
    "answers a command again and again": [*IN, *[said("Ann", "!roll"), says("4")] * 9],
    "relays": [
        *IN,
        *(line.replace("room@", "other@") for line in JOIN),
        *[said("Ann", "!x"), says("Ann: !x", ELSEWHERE), "pause 3"] * 3,
    ],
    "is among people who encrypt": [*IN, said("Ben", "!ping"), says("pong"), GROUP_SECRET],
    "encrypts, too": [*IN, *[SECRET.replace("ROOM", "ann@example.net/x")] * 2, SENT_SECRET],
    "whispers its help": [
        *[*IN, *[said("Ann", "!help"), says("x", f"{ROOM}/Ann", "chat"), "pause 9"] * 3],
        *[said("Ann", "!ping"), says("pong")],
    ],
    "whispers its help, having answered others": [
        *[*IN, said("Ann", "!ping"), says("pong"), "pause 9"],
        *[said("Ann", "!help"), says("x", f"{ROOM}/Ann", "chat")],
    ],
    "whispers before it answers the room": [
        *[*IN, said("Ann", "!ping"), says("wait", f"{ROOM}/Ann", "chat"), says("pong")],
    ],
    "refuses a question by an error": [
        *[*IN, ASKED, REFUSES, "pause 11", *QUIET],
    ],
    "hands a command's words to somebody": [
        *[*IN, *[said("Ann", "!tell Ben hi"), says("hi", f"{ROOM}/Ben", "chat")] * 3],
    ],
    "passes commands on": [*IN, *[said("Ann", "!x"), says("!x", "ann@example.net", "chat")] * 3],
    "tells its owner": [*IN, *[said("Ann", "!x"), says("Look", "boss@example.net", "chat")] * 3],
    "answers a private question": [
        *[*IN, said("Ann", "!ping", type="chat").replace(" type='groupchat'", "", 1)],
        says("pong", f"{ROOM}/Ann", "chat"),
    ],
    "greets everybody by name": [*IN, history("Ann", "!roll 3"), says("Hello Ann, 3 are here")],
    "greets as it says hello": [
        *[
            *IN,
            history("Ann", "!roll"),
            says("Hello"),
            "pause 9",
            said("Ann", "!hi"),
            says("Hello"),
        ],
    ],
    "corrects itself": [*IN, *[says("a").replace("</m", f"{FIX}</m"), said("bot", "a")] * 8],
    "shows progress": [*IN, *[says("a"), said("bot", "a"), "pause 0.5"] * 4],
    "passes over corrections": [*IN, ASKED.replace("</m", f"{FIX}</m"), "pause 11", *QUIET],
    "passes over quotes": [*IN, said("Ann", "> bot: yes\nFine."), "pause 11", *QUIET],
    "shows that it is away": [*IN, ASK, says("brb"), JOIN[1]],
    "has subscribed": [
        *LOGIN,
        says("hi"),
        EVENT,
        says("hi"),
    ],
    "gets a late answer": [*IN, admin(""), "pause 12", *QUIET, MEMBERS],
    "gets a late answer, as its library gives no ids": [
        *[*IN, admin("").replace(" id='q'", ""), "pause 12", *QUIET],
        MEMBERS.replace(" id='q'", ""),
    ],
    "answers in words that whoever pasted the log left out": [
        *[*IN, ASKED, sends("..."), "pause 11", *QUIET],
    ],
    "shows itself to somebody": [
        *[*LOGIN, ">>> <presence to='ann@example.net'/>", *JOIN, "pause 12", *QUIET, ASKED],
        says("ok"),
    ],
    "answers late": [*IN, ASKED, *CROWD, says("done")],
    "answers late, amid others": [*IN, ASKED, said("Ben", "x"), *CROWD, says("Ann: done")],
}
"""What may look wrong."""


@pytest.mark.parametrize("conduct", RIGHT)
def test_what_only_looks_wrong_is_not_named(conduct: str) -> None:
    if conduct != "answers late" and "amid" not in conduct:
        assert found(*timed(*RIGHT[conduct])) == []
    assert found(*[line for line in RIGHT[conduct] if "pause" not in line]) == []


@pytest.mark.parametrize(
    "after",
    [
        [out(307)],
        [out(333, more="<actor nick='Ben'/>")],
        [out(301)],
        [out(307, 332)],
        [out().replace("<item", "<destroy/><item")],
        [out(303, more="").replace("<item ", "<item nick='bot2' ")],
        ["pause 3", out(333)],
        [f">>> <presence to='{ROOM}/bot' type='unavailable'/>", out()],
        [">>> </stream:stream>", out()],
        [out(333).replace("/bot'", "/Ben'").replace("<status code='110'/>", "")],
    ],
)
def test_an_error_to_an_occupant_is_no_reason_for_what_else_puts_the_client_out(
    after: list[str],
) -> None:
    assert "misplaced" not in {
        it.name for it in found(*timed(*IN, said("Ann", "hi"), REFUSES, *after))
    }


def test_an_iq_of_type_error_is_an_answer_and_puts_nobody_out() -> None:
    log = [*IN, said("Ann", "hi"), REFUSES.replace("message", "iq"), out(333)]
    assert [each.name for each in found(*timed(*log))] == ["removed"]


def test_of_requests_that_were_answered_late_the_others_are_named() -> None:
    requests = [admin("").replace("'q'", f"'{number}'") for number in range(2)]
    (finding,) = found(*timed(*IN, *requests, "pause 12", *QUIET, MEMBERS.replace("'q'", "'0'")))
    assert (finding.place.line, "times" in finding.message) == (16, False)


UNSEEN = re.compile(r"[\d:. ]*|[\d:. ]*(>>>|<<<) <.*>|.*(>>>|<<<)")
"""What is left of lines if both ends of a cut are outside of stanzas. It looks like other
output."""


def cuts() -> Iterator[str]:
    """The log without 200 bytes, wherever that shows: cut in the middle of a line."""
    text = "\n".join(HEALTHY)
    lines = {*HEALTHY}
    for begin in range(0, len(text), 21):
        rest = text[:begin] + text[begin + 200 :]
        joined = rest[rest.rfind("\n", 0, begin) + 1 :].partition("\n")[0]
        if joined not in lines and not UNSEEN.fullmatch(joined):
            yield rest


def test_nothing_is_found_where_the_log_lost_two_hundred_bytes() -> None:
    for log in cuts():
        assert found(*log.split("\n")) == [], log


def passed() -> Iterator[Passed]:
    """The healthy stream, for any format."""
    before = 0.0
    for line in HEALTHY:
        at, arrow, xml = line.split(" ", 2)
        minutes, seconds = at.split(":")[1:]
        now = int(minutes) * 60 + float(seconds)
        yield Passed(now - before, arrow == ">>>", xml)
        before = now


def test_an_answer_that_is_logged_just_before_its_request_is_its_answer() -> None:
    answer = "<<< <iq type='result' id='q' from='a@b'/>"
    request = ">>> <iq type='get' id='q' to='a@b'><ping xmlns='urn:xmpp:ping'/></iq>"
    assert found(*LOGIN, answer, request, *QUIET) == []
    (unanswered,) = found(*LOGIN, answer, *QUIET, request, *QUIET)
    assert unanswered.name == "unanswered"


def is_whole(line: str) -> bool:
    """Whether what is left of two stanzas in one cut is one: a stranger could have sent it."""
    stanzas = [*captured(line)]
    return len(stanzas) == 1 and stanzas[0].element.tag != HOLE


@pytest.mark.parametrize("format_", WRITERS)
def test_nothing_is_missed_across_a_hole_in_any_format(format_: str) -> None:
    log, count = written(format_, passed()), 0
    lines = {*log.split("\n")}
    for begin in range(0, len(log) // 2, 183):
        head = log[log.rfind("\n", 0, begin) + 1 : begin]
        tail = log[begin + 200 :].partition("\n")[0]
        is_seen = re.search("<[a-z]", head) and ">" in tail[1:]
        if is_seen and head + tail not in lines and not is_whole(head + tail):
            count += 1
            names = {each.name for each in found(*(log[:begin] + log[begin + 200 :]).split("\n"))}
            assert names.isdisjoint({"unanswered", "silent", "join"}), head + tail
    assert count > 12


WAYS: dict[str, Callable[[str, str, str], list[str]]] = {
    "raw": lambda at, word, xml: [f"{at} {word} {xml}"],
    "escaped": lambda at, word, xml: [f"{at} {word} {escape(xml)}"],
    "below its word": lambda at, word, xml: [f"{at} {'IN' if word == '<<<' else 'OUT'}", xml],
}
"""How a log writes an entry: its time, its word, and the XML."""


@pytest.mark.parametrize("torn", ["<messasage>", "<mesage>", "<message to=/message>", "<m/ssage>"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_an_entry_whose_only_tag_is_damaged_is_a_hole(
    way: Callable[[str, str, str], list[str]], torn: str
) -> None:
    def names(*lines: str) -> list[str]:
        entries = (way(*line.split(" ", 2)) for line in timed(*lines))
        return [each.name for each in found(*chain.from_iterable(entries))]

    before, later = (*IN, said("Ann", "bot: ping")), ("pause 10", *QUIET)
    assert names(*before, *later) == ["silent"]
    assert names(*before, f">>> {torn}", *later) == []


@pytest.mark.parametrize(("words", "answers"), [("!ping", 1), ("what time is it", 2)])
def test_what_was_answered_before_should_be_answered_again(words: str, answers: int) -> None:
    for number in range(answers + 1):
        talk = [said("Ann", words), says("pong"), said("bot", "pong"), "pause 5"] * number
        log = timed(*IN, *talk, said("Ann", words), "pause 10", *QUIET)
        assert [each.name for each in found(*log)] == ["silent"] * (number == answers)


def test_words_that_were_passed_over_once_need_no_answer() -> None:
    spoken = [said("Ann", "!ping"), said("Ann", "hi"), "pause 1", says("It is noon."), "pause 5"]
    asked = [said("Ann", "!ping"), says("pong"), "pause 5"]
    log = timed(*IN, *asked, *spoken, said("Ann", "!ping"), "pause 10", *QUIET)
    assert found(*log) == []


ENABLED = "<<< <enabled xmlns='urn:xmpp:sm:3' id='x'/>"
RESUMED = "<<< <resumed xmlns='urn:xmpp:sm:3' previd='x' h='3'/>"


def test_a_resumed_session_is_still_in_its_rooms_and_was_not_broken_off() -> None:
    log = [*LOGIN, ENABLED, *JOIN, *LOGIN[:10], RESUMED, out(307), says("hi")]
    assert [(each.name, each.place.line) for each in found(*log)] == [
        ("removed", 27),
        ("removed", 28),
    ]


def test_a_session_that_is_resumed_twice_was_not_broken_off_where_the_log_begins_later() -> None:
    again, other = ([*LOGIN[:10], RESUMED.replace("='x'", f"='{id_}'")] for id_ in "xy")
    assert found(said("Ann", "hi"), *again, *again) == []
    assert [each.name for each in found(said("Ann", "hi"), *again, *other)] == ["ended"]


@pytest.mark.parametrize(
    ("end", "sessions"),
    [("", ("", "")), ("<<< </stream:stream>", ("", "")), ("", ("c2s1\tdebug\t", "c2s2\tdebug\t"))],
    ids=["broken", "ended", "in a server's log"],
)
def test_a_resumed_stream_is_of_the_account_whose_session_it_resumes(
    end: str, sessions: tuple[str, str]
) -> None:
    first, second = sessions
    log = [f"{first}{line}" for line in [*LOGIN, ENABLED, *JOIN, end] if line]
    log += [f"{second}{line}" for line in [*LOGIN[:10], RESUMED]]
    if first:  # the server sees it from the other side
        turned = {">>>": "RECV:", "<<<": "SEND:"}
        log = [re.sub(">>>|<<<", lambda arrow: turned[arrow[0]], line) for line in log]
    streams = examined(*log)
    assert [(each.stream.client.account, [*each.stream.rooms.by_jid]) for each in streams] == [
        (ACCOUNT, [ROOM])
    ] * 2


def test_the_page_says_what_each_rule_names() -> None:
    rows = [quoted(row[0]) for row in tables(PAGES["docs/explain.md"])["finding"]]
    assert {name for (name,) in rows} == {deed.rule for deed in DEEDS.values()} - {""}


def test_no_cause_takes_the_row_of_another() -> None:
    names = re.findall(
        r"(?m)^([a-z-]+): [a-z]+; (?:error|warning|note), ", inspect.getsource(causes)
    )
    assert len(names) > 90
    assert [name for name, times in Counter(names).items() if times > 1] == []
