"""What the owner of a room does to it and to others, on the sandbox and on real servers."""

import re
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import pytest

from bridge.testing.actor import ActorProxy
from bridge.testing.errors import ActorError
from bridge.testing.server import FixtureServer
from tests.servers.server import XmppServer

# What Prosody does of this is in test_collector.
pytestmark = pytest.mark.parametrize("xmpp_server", ["ejabberd", "sandbox"], indirect=True)

Enter: TypeAlias = Callable[..., ActorProxy]


@pytest.fixture
def enter(server: FixtureServer, alice: ActorProxy, xmpp_server: XmppServer) -> Enter:
    """Has somebody with another account enter the room that Alice owns."""
    assert alice.room == server.room
    other = xmpp_server.witness
    return partial(server.actor_sync, account=other.username, password=other.password)


@pytest.fixture
def bob(enter: Enter, alice: ActorProxy) -> ActorProxy:
    bob = enter("Bob")
    alice.expect_join("Bob")
    return bob


def test_a_kick_puts_out_with_a_reason(alice: ActorProxy, bob: ActorProxy) -> None:
    alice.kick("Bob", "enough")
    left = alice.expect_leave("Bob")
    assert (307 in left.codes, left.reason) == (True, "enough")
    assert bob.expect_leave("Bob").self_
    with pytest.raises(ActorError, match=r"^Bob is not in .* kicked"):
        bob.say("hello?")


def test_a_ban_keeps_out(enter: Enter, alice: ActorProxy, bob: ActorProxy) -> None:
    alice.ban("Bob")
    assert 301 in alice.expect_leave("Bob").codes
    with pytest.raises(ActorError, match=r"^Bobby is not in .* banned"):
        enter("Bobby")


def test_a_visitor_may_not_speak_in_a_moderated_room(alice: ActorProxy, bob: ActorProxy) -> None:
    alice.configure({"moderatedroom": True})
    alice.set_role("Bob", "visitor")
    alice.say("you listen")
    bob.expect("you listen")
    assert bob.occupants()["Bob"].role == "visitor"
    with pytest.raises(ActorError, match=r"^Bob could not say "):
        bob.say("hello?")
    alice.set_role("Bob", "participant")
    alice.say("you speak")
    bob.expect("you speak")
    bob.say("hello")


def test_members_may_enter_a_room_for_members(
    enter: Enter, alice: ActorProxy, xmpp_server: XmppServer
) -> None:
    alice.configure({"membersonly": True})
    with pytest.raises(ActorError, match="members"):
        enter("Bob")
    alice.set_affiliation(xmpp_server.witness.jid, "member")
    enter("Bob")
    alice.expect_join("Bob")
    assert alice.occupants()["Bob"].affiliation == "member"


def test_a_room_may_ask_for_a_password(
    server: FixtureServer, enter: Enter, alice: ActorProxy, xmpp_server: XmppServer
) -> None:
    switched = {"passwordprotectedroom": True} if xmpp_server.name == "ejabberd" else {}
    alice.configure({"roomsecret": "open sesame", **switched})
    with pytest.raises(ActorError, match="password"):
        enter("Bob")
    bob = enter("Bob", room_password="open sesame")
    reports = [text for each in ("Alice", "Bob") for _, text in server.report(each)]
    assert "open sesame" not in "".join(reports)
    bob.say("in")
    alice.expect("in")


def test_an_option_that_the_room_does_not_have_is_refused_with_those_it_has(
    alice: ActorProxy, bob: ActorProxy
) -> None:
    with pytest.raises(ActorError) as refused:
        alice.configure({"membersonly": True, "moderated": True})
    told = str(refused.value)
    assert told.startswith('Alice could not configure "membersonly, moderated": the room has no ')
    assert 'no option "moderated"; it has "' in told
    assert {"moderatedroom", "membersonly"} <= set(re.findall(r"\w+", told.partition("it has")[2]))
    assert "FORM_TYPE" not in told
    with pytest.raises(ActorError, match="no option"):
        alice.configure({"FORM_TYPE": "x"})
    alice.configure({"muc#roomconfig_moderatedroom": True})
    alice.set_role("Bob", "visitor")
    with pytest.raises(ActorError, match=r"^Bob could not say "):
        bob.say("hello?")


def test_who_may_not_is_told_so(alice: ActorProxy, bob: ActorProxy) -> None:
    with pytest.raises(ActorError, match=r'^Bob could not kick "Alice": (not-allowed|forbidden)'):
        bob.kick("Alice")
    with pytest.raises(ActorError, match=r'^Bob could not configure "membersonly": forbidden'):
        bob.configure({"membersonly": True})


def test_another_presence_and_another_nickname_are_seen_by_all(
    alice: ActorProxy, bob: ActorProxy
) -> None:
    alice.set_presence("dnd", "busy")
    alice.say("one")
    bob.expect("one", from_="Alice")
    seen = bob.occupants()["Alice"]
    assert (seen.show, seen.status) == ("dnd", "busy")
    alice.set_presence(nickname="Ally")
    alice.set_presence()
    alice.say("two")
    bob.expect("two", from_="Ally")
    assert bob.occupants()["Ally"].show is None
    assert "Alice" not in bob.occupants()
