"""What an entry of xmppHistory tells, in brief and in full."""

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bridge.xmpp.model.events import (
    Connected,
    ConnectionChanged,
    Event,
    Joined,
    MessageReceived,
    MessageSent,
    OccupantError,
    Phase,
    SendFailed,
    Source,
)
from tests.tools.looking import page_of
from tests.tools.played import (
    FAULT,
    LOGS,
    ROOM,
    Played,
    in_rooms,
)

NAME = "McpDebug"
OUT = MessageSent(f"{ROOM}/{NAME}", NAME, "hello", "m1")
BACK = MessageReceived(f"{ROOM}/{NAME}", NAME, "hello", id="m1", own=True)


async def test_what_we_said_is_one_entry_and_two_in_full() -> None:
    played = Played()
    played.publish(OUT)
    (unheard,) = (await page_of(played))["entries"]
    assert (unheard["cursor"], unheard["body"], unheard["heard"]) == ("epoch-1", "hello", False)
    played.publish(dataclasses.replace(BACK, id="another", own=False))
    played.publish(BACK)
    _, heard = (await page_of(played))["entries"]
    assert (heard["cursor"], heard["body"], heard["heard"]) == ("epoch-3", "hello", True)
    out, _, back = (await page_of(played, detail="full"))["entries"]
    assert (out["direction"], out["id"], "reflection" in out) == ("out", "m1", False)
    assert (back["direction"], back["id"], back["reflection"]) == ("in", "m1", True)


async def test_an_error_names_the_message_and_whoever_answered_with_it() -> None:
    played = Played()
    played.publish(OccupantError(f"{ROOM}/Robot", "Robot", "not-acceptable", "a\u202eb", "m1"))
    played.publish(SendFailed("m1", "forbidden"))
    at = "1970-01-01T00:00:00.000Z"
    theirs, returned = (await page_of(played, kinds=["error"]))["entries"]
    assert theirs == {
        "cursor": "epoch-1",
        "at": at,
        "kind": "error",
        "sender": "Robot",
        "condition": "not-acceptable",
        "text": "a\\u{202E}b",
        "id": "m1",
        "escaped": True,
    }
    told = {"cursor": "epoch-2", "at": at, "kind": "error", "condition": "forbidden", "id": "m1"}
    assert returned == told
    (found,) = (await page_of(played, **{"from": "Robot", "contains": "ab"}))["entries"]
    assert found == theirs


async def test_a_message_is_heard_though_an_archive_or_another_page_told_of_it() -> None:
    played = Played()
    played.publish(OUT)
    played.publish(dataclasses.replace(BACK, source=Source.HISTORY))
    (entry,) = (await page_of(played))["entries"]
    assert (entry["cursor"], entry["source"], "heard" in entry) == ("epoch-2", "history", False)


async def test_what_was_sent_is_heard_in_its_own_room_only() -> None:
    played = in_rooms(ROOM, LOGS)
    played.publish(OUT)
    played.publish(dataclasses.replace(BACK, from_=f"{LOGS}/{NAME}"), LOGS)
    assert [one["heard"] for one in (await page_of(played))["entries"]] == [False, True]


@given(
    st.lists(st.sampled_from(["out", "back", "noise", "step"]), max_size=30),
    st.integers(1, 5),
    st.sampled_from([2_000, 9_000]),
)
async def test_whatever_we_said_is_told_once_whether_it_was_heard_or_not(
    steps: list[str], limit: int, size: int
) -> None:
    played = Played()
    waiting: list[int] = []
    expected: dict[str, str] = {}
    for number, step in enumerate(steps):
        cursor = f"epoch-{number + 1}"
        match step:
            case "out":
                played.publish(dataclasses.replace(OUT, id=f"m{number}"))
                waiting.append(number)
                expected[cursor] = "False"
            case "back" if waiting:
                told = waiting.pop()
                played.publish(dataclasses.replace(BACK, id=f"m{told}"))
                del expected[f"epoch-{told + 1}"]
                expected[cursor] = "True"
            case "step":
                played.publish(ConnectionChanged(Phase.JOINING))
            case _:
                played.hear("noise")
                expected[cursor] = "None"
    found: dict[str, str] = {}
    page: dict[str, Any] = {"next": "oldest", "more": True}
    while page["more"]:
        page = await page_of(played, since=page["next"], limit=limit, maxBytes=size)
        found |= {one["cursor"]: str(one.get("heard")) for one in page["entries"]}
    assert [*found.items()] == sorted(expected.items(), key=lambda it: int(it[0][6:]))


STEPS: list[Event] = [
    ConnectionChanged(Phase.CONNECTING),
    Connected("bot@example/r", "xmpp://example:5222", None, "PLAIN"),
    Joined(f"{ROOM}/{NAME}", NAME, created=False),
    ConnectionChanged(Phase.JOINED),
]


async def test_the_steps_of_connecting_are_told_if_they_are_asked_for_and_faults_always() -> None:
    played = Played()
    for step in STEPS:
        played.publish(step, "")
    played.publish(ConnectionChanged(Phase.WAITING, FAULT), "")
    (lost,) = (await page_of(played))["entries"]
    assert (lost["kind"], lost["condition"]) == ("connection", FAULT.condition)
    for asked in ({"kinds": ["connection"]}, {"detail": "full"}):
        assert len((await page_of(played, **asked))["entries"]) == 5
    assert (await page_of(played, kinds=["message"]))["entries"] == []
