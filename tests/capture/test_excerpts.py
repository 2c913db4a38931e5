"""Excerpts: the middle of a log, or one direction of it, is judged by what is there."""

import pytest

from tests.capture.logs import (
    ACCOUNT,
    ASK,
    IN,
    JOIN,
    LOGIN,
    ROOM,
    bounce,
    examined,
    found,
    out,
    refusal,
    said,
    says,
    timed,
)

PING = "<iq type='get' id='p{}'><ping xmlns='urn:xmpp:ping'/></iq>"
PINGS = [f"<<< <iq type='result' id='p{number}'/>" for number in range(8)]
CONTACTS = [f"<<< <presence from='c{number}@x/y' to='{ACCOUNT}'/>" for number in range(12)]
TAKEN = refusal("conflict")
ECHO = "<x xmlns='http://jabber.org/protocol/muc'/>"
BARE = refusal("registration-required").replace("/bot'", "'", 1).replace("<error", f"{ECHO}<error")

NAMED = {
    "kicked": ([out(307)], "removed", "kicked"),
    "dropped": ([out(307, 333)], "removed", "dropped"),
    "banned without a code": (
        [out().replace("affiliation='none'", "affiliation='outcast'")],
        "removed",
        "banned",
    ),
    "destroyed": ([out().replace("<item", "<destroy/><item")], "removed", "destroyed"),
    "kicked, and went on": ([out(307), says("a"), says("b")], "removed", "went on"),
    "a nickname that is taken": ([TAKEN], "join", "taken"),
    "for members, from the bare address": ([BARE], "join", "members only"),
    "refused, and did not notice": ([TAKEN, says("hi")], "join", "as if it were inside"),
    "another nickname refused inside": ([*IN, TAKEN.replace("/bot", "/Ann")], "join", '"Ann"'),
    "a join not answered": ([ASK, *PINGS], "join", "never answered"),
    "a join not answered, in time": (timed(ASK, "pause 11", PINGS[0]), "join", "never answered"),
    "a join not answered after the login": ([*LOGIN, ASK, *PINGS], "join", "never answered"),
    "a join not answered while another room is": (
        [*LOGIN, ASK, *[line.replace("room@", "other@") for line in JOIN]]
        + [said("Ann", "x").replace("room@", "other@")] * 6,
        "join",
        "never answered",
    ),
    "asked again and again": ([ASK, TAKEN] * 6, "join", "in a row"),
    "came back and was kicked": ([*JOIN, out(307)] * 6, "join", "kicked"),
    "spoke before it was refused": (
        [ASK, says("hi"), refusal("forbidden"), bounce("not-acceptable")],
        "join",
        "before its own presence",
    ),
    "spoke, without an id, before it was refused": (
        [
            *[ASK, says("hi").replace(" id='m1'", ""), refusal("forbidden")],
            bounce("not-acceptable").replace(" id='m1'", ""),
        ],
        "join",
        "before its own presence",
    ),
}
"""What is named, by its rule and a part of the sentence."""


@pytest.mark.parametrize("excerpt", NAMED)
def test_an_excerpt_is_judged_by_what_is_there(excerpt: str) -> None:
    log, rule, words = NAMED[excerpt]
    findings = found(*log)
    assert any(words in each.message for each in findings if each.name == rule), findings


