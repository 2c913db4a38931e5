"""What the tool makes of a check: the settings read anew, the standing connection, turns."""

import asyncio
import socket
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from bridge.mcp.context import Context
from bridge.mcp.errors import ToolError
from bridge.settings.load import load
from bridge.settings.table import VARIABLES, Configuration, Setting, Settings
from bridge.tools import check
from bridge.tools.check import CurrentSettings, result_of, xmpp_check
from bridge.tools.entries import RESULT_BYTES, json_size
from bridge.xmpp.checks.report import (
    MAX_ROOMS_NAMED,
    CheckedRoom,
    CheckStage,
    Report,
    Visit,
    expected_stages,
    report_of,
)
from bridge.xmpp.model.events import Phase
from bridge.xmpp.model.faults import Fault
from bridge.xmpp.model.room import Room, RoomStatus
from bridge.xmpp.muc.membership import Membership
from tests.mcp.sample_tools import UNASKED
from tests.servers.ports import free_ports
from tests.servers.server import XmppServer, write_settings
from tests.servers.witness import Witness
from tests.tools.played import STATUS, Played, fitting

PASSWORD = "not-to-be-shown-4711"


@dataclass
class Standing(Played):
    """A participant that notes what it is told to begin with."""

    room_jid: str = ""
    phase: Phase = Phase.WAITING
    begun: list[Settings] = field(default_factory=list)
    being_in: tuple[Membership, ...] = ()

    @property
    def memberships(self) -> tuple[Membership, ...]:
        return self.being_in

    def status(self) -> RoomStatus:
        return Room(nickname="", service="", phase=self.phase, since=0.0).status()

    def begin_anew(self, settings: Settings) -> bool:
        self.begun.append(settings)
        return settings != self.settings or self.phase is not Phase.JOINED


