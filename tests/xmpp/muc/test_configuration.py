"""What is asked and told when a room's configuration changes."""

import asyncio
from collections.abc import Sequence

import pytest

from bridge.xmpp.model.events import Event, RoomConfigured
from bridge.xmpp.muc import configuration
from bridge.xmpp.muc.configuration import MAX_CHARACTERS, MAX_OPTIONS, Options, options_of
from bridge.xmpp.queries.disco import ROOM_INFO, Description, Field, Identity

LIMIT_SECONDS = 30.0
CHANGED = frozenset({104})


def room(features: Sequence[str], name: str = "", **fields: str) -> Description:
    return Description(
        (Identity("conference", "text", name or None),),
        tuple(features),
        tuple(Field(ROOM_INFO, f"muc#roominfo_{key}", (value,)) for key, value in fields.items()),
    )


class Asked:
    def __init__(self, before: Description = room(["muc_unmoderated"])) -> None:  # noqa: B008
        self.times: list[float] = []
        self.published: list[tuple[frozenset[int], tuple[str, ...]]] = []
        self.news = asyncio.Event()
        self.options = Options(self._ask, self._publish)
        self.options.answer(before)

    def _ask(self) -> None:
        self.times.append(asyncio.get_running_loop().time())
        self.news.set()

    def _publish(self, event: Event) -> None:
        assert isinstance(event, RoomConfigured)
        self.published.append((event.codes, event.changed))
        self.news.set()

    async def until(self, questions: int, published: int) -> None:
        async with asyncio.timeout(LIMIT_SECONDS):
            while (len(self.times), len(self.published)) != (questions, published):
                self.news.clear()
                await self.news.wait()


BOTH = ["membersOnly: true, before false", 'anonymity: "non-anonymous", before "semi-anonymous"']


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("muc_unmoderated", "muc_moderated", ["moderated: true, before false"]),
        ("muc_open muc_semianonymous", "muc_membersonly muc_nonanonymous", BOTH),
        ("muc_open", "muc_open urn:xmpp:mam:2", ["archived: true, before false"]),
        ("muc_open", "urn:other", ["membersOnly: not set, before false"]),
        ("muc_open", "muc_open muc_open", []),
    ],
)
async def test_each_option_that_changed_is_told_with_its_former_value(
    before: str, after: str, changed: list[str]
) -> None:
    asked = Asked(room(before.split()))
    asked.options.change(CHANGED)
    asked.options.answer(room(after.split()))
    assert asked.published == [(CHANGED, tuple(changed))]


async def test_the_options_of_a_form_are_told_but_nobodys_subject_nor_the_occupants() -> None:
    options = options_of(room([], "Lab\u200b", changesubject="1", occupants="3", subject="tea"))
    assert options["title"] == r'"Lab\u{200B}" (U+200B ZERO WIDTH SPACE)'
    assert options["changesubject"] == '"1"'
    assert options["language"] == "not set"
    assert "occupants" in options
    asked = Asked(room(["muc_open"], occupants="3", subject="tea"))
    asked.options.change(CHANGED)
    asked.options.answer(room(["muc_open"], occupants="4", subject="coffee"))
    assert asked.published == [(CHANGED, ())]


async def test_an_empty_option_that_the_room_then_leaves_out_has_not_changed() -> None:
    asked = Asked(room(["muc_open"], contactjid=""))
    asked.options.change(CHANGED)
    asked.options.answer(room(["muc_membersonly"]))
    assert asked.published == [(CHANGED, ("membersOnly: true, before false",))]


def test_the_options_are_bounded() -> None:
    many = {f"{number}{'x' * 999}": "y" * 999 for number in range(999)}
    options = options_of(room([], "t" * 999, **many))
    assert len(options) == MAX_OPTIONS
    assert all(len(name) <= MAX_CHARACTERS for name in options)
    assert all(len(value) <= MAX_CHARACTERS + 3 for value in options.values())


async def test_a_room_that_often_changes_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configuration.ASK_SECONDS == 10
    monkeypatch.setattr(configuration, "ASK_SECONDS", 0.3)
    asked = Asked()
    for code in (104, 172, 104):
        assert asked.options.takes(frozenset({code}))
        asked.options.change(frozenset({code}))
    await asked.until(1, 0)
    asked.options.answer(room(["muc_moderated"]))
    assert asked.published == [(frozenset({104, 172}), ("moderated: true, before false",))]
    assert not asked.options.takes(frozenset({172}))
    asked.options.change(CHANGED)
    asked.options.change(CHANGED)
    await asked.until(2, 1)
    assert asked.times[1] - asked.times[0] >= 0.3
    # A room that does not answer is not waited for much longer.
    await asked.until(2, 2)
    assert asked.published[1] == (CHANGED, ())


async def test_what_waits_is_told_when_the_room_is_left() -> None:
    asked = Asked()
    asked.options.conclude()
    assert asked.published == []
    asked.options.change(CHANGED)
    asked.options.conclude()
    assert asked.published == [(CHANGED, ())]
    await asyncio.sleep(0)
    assert asked.times == []