OTHER = out(307).replace("/bot'", "/Ann'").replace("<status code='110'/>", "")
LEAVE = f">>> <presence to='{ROOM}/bot' type='unavailable'/>"
EARLY = [ASK, says("hi"), JOIN[1]]
SILENT = {
    "another occupant was kicked": [OTHER, says("hi")],
    "a stranger says that we were kicked": [
        *LOGIN,
        out(307).replace(ROOM, "evil@evil.example"),
        says("hi", "evil@evil.example", "chat"),
    ],
    "left": [LEAVE, out()],
    "a join that is answered late": [ASK, *CONTACTS, *PINGS, JOIN[1]],
    "a join that only contacts came after": [ASK, *CONTACTS],
    "a join at the end": [*LOGIN, ASK, *PINGS[:5]],
    "a join across a hole": [ASK, "<<< <message from='room@muc.exa", *PINGS],
    "a join that was taken back": [
        ASK,
        f">>> <presence to='{ROOM}/bot' type='unavailable'/>",
        *PINGS,
    ],
    "a join in time": timed(ASK, "pause 8", PINGS[0]),
    "only what was sent": [ASK, says("a"), says("b"), f">>> {PING.format(1)}", *[says("c")] * 8],
    "spoke early, and the room took it": [*EARLY, said("bot", "hi", id="m1")],
    "spoke early without an id, and the room took it": [
        *[line.replace(" id='m1'", "") for line in EARLY],
        said("bot", "hi"),
    ],
    "three talk in turn": timed(
        *IN,
        *[
            line
            for pause in (0.2, 1.1, 0.6) * 3
            for line in (f"pause {pause}", said("Ann", "so"), said("Ben", "oh"), says("yes"))
        ],
    ),
    "two greet each who comes": timed(
        *IN,
        *[
            line
            for number in range(9)
            for line in (
                f"<<< <presence from='{ROOM}/Ann {number}' to='{ACCOUNT}'/>",
                says("Hi!"),
                said("Ben", "Yo!"),
            )
        ],
    ),
    "another message came back": [
        *[*EARLY, said("bot", "hi", id="m1")],
        says("psst", "ann@x", "chat", "m2"),
    ],
}
"""What only looks wrong in an excerpt."""


@pytest.mark.parametrize("excerpt", SILENT)
def test_what_an_excerpt_does_not_prove_is_not_named(excerpt: str) -> None:
    assert found(*SILENT[excerpt]) == []


@pytest.mark.parametrize("pause", [61, 600])
def test_asking_again_after_a_pause_is_no_loop(pause: int) -> None:
    log = timed(*[ASK, refusal("service-unavailable"), f"pause {pause}"] * 7)
    assert not any("in a row" in each.message for each in found(*log))


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ((301,), "lift the ban"),
        ((321,), "make the account a member"),
        ((307,), "moderator"),
        ((332,), "After a pause"),
    ],
)
def test_the_advice_for_who_went_on_is_that_of_how_it_was_put_out(
    codes: tuple[int, ...], words: str
) -> None:
    reason = "<actor nick='Ann'/><reason>spam</reason>"
    log = [*IN, out(*codes, more=reason), says("hi"), bounce("not-acceptable")]
    went_on = next(each for each in found(*log) if "went on" in each.message)
    assert words in went_on.hint
    assert "spam" in went_on.message


def test_a_nickname_that_the_room_gave_is_told_with_what_was_asked() -> None:
    for code in ("", "<status code='210'/>"):
        answer = JOIN[1].replace("/bot'", "/Robby'").replace("</x>", f"{code}</x>")
        (stream,) = examined(*LOGIN, ASK, answer)
        (note,) = stream.findings()
        assert (note.severity, '"bot"' in note.message, '"Robby"' in note.message) == (
            "note",
            True,
            True,
        )


def test_an_occupant_of_another_account_is_not_the_client_though_the_nickname_is() -> None:
    other = JOIN[1].replace("<status code='110'/>", "").replace("<item", "<item jid='x@y.z/a'")
    own = JOIN[1].replace("/bot'", "/Robby'")
    (stream,) = examined(*LOGIN, ASK, other, own)
    assert [each.cause for each in stream.findings()] == ["renamed"]


def test_a_nickname_that_somebody_named_in_vain_is_a_warning() -> None:
    answer = JOIN[1].replace("/bot'", "/Robby'")
    log = [*LOGIN, ASK, answer, says("hello"), said("Ann", "Robby: ping")]
    for body in ("Robby: ping", "is Robby there?"):
        asked = [*log[:-1], "pause 5", said("Ann", body), "pause 11", *[said("Ann", "x")] * 2]
        (warning,) = (each for each in found(*timed(*asked)) if each.name == "join")
        assert (warning.severity, '"Robby"' in warning.message) == ("warning", True)
