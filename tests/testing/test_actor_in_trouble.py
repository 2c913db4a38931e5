"""What an actor expects, waits for and tells at most, and does in a fault, on the sandbox."""

import asyncio
import re
import time

import pytest

from bridge.testing import actor
from bridge.testing.actor import (
    MAX_EVENTS,
    MAX_LINE_CHARACTERS,
    MAX_MISSES,
    MAX_NAMED,
    MAX_STANZA_CHARACTERS,
    MAX_STANZAS,
    ActorProxy,
)
from bridge.testing.errors import ActorError, ExpectationError
from bridge.testing.server import FixtureServer


@pytest.fixture
def server(sandboxed: FixtureServer) -> FixtureServer:
    return sandboxed


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
    assert re.search(r"\b0000\b", events) is None
    time_, _, last = stanzas.splitlines()[-1].partition(" in: ")
    assert time_.endswith("Z")
    assert len(last.partition("... (")[0]) == MAX_STANZA_CHARACTERS
    assert server.report("Nobody") == server.report("Alice")


def test_a_report_is_of_who_has_the_nickname_last(
    server: FixtureServer, alice: ActorProxy, bob: ActorProxy
) -> None:
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


def test_an_actor_that_is_cut_off_comes_back(
    server: FixtureServer, alice: ActorProxy, bob: ActorProxy
) -> None:
    alice.expect_join("Bob")
    server.fault("drop", nickname="Bob")
    alice.expect_leave("Bob")
    alice.expect_join("Bob")
    alice.say("welcome back")
    bob.expect("welcome back", from_="Alice")


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
    assert re.match(r"  another text: .*<Bob> hello\\u\{A\}forged$", miss)
    assert last in {'In the room: "Alice", "Bob".', 'In the room: "Bob", "Alice".'}
    with pytest.raises(ExpectationError) as caught:
        alice.expect_leave("Bob", within=0)
    assert str(caught.value).split("\n")[:2] == [
        'Alice waited 0 s for "Bob" to leave, in vain.',
        "Nothing came.",
    ]


def test_as_many_misses_and_occupants_are_named_as_a_reader_takes_in(
    server: FixtureServer, alice: ActorProxy, bob: ActorProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_NAMED == 20
    monkeypatch.setattr(actor, "MAX_NAMED", 2)
    alice.expect_join("Bob")
    server.actor_sync("Carol")
    alice.expect_join("Carol")
    for number in range(MAX_MISSES + 2):
        bob.say(f"{number} {'x' * MAX_LINE_CHARACTERS}")
    alice.expect(contains=str(MAX_MISSES + 1))
    bob.say("last")
    with pytest.raises(ExpectationError) as caught:
        alice.expect(pattern="^[0-9]", within=0)
    *lines, named = str(caught.value).split("\n")[2:]
    assert len(lines) == MAX_MISSES + 1
    assert len(lines[0]) == len("  before the actor's last expectation: ") + MAX_LINE_CHARACTERS
    assert lines[MAX_MISSES] == "  ... and 3 more"
    assert named.startswith('In the room: "')
    assert named.count('"') == 2 * 2


async def test_an_answer_that_comes_late_is_told_as_that(server: FixtureServer) -> None:
    alice, bob = await asyncio.gather(server.actor("Alice"), server.actor("Bob"))
    await bob.expect_join("Alice")
    waiting = asyncio.create_task(alice.expect("pong", within=0.1))
    await bob.expect_nothing(during=0.3)
    await bob.say("pong")
    with pytest.raises(ExpectationError, match=r"\n  0\.\d s too late: .*<Bob> pong\n"):
        await waiting
