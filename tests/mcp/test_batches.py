from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp.batches import Batches
from bridge.mcp.calls import Call, Reply
from bridge.mcp.jsonrpc import Response
from tests.mcp.sample_tools import wait


def call(serial: int, batch: int | None = None) -> Call:
    return Call(serial, serial, wait, wait.function, {}, None, batch)


def test_outside_a_batch_an_answer_goes_out_by_itself() -> None:
    batches = Batches()
    assert batches.hand_in(call(1), Response(1, "done")) == Reply(Response(1, "done"))
    assert batches.hand_in(call(2), None) is None


def test_an_answer_that_is_there_before_the_batch_is_read_settles_nothing() -> None:
    batches = Batches()
    batches.open(9)
    batches.add(9, call(1, 9))
    assert batches.hand_in(call(1, 9), Response(1, "done")) is None
    batches.add(9, Response(2, "at once"))
    assert batches.close(9) == Reply([Response(1, "done"), Response(2, "at once")])


@given(
    st.lists(
        st.lists(st.sampled_from(["answer", "call", "cancelled"]), max_size=4),
        min_size=1,
        max_size=3,
    ),
    st.randoms(use_true_random=False),
)
def test_each_batch_is_answered_once_with_its_last_answer_and_holds_all_of_them(
    kinds: list[list[str]],
    random: Random,
) -> None:
    batches = Batches()
    owed: dict[int, set[int]] = {}
    open_calls: list[tuple[Call, str]] = []
    replies: dict[int, Reply] = {}
    serial = 1000
    for batch, parts in enumerate(kinds):
        batches.open(batch)
        owed[batch] = set()
        for kind in parts:
            serial += 1
            if kind != "cancelled":
                owed[batch].add(serial)
            if kind == "answer":
                batches.add(batch, Response(serial))
            else:
                open_calls.append((call(serial, batch), kind))
                batches.add(batch, open_calls[-1][0])
        reply = batches.close(batch)
        assert (reply is None) is ("call" in parts or "cancelled" in parts or not parts)
        if reply:
            replies[batch] = reply
    random.shuffle(open_calls)
    for position, (one, kind) in enumerate(open_calls):
        assert one.batch is not None
        last = one.batch not in (other.batch for other, _ in open_calls[position + 1 :])
        reply = batches.hand_in(one, None if kind == "cancelled" else Response(one.serial))
        assert (reply is not None) is (last and bool(owed[one.batch]))
        if reply:
            replies[one.batch] = reply
    for batch, ids in owed.items():
        response = replies[batch].response if batch in replies else []
        assert isinstance(response, list)
        assert sorted(one.id for one in response if isinstance(one.id, int)) == sorted(ids)
