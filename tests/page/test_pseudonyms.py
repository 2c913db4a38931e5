"""No name and no word that was said is on a page with pseudonyms, whatever the names are like."""

import json
from collections.abc import Iterator
from time import process_time
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest

from bridge.capture.capture import Capture
from bridge.capture.elements import elements_of
from bridge.capture.reader import LogReader
from bridge.page.captured import CapturedPage
from bridge.page.chronicle import Chronicle, Course
from bridge.page.played import Played, PlayedPage
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.timeline import Timeline, encode
from bridge.text import quoted, visible
from bridge.wire.xmlwriter import written
from tests.capture.logs import LOGIN, STANZAS, USER
from tests.page.samples import as_html

ROOM = "Klatsch@conference.xn--mnchen-3ya.lan"
ACCOUNT = r"d\20artagnan@Musketeers.LAN/Aramits"
HOSTS = ("musketeers.lan", "xn--mnchen-3ya.lan", "münchen.lan", "gascony.lan")
NICKNAMES = (
    "an",
    "message",
    "Alice",
    "Alice Smith",
    "[bot] (x)*",
    'Say "hi"',
    "a\u202eb",
    "straße",
    "\U0001f916",
    "x@gascony.lan",
    "Nick1",
    "körper",
)
"""A part of words, an element's name, a part of another, signs, hidden characters, letters whose
upper case is longer, no letters, a JID, a pseudonym, and what IDN has to encode."""
WORDS = ("Tombstone", "Richelieu")
"""What was said."""
FILE = "alice.room.toml"
LEFT = {"message", "an", "nick1", "x"}
"""What the page may have for other reasons: an element, an article, the pseudonym of somebody."""


def known(*nicknames: str, jids: tuple[str, ...] = (), room: str = "") -> Pseudonyms:
    words = Pseudonyms(on=True)
    for jid in jids:
        words.learn({"jid": jid}, room)
    for nickname in nicknames:
        words.learn({"sender": nickname}, room)
    return words


@pytest.mark.parametrize(
    ("nicknames", "text", "replaced"),
    [
        (["an"], "an answer and AN error", "Nick1 answer and Nick1 error"),
        (["Alice", "Alice Smith"], "alice smith, Alice: x", "Nick1, Nick2: x"),
        (["Alice"], 'She said "hello" to "Alice"', 'She said "[5 characters]" to "Nick1"'),
        (["Alice"], 'cut: "Alice in Won…"', 'cut: "[12 characters]"'),
        (["Alice Smith"], "Alice Smithson, Alice", "Alice Smithson, Alice"),
        (["[bot] (x)*"], "left by [bot] (x)*: bye", "left by [Nick1)*: bye"),
        (['Say "hi"'], r'by "Say \"hi\"" at once', 'by "Nick1" at once'),
        (["a\u202eb"], r"a\u{202E}b and a" + "\u202eb", "Nick1 and Nick1"),
        (["straße"], "STRASSE, Straße", "Nick1, Nick1"),
        (["k\u00f6rper"], "ko\u0308rper", "Nick1"),
        (["ko\u0308rper"], "k\u00f6rper, ko\u0308rper", "Nick1, Nick1"),
        (["Alice"], "ask Al\u200bi\u00adce", "ask Nick1"),
        (["Alice"], r"ask Al\u{200B}ice", "ask Nick1"),
        (["Alice"], "\u2764\ufe0f Alice", "\u2764\ufe0f Nick1"),
        (["\U0001f916"], "ask\U0001f916now", "askNick1now"),
        (["."], "The end. Really.", "The end. Really."),
        (["\ue0000\ue001"], "\ue0000\ue001 x", "?Nick1? x"),
        *(
            (["Alice Smith"], f"bye {spelling}: done", "bye Nick1: done")
            for spelling in (
                *("alice_smith", "AliceSmith", "A-L-I-C-E S.M.I.T.H", "alice\u2003smith"),
                "\uff21\uff4c\uff49\uff43\uff45\u3000\uff33\uff4d\uff49\uff54\uff48",
                *("A\u0301li\u0308ce Smi\u0336th", "\u00c1l\u00efce Smith", "Alic\u200be Smith"),
                "\U0001d400\U0001d425\U0001d422\U0001d41c\U0001d41e \u24c8\u24dc\u24d8\u24e3\u24d7",
            )
        ),
        (["4711"], "call 4711 or 47-11, not 47112", "call Nick1 or Nick1, not 47112"),
        (["\u674e\u660e"], "\u8bf7\u674e\u660e\u8d70", "\u8bf7Nick1\u8d70"),
        (["Alice", "alice"], "Alice, alice", "Nick1, Nick2"),
        (
            [],
            "mail a.b@c.lan/d e, or c.lan",
            "mail user1@host1.example/device1 e, or host1.example",
        ),
        ([], "at 10.0.0.1 or fe80::1:2, 12:00:03", "at host1.example or host2.example, 12:00:03"),
        ([], "in http://jabber.org/protocol/muc", "in http://jabber.org/protocol/muc"),
        (
            ["Alice"],
            "mail alice@a.lan, b.alice@c.lan",
            "mail user1@host1.example, user2@host2.example",
        ),
        (["Alice"], "alice_1, xmpp:m%40c.lan%2FAlice", "Nick1_1, xmpp:user1@host1.example/Nick1"),
        (["A+%20b%41"], "A+%20b%41 or A+ bA%E2%80%AE", r"Nick1 or Nick1\u{202E}"),
        (["x@c.lan"], "db.c.lan and c.lan.d.org", "host2.example and host3.example"),
        ([], "to m@c.lan/bob://x", "to user1@host1.example/device1"),
        ([], 'priority "-1", "PLAIN, SCRAM-SHA-1"', 'priority "-1", "PLAIN, SCRAM-SHA-1"'),
        ([], 'said "482913"', 'said "[6 characters]"'),
    ],
)
def test_names_in_a_text_are_replaced_as_whole_words(
    nicknames: list[str], text: str, replaced: str
) -> None:
    words = known(*nicknames)
    assert words.text(text) == replaced
    assert Pseudonyms(on=False).text(text) == text


