import asyncio

import pytest

from bridge.xmpp.model.events import MessageReceived, SendFailed, Source
from bridge.xmpp.model.journal import Record
from bridge.xmpp.muc import reflections
from bridge.xmpp.muc.reflections import Reflections

LATER = (Source.HISTORY, Source.ARCHIVE)
MINE = MessageReceived("r@muc/Me", "Me", "hello", id="mine", own=True)
SECONDS = 30.0


def claimed(said: Reflections, message: MessageReceived, *, by_text: bool = True) -> bool | str:
    """Whether it is ours; if its text alone proves that, our id."""
    claim = said.claim(message, by_text=by_text)
    return claim.reflects or claim.own


@pytest.mark.parametrize(
    ("id_", "body", "sources", "own"),
    [
        ("mine", "one", [*Source], True),
        ("theirs", "two", [*Source], False),
        (None, "two", [*Source], False),
        ("mine", "*** one", [Source.LIVE], True),  # the room may change the text
        ("mine", "pay Mallory", LATER, False),  # said under our nickname while we were away
    ],
)
async def test_what_we_sent_is_our_own_and_what_somebody_else_said_under_our_name_is_not(
    id_: str | None, body: str, sources: list[Source], own: bool
) -> None:
    for source in sources:
        said = Reflections()
        said.sent("mine", "one")
        said.begin()  # we were away since
        message = MINE._replace(id=id_, body=body, source=source)
        assert claimed(said, message, by_text=False) is own


async def test_a_stamp_does_not_make_the_answer_to_what_we_just_said_somebody_elses() -> None:
    said = Reflections()
    said.sent("mine", "one")
    assert claimed(said, MINE._replace(body="ONE", source=Source.HISTORY)) is True


async def test_the_oldest_is_forgotten_at_the_capacity() -> None:
    said = Reflections(2)
    for id_ in "abc":
        said.sent(id_, "hello")
    said.begin()
    assert [claimed(said, MINE._replace(id=id_)) for id_ in "abc"] == [False, True, True]


@pytest.mark.parametrize("id_", [None, "", "theirs"])
async def test_where_the_room_gives_no_ids_back_the_text_proves_what_we_said(
    id_: str | None,
) -> None:
    said = Reflections()
    said.sent("m1", "hello")
    said.sent("m2", " hello\n")  # a gateway may remove blanks
    said.sent("m3", "other")
    spoken = MINE._replace(id=id_)
    assert [claimed(said, spoken) for _ in range(3)] == ["m1", "m2", False]
    assert claimed(said, spoken._replace(body="OTHER")) is False
    assert claimed(said, spoken._replace(body="other")) == "m3"


async def test_a_text_proves_nothing_unless_it_is_live_and_said_lately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spoken = MINE._replace(id=None)
    for message, by_text in (
        (spoken, False),
        (spoken._replace(source=Source.HISTORY), True),
        (spoken._replace(body="other"), True),
    ):
        said = Reflections()
        said.sent("m1", "hello")
        assert claimed(said, message, by_text=by_text) is False
    assert claimed(said, spoken) == "m1", "the last of them is still to come"
    said.sent("m2", "hello")
    said.begin()
    assert claimed(said, spoken) is False, "it was said in a former stay"
    said.sent("m3", "hello")
    said.take(Record(1, 0.0, SendFailed("m3", "forbidden")))
    assert claimed(said, spoken) is False, "it was returned"
    monkeypatch.setattr(reflections, "LATE_SECONDS", 0.0)
    said.sent("m4", "hello")
    assert claimed(said, spoken) is False, "it is taken for lost"


async def test_a_room_that_gave_an_id_back_gives_all_back_in_this_stay() -> None:
    said = Reflections()
    said.sent("mine", "hello")
    assert claimed(said, MINE) is True
    said.sent("m2", "hello")
    assert claimed(said, MINE._replace(id=None)) is False
    said.begin()
    said.sent("m3", "hello")
    assert claimed(said, MINE._replace(id=None)) == "m3"


async def test_a_second_message_with_one_text_waits_for_the_answer_to_the_first() -> None:
    said = Reflections()
    order: list[str] = []

    async def say(id_: str, text: str) -> None:
        async with said.expected(id_, text) as waiting:
            order.append(id_)
            await waiting.answer

    async def answer(id_: str) -> None:
        said.take(Record(1, 0.0, MINE._replace(id=None, reflects=id_)))
        for _ in range(5):
            await asyncio.sleep(0)

    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as saying:
        for id_, text in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "x")):
            saying.create_task(say(id_, text))
        await asyncio.sleep(0)
        assert order == ["a", "c"]
        await answer("a")
        assert order == ["a", "c", "b"]
        await answer("b")
        assert order == ["a", "c", "b", "d"]
        await answer("d")
        await answer("c")


async def test_a_second_message_with_one_text_goes_when_the_first_is_given_up() -> None:
    said = Reflections()
    async with asyncio.timeout(SECONDS):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.0), said.expected("a", "x") as first:
                await first.answer
        async with said.expected("b", "x"):
            pass


async def test_where_ids_come_back_two_messages_with_one_text_go_out_at_once() -> None:
    said = Reflections()
    said.sent("mine", "hello")
    said.claim(MINE, by_text=True)
    async with (
        asyncio.timeout(SECONDS),
        said.expected("a", "x") as first,
        said.expected("b", "x") as second,
    ):
        assert not first.answer.done()
        assert not second.answer.done()


async def test_a_wait_notes_what_came_under_our_nickname_and_proves_nothing() -> None:
    said = Reflections()
    async with said.expected("a", "x") as waiting:
        said.sent("a", "x")
        said.claim(MINE._replace(body="", payload=("composing",)), by_text=True)
        assert not waiting.unproved
        said.claim(MINE._replace(body="https://paste.example/1"), by_text=True)
        assert waiting.unproved
