"""What a reader needs of an event, and what is left out."""

import pytest

from bridge.tools.entries import (
    LEAST_ITEM_BYTES,
    LISTS_SHARE,
    Entry,
    brief,
    fit,
    json_size,
    nonempty,
)

STAMP: Entry = {"cursor": "e-1", "at": "2026-01-31T12:00:00.000Z"}
MESSAGE: Entry = {
    **STAMP,
    "kind": "message",
    "direction": "in",
    "from": "room@c.example/Alice",
    "jid": "alice@example/phone",
    "sender": "Alice",
    "body": "hi",
    "type": "groupchat",
    "id": "1",
    "stanzaId": "2",
    "source": "live",
}
SAID: Entry = {**STAMP, "kind": "message", "sender": "Alice", "body": "hi"}
GAP: Entry = {**STAMP, "kind": "gap", "from": "2026-01-31T11:00:00Z", "to": "2026-01-31T12:00:00Z"}


@pytest.mark.parametrize(
    ("exact", "shown"),
    [
        (MESSAGE, SAID),
        ({**MESSAGE, "type": "chat"}, {**SAID, "type": "chat"}),
        ({**MESSAGE, "reflection": True}, {**SAID, "heard": True}),
        ({**MESSAGE, "direction": "out"}, {**SAID, "heard": False}),
        (
            {**MESSAGE, "kind": "join", "codes": [100], "meaning": ["everybody sees JIDs"]},
            {**SAID, "kind": "join", "jid": MESSAGE["jid"], "meaning": ["everybody sees JIDs"]},
        ),
        # Somebody who is not here has no other name, and the time when a gap began no other field.
        *((each, each) for each in ({**STAMP, "kind": "role", "jid": "alice@example"}, GAP)),
    ],
    ids=["a message", "a private one", "a reflection", "what we sent", "who joins", "role", "gap"],
)
def test_a_brief_entry_has_what_a_reader_needs(exact: Entry, shown: Entry) -> None:
    assert brief(exact) == shown


def test_a_field_that_says_nothing_is_left_out_and_zero_is_none_of_these() -> None:
    silent: Entry = {"none": None, "no": False, "text": "", "list": [], "object": {}}
    assert nonempty({**silent, "zero": 0, "time": 0.0}) == {"zero": 0, "time": 0.0}


def test_lists_have_their_share_however_long_the_other_texts_are() -> None:
    limit = 9_000
    items: list[Entry] = [{"text": "x" * 10_000} for _ in range(200)]
    result = fit({"texts": ["y" * 10_000] * 50, "body": "z" * 99_000}, limit, items=items)
    assert json_size(result) <= limit
    assert result["truncated"] is True
    assert json_size(result["items"]) > limit // LISTS_SHARE - LEAST_ITEM_BYTES
    assert all(json_size(item) <= LEAST_ITEM_BYTES for item in result["items"])


def test_a_list_takes_what_is_left_and_leaves_out_its_last_items() -> None:
    few: list[Entry] = [{"text": "x"}]
    many: list[Entry] = [{"text": "\u202e" * 40, "number": number} for number in range(100)]
    result = fit({"head": "y"}, 2_000, few=few, many=many, none=[])
    assert (result["head"], result["few"], result["none"]) == ("y", few, [])
    numbers = [item["number"] for item in result["many"]]
    assert numbers == [*range(len(numbers))]
    assert 0 < len(numbers) < 100
    assert all(item["escaped"] for item in result["many"])
    assert json_size(result) <= 2_000 < json_size(result) + json_size(result["many"][0])


@pytest.mark.parametrize("over", [0, 1])
def test_a_result_has_as_many_bytes_as_allowed_and_not_one_more(over: int) -> None:
    text = "x" * 1_000
    limit = json_size({"text": text}) - over
    result = fit({"text": text}, limit)
    assert json_size(result) <= limit
    assert result.get("truncated", False) is bool(over)
    assert (result["text"] == text) is not bool(over)