def test_in_our_own_sentences_only_quoted_words_and_addresses_are_names() -> None:
    words = known("message", "room", jids=("room@muc.lan",), room="room@muc.lan")
    text = 'The message to "room@muc.lan" of "message" in room@muc.lan came back to the room.'
    replaced = 'The message to "room1@host1.example" of "Nick1" in room1@host1.example came back'
    assert words.text(text, ours=True) == f"{replaced} to the room."


def test_each_name_has_one_pseudonym_and_each_pseudonym_one_name() -> None:
    words = known(*NICKNAMES)
    given = [words.nickname(name) for name in NICKNAMES]
    assert len(set(given)) == len(NICKNAMES)
    assert given == [words.nickname(name) for name in NICKNAMES]
    spellings = ("a@München.lan", "A@xn--mnchen-3ya.lan", "a@MÜNCHEN.LAN")
    assert {words.jid(jid) for jid in spellings} == {words.jid("a@münchen.lan")}
    assert words.jid("xmpps://münchen.lan:5223").endswith(".example:5223")
    assert words.jid("Bob://m.lan:Bob/x").startswith("host")
    assert "Bob" not in words.jid("Bob://m.lan:Bob/x")


def test_a_stanza_keeps_its_structure_and_loses_what_it_says() -> None:
    words = known("message", "groupchat", "body", room=ROOM)
    xml = (
        f"<message from={quoteattr(ROOM + '/message')} to='x@gascony.lan/body' type='groupchat' "
        "id='7'><body>message body</body><subject>for message</subject>"
        "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>"
        "<x xmlns='jabber:x:oob'><url>https://gascony.lan/Richelieu</url></x>"
        "<richelieu xmlns='gascony:1' to='Tombstone'>Tombstone</richelieu></message>"
    )
    (element,) = elements_of(xml)[0]
    assert written(words.stanza(element)).replace('"', "'") == (
        "<message from='room1@host1.example/Nick1' to='user1@host2.example/Nick2' type='groupchat'"
        " id='id1'><body>[12 characters]</body><subject>for Nick1</subject>"
        "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>"
        "<x xmlns='jabber:x:oob'><url>[29 characters]</url></x><left-out/></message>"
    )


PRIVATE = (
    "<message from='{room}/4711' id='m-alice' salary='9000'>"
    "<occupant-id xmlns='urn:xmpp:occupant-id:0' id='occupant+alice='/>"
    "<reply xmlns='urn:xmpp:reply:0' id='m-alice' to='{room}/4711'/><thread>m-alice</thread>"
    "<x xmlns='jabber:x:data'><field var='muc#role'><value>member</value></field>"
    "<field var='salary'><value>4711</value></field></x>"
    "<error code='404'><text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>Alice is out</text>"
    "</error></message>"
)
"""An id, an occupant id, an attribute and a field of nobody's, a number, the text of an error."""


