import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp.framing import Framing
from bridge.mcp.jsonrpc import Id, Json, Notification
from bridge.mcp.subscriptions import MAX_URIS, SUBSCRIPTION_ID, Subscriptions

KNOWN = ("a:1", "a:2", "a:3")


def subscriptions() -> Subscriptions:
    return Subscriptions(frozenset(KNOWN).__contains__)


def listen(watching: Subscriptions, id_: Id, **wanted: Json) -> Notification:
    return watching.listen(id_, {"notifications": wanted}, Framing.LINES)


@pytest.mark.parametrize(
    ("wanted", "agreed"),
    [
        ({"toolsListChanged": True, "promptsListChanged": True}, {}),
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


@pytest.mark.parametrize("extra", [0, 1])
def test_as_many_resources_are_looked_at_as_allowed_and_no_more(extra: int) -> None:
    uris = [*(f"b:{number}" for number in range(MAX_URIS - 1 + extra)), "a:1"]
    agreed = listen(subscriptions(), "l", resourceSubscriptions=uris).params
    assert isinstance(agreed, dict)
    assert agreed["notifications"] == ({} if extra else {"resourceSubscriptions": ["a:1"]})
