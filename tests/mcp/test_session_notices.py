import asyncio
import json
from typing import Any

import pytest

from bridge.mcp.framing import Framing
from bridge.mcp.session import (
    CHANGES_SECONDS,
)
from tests.mcp.client import Client
from tests.mcp.sample_tools import (
    request,
    stateless,
)

UPDATED = "notifications/resources/updated"
WORDS_ONLY = {"resourceSubscriptions": ["sample://words"]}


# Changes


def updates(frames: list[Any]) -> list[Any]:
    return [one["params"] for one in frames if one.get("method") == UPDATED]


async def subscribed(client: Client, *uris: str) -> None:
    client.send(*(request(uri, "resources/subscribe", uri=uri) for uri in uris))
    await client.replies(len(uris))


async def test_a_flood_of_changes_is_one_notification_a_resource_a_period() -> None:
    client = Client()
    await subscribed(client, "sample://words", "sample://nothing")
    loop = asyncio.get_running_loop()
    start, told = loop.time(), 2
    for _ in range(3):
        for _ in range(1000):
            client.session.changed("sample://words")
            client.session.changed("sample://nothing")
        told += 2
        replies = await client.replies(told)
    # The first goes at once, each further one a whole period after the one before it.
    assert loop.time() - start >= 2 * CHANGES_SECONDS
    assert [one["uri"] for one in updates(replies)] == ["sample://words", "sample://nothing"] * 3
    assert len(updates(await client.end())) == 6


async def test_the_last_change_is_told_even_if_the_session_ends_before_its_turn() -> None:
    client = Client()
    client.send(stateless("l", "subscriptions/listen", notifications=WORDS_ONLY))
    await client.replies(1)
    client.session.changed("sample://words")
    await client.replies(2)
    client.session.changed("sample://words")
    *_, last, closing = await client.end()
    assert last["method"] == UPDATED
    assert closing["id"] == "l"


async def test_after_the_end_nothing_is_told_any_more() -> None:
    client = Client()
    await subscribed(client, "sample://words")
    client.send(request(1, "logging/setLevel", level="debug"))
    assert len(await client.end()) == 2
    client.session.changed("sample://words")
    client.session.announce("emergency", "sample", "too late")
    await client.idle()
    assert len(client.frames) == 2


BOTH = pytest.mark.parametrize(
    ("asked", "latest"), [tuple(Framing), tuple(reversed(Framing))], ids=["lines", "headers"]
)
"""The framing of what asks to be told, and of the message that comes after it."""


@BOTH
async def test_progress_and_log_of_a_call_go_out_in_its_framing(
    asked: Framing, latest: Framing
) -> None:
    client = Client()
    client.send(request(0, "logging/setLevel", level="debug"), framing=latest)
    meta = {"progressToken": "t"}
    calling = request(1, "tools/call", name="climb_slowly", arguments={}, _meta=meta)
    client.send(calling, framing=asked)
    await client.replies(2)
    client.send(request(2, "ping"), framing=latest)
    await client.replies(3)
    client.bench.release.set()
    *_, last, reply = await client.replies(5)
    assert (last["method"], reply["id"]) == ("notifications/progress", 1)
    climbing = request(3, "tools/call", name="climb", arguments={"heights": [1]}, _meta=meta)
    client.send(climbing, framing=asked)
    await client.end()
    framings = [one.framing for one in client.frames]
    assert framings[:3] == [latest, asked, latest]
    assert set(framings[3:]) == {asked}
    methods = [json.loads(one.body).get("method") for one in client.frames[5:]]
    assert "notifications/message" in methods


# Progress
