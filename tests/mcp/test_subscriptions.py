import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp.framing import Framing
from bridge.mcp.jsonrpc import Id, Json, Notification, Response
from bridge.mcp.subscriptions import SUBSCRIPTION_ID, Subscriptions

KNOWN = ("a:1", "a:2", "a:3")


def subscriptions() -> Subscriptions:
    return Subscriptions(frozenset(KNOWN).__contains__)


def update(uri: str, id_: Id | None = None) -> tuple[Notification, Framing]:
    meta = {} if id_ is None else {"_meta": {SUBSCRIPTION_ID: id_}}
    return Notification("notifications/resources/updated", {**meta, "uri": uri}), Framing.LINES


def listen(watching: Subscriptions, id_: Id, **wanted: Json) -> Notification:
    return watching.listen(id_, {"notifications": wanted}, Framing.LINES)


@pytest.mark.parametrize(
    ("wanted", "agreed"),
    [
        ({}, {}),
        ({"toolsListChanged": True, "promptsListChanged": True}, {}),
        ({"resourceSubscriptions": []}, {}),
        ({"resourceSubscriptions": "a:1"}, {}),
        ({"resourceSubscriptions": ["b:1", 1, None, [], {}]}, {}),
        (
            {"resourceSubscriptions": ["a:2", "b:1", "a:1", "a:2"], "resourcesListChanged": True},
            {"resourceSubscriptions": ["a:2", "a:1"]},
        ),
    ],
)
def test_what_cannot_be_kept_is_not_agreed_to(
    wanted: dict[str, Json], agreed: dict[str, Json]
) -> None:
    assert listen(subscriptions(), "l", **wanted) == Notification(
        "notifications/subscriptions/acknowledged",
        {"_meta": {SUBSCRIPTION_ID: "l"}, "notifications": agreed},
    )


def test_who_listens_and_the_session_are_told_apart() -> None:
    watching = subscriptions()
    watching.session_wide["a:1"] = Framing.LINES
    listen(watching, 1, resourceSubscriptions=["a:1"])
    listen(watching, "1", resourceSubscriptions=["a:2", "a:1"])
    assert watching.updates("a:1") == [update("a:1"), update("a:1", 1), update("a:1", "1")]
    assert watching.updates("a:2") == [update("a:2", "1")]
    assert watching.updates("a:3") == []


def test_a_listening_request_ends_once() -> None:
    watching = subscriptions()
    listen(watching, 1, resourceSubscriptions=["a:1"])
    assert not watching.end("1")
    assert watching.end(1)
    assert not watching.end(1)
    assert watching.updates("a:1") == []


def test_at_the_end_all_who_listen_are_told_in_the_order_they_came() -> None:
    watching = subscriptions()
    watching.session_wide["a:1"] = Framing.LINES
    for id_ in ("b", 1):
        listen(watching, id_)
    meta: dict[str, Json] = {"who": "us"}
    assert [response for response, _ in watching.close(meta)] == [
        Response(id_, {"resultType": "complete", "_meta": {"who": "us", SUBSCRIPTION_ID: id_}})
        for id_ in ("b", 1)
    ]
    assert watching.close(meta) == []


uris = st.lists(st.sampled_from([*KNOWN, "b:1"]), max_size=4)


@given(uris, st.dictionaries(st.integers(0, 5), uris), st.sampled_from(KNOWN))
def test_as_many_are_told_as_watch(
    session_wide: list[str], listeners: dict[int, list[str]], uri: str
) -> None:
    watching = subscriptions()
    watching.session_wide.update(dict.fromkeys(session_wide, Framing.LINES))
    for id_, wanted in listeners.items():
        listen(watching, id_, resourceSubscriptions=wanted)
    count = (uri in session_wide) + sum(uri in wanted for wanted in listeners.values())
    assert len(watching.updates(uri)) == count
    assert watching.has(uri) is (count > 0)
