"""What of a participant's events goes into the store, and as what."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.recording.recording import Recording, store_path
from bridge.settings.database_url import database_url
from bridge.settings.load import load
from bridge.settings.table import Settings
from bridge.settings.values import Secret
from bridge.store.location import Place, Team
from bridge.xmpp.model import events
from bridge.xmpp.model.events import Event, MessageReceived, Phase, Source
from bridge.xmpp.muc.participant import Participant
from tests.store.recorded import rows, selected

ROOM = "lobby@conference.localhost"
OTHER = "attic@conference.localhost"
SETTINGS = Settings(
    username="bot", domain="localhost", password=Secret("secret"), rooms=(ROOM, OTHER)
)
HERE = events.OccupantJoined(f"{ROOM}/Wilma", "Wilma", "participant", "none")
ME = events.OccupantJoined(
    f"{ROOM}/McpDebug", "McpDebug", "participant", "none", self_=True, codes=frozenset({110, 100})
)
SUBJECT = events.SubjectChanged("a subject")


def _said(body: str, **more: Any) -> MessageReceived:
    return MessageReceived(f"{ROOM}/Wilma", "Wilma", body, **more)


class Stage:
    """A participant to which things happen, and the store that it fills."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.participant = Participant(SETTINGS)
        self.recording = Recording(self.participant, place, stanzas=True)

    def happens(self, *happened: Event, room: str = ROOM, earlier: bool = False) -> None:
        """Let these happen in a room, or to the connection."""
        for each in happened:
            self.participant.publisher.publish(each, room, earlier=earlier)

    def ends(self) -> list[dict[str, Any]]:
        """End it; return what it recorded."""
        self.recording.close()
        return rows(self.place)

    def enters(self) -> None:
        self.happens(events.ConnectionChanged(Phase.JOINING))
        self.happens(HERE, earlier=True)
        self.happens(ME)
        self.happens(SUBJECT, earlier=True)
        self.happens(events.Joined(ME.from_, ME.sender, created=False))
        self.happens(events.ConnectionChanged(Phase.JOINED))


@pytest.mark.parametrize(
    ("beside_a_sandbox", "making"), [(True, False), (False, False), (True, True)]
)
def test_the_usual_store_is_not_for_what_happens_in_a_sandbox(
    beside_a_sandbox: bool, making: bool, tmp_path: Path
) -> None:
    usual = tmp_path / "xmpp-bridge" / "rooms.db"
    usual.parent.mkdir()
    usual.touch()
    loaded = load({}, cwd=tmp_path, package_root=tmp_path, searching=not beside_a_sandbox)
    path = store_path(loaded, {"XDG_STATE_HOME": str(tmp_path)}, making=making)
    assert path == (None if beside_a_sandbox and not making else usual)


@pytest.mark.parametrize(
    ("more", "megabytes"),
    [({}, 1024), ({"BRIDGE_STORE_MB": "20"}, 20), ({"BRIDGE_STORE_DAYS": "soon"}, None)],
)
def test_nothing_is_deleted_from_the_file_of_a_team_while_a_setting_is_wrong(
    more: dict[str, str], megabytes: int | None, tmp_path: Path
) -> None:
    environ = {"BRIDGE_STORE": "postgresql://bot@localhost/rooms", "HOME": str(tmp_path)} | more
    place = store_path(load(environ, cwd=tmp_path, package_root=tmp_path), environ)
    assert isinstance(place, Team)
    assert place.megabytes == megabytes
    folder = tmp_path / ".local" / "state" / "xmpp-bridge"
    assert place.file.parent == folder
    assert place.file.name.startswith("team-")


@pytest.mark.parametrize(
    ("of_a_team", "setting", "kept"),
    [
        (False, None, True),
        (False, True, True),
        (False, False, False),
        (True, None, False),
        (True, True, True),
        (True, False, False),
    ],
)
def test_stanzas_are_recorded_by_default_but_for_a_team(
    of_a_team: bool, setting: bool | None, kept: bool, tmp_path: Path
) -> None:
    file = tmp_path / "store.db"
    nowhere = database_url("postgresql://bot@127.0.0.1:1/rooms")
    place = Team(nowhere, file, None) if of_a_team else file
    participant = Participant(SETTINGS)
    recording = Recording(participant, place, stanzas=setting)
    participant.publisher.publish(_said("hello", type="chat"), ROOM)
    participant.trace.append("in", "1", "<presence/>", b"<presence/>", time.time())
    recording.close()
    assert selected(file, "SELECT count(*) FROM traffic") == [(int(kept),)]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    watched = Stage(tmp_path / "rooms.db")
    yield watched
    watched.recording.close()


