"""Answers, copies and questions from those whom nobody asked."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import product
from xml.etree.ElementTree import Element

import pytest

from bridge.xmpp.link import connection, stanzas
from bridge.xmpp.link.stanzas import IqError
from bridge.xmpp.model.events import MessageReceived
from bridge.xmpp.muc.archive import ArchiveQuery
from tests.faults.reaching import participant_at
from tests.faults.scene import Eyes
from tests.faults.scripted_server import (
    DOMAIN,
    HONEST,
    MUC_USER,
    NICKNAME,
    ROOM,
    USERNAME,
    ScriptedServer,
    Wire,
    local,
    said,
)
from tests.faults.test_hostile_archive import MAM, asking, fin, result
from tests.xmpp.played_archive import archive_of
from tests.xmpp.played_archive import said as texts

SECONDS = 60.0
OURS = f"{USERNAME}@{DOMAIN}"
FAR = "other@conference.localhost"
"""A room we never joined."""
EVE = f"{ROOM}/Eve"
PING = "<ping xmlns='urn:xmpp:ping'/>"


@asynccontextmanager
async def in_the_room(stand: Callable[[Wire], Awaitable[None]]) -> AsyncIterator[Eyes]:
    """A participant that has joined, with a server that does this from then on."""
    async with (
        ScriptedServer(replace(HONEST, stand=stand)) as server,
        participant_at(server) as eyes,
    ):
        await eyes.joined()
        yield eyes
        assert len(server.wires) == 1, "it lost its connection"


# Copies: carbons (XEP-0280), forwarded messages (XEP-0297), archive results (XEP-0313).

FORGED = said("Wilma", "FORGED", "f1").replace("<message ", "<message xmlns='jabber:client' ")
FORWARDED = f"<forwarded xmlns='urn:xmpp:forward:0'>{FORGED}</forwarded>"
WRAPPERS = [
    f"<received xmlns='urn:xmpp:carbons:2'>{FORWARDED}</received>",
    f"<sent xmlns='urn:xmpp:carbons:2'>{FORWARDED}</sent>",
    f"<received xmlns='urn:xmpp:carbons:1'>{FORWARDED}</received>",
    f"<sent xmlns='urn:xmpp:carbons:2'>{FORGED}</sent>",
    FORWARDED,
    FORGED,
    *(
        f"<result xmlns='{namespace}' queryid='q' id='1'>{FORWARDED}</result>"
        for namespace in (MAM, "urn:xmpp:mam:1", "urn:xmpp:mam:0", "urn:xmpp:mam:tmp")
    ),
    f"<result xmlns='{MAM}' id='1'>{FORWARDED}</result>",
    f"<event xmlns='http://jabber.org/protocol/pubsub#event'>{FORGED}</event>",
    f"<addresses xmlns='http://jabber.org/protocol/address'>{FORWARDED}</addresses>",
    f"<body xmlns='http://jabber.org/protocol/xhtml-im'>FORGED</body>{FORWARDED}",
]
SENDERS = (
    *(OURS, f"{OURS}/another", f"{OURS}/scripted", DOMAIN, "eve@evil.example/x"),
    *(EVE, f"{ROOM}/{NICKNAME}", ROOM, FAR, ""),
)


def by(sender: str) -> str:
    """The attribute of a stanza from them, or from nobody."""
    return f" from='{sender}'" if sender else ""


async def test_nobody_is_heard_through_somebody_elses_message() -> None:
    async def stand(wire: Wire) -> None:
        for sender, wrapper in product(map(by, SENDERS), WRAPPERS):
            for type_ in ("groupchat", "chat", "normal", "headline", "error"):
                wire.send(f"<message{sender} type='{type_}' id='w'>{wrapper}</message>")
            wire.send(f"<message{sender} type='groupchat'><body>OUTER</body>{wrapper}</message>")
        wire.send(said("Wilma", "the end"))
        await wire.gone()

    async with in_the_room(stand) as eyes:
        await eyes.hears("the end")
        assert "FORGED" not in repr([each.event for each in eyes.records])
        # Who is of the room has said what stands outside, under their own name.
        outer = {(each.from_, each.own) for each in eyes.messages() if each.body == "OUTER"}
        assert outer == {(sender, False) for sender in SENDERS if sender.startswith(ROOM)}


# The archive.

LIE = result("{query}", "lie", "a lie")
STRANGERS = (OURS, f"{ROOM}/{NICKNAME}", DOMAIN, FAR, "conference.localhost")
NO_RESULTS = [
    *(LIE.replace(ROOM, sender, 1) for sender in (*STRANGERS, f"{ROOM}.evil.example", f"@{ROOM}@")),
    LIE.replace(f" from='{ROOM}'", "", 1),
    *(result(query, "lie", "a lie") for query in ("another", "", "{query} ")),
    LIE.replace(" queryid='{query}'", ""),
    LIE.replace(MAM, "urn:xmpp:mam:1"),
    LIE.replace("<result", "<x xmlns='x'><result").replace("</result>", "</result></x>"),
    f"<presence {LIE[9:-10]}</presence>",
    f"<iq type='set' id='x' {LIE[9:-10]}</iq>",
]
"""None of these is a result of the query that stands open."""


async def test_what_is_no_result_of_our_query_is_left_out() -> None:
    def answer(wire: Wire, iq: Element, query: str) -> None:
        for lie in NO_RESULTS:
            wire.send(lie.replace("{query}", query))
        wire.send(result(query, "1", "the truth"))
        wire.send(fin(iq, "1", "1", complete=True))

    async with asking(answer) as (connection, published):
        page = await archive_of(connection, ROOM).page(ArchiveQuery())
        assert ([each.id for each in page.results], texts(page.results)) == (["1"], ["the truth"])
        # That from an occupant is a message without a body: what it wraps is not read.
        (told,) = published
        assert isinstance(told, MessageReceived)
        assert (told.body, told.payload) == ("", (f"result ({MAM})",))


def inner(from_: str, content: str = "<body>a lie</body>", name: str = "message") -> str:
    return f"<{name} xmlns='jabber:client' from='{from_}'>{content}</{name}>"


def status(code: int) -> str:
    return f"<x xmlns='{MUC_USER}'><status code='{code}'/></x>"


INNER = [
    "",
    "<message xmlns='jabber:client' type='groupchat'><body>a lie</body></message>",
    *map(inner, (OURS, "eve@evil.example", f"{FAR}/Wilma", f"{ROOM}.evil.example/W", "@@@/W")),
    inner(f"{ROOM}/W").replace("jabber:client", "jabber:server"),
    inner(ROOM).replace("from=", "type='error' id='x' from="),
    inner(f"{ROOM}/{NICKNAME}' type='unavailable", status(307), "presence"),
    inner(f"{ROOM}' type='groupchat", status(104)),
    inner(ROOM, f"<result xmlns='{MAM}'>{FORWARDED}</result>"),
    inner(f"{FAR}/W") + FORGED,
]
"""What a result of our query may hold that was not said in the room."""


async def test_a_result_in_which_nobody_of_the_room_says_anything_tells_nothing() -> None:
    def answer(wire: Wire, iq: Element, query: str) -> None:
        for number, held in enumerate(INNER):
            whole = result(query, str(number), "a lie")
            start, end = whole.index("<message xmlns"), whole.index("</forwarded>")
            wire.send(whole[:start] + held + whole[end:])
        wire.send(fin(iq, "0", "1", complete=True))

    async with asking(answer) as (connection, published):
        page = await archive_of(connection, ROOM).page(ArchiveQuery())
        assert [each.id for each in page.results] == [str(number) for number in range(len(INNER))]
        assert [each.events for each in page.results] == [()] * len(INNER)
        assert published == []
        assert not connection.ended.done()


async def test_results_before_and_after_their_page_are_nobodys() -> None:
    asked: list[str] = []

    def answer(wire: Wire, iq: Element, query: str) -> None:
        wire.send(result("".join(asked), "late", "of the page before"))
        asked.append(query)
        wire.send(result(query, "1", "the truth"))
        wire.send(fin(iq, "1", "1", complete=True))
        wire.send(result(query, "2", "an afterthought"))
        wire.send(fin(iq, "2", "2", complete=True))

    async with asking(answer) as (connection, published):
        for _ in range(2):
            page = await archive_of(connection, ROOM).page(ArchiveQuery())
            assert texts(page.results) == ["the truth"]
        await connection.request("get", None, stanzas.ping())
        assert asked[0] != asked[1]
        assert published == []


# Answers to questions.

RIGHT = "<right xmlns='x'/>"
OTHERS = ("evil.example", f"{DOMAIN}.evil.example", EVE, FAR)
ASKED = [
    (None, ("", DOMAIN, OURS), (f"{DOMAIN}/x", f"x@{DOMAIN}", f"{OURS}/another", ROOM)),
    (
        ROOM,
        (ROOM, "ROOM@conference.localhost"),
        ("", DOMAIN, OURS, "conference.localhost", f"{ROOM}/{NICKNAME}", f"{ROOM}/"),
    ),
    (
        f"{ROOM}/{NICKNAME}",
        (f"{ROOM}/{NICKNAME}",),
        ("", DOMAIN, OURS, f"{OURS}/scripted", ROOM, f"{ROOM}/{NICKNAME.lower()}"),
    ),
    (f"{ROOM}/Bob", (f"{ROOM}/Bob",), ("", DOMAIN, ROOM, f"{ROOM}/bob", f"{FAR}/Bob")),
    ("bad.example", ("bad.example", "BAD.example"), ("", DOMAIN, "x@bad.example", "bad.example/x")),
    ("al@bad.example", ("al@bad.example",), ("", "bad.example", "al@bad.example/phone")),
]
"""Whom we ask; from whom an answer counts; and from whom none does, beside `OTHERS`."""


@pytest.mark.parametrize(("target", "right", "wrong"), ASKED)
async def test_an_answer_counts_from_whoever_was_asked_alone(
    target: str | None, right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    honest = iter(right)

    async def stand(wire: Wire) -> None:
        while True:
            id_ = (await pinged(wire)).get("id", "")
            liars = [f" id='{id_}'{by(sender)}" for sender in (*wrong, *OTHERS)]
            from_ = by(next(honest))
            for liar in liars:
                wire.send(f"<iq type='error'{liar}><error type='cancel'/></iq>")
            # Under another id, and as what is no answer.
            liars += [f" id='{id_}0'{from_}", from_]
            for type_ in ("get", "set"):
                wire.send(f"<iq type='{type_}' id='{id_}'{from_}>{PING}</iq>")
            wire.send(f"<iq type='RESULT' id='{id_}'{from_}><wrong xmlns='x'/></iq>")
            wire.send(f"<iq id='{id_}'{from_}><wrong xmlns='x'/></iq>")
            for liar in liars:
                wire.send(f"<iq type='result'{liar}><wrong xmlns='x'/></iq>")
            wire.send(f"<iq type='result' id='{id_}'{from_}>{RIGHT}</iq>")
            # And once more, which is once too often.
            wire.send(f"<iq type='error' id='{id_}'{from_}><error type='cancel'/></iq>")
            wire.send(f"<iq type='result' id='{id_}'{from_}><wrong xmlns='x'/></iq>")

    async with in_the_room(stand) as eyes, asyncio.timeout(SECONDS):
        for _ in right:
            answer = await eyes.participant.connection.request("get", target, stanzas.ping())
            assert [each.tag for each in answer] == ["{x}right"]


async def pinged(wire: Wire) -> Element:
    """The next ping; what else comes is left alone."""
    while (iq := await wire.element()).find("{urn:xmpp:ping}ping") is None:
        pass
    return iq


async def test_an_answer_that_comes_late_is_to_no_later_question() -> None:
    ids: list[str] = []

    async def stand(wire: Wire) -> None:
        while True:
            ids.append((await pinged(wire)).get("id", ""))
            if len(ids) > 1:
                late = f"<iq type='error' id='{ids[0]}' from='{EVE}'><error type='cancel'/></iq>"
                wire.send(f"{late}<iq type='result' id='{ids[1]}' from='{EVE}'>{RIGHT}</iq>")

    async with in_the_room(stand) as eyes:
        for seconds in (0.05, SECONDS):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    answer = await eyes.participant.connection.request("get", EVE, stanzas.ping())
        assert [each.tag for each in answer] == ["{x}right"]
    assert len(set(ids)) == 2


async def test_an_id_cannot_be_guessed_from_those_before() -> None:
    ids: list[str] = []

    async def stand(wire: Wire) -> None:
        while True:
            ids.append((await pinged(wire)).get("id", ""))
            wire.send(f"<iq type='error' id='{ids[-1]}'><error type='cancel'/></iq>")

    async with in_the_room(stand) as eyes:
        for _ in range(100):
            with pytest.raises(IqError):
                await eyes.participant.connection.request("get", None, stanzas.ping())
    assert len(set(ids)) == 100
    assert all(len(id_) == 16 for id_ in ids)
    # Every place takes many values: nothing counts up, nothing is a time.
    assert all(len({id_[place] for id_ in ids}) > 8 for place in range(16))


# Questions from strangers.

DISCO = "<query xmlns='http://jabber.org/protocol/disco#info'/>"
KNOWN = {("get", PING), ("get", DISCO)}
QUESTIONS = [
    ("get", PING),
    ("set", PING),
    ("get", DISCO),
    ("get", "<query xmlns='http://jabber.org/protocol/disco#items'/>"),
    ("get", "<query xmlns='jabber:iq:version'/>"),
    ("get", "<query xmlns='jabber:iq:last'/>"),
    ("get", "<time xmlns='urn:xmpp:time'/>"),
    ("get", "<vCard xmlns='vcard-temp'/>"),
    ("get", "<query xmlns='jabber:iq:private'/>"),
    ("set", "<query xmlns='jabber:iq:roster'><item jid='eve@evil.example'/></query>"),
    ("set", "<query xmlns='jabber:iq:register'><remove/></query>"),
    ("set", f"<query xmlns='{MAM}'/>"),
    ("set", "<command xmlns='http://jabber.org/protocol/commands' node='x' action='execute'/>"),
    ("set", "<jingle xmlns='urn:xmpp:jingle:1' action='session-initiate' sid='x'/>"),
    ("set", "<open xmlns='http://jabber.org/protocol/ibb' sid='x' block-size='65535'/>"),
    ("set", "<query xmlns='jabber:iq:oob'><url>http://127.0.0.1/</url></query>"),
    ("set", "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"),
    ("get", ""),
    ("get", PING * 50),
]
ASKING = ["eve@evil.example/x", EVE, ROOM, DOMAIN, OURS, f"{ROOM}/{NICKNAME}", FAR, ""]
ROUNDS = 2

RECEIPTS = "<request xmlns='urn:xmpp:receipts'/><markable xmlns='urn:xmpp:chat-markers:0'/>"
INVITATION = "<x xmlns='http://jabber.org/protocol/muc#user'><invite from='eve@evil.example'/></x>"
NO_ANSWERS = [
    f"<iq type='result' id='n' from='{EVE}'/>",
    f"<iq type='error' id='n' from='{EVE}'><error type='cancel'/></iq>",
    f"<iq type='error' id='n'>{PING}</iq>",
    f"<iq id='n' from='{EVE}'>{PING}</iq>",
    f"<iq type='ping' id='n' from='{EVE}'>{PING}</iq>",
    *(
        f"<presence type='{type_}' from='eve@evil.example'/>"
        for type_ in ("subscribe", "subscribed", "unsubscribe", "probe", "error")
    ),
    f"<message from='eve@evil.example/x' type='chat' id='n'><body>hi</body>{RECEIPTS}</message>",
    f"<message from='{EVE}' type='chat' id='n'><body>psst</body>{RECEIPTS}</message>",
    f"<message from='eve@evil.example' id='n'>{INVITATION}</message>",
    f"<message from='{EVE}'><x xmlns='jabber:x:conference' jid='{FAR}'/></message>",
    "<message from='eve@evil.example'><captcha xmlns='urn:xmpp:captcha'/></message>",
]
"""What must get no answer: it would be an answer to an answer, or tell that we are there."""


async def test_each_question_is_answered_once_to_whoever_asked_and_nothing_else_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 1_000_000.0)
    answers: dict[str, list[Element]] = {}
    others: list[Element] = []
    wanted: dict[str, tuple[str, str, str]] = {}
    done = asyncio.Event()

    async def stand(wire: Wire) -> None:
        wire.send("".join(NO_ANSWERS))
        for sender, (type_, payload) in [*product(ASKING, QUESTIONS)] * ROUNDS:
            id_ = f"&lt;{len(wanted)}&gt;&apos;"
            wanted[f"<{len(wanted)}>'"] = type_, payload, sender
            wire.send(f"<iq type='{type_}' id='{id_}'{by(sender)}>{payload}</iq>")
        wire.send(said("Wilma", "all asked"))
        while answers.keys() < wanted.keys() or not others:
            element = await wire.element()
            if local(element) == "iq" and element.get("type") in {"result", "error"}:
                answers.setdefault(element.get("id", ""), []).append(element)
            elif local(element) == "message":
                wire.send(said(NICKNAME, "in between", element.get("id", "")))
                others.append(element)
            elif local(element) == "iq":
                id_, to = element.get("id", ""), element.get("to", DOMAIN)
                wire.send(f"<iq type='error' id='{id_}' from='{to}'><error type='cancel'/></iq>")
            else:
                others.append(element)
        done.set()
        await wire.gone()

    async with in_the_room(stand) as eyes:
        async with asyncio.timeout(SECONDS):
            await eyes.membership.say("in between", SECONDS)
            await eyes.hears("all asked")
            await done.wait()
        assert [local(each) for each in others] == ["message"]
    assert answers.keys() == wanted.keys()
    for id_, (type_, payload, sender) in wanted.items():
        (answer,) = answers[id_]
        assert (answer.get("to") or "") == sender
        known = (type_, payload) in KNOWN or payload == PING * 50
        assert answer.get("type") == ("result" if known else "error")
        told = stanzas.xml_of(answer)
        # Short, and without a word on who we are or where.
        assert len(told) < 600
        for secret in (NICKNAME, "bot-passes", "scripted", "conference"):
            assert secret not in told.replace(sender or "\0", "")


async def test_answers_to_a_flood_of_questions_are_bounded_and_those_to_our_server_are_not() -> (
    None
):
    """Nor those to a room and its service: some put out who does not answer."""
    strangers, servers = [EVE, FAR, "eve@evil.example/x"], [DOMAIN, OURS]
    rooms = [ROOM, ROOM.partition("@")[2]]
    answered: list[str] = []
    size = 0

    async def stand(wire: Wire) -> None:
        nonlocal size
        while True:
            element = await wire.element()
            to = element.get("to", "")
            if local(element) == "message":
                wire.send(said(NICKNAME, "in between", element.get("id", "")))
            elif (to, element.get("type")) == (EVE, "get"):
                # Whoever is asked something may not ask without end, either.
                for number in range(500):
                    for sender in strangers + servers:
                        wire.send(f"<iq type='get' id='{number}' from='{sender}'>{DISCO}</iq>")
                long = "x" * int(connection.ANSWER_BYTES * connection.ANSWER_SECONDS)
                wire.send(f"<iq type='get' id='{long}' from='{DOMAIN}'>{DISCO}</iq>")
                for sender in rooms:
                    wire.send(f"<iq type='get' id='p' from='{sender}'>{PING}</iq>")
                wire.send(f"<iq type='result' id='{element.get('id')}' from='{EVE}'/>")
            elif element.get("type") == "result":
                answered.append(to)
                size += 0 if to in servers + rooms else len(stanzas.xml_of(element))

    async with in_the_room(stand) as eyes, asyncio.timeout(SECONDS):
        await eyes.participant.connection.request("get", EVE, stanzas.ping())
        await eyes.membership.say("in between", SECONDS)
    assert [answered.count(each) for each in servers + rooms] == [500, 500, 1, 1]
    # Who was asked has a bound of its own.
    assert 0 < size <= 2 * connection.ANSWER_BYTES * (connection.ANSWER_SECONDS + SECONDS)
