"""Actors on the sandbox and on real servers: both must behave alike."""

import asyncio
import time
from pathlib import Path

import pytest

from bridge.testing.actor import MAX_LINE_CHARACTERS, MAX_MISSES, ActorProxy
from bridge.testing.errors import ActorError, ExpectationError
from bridge.testing.server import FixtureServer
from tests.servers.server import XmppServer
from tests.testing.servers import server_of


@pytest.fixture
def bob(server: FixtureServer, alice: ActorProxy) -> ActorProxy:
    """The second."""
    return server.actor_sync("Bob")


def test_the_first_actor_owns_the_room_and_others_may_enter(
    alice: ActorProxy, bob: ActorProxy
) -> None:
    alice.expect_join("Bob")
    bob.expect_join("Alice")  # who was there before
    assert set(bob.occupants()) == {"Alice", "Bob"}
    assert alice.occupants()["Alice"].affiliation == "owner"
    bob.leave()
    alice.expect_leave("Bob")
    assert set(alice.occupants()) == {"Alice"}


async def test_an_actor_is_given_once_the_others_in_its_room_have_seen_it(
    real_server: XmppServer, tmp_path: Path
) -> None:
    with server_of(real_server, tmp_path) as server:
        gone, alice, carol = [await server.actor(name) for name in ("Gone", "Alice", "Carol")]
        await gone.leave()  # nobody waits for those
        connection = alice._participant.memberships[0].connection  # noqa: SLF001 - to hold back what
        transport = connection._stream.transport  # noqa: SLF001 - she alone is sent
        assert transport is not None
        server._engine.call(transport.pause_reading)  # noqa: SLF001 - in her loop
        giving = asyncio.create_task(server.actor("Bob"))
        await carol.expect_join("Bob")
        done, _ = await asyncio.wait([giving], timeout=1)
        assert not done
        server._engine.call(transport.resume_reading)  # noqa: SLF001 - in her loop
        await giving
        assert "Bob" in await alice.occupants()


def test_what_came_before_the_expectation_counts(alice: ActorProxy, bob: ActorProxy) -> None:
    alice.say("!ping")
    bob.expect("!ping")
    bob.say("pong")
    assert bob.say("ready").body == "ready"
    alice.say("!ping")  # by which nothing that came is lost
    assert alice.expect(contains="PONG", within=0).sender == "Bob"
    with pytest.raises(
        ExpectationError, match=r"before the actor's last expectation: .*<Bob> pong"
    ):
        alice.expect("pong", within=0)
    alice.expect(pattern="^r.*y$", within=0)
    with pytest.raises(TypeError, match="contain"):
        alice.expect(contain="a slip of the pen")


def test_nothing_is_expected_from_before_on_and_for_a_while(
    alice: ActorProxy, bob: ActorProxy
) -> None:
    bob.say("one")
    alice.expect("one")
    began = time.monotonic()
    alice.expect_nothing(from_="Bob", during=0.2)
    assert time.monotonic() - began >= 0.2
    alice.say("mine")
    alice.expect_nothing(during=0)
    bob.say("two")
    alice.expect_join("Bob")
    with pytest.raises(ExpectationError) as caught:
        alice.expect_nothing(contains="two", during=5)
    assert str(caught.value).startswith(
        'Alice expected for 5 s not to get a message that contains "two", and got:\n'
    )
    assert str(caught.value).endswith("<Bob> two")
    alice.expect("two")  # which an expectation of nothing leaves


def test_a_failed_expectation_says_what_came_instead(alice: ActorProxy, bob: ActorProxy) -> None:
    bob.say("hello\nforged")
    with pytest.raises(ExpectationError) as caught:
        alice.expect("hello", from_="Bob", within=0.1)
    first, second, miss, last = str(caught.value).split("\n")
    assert first == 'Alice waited 0.1 s for a message from "Bob" that says "hello", in vain.'
    assert second == "What came instead, nearest first:"
    assert miss.startswith("  another text: ")
    assert miss.endswith("<Bob> hello\\u{A}forged")
    assert last in {'In the room: "Alice", "Bob".', 'In the room: "Bob", "Alice".'}
    with pytest.raises(ExpectationError) as caught:
        alice.expect_leave("Bob", within=0)
    assert str(caught.value).split("\n")[:2] == [
        'Alice waited 0 s for "Bob" to leave, in vain.',
        "Nothing came.",
    ]


def test_a_whisper_reaches_one_alone(alice: ActorProxy, bob: ActorProxy) -> None:
    bob.whisper("Alice", "psst")
    assert alice.expect("psst", from_="Bob", private=True).type == "chat"
    bob.whisper("Alice", "again")
    with pytest.raises(ExpectationError, match=r"in private: .*again"):
        alice.expect("again", within=0.2)
    with pytest.raises(ExpectationError, match=r"<Bob> \(private\) again"):
        alice.expect_nothing(from_="Bob", during=0)


def test_as_many_misses_are_named_as_a_reader_takes_in(alice: ActorProxy, bob: ActorProxy) -> None:
    for number in range(MAX_MISSES + 2):
        bob.say(f"{number} {'x' * MAX_LINE_CHARACTERS}")
    alice.expect(contains=str(MAX_MISSES + 1))
    bob.say("last")
    with pytest.raises(ExpectationError) as caught:
        alice.expect(pattern="^[0-9]", within=0)
    lines = str(caught.value).split("\n")[2:]
    assert len(lines) == MAX_MISSES + 2
    assert len(lines[0]) == len("  before the actor's last expectation: ") + MAX_LINE_CHARACTERS
    assert lines[MAX_MISSES] == "  ... and 3 more"


async def test_an_answer_that_comes_late_is_told_as_that(server: FixtureServer) -> None:
    alice, bob = await asyncio.gather(server.actor("Alice"), server.actor("Bob"))
    await bob.expect_join("Alice")
    waiting = asyncio.create_task(alice.expect("pong", within=0.1))
    await bob.expect_nothing(during=0.3)
    await bob.say("pong")
    with pytest.raises(ExpectationError, match=r"\n  0\.\d s too late: .*<Bob> pong\n"):
        await waiting


def test_an_actor_that_cannot_get_in_says_why(
    server: FixtureServer, alice: ActorProxy, xmpp_server: XmppServer
) -> None:
    other = xmpp_server.witness  # sessions of one account may share a nickname
    with pytest.raises(ActorError, match=r"^Alice did not get into .*: somebody there has this"):
        server.actor_sync("Alice", account=other.username, password=other.password)
    with pytest.raises(ActorError, match=r"^Carol is not in room@nowhere\.invalid\. .*"):
        server.actor_sync("Carol", room="room@nowhere.invalid")
