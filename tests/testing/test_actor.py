"""Actors on the sandbox and on real servers: both must behave alike."""

import asyncio
from pathlib import Path

import pytest

from bridge.testing.actor import ActorProxy
from bridge.testing.errors import ActorError, ExpectationError
from bridge.testing.server import FixtureServer
from tests.servers.server import XmppServer
from tests.testing.servers import env_file


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
    prosody: XmppServer, tmp_path: Path
) -> None:
    with FixtureServer(env_file(prosody, tmp_path)) as server:
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


def test_a_whisper_reaches_one_alone(alice: ActorProxy, bob: ActorProxy) -> None:
    bob.whisper("Alice", "psst")
    assert alice.expect("psst", from_="Bob", private=True).type == "chat"
    bob.whisper("Alice", "again")
    with pytest.raises(ExpectationError, match=r"in private: .*again"):
        alice.expect("again", within=0.2)
    with pytest.raises(ExpectationError, match=r"<Bob> \(private\) again"):
        alice.expect_nothing(from_="Bob", during=0)
    with pytest.raises(ActorError, match='could not whisper to "Alise", who is not there'):
        bob.whisper("Alise", "psst")


def test_an_actor_that_cannot_get_in_says_why(
    server: FixtureServer, alice: ActorProxy, xmpp_server: XmppServer
) -> None:
    other = xmpp_server.witness  # sessions of one account may share a nickname
    with pytest.raises(ActorError, match=r"^Alice did not get into .*: another occupant has"):
        server.actor_sync("Alice", account=other.username, password=other.password)
    with pytest.raises(ActorError, match=r"^Carol is not in room@nowhere\.invalid\. .*"):
        server.actor_sync("Carol", room="room@nowhere.invalid")
