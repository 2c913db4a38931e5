"""Whether the bridge's message came on a bot's stream, and what the bot sent then."""

import fcntl
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.recording.tapped import lock_file
from bridge.text import iso
from bridge.tools import botlog
from bridge.xmpp.checks.diagnosis import Conclusion, find
from bridge.xmpp.checks.evidence import Evidence
from bridge.xmpp.model.events import MessageReceived, MessageSent
from tests.capture import logs
from tests.capture.logs import ASK, HEADER, IN, LOGIN, ROOM
from tests.xmpp.checks import watching

ASKED = 1_000_000.0
"""When the bridge asked, in seconds."""
QUESTION = logs.said("me", "!ping", id="own-1")
PUBSUB = "<pubsub xmlns='u:p'/>"
ENDS = "<<< </stream:stream>"
SECRET = f">>> <auth xmlns='{logs.SASL}' mechanism='PLAIN'>biwsbj1ib3Qscj14</auth>"
REFUSED = f"<<< <failure xmlns='{logs.SASL}'><not-authorized/></failure>"


def concluded(
    folder: Path,
    *lines: str,
    seconds: float = 5.0,
    there: bool = True,
    runs: bool = True,
    id_: str | None = "own-1",
) -> Conclusion:
    """What comes of a silent bot and of what `tap`, if it still `runs`, keeps of its stream.

    Each line came a tenth of a second after the one before, and the last `seconds` before now.
    """
    path, lock = lock_file(folder, "bot@example.org")
    if not runs:
        fcntl.flock(lock, fcntl.LOCK_UN)
    try:
        begin = ASKED - 0.1 * (lines.index(QUESTION) if QUESTION in lines else len(lines))
        with path.open("w", encoding="utf-8") as file:
            for number, line in enumerate(lines):
                direction = "out" if line.startswith(">") else "in"
                entry = {"at": iso(begin + number / 10), "direction": direction}
                rooms = {"rooms": [ROOM]} if HEADER in line else {}
                session = str(1 + sum(it == ENDS for it in lines[:number]))
                entry |= {"connection": session, "xml": line[4:]}
                file.write(json.dumps(entry | rooms) + "\n")
        bot = replace(watching.BOT, jid=f"{ROOM}/bot", nickname="bot") if there else None
        said = MessageReceived(f"{ROOM}/me", "me", "!ping", id=id_, own=True, reflects="own-1")
        acts: list[watching.Act] = [
            (ASKED, MessageSent(f"{ROOM}/me", "me", "!ping", "own-1")),
            (ASKED, said),
        ]
        known = watching.evidence(acts, occupant=bot, room=ROOM, now=ASKED + seconds)
        known = known._replace(nickname="bot")
        kept = botlog.tapped(folder, known)
        return find(known._replace(stream=kept and kept[1]))
    finally:
        os.close(lock)


def absent(seconds: float) -> Evidence:
    """What the room shows of a bot that is not there, so long after the bridge has asked."""
    return watching.evidence([], occupant=None, room=ROOM, now=ASKED + seconds, nickname="bot")


def sends(xml: str) -> str:
    return f">>> {xml}"


@pytest.mark.parametrize(
    ("sent", "did"),
    [
        ([], "has sent nothing since."),
        ([sends("<a xmlns='urn:xmpp:sm:3' h='3'/>")], "has sent nothing since."),
        ([sends("<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>")], "has sent nothing"),
        (
            [logs.says("pong", to="ann@example.org", type_="chat")],
            'sent a message of type "chat" to "ann@example.org" with the body "pong" after 100 ms.',
        ),
        (
            [sends("<message to='*@example.org' type='chat'><body/></message>")],
            'then sent a message of type "chat" to an address at "example.org" after 100 ms.',
        ),
        (
            [sends(f"<presence to='{ROOM}/bot'><status>pong</status></presence>")],
            f'then sent presence to "{ROOM}/bot" after 100 ms.',
        ),
        (
            [sends("<iq type='set' id='s'><pubsub xmlns='u:p'/></iq>")],
            'then sent a request with "pubsub" after 100 ms.',
        ),
        (
            [sends(f"<message to='{ROOM}' type='groupchat'><composing xmlns='u:c'/></message>")],
            f'to "{ROOM}" without a body but with "composing" after 100 ms.',
        ),
        (
            [logs.says("pong").replace(" to=", " from='other@example.org' to=", 1)],
            'with the body "pong" after 100 ms.',
        ),
        ([sends("<")], "then sent something that is no whole stanza after 100 ms."),
        ([sends("</stream:stream>")], "then ended its connection after 100 ms."),
        (
            [sends(f"<presence to='{ROOM}/bot'/>")] * 5,
            f'sent presence to "{ROOM}/bot" after 100 ms (5 times).',
        ),
        (
            [sends(f"<iq type='set'>{PUBSUB * 99}</iq>")],
            f'a request with "{"pubsub, " * 10}…" after 100 ms.',
        ),
        (
            [logs.says(f"{number}", to="ann@example.org") for number in range(5)],
            'with the body "2" after 300 ms, did 2 more things.',
        ),
    ],
)
def test_of_a_message_that_reached_it_is_told_what_it_did_then(
    sent: list[str], did: str, tmp_path: Path
) -> None:
    conclusion = concluded(tmp_path, *IN, QUESTION, *sent)
    assert '"!ping" reached "bot", which ' in conclusion.verdict, conclusion
    assert did in conclusion.verdict, conclusion