@pytest.mark.parametrize(
    ("event", "shared"),
    [
        (_said("hello"), True),
        (_said("psst", type="chat"), False),
        (events.MessageSent(f"{ROOM}/McpDebug", "McpDebug", "hi", "id"), False),
        (events.SendFailed("id", "forbidden"), False),
        (events.OccupantError(f"{ROOM}/Wilma", "Wilma", "forbidden"), False),
        (events.OccupantChanged(f"{ROOM}/Wilma", "Wilma", "visitor", "none"), True),
        (events.OccupantLeft(f"{ROOM}/Wilma", "Wilma"), True),
        (events.NicknameChanged(f"{ROOM}/Wilma", "Wilma", "Betty"), True),
        (events.AffiliationChanged("wilma@localhost", "outcast"), True),
        (events.SubjectChanged("another"), True),
        (events.RoomConfigured(frozenset({104})), True),
        (events.RoomDestroyed(), True),
        (events.RoomError("forbidden"), False),
        (events.Gap("2026-01-01T00:00:00.000Z", "2026-01-01T01:00:00.000Z"), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_everybody_sees_is_everybodys_and_the_rest_has_its_observer(
    event: Event, shared: bool, stage: Stage
) -> None:
    stage.enters()
    stage.happens(_said("first"), event)
    last = stage.ends()[-1]
    assert (last["kind"], last["room"], bool(last["shared"])) == (event.kind, ROOM, shared)
    assert last["run"] == stage.participant.journal.numbering.epoch


def test_what_is_true_of_us_alone_is_left_out_of_what_is_everybodys(stage: Stage) -> None:
    stage.enters()
    stage.happens(_said("mine", own=True))
    stage.happens(events.OccupantLeft(ME.from_, ME.sender, True, frozenset({110, 307})))
    shared = [each for each in stage.ends() if each["shared"]]
    assert not [each for each in shared if "reflection" in each or "self" in each]
    assert [each["codes"] for each in shared if "codes" in each] == [[100], [307]]


def test_whoever_comes_second_leaves_out_what_the_room_tells_of_before(stage: Stage) -> None:
    stage.enters()
    stage.happens(_said("hello", stanza_id="1"))
    second = Stage(stage.place)
    until = time.monotonic() + 10
    while not rows(stage.place, "kind = 'message'"):
        assert time.monotonic() < until
        time.sleep(0.02)
    second.happens(events.ConnectionChanged(Phase.JOINING))
    second.happens(HERE, earlier=True)
    second.happens(ME)
    told = {"source": Source.HISTORY, "delayed_from": "2026-01-01T00:00:00.000Z"}
    before = [_said("hello", stanza_id="1", **told), _said("before us", stanza_id="0", **told)]
    second.happens(*before, SUBJECT, earlier=True)
    second.happens(events.ConnectionChanged(Phase.JOINED))
    second.ends()
    shared = [(each["kind"], each.get("body")) for each in stage.ends() if each["shared"]]
    assert sorted(shared, key=str) == [
        ("join", None),
        ("join", None),
        ("join", None),  # of the second, which asked after the first had joined
        ("message", "before us"),
        ("message", "hello"),
        ("subject", None),
    ]


def test_one_room_is_left_without_the_other_and_other_settings_are_another_observer(
    stage: Stage,
) -> None:
    stage.enters()
    stage.happens(events.ConnectionChanged(Phase.WAITING))
    stage.happens(events.ConnectionChanged(Phase.RESOLVING), room="")
    other = SETTINGS._replace(nickname="Other", rooms=(OTHER,))
    assert stage.participant.begin_anew(other)
    stage.happens(events.ConnectionChanged(Phase.CONNECTING), room="")
    loaded = stage.ends()
    assert [each["observer"] for each in loaded if not each["room"]][-1] == "Other"
    assert {each["observer"] for each in loaded if each["room"] == ROOM} == {"McpDebug"}