class Desk:
    """A `.env` file, and the settings read from it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / ".env"
        self.folder = folder
        self.file.touch()
        self.told: list[tuple[float, float | None, str | None]] = []
        self.standing = Standing()

    def write(self, **variables: str) -> None:
        write_settings(self.file, variables)

    def read(self) -> Configuration:
        return load({}, cwd=self.folder, package_root=self.folder / "x", env_file=self.file)

    def current(self) -> CurrentSettings:
        read = self.read()
        self.standing.settings = read.settings
        return CurrentSettings(read, self.read)

    async def check(self, current: CurrentSettings) -> dict[str, Any]:
        context = Context(lambda *told: self.told.append(told), lambda level, data: None, *UNASKED)
        result = fitting(xmpp_check, await xmpp_check(self.standing.link, current, context))
        assert PASSWORD not in str(result)
        return result


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def nowhere(**overrides: str) -> dict[str, str]:
    (port,) = free_ports(1)
    return {
        "XMPP_SERVICE": f"xmpp://127.0.0.1:{port}",
        "XMPP_USERNAME": "bot@localhost",
        "XMPP_PASSWORD": PASSWORD,
        "MUC_ROOM": "room@conference.localhost",
    } | overrides


async def test_a_failed_check_with_the_same_settings_leaves_everything_alone(desk: Desk) -> None:
    desk.write(**nowhere())
    result = await desk.check(desk.current())
    assert [each["name"] for each in result["phases"]] == ["settings", "resolve", "connect"]
    assert result["condition"] == "connection-refused"
    assert result["ok"] is False
    assert not {"settingsChanged", "notice"} & result.keys()
    assert result["standing"] == "The bridge was left alone; its phase is waiting."
    assert desk.standing.begun == []


async def test_changed_settings_are_handed_over_even_if_they_fail(desk: Desk) -> None:
    current = desk.current()
    desk.write(**nowhere(MCP_BOT_NICKNAME="Beetle"))
    result = await desk.check(current)
    assert (result["ok"], result["settingsChanged"]) == (False, True)
    assert "the settings changed" in result["standing"]
    (settings,) = desk.standing.begun
    assert settings.nickname == "Beetle"
    assert current.configuration.problems == ()


async def test_what_holds_only_from_the_next_start_on_is_told(desk: Desk) -> None:
    desk.write(**nowhere())
    current = desk.current()
    desk.write(**nowhere(BRIDGE_READ_ONLY="1", LOG_LEVEL="DEBUG", BRIDGE_HISTORY="500"))
    hint = (await desk.check(current))["phases"][0]["hint"]
    assert hint.endswith("once the bridge is restarted: BRIDGE_HISTORY, LOG_LEVEL.")
    assert "restarted" in (await desk.check(current))["phases"][0]["hint"]


async def test_new_warnings_and_problems_go_to_the_log_once(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.write(**nowhere())
    current = desk.current()
    desk.write(**nowhere(NODE_TLS_REJECT_UNAUTHORIZED="0", MUC_ROOM="no room"))
    await desk.check(current)
    await desk.check(current)
    told = [(each.levelname, each.getMessage().split()[0]) for each in caplog.records]
    assert told == [("WARNING", "NODE_TLS_REJECT_UNAUTHORIZED"), ("ERROR", "MUC_ROOM")]


async def test_one_check_waits_for_another_not_for_ever_and_reads_the_settings_in_its_turn(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        desk.write(**nowhere(XMPP_SERVICE=f"xmpp://127.0.0.1:{silent.getsockname()[1]}"))
        current = desk.current()
        first = asyncio.create_task(desk.check(current))
        async with asyncio.timeout(10.0):
            while len(desk.told) < 3:  # noqa: ASYNC110 - connected, and the server silent
                await asyncio.sleep(0.01)
        with monkeypatch.context() as impatient:
            impatient.setattr(check, "TURN_SECONDS", 0.2)
            with pytest.raises(ToolError) as refusal:
                await desk.check(current)
        assert refusal.value.condition == "resource-constraint"
        second = asyncio.create_task(desk.check(current))
        await asyncio.sleep(0)  # now it waits
        desk.write(**nowhere())
        first.cancel()
        assert (await second)["condition"] == "connection-refused"


@pytest.mark.parametrize(
    ("variable", "before", "after", "waiting"),
    [
        ("BRIDGE_SEND_RATE", "60", "30", []),
        ("BRIDGE_CONFIRM_SEND", "0", "1", []),
        ("BRIDGE_CONFIRM_SEND", "1", "0", []),
        ("BRIDGE_READ_ONLY", "0", "1", []),
        # The tools that it withheld come back with the next start.
        ("BRIDGE_READ_ONLY", "1", "0", ["BRIDGE_READ_ONLY"]),
        ("BRIDGE_HISTORY", "500", "200", ["BRIDGE_HISTORY"]),
    ],
)
def test_what_waits_for_a_restart_is_told_until_it_is_taken_back(
    desk: Desk, variable: str, before: str, after: str, waiting: list[str]
) -> None:
    desk.write(**nowhere(**{variable: before}))
    current = desk.current()
    for value, names in ((after, waiting), (before, [])):
        desk.write(**nowhere(**{variable: value}))
        current.read_anew()
        assert current.waiting_for_restart == names


async def test_the_settings_in_effect_are_listed_with_their_source_and_no_secret(
    desk: Desk,
) -> None:
    desk.write(**nowhere(MUC_PASSWORD=PASSWORD, LOG_LEVEL="\u202eloud", BRIDGE_READ_ONLY="yes"))
    listed = {each["variable"]: each for each in (await desk.check(desk.current()))["settings"]}
    source = f"'{desk.file}'"
    assert listed["XMPP_USERNAME"]["value"] == "bot@localhost"
    shown = {"XMPP_PASSWORD": "***", "MUC_PASSWORD": "***", "BRIDGE_READ_ONLY": "1"}
    for name, value in shown.items():
        assert listed[name] == {"variable": name, "value": value, "source": source}
    # What does not do is a problem and not in effect; what nobody set is not told of.
    assert not {"LOG_LEVEL", "BRIDGE_HISTORY"} & listed.keys()


async def test_a_wrong_setting_beside_the_connection_does_not_keep_the_bridge_out(
    desk: Desk, sandbox: XmppServer
) -> None:
    environment = sandbox.environment(BRIDGE_HISTORY="some")
    desk.write(**environment)
    current = desk.current()
    desk.standing.being_in = in_rooms([environment["MUC_ROOM"]], environment["MUC_ROOM"])
    result = await desk.check(current)
    failed = [each["name"] for each in result["phases"] if not each["ok"]]
    assert (result["ok"], failed) == (False, ["settings"])
    assert result["diagnosis"].endswith(" But a setting beside the connection is wrong.")
    assert result["standing"].startswith("The bridge starts anew now, since it was out of a room")


# With several rooms.


def in_rooms(rooms: list[str], *out_of: str) -> tuple[Membership, ...]:
    """Being in these rooms but for some, from which the bridge was put out."""
    waiting = replace(STATUS, phase=Phase.WAITING)
    played = (Played(waiting if each in out_of else STATUS, room_jid=each) for each in rooms)
    return cast("tuple[Membership, ...]", tuple(played))


async def test_each_room_is_visited_and_each_phase_told_with_its_room(
    desk: Desk, prosody: XmppServer
) -> None:
    rooms = [prosody.room() for _ in range(3)]
    desk.write(**prosody.environment(MUC_ROOM=",".join(rooms)))
    async with Witness(prosody, prosody.witness, rooms[1], "Owner") as owner:
        await owner.muc.set_affiliation(rooms[1], "outcast", jid=prosody.bot.jid)
        current = desk.current()
        desk.standing.being_in = in_rooms(rooms, rooms[1])
        result, told = await desk.check(current), desk.told.copy()
        assert desk.standing.begun == []
        desk.standing.being_in = in_rooms(rooms, *rooms)
        again = await desk.check(current)
    assert result["rooms"] == [
        {"room": rooms[0], "ok": True, "condition": None},
        {"room": rooms[1], "ok": False, "condition": "forbidden"},
        {"room": rooms[2], "ok": True, "condition": None},
    ]
    assert (result["ok"], result["condition"]) == (False, "forbidden")
    expected = expected_stages(rooms, send=False)
    visited = [(each["name"], each.get("room")) for each in result["phases"]]
    assert visited == [
        each for each in expected if each[1] != rooms[1] or each[0] in {"disco", "join"}
    ]
    # Progress counts what a refused room leaves out, so that it always grows.
    assert [each for each, _, _ in told] == [expected.index(each) + 1 for each in visited]
    assert {total for _, total, _ in told} == {len(expected)}
    assert [each for _, _, each in told][-2:] == [f"occupants {rooms[2]}", f"leave {rooms[2]}"]
    # The bridge is out of that room only, and nothing has become better there.
    assert result["standing"] == "The bridge was left alone; it is in 2 of 3 rooms."
    # Once it is out of one that lets the check in, it tries anew, whatever the others say.
    assert again["standing"].startswith("The bridge starts anew now, since it was out of a room")
    assert desk.standing.begun == [desk.standing.settings]


def of_rooms(count: int, failing: int, *, name: int = 4, text: int = 200) -> Report:
    """The report of a check of so many rooms, with names and texts so long."""
    rooms = [f"{number:02}{'x' * name}@conference.example.org" for number in range(count)]
    stages, visits = [], []
    for stage, room in expected_stages(rooms, send=False):
        number = -1 if room is None else rooms.index(room)
        failed = number < failing and stage == "join"
        if number >= failing or stage in {"disco", "join"} or room is None:
            told = CheckStage(stage, not failed, 1234.567, "d" * text, "h" * text, room)
            stages.append(told)
    fault = Fault("registration-required", "m" * text, "h" * text)
    visits = [Visit(room, fault if number < failing else None) for number, room in enumerate(rooms)]
    return report_of(rooms, stages, 1.0, visits, None)


@pytest.mark.parametrize(
    ("failing", "name"), [(0, 4), (MAX_ROOMS_NAMED, 1000), (MAX_ROOMS_NAMED + 1, 4), (50, 1000)]
)
def test_what_came_of_fifty_rooms_fits_into_a_result(failing: int, name: int) -> None:
    report = of_rooms(50, failing, name=name)
    set_ = [Setting(each, "v" * 300, "s" * 100) for each in VARIABLES]
    result = fitting(xmpp_check, result_of(report, set_, "s" * 100, changed=True))
    assert json_size(result) <= RESULT_BYTES
    assert report.rooms is not None
    assert [(each["ok"], each["condition"]) for each in result["rooms"]] == [
        (each.ok, each.condition) for each in report.rooms
    ]
    failed = [each for each in result["phases"] if not each["ok"]]
    assert len(failed) >= min(failing, MAX_ROOMS_NAMED)
    assert result["leftOut"] == len(report.phases) - len(result["phases"]) > 0


@pytest.mark.parametrize("over", [0, 1])
def test_what_passed_in_rooms_is_left_out_where_there_is_no_space_for_it(over: int) -> None:
    report = of_rooms(2, 1, text=10)
    assert report.rooms == [
        CheckedRoom("00xxxx@conference.example.org", False, "registration-required"),
        CheckedRoom("01xxxx@conference.example.org", True, None),
    ]
    whole = result_of(report, [], "", changed=False)
    result = result_of(report, [], "s" * (RESULT_BYTES - json_size(whole) + over), changed=False)
    phases = whole["phases"]
    assert isinstance(phases, list)
    kept = [each for each in phases if "room" not in each or not each["ok"]] if over else phases
    assert result["phases"] == kept
    assert result.get("leftOut", 0) == len(phases) - len(kept)