def test_ids_are_replaced_one_for_one_and_what_no_standard_defines_is_gone() -> None:
    words = known("4711", room=ROOM)
    (element,) = elements_of(PRIVATE.format(room=ROOM))[0]
    made = written(words.stanza(element)).replace('"', "'")
    assert made == (
        "<message from='room1@host1.example/Nick1' id='id1'>"
        "<occupant-id xmlns='urn:xmpp:occupant-id:0' id='id2'/>"
        "<reply xmlns='urn:xmpp:reply:0' id='id1' to='room1@host1.example/Nick1'/>"
        "<thread>id1</thread>"
        "<x xmlns='jabber:x:data'><field var='muc#role'><value>member</value></field>"
        "<field var='field1'><value>[4 characters]</value></field></x>"
        "<error code='404'><text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>[12 characters]"
        "</text></error></message>"
    )
    exact = {"kind": "message", "id": "m-alice", "occupantId": "occupant+alice=", "replyTo": "x"}
    assert words.event(exact) == {**exact, "id": "id1", "occupantId": "id2", "replyTo": "id3"}
    assert (
        words.text('The message "m-alice" came back.', ours=True) == 'The message "id1" came back.'
    )


def test_the_text_of_an_error_and_names_of_elements_of_nobodys_are_replaced() -> None:
    words = known("Alice")
    refused = {"kind": "error", "id": "7", "condition": "forbidden", "text": "Alice is out"}
    assert words.event(refused) == {**refused, "id": "id1", "text": "[12 characters]"}
    payload = ["c (http://jabber.org/protocol/caps)", "alice (urn:alice)", "alice"]
    made = words.event({"kind": "join", "sender": "Alice", "payload": payload})["payload"]
    assert made == [payload[0], "left-out", "left-out"]


@pytest.mark.parametrize("text", ["Nick7 says a ", "a ", "\u00e9" * 40 + " ", '"', "a\u0301", "@."])
def test_the_time_for_a_text_grows_no_faster_than_the_text(text: str) -> None:
    words = known(*(f"Nick{number}" for number in range(500)), *("a" * it for it in range(1, 400)))
    short, long = (min(taken(words, text * times) for _ in range(3)) for times in (400, 3_200))
    assert long < 24 * short


def taken(words: Pseudonyms, text: str) -> float:
    started = process_time()
    words.text(text)
    return process_time() - started


@pytest.mark.parametrize("body", ["482913", "away", "2026-01-01T00:00:00Z"])
def test_a_message_of_a_number_or_a_word_of_the_standards_is_its_length(body: str) -> None:
    (element,) = elements_of(f"<message><body>{body}</body></message>")[0]
    made = written(known().stanza(element))
    assert made == f"<message><body>[{len(body)} characters]</body></message>"


def test_a_word_of_the_standards_stays_where_it_is_one() -> None:
    words = known("visitor", "kicked")
    exact = {"kind": "role", "sender": "visitor", "role": "visitor", "reason": "visitor"}
    assert words.event(exact) == {**exact, "sender": "Nick1", "reason": "Nick1"}
    kick = {"kind": "leave", "codes": [307], "meaning": ["kicked"], "reason": "kicked"}
    assert words.event(kick) == {**kick, "reason": "Nick2"}


def happened() -> Iterator[tuple[dict[str, Any], str]]:
    """Events that have every name in every field, and the stanza behind each."""
    for nickname in NICKNAMES:
        jid = f"{ROOM}/{nickname}"
        about = f"{nickname} and {ACCOUNT} of {HOSTS[0]}, {HOSTS[2].upper()} in {jid}"
        body = f"{' '.join(WORDS)} for {nickname}"
        who = {"direction": "in", "from": jid, "sender": nickname}
        item = f"<item jid={quoteattr(ACCOUNT)} nick={quoteattr(nickname)} role='visitor'>"
        reason = f"<reason>{written_text(about)}</reason></item>"
        presence = (
            f"<presence from={quoteattr(jid)}><x xmlns='{USER}'>{item}{reason}</x></presence>"
        )
        message = f"<message from={quoteattr(jid)}><body>{written_text(body)}</body></message>"
        held = {"role": "visitor", "affiliation": "none", "jid": ACCOUNT}
        yield {"kind": "join", **who, **held, "status": about}, presence
        yield {"kind": "role", **who, **held, "actor": nickname, "reason": about}, presence
        yield {"kind": "message", **who, "body": body, "type": "chat", "source": "live"}, message
        moderation = {"moderatedBy": nickname, "author": nickname, "reason": about}
        room = {"kind": "message", "direction": "in", "from": ROOM, "sender": "", "retracts": "7"}
        yield room | moderation, ""
        yield {"kind": "subject", "direction": "in", "sender": nickname, "subject": about}, ""
        refused = {"condition": "forbidden", "text": about, "id": "7"}
        yield {"kind": "error", **who, **refused}, presence
        yield {"kind": "leave", **who, "codes": [307], "actor": ACCOUNT, "reason": about}, presence
    failed = {"kind": "connection", "phase": "failed", "condition": "not-authorized", "hint": ""}
    yield {**failed, "text": f"{HOSTS[0]} refused {ACCOUNT}: {quoted(WORDS[0])}"}, ""


