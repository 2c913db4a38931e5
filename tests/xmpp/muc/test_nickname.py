"""Whether our nickname is ours alone, and who chose it."""

from dataclasses import replace

import pytest

from bridge.xmpp.model.events import Event, NicknameChanged, OccupantChanged, OccupantJoined
from bridge.xmpp.muc.reflections import OwnNickname

ACCOUNT = "me@example"
OWN, MARKED = "r@muc/Me", frozenset({110})
ME = OccupantJoined(
    *(OWN, "Me", "participant", "none"), jid=f"{ACCOUNT}/1", self_=True, codes=MARKED, sessions=1
)
UNMARKED = replace(ME, codes=frozenset())
UNKNOWN = replace(UNMARKED, jid=None, sessions=0)


def _changed(
    presence: OccupantJoined, role: str | None = None, affiliation: str | None = None
) -> OccupantChanged:
    return OccupantChanged(**vars(presence), former_role=role, former_affiliation=affiliation)


def _begun(me: OccupantJoined = ME) -> OwnNickname:
    nickname = OwnNickname()
    nickname.begin(me, ACCOUNT)
    nickname.see(me, me)
    return nickname


@pytest.mark.parametrize(
    ("event", "happened", "shared"),
    [
        (replace(ME, sessions=2), None, True),  # Prosody
        (UNKNOWN, None, True),  # ejabberd
        (UNKNOWN, _changed(UNKNOWN), True),
        (ME, None, False),
        (replace(ME, show="away"), _changed(ME), False),
        # Some rooms leave the code out when they change us.
        (UNMARKED, _changed(UNMARKED, role="visitor"), False),
        (UNMARKED, _changed(UNMARKED, affiliation="member"), False),
        (replace(ME, self_=False, from_="r@muc/Wilma", sessions=2), None, False),
    ],
)
def test_a_presence_that_only_another_session_can_cause_is_of_one(
    event: Event, happened: Event | None, shared: bool
) -> None:
    nickname = _begun()
    assert not nickname.is_shared
    nickname.see(event, happened)
    assert nickname.is_shared is shared
    nickname.begin(ME, ACCOUNT)
    assert not nickname.is_shared


def test_another_session_may_have_been_there_before_us() -> None:
    assert _begun(replace(ME, sessions=2)).is_shared


def test_in_a_room_that_never_marks_us_a_missing_mark_shows_nobody() -> None:
    nickname = _begun(UNMARKED)
    assert nickname.is_marked
    nickname.see(UNMARKED, None)
    assert not nickname.is_shared
    assert not _begun(UNKNOWN).is_marked


@pytest.mark.parametrize(
    ("event", "changed"),
    [
        (replace(ME, codes=MARKED | {210}), True),
        (ME, False),
        (NicknameChanged(OWN, "Me", "You", self_=True), True),
        (NicknameChanged("r@muc/Wilma", "Wilma", "Betty"), False),
    ],
)
def test_the_room_may_choose_the_nickname(event: Event, changed: bool) -> None:
    nickname = _begun()
    nickname.see(event, event)
    assert nickname.was_changed is changed