@pytest.mark.parametrize(("body", "came"), [("!ping", "reached"), ("other", "did not reach")])
def test_where_a_room_gives_no_ids_back_the_message_is_known_by_its_body(
    body: str, came: str, tmp_path: Path
) -> None:
    question = logs.said("me", body, id="x").replace(" id='x'", "")
    assert f'"!ping" {came} "bot"' in concluded(tmp_path, *IN, question, id_=None).verdict


def test_after_ten_seconds_its_silence_is_the_cause(tmp_path: Path) -> None:
    conclusion = concluded(tmp_path, *IN, QUESTION, seconds=10.0)
    assert (conclusion.outcome, conclusion.finding) == ("cause", "stream")
    assert "silent: " in conclusion.verdict
    assert "has sent nothing since" not in conclusion.verdict  # the cause says so


def test_an_error_is_told_with_what_it_did(tmp_path: Path) -> None:
    lines = [*IN, QUESTION, logs.says("pong", type_="chat"), logs.bounce("bad-request")]
    conclusion = concluded(tmp_path, *lines)
    assert conclusion.outcome == "cause"
    assert "refused: " in conclusion.verdict
    assert 'reached "bot", which then sent a message of type "chat"' in conclusion.verdict


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([*IN], '"!ping" did not reach "bot".'),
        ([*IN, ENDS], "ended"),
        (
            [*IN, sends("</stream:stream>"), ENDS, *LOGIN],
            "at 1970-01-12T13:46:38.700Z; another began at 1970-01-12T13:46:38.800Z, on which it",
        ),
        ([*IN, logs.out(307)], "removed: The client was kicked"),
        (
            [*LOGIN],
            'in "bot@example.org.jsonl" should be in this room by its settings, and',
        ),
        ([f">>> {HEADER}", f"<<< {HEADER}", SECRET, REFUSED], "and never was. login: "),
        ([*LOGIN, ASK.replace("/bot", "")], "and never was. join: The client asked to join the"),
        ([*LOGIN, ASK.replace("room", "roam")], "and never was. It was not let in."),
    ],
)
@pytest.mark.parametrize("runs", [True, False])
def test_of_a_message_that_did_not_reach_it_is_told_why(
    lines: list[str], why: str, runs: bool, tmp_path: Path
) -> None:
    conclusion = concluded(tmp_path, *lines, there=False, runs=runs)
    assert why in conclusion.verdict, conclusion


def test_of_an_occupant_who_may_have_come_past_tap_nothing_is_missed(tmp_path: Path) -> None:
    assert "did not reach" in concluded(tmp_path, *IN).verdict
    assert "did not reach" not in concluded(tmp_path, *IN, runs=False).verdict


def test_a_tap_of_long_ago_does_not_explain_who_is_not_there(tmp_path: Path) -> None:
    concluded(tmp_path, *LOGIN, there=False, runs=False)
    (kept,) = tmp_path.glob("*.jsonl")
    for age, is_told in ((botlog.OLD_SECONDS - 1, True), (botlog.OLD_SECONDS + 1, False)):
        os.utime(kept, (ASKED - age, ASKED - age))
        assert (botlog.tapped(tmp_path, absent(0.0)) is not None) is is_told


def test_a_client_for_another_room_is_not_meant(tmp_path: Path) -> None:
    lines = [line.replace(ROOM, "other@muc.example.org") for line in IN]
    conclusion = concluded(tmp_path, *lines, there=False)
    assert conclusion.findings["stream"].detail == 'No log of "bot" is known.'


def test_strangers_words_are_quoted_and_cut_off(tmp_path: Path) -> None:
    answer = logs.says("\u202epong" + "x" * 500, to="ann@example.org", type_="chat")
    verdict = concluded(tmp_path, *IN, QUESTION, answer).verdict
    assert '"\\u{202E}pongx' in verdict
    assert "x" * 100 not in verdict


@pytest.mark.parametrize(("answers", "did"), [("bot", "then sent"), ("other", "has sent nothing")])
def test_a_component_is_told_by_the_address_that_is_in_the_room(
    answers: str, did: str, tmp_path: Path
) -> None:
    space = "jabber:component:accept"
    header = f"<stream:stream xmlns='{space}' xmlns:stream='{logs.STREAMS}' to='gate.example.org'>"
    greeted = [f">>> {header}", f"<<< {header}", sends("<handshake/>"), "<<< <handshake/>"]
    joined = [
        line.replace(logs.ACCOUNT, f"{who}@gate.example.org")
        .replace(f"{ROOM}/bot", f"{ROOM}/{who}")
        .replace("<presence to=", f"<presence from='{who}@gate.example.org' to=")
        for who in ("other", "bot")
        for line in logs.JOIN
    ]
    asked = [QUESTION.replace(logs.ACCOUNT, f"{who}@gate.example.org") for who in ("other", "bot")]
    address = f"<message from='{answers}@gate.example.org' to="
    sent = logs.says("x", to="ann@example.org", type_="chat").replace("<message to=", address)
    verdict = concluded(tmp_path, *greeted, *joined, *asked, sent).verdict
    assert f'"!ping" reached "bot", which {did}' in verdict, verdict
