"""One odd stanza of an occupant costs itself, on real servers, and nothing else."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from typing import Self
from xml.etree.ElementTree import Element

import pytest

from bridge.settings.table import Settings
from bridge.settings.values import Secret, Service
from bridge.wire import names
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.stanzas import IqError
from bridge.xmpp.model.events import Connected, MessageReceived, OccupantJoined, StanzaDamaged
from bridge.xmpp.muc.archive import ArchiveError, RoomArchive
from bridge.xmpp.queries import disco
from tests.faults.odd_xml import CLASSICS, odd_children
from tests.faults.scene import NICKNAME, SECONDS, Eyes, Scene

COUNT = 30
"""Odd stanzas of each kind."""

TOGETHER = 12
"""Sent before it is looked whether the participant still hears."""

PATIENCE_SECONDS = 60.0
"""Limit for entering while the server still passes on what was sent before."""

Wrap = Callable[[str, str], str]
"""Puts something odd into a stanza to a room."""


def message(room: str, odd: str) -> str:
    return f"<message to='{room}' type='groupchat' id='odd'><body>odd</body>{odd}</message>"


def said(room: str, words: str) -> str:
    return f"<message to='{room}' type='groupchat'><body>{words}</body></message>"


def presence(room: str, odd: str) -> str:
    return f"<presence to='{room}/Eve'>{odd}<status>odd</status></presence>"


def question(room: str, odd: str) -> str:
    return f"<iq to='{room}/{NICKNAME}' type='get' id='odd'>{odd}</iq>"


def private(room: str, odd: str) -> str:
    return f"<message to='{room}/{NICKNAME}' type='chat' id='odd'>{odd}</message>"


def direct(stage: Scene, nickname: str) -> Settings:
    """How the account of somebody else reaches the server, past the relay."""
    robot = stage.server.robot
    return stage.settings._replace(
        username=robot.username,
        password=Secret(robot.password),
        nickname=nickname,
        service=Service("xmpp", stage.server.host, stage.server.port("starttls")),
    )


class Writer(Connection):
    """An occupant who writes what they like, and whom the server may cut off for it.

    The bridge's own connection reads what they are sent: no other client of ours survives that.
    """

    def __init__(self, stage: Scene, nickname: str, *, enters: bool = True) -> None:
        settings, resource = direct(stage, nickname), nickname.encode().hex()
        super().__init__(
            settings, resource=resource, on_stage=lambda _: None, on_stanza=lambda _: None
        )
        self._occupant = f"{stage.room}/{nickname}"
        self._enters = enters

    async def __aenter__(self) -> Self:
        await self.open()
        self.start_dispatch()
        if self._enters:
            muc = "<x xmlns='http://jabber.org/protocol/muc'/>"
            self.write(f"<presence to='{self._occupant}'>{muc}</presence>")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        self.close()

    def write(self, xml: str) -> None:
        """Write it, and as much white space: expat puts a long tag off until that much has come."""
        if self._stream.transport is not None:
            self._stream.transport.write(xml.encode() + b" " * len(xml))


def groups(odd: Iterable[str]) -> Iterator[list[str]]:
    waiting = list(odd)
    while waiting:
        yield waiting[:TOGETHER]
        del waiting[:TOGETHER]


async def heard_out(eyes: Eyes, writer: Writer, room: str, last: str) -> None:
    """Wait until the server passes on `last`, or cuts the writer off: then it has handled the rest.

    Streams of two clients have no order between them.
    """
    writer.write(said(room, last))
    hearing = asyncio.create_task(eyes.hears(last))
    await asyncio.wait((hearing, writer.ended), return_when=asyncio.FIRST_COMPLETED)
    if not hearing.cancel():
        await hearing


async def tell(stage: Scene, eyes: Eyes, wrap: Wrap, odd: Iterable[str]) -> None:
    """Send everything, each group before a plain message, which the participant must hear."""
    async with AsyncExitStack() as inside, Writer(stage, "Betty") as betty:
        eve = await inside.enter_async_context(Writer(stage, "Eve"))
        for number, group in enumerate(groups(odd)):
            for each in group:
                if eve.ended.done():  # the server does not let all of it pass
                    eve = await inside.enter_async_context(Writer(stage, "Eve"))
                eve.write(wrap(stage.room, each))
                eve.write(f"<presence to='{stage.room}/Eve'/>")
            await heard_out(eyes, eve, stage.room, f"Eve {number}")
            plain = f"{wrap.__name__} {number}"
            betty.write(said(stage.room, plain))
            await eyes.hears(plain)


def damaged(eyes: Eyes) -> list[StanzaDamaged]:
    return [each.event for each in eyes.records if isinstance(each.event, StanzaDamaged)]


def connections(eyes: Eyes) -> int:
    return sum(isinstance(each.event, Connected) for each in eyes.records)


@pytest.mark.parametrize("wrap", [message, presence, question, private])
async def test_no_odd_stanza_of_an_occupant_cuts_the_stream(wrap: Wrap, stage: Scene) -> None:
    # Somebody stays. Otherwise the room would end, and its history with it, and ejabberd answers
    # nobody who would enter while a room ends.
    async with Writer(stage, "Keeper") as keeper:
        async with stage.participant() as eyes:
            await eyes.joined()
            await tell(stage, eyes, wrap, odd_children(len(wrap.__name__), COUNT))
            assert connections(eyes) == 1
            assert {each.sender for each in damaged(eyes)} == {"Eve"}
            lost = [each for each in eyes.records if isinstance(each.event, StanzaDamaged)]
            assert {each.room for each in lost} == {stage.room}
            assert not any("forged" in message.body for message in eyes.messages())
            reasons = " ".join(each.reason for each in damaged(eyes))
            assert all(word in reasons for word in ("parser", "namespace"))
            joins = [each.event for each in eyes.records if isinstance(each.event, OccupantJoined)]
            assert "Eve" in {each.sender for each in joins}
        # Whoever comes later is told of it by the room's history.
        async with stage.participant() as later:
            await later.joined(PATIENCE_SECONDS)
            keeper.write(message(stage.room, "").replace(">odd<", ">still there<"))
            await later.hears("still there", PATIENCE_SECONDS)
            assert connections(later) == 1
            assert damaged(later) or wrap is not message


async def test_the_history_and_the_archive_are_caught_up_with(stage: Scene) -> None:
    async with stage.participant() as eyes:
        await eyes.joined()
        stage.relay.refuse()
        await eyes.fault()
        async with stage.participant(direct(stage, "Wilma")) as other:
            await other.joined()
            await tell(stage, other, message, CLASSICS)
        await stage.relay.heal()
        await eyes.joined()
        await eyes.hears(f"message {(len(CLASSICS) - 1) // TOGETHER}")
        archive = RoomArchive(eyes.participant.connection, stage.room, eyes.membership.occupant)
        try:
            await archive.check_announced()
        except ArchiveError:  # this server archives nothing
            pass
        else:
            told = [event async for event in archive.since("2026-01-01T00:00:00Z")]
            assert any(isinstance(each, MessageReceived) for each in told)
        await eyes.membership.say("still there", 30)
        assert connections(eyes) == 2
        assert not eyes.gaps()


class Answering(Writer):
    """Answers each question with what cannot be read."""

    def _dispatch(self, element: Element) -> None:
        asker, id_ = element.get("from", ""), element.get("id", "")
        if element.tag == names.IQ and element.get("type") == "get":
            to = f"type='result' to='{asker}' id='{id_}'"
            self.write(f"<iq {to}><query xmlns='}}'/></iq>")


async def test_an_answer_that_cannot_be_read_is_no_silence_and_no_empty_answer(
    stage: Scene,
) -> None:
    async with stage.participant() as eyes:
        await eyes.joined()
        async with Answering(stage, "Eve"):
            await eyes.see(
                lambda event: isinstance(event, OccupantJoined) and event.sender == "Eve"
            )
            with pytest.raises(IqError) as refused:
                await eyes.participant.connection.request(
                    "get", f"{stage.room}/Eve", disco.info_query()
                )
        assert refused.value.error.condition == "unreadable-stanza"
        assert [each.sender for each in damaged(eyes)] == ["Eve"]


async def test_a_question_that_cannot_be_read_is_answered_and_told(stage: Scene) -> None:
    answer: asyncio.Future[Element] = asyncio.get_running_loop().create_future()

    class Asking(Writer):
        def _dispatch(self, element: Element) -> None:
            if element.tag == names.IQ and element.get("id") == "odd":
                answer.set_result(element)

    async with stage.participant() as eyes:
        await eyes.joined()
        async with Asking(stage, "Eve") as eve, asyncio.timeout(SECONDS):
            eve.write(question(stage.room, "<a xmlns='urn:a'><x xmlns='}'/></a>"))
            await eyes.see(lambda event: isinstance(event, StanzaDamaged))
            refusal = names.error_of(await answer)
        assert refusal.condition == "service-unavailable"