def written_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def recorded(*, on: bool = True) -> Timeline:
    chronicle = Chronicle(Pseudonyms(on=on))
    course = Course("room", ROOM)
    chronicle.words.learn({"jid": ACCOUNT}, ROOM)
    for number, (exact, xml) in enumerate(happened()):
        chronicle.take(course, number, exact, room=ROOM, stanzas=[xml] if xml else [])
    return chronicle.timeline("log", [course], 1.0)


def played(*, on: bool = True) -> Timeline:
    page = PlayedPage(Chronicle(Pseudonyms(on=on)))
    for nickname in NICKNAMES:
        given = {"from": nickname, "contains": WORDS[0], "who": ACCOUNT}
        steps = [(nickname, "expect", given, 1.0, 2.0, False)]
        events = [(float(number), exact, [xml]) for number, (exact, xml) in enumerate(happened())]
        failure = f"{FILE}: {nickname} waited for {quoted(WORDS[1])} from {quoted(nickname)}"
        more = f"{failure}\n<{nickname}> {WORDS[0]}"
        page.take(FILE, more, Played(ROOM, events, steps, []))
    return page.timeline(1.0)


def captured(*, on: bool = True) -> Timeline:
    page = CapturedPage(Chronicle(Pseudonyms(on=on)), lambda stream: stream.client.count >= 0)
    capture, reader = Capture(observe=page.take), LogReader("/home/alice/bot.log")
    log = [line.replace("bot@example.org/r", ACCOUNT) for line in LOGIN]
    for nickname in NICKNAMES:
        to = quoteattr(f"{ROOM}/{nickname}")
        text = f"<text xmlns='{STANZAS}'>{written_text(nickname)} said no</text>"
        error = f"<error><forbidden xmlns='{STANZAS}'/>{text}</error>"
        seat = f"<x xmlns='{USER}'><status code='110'/></x>"
        muc = "<x xmlns='http://jabber.org/protocol/muc'/>"
        log += [
            f">>> <presence to={to}>{muc}</presence>",
            f"<<< <presence from={to}>{seat}</presence>",
            *(f"<<< {xml}" for _, xml in happened() if xml),
            f">>> <message id='m1' type='chat' to='{ROOM}'><body>{WORDS[1]}</body></message>",
            f"<<< <message from='{ROOM}' type='error' id='m1'>{error}</message>",
            f"<<< <presence from={to} type='error'>{error}</presence>",
        ]
    for line in log:
        for stanza in reader.feed(line.encode() + b"\n"):
            capture.take(stanza)
    capture.finish()
    return page.timeline(capture.streams, 1.0)


def texts(value: object) -> Iterator[str]:
    match value:
        case dict():
            for item in value.values():
                yield from texts(item)
        case list():
            for item in value:
                yield from texts(item)
        case str():
            yield value


@pytest.mark.parametrize("source", [recorded, played, captured])
def test_no_name_and_no_word_of_a_body_is_left(source: Any) -> None:
    timeline = source()
    encoded = encode(timeline)
    assert encoded["pseudonyms"] is True
    assert len([*texts(encoded)]) > 100
    everything = "\n".join(texts(encoded)).casefold()
    names = {*NICKNAMES, *WORDS, *HOSTS, ROOM, ACCOUNT, "artagnan", "Klatsch", "Aramits", "alice"}
    names |= {json.dumps(name)[1:-1] for name in NICKNAMES}
    folded = {name.casefold() for name in names} - LEFT
    assert not {name for name in folded if name in everything}
    page = as_html(encoded).casefold()
    assert not {name for name in folded if name.isascii() and name.isalpha() and name in page}
    lanes = {lane["name"] for part in encoded["parts"] for lane in part.get("lanes", [])}
    assert lanes
    assert all(name.startswith(("Nick", "user")) for name in lanes)


@pytest.mark.parametrize("source", [recorded, played, captured])
def test_no_text_of_a_stranger_has_a_hidden_character_on_any_page(source: Any) -> None:
    for on in (False, True):
        every = [*texts(encode(source(on=on)))]
        assert [text for text in every if text != visible(text)] == []
        assert any("\\u{202E}" in text for text in every) is not on


def test_with_too_many_names_texts_are_replaced_by_their_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bridge.page.pseudonyms.MAX_NAMES", 2)
    words = known("first")
    assert words.text("first and second") == "Nick1 and second"
    words.learn({"sender": "second"})
    words.learn({"sender": "third"})
    assert words.text("third") == "[5 characters]"
    assert words.event({"kind": "join", "sender": "third"})["sender"].startswith("Nick")
