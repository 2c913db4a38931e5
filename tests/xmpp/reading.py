"""Stanzas of one room, as they are read."""

from typing import TypeVar

from bridge.xmpp.model.events import Event, MessageReceived
from bridge.xmpp.muc import reading
from tests.xmpp.elements import parsed

Kind = TypeVar("Kind", bound=Event)
ROOM = "lobby@conference.example"
OWN = f"{ROOM}/Me"
USER = "xmlns='http://jabber.org/protocol/muc#user'"
DELAY = "<delay xmlns='urn:xmpp:delay' stamp='2020-01-01T00:00:00Z' from='{}'/>"


def events(xml: str) -> list[Event]:
    return list(reading.read(parsed(xml), room=ROOM, own=OWN))


def message_events(
    inner: str, sender: str = f"{ROOM}/Wilma", type_: str = "groupchat"
) -> list[Event]:
    return events(f"<message from='{sender}' type='{type_}' id='m1'>{inner}</message>")


def presence_events(inner: str, sender: str = f"{ROOM}/Wilma", type_: str = "") -> list[Event]:
    attribute = f" type='{type_}'" if type_ else ""
    return events(f"<presence from='{sender}'{attribute}>{inner}</presence>")


def message(inner: str, sender: str = f"{ROOM}/Wilma", type_: str = "groupchat") -> MessageReceived:
    (event,) = message_events(inner, sender, type_)
    assert isinstance(event, MessageReceived)
    return event


def presence(kind: type[Kind], inner: str, sender: str = f"{ROOM}/Wilma", type_: str = "") -> Kind:
    (event,) = presence_events(inner, sender, type_)
    assert isinstance(event, kind)
    return event
