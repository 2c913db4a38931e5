"""What an actor waits for and tells at most, and what it does in a fault, on the sandbox."""

import time
from collections.abc import Iterator

import pytest

from bridge.testing import actor
from bridge.testing.actor import MAX_EVENTS, MAX_NAMED, MAX_STANZA_CHARACTERS, MAX_STANZAS
from bridge.testing.errors import ActorError, ExpectationError
from bridge.testing.server import FixtureServer


@pytest.fixture
def server() -> Iterator[FixtureServer]:
    """The sandbox."""
    with FixtureServer() as running:
        yield running


def test_a_report_has_the_newest_events_and_stanzas(server: FixtureServer) -> None:
    alice = server.actor_sync("Alice")
    for number in range(MAX_EVENTS):
        alice.say(f"{number:04}")
    alice.say("x" * MAX_STANZA_CHARACTERS)
    (title, events), (_, stanzas) = server.report("Alice")
    assert title == f"XMPP: {server.room} as Alice saw it"
    assert len(events.splitlines()) == MAX_EVENTS
    assert len(stanzas.splitlines()) == MAX_STANZAS
    assert f"{MAX_EVENTS - 1:04}" in events
    assert "0000" not in events
    time_, _, last = stanzas.splitlines()[-1].partition(" in: ")
    assert time_.endswith("Z")
    assert len(last.partition("... (")[0]) == MAX_STANZA_CHARACTERS
    assert server.report("Nobody") == server.report("Alice")


def test_a_report_is_of_who_has_the_nickname_last(server: FixtureServer) -> None:
    alice, bob = server.actor_sync("Alice"), server.actor_sync("Bob")
    bob.leave()
    alice.expect_leave("Bob")
    alice.say("meanwhile")
    server.actor_sync("Bob").say("again")
    ((_, events), _) = server.report("Bob")
    assert "again" in events
    assert "(our own) meanwhile" in server.report(None)[0][1]


def test_nobody_waits_for_a_server_without_end(
    server: FixtureServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor, "ANSWER_SECONDS", 0.3)
    alice = server.actor_sync("Alice")
    monkeypatch.setattr(actor, "ENTER_SECONDS", 1.0)
    server.fault("lost-reflection", nickname="Alice")
    began = time.monotonic()
    with pytest.raises(ActorError, match=r'^Alice could not say "hello": .* within 0\.3 s'):
        alice.say("hello")
    server.fault("silence")
    with pytest.raises(ActorError, match=r'^Alice could not kick "Bob": no answer came within'):
        alice.kick("Bob")
    with pytest.raises(ActorError, match=r"^Bob is not in .*\. The phase is joining\.$"):
        server.actor_sync("Bob")
    assert 0.9 <= time.monotonic() - began < 5


def test_a_refused_login_is_told_with_the_setting_to_change(server: FixtureServer) -> None:
    server.environment("alice")  # gives it the account
    server.fault("refused-login", nickname="alice")
    with pytest.raises(ActorError, match=r"^Alice is not in .* XMPP_PASSWORD"):
        server.actor_sync("Alice")


def test_as_many_occupants_are_named_as_a_reader_takes_in(server: FixtureServer) -> None:
    first, *_ = (server.actor_sync(f"N{number}") for number in range(MAX_NAMED + 1))
    first.expect_join(f"N{MAX_NAMED}")
    with pytest.raises(ExpectationError) as caught:
        first.expect("x", within=0)
    named = str(caught.value).splitlines()[-1]
    assert named.startswith('In the room: "N0", "N1", ')
    assert named.count('"') == 2 * MAX_NAMED


def test_an_actor_that_is_cut_off_comes_back(server: FixtureServer) -> None:
    alice, bob = server.actor_sync("Alice"), server.actor_sync("Bob")
    alice.expect_join("Bob")
    server.fault("drop", nickname="Bob")
    alice.expect_leave("Bob")
    alice.expect_join("Bob")
    alice.say("welcome back")
    bob.expect("welcome back", from_="Alice")
