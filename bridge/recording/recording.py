"""Hands the events and stanzas of a participant to the recorder of the store."""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from bridge.files import state_folder
from bridge.recording.recorded import Reader
from bridge.settings.database_url import DatabaseUrl
from bridge.settings.table import Configuration
from bridge.store.clock import steady
from bridge.store.database import Happened, Observer, TracedXml
from bridge.store.location import Place, Team, put_aside, team_file
from bridge.store.recorder import Recorder
from bridge.store.retention import Retention
from bridge.store.shipping import Shipper
from bridge.store.sqlite import open_file
from bridge.store.writer import Entered, Left
from bridge.xmpp.link.stanzas import xml_of
from bridge.xmpp.link.trace import TracedStanza
from bridge.xmpp.model import events
from bridge.xmpp.model.events import Event, MessageReceived, Phase
from bridge.xmpp.model.journal import Record
from bridge.xmpp.muc.participant import Participant

ABOUT_US = 110
"""The status code of our own presence, which only we receive (XEP-0045, section 16.6.2)."""


def store_path(
    configuration: Configuration, environ: Mapping[str, str], *, making: bool = False
) -> Place | None:
    """Return where the store is; None if there is none, or if it must not be opened.

    Without `BRIDGE_STORE` the default path is used if a store exists there, or if `making` allows
    to make one. A sandbox does not use the default path: the store there has records of real rooms.
    (With a sandbox no settings file was looked for, so `candidates` is empty.) Settings that are
    not trusted open no store: they could name any room, and read what was recorded in it.
    """
    if not configuration.trusted:
        return None
    default = state_folder(environ) / "rooms.db"
    usual = making or (configuration.candidates and os.path.lexists(default))
    if isinstance(store := configuration.store, DatabaseUrl):
        wrong = any(map(configuration.rejected, ("BRIDGE_STORE_DAYS", "BRIDGE_STORE_MB")))
        most = None if wrong else configuration.store_mb
        return Team(store, team_file(default.parent), most)
    return store or (default if usual else None)


class Recording:
    """Turns the events and stanzas of one participant into items for the recorder."""

    def __init__(
        self,
        participant: Participant,
        place: Place,
        *,
        stanzas: bool | None = None,
        retention: Retention | None = None,
    ) -> None:
        """Record the events from now on, and with `stanzas` the stanzas too.

        If it is None, the stanzas stay on this machine: a team's store has none.
        """
        stanzas = isinstance(place, Path) if stanzas is None else stanzas
        self._participant = participant
        self._place = place
        file = place.file if isinstance(place, Team) else place
        self._shipper: Shipper | None = None
        self.recorder = Recorder(
            partial(open_file, place),
            partial(put_aside, file),
            None if isinstance(place, Team) else retention,
        )
        if isinstance(place, Team):
            self._shipper = Shipper(
                place, self.recorder.refuse, stanzas=stanzas, retention=retention
            )
            self.recorder.committed = self._shipper.wake
        self._readers: dict[str, Reader] = {}
        self._observer: Observer | None = None
        self._inside: set[str] = set()
        """The rooms that we are in."""
        self._since: dict[str, float] = {}
        """Since when, by the steady clock, we have seen everything in each room."""
        self._asked: dict[str, float] = {}
        """When, by the same clock, we last asked each room to let us in."""
        participant.listen(self._on_record)
        if stanzas:
            participant.trace.listen(self._on_stanza)

    @classmethod
    def of(cls, participant: Participant, configuration: Configuration) -> "Recording | None":
        """Record into the store of the settings; None if there is none."""
        place = store_path(configuration, os.environ)
        stanzas = configuration.store_stanzas
        return None if place is None else cls(participant, place, stanzas=stanzas)

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the store, in sentences."""
        shipping = [] if self._shipper is None else self._shipper.warnings
        return self.recorder.warnings + shipping

    def close(self) -> None:
        """Write and ship the remaining items."""
        self.recorder.close()
        if self._shipper is not None:
            self._shipper.close()

    def reader(self, account: str) -> Reader:
        """Return the reader of the store for this account, a bare JID."""
        if account not in self._readers:
            self._readers[account] = Reader(self._place, account, self.recorder.flush)
        return self._readers[account]

    def _on_record(self, record: Record) -> None:
        if not self._observe():
            return
        event = record.event
        match event:
            case events.OccupantJoined(self_=True) if record.room not in self._inside:
                self._since[record.room] = steady()
                self._enter(record)
            case events.Connected(resumed=False):
                self._since.clear()
            case events.ConnectionChanged(phase=Phase.JOINED) if record.room:
                if record.room not in self._inside:
                    self._enter(record)
            case events.ConnectionChanged(phase=phase):
                self._leave(record.room)
                if phase is Phase.JOINING:
                    self._asked[record.room] = steady()
        self.recorder.add(self._happened(record))
        if isinstance(event, events.OccupantLeft) and event.self_:
            self._leave(record.room)

    def _on_stanza(self, traced: TracedStanza) -> None:
        if self._observe():
            xml = xml_of(traced.xml)
            self.recorder.add(TracedXml(traced.at, traced.direction, traced.connection, xml))

    def _observe(self) -> bool:
        """Give the recorder a new account, nickname or run; return False without settings."""
        settings = self._participant.settings
        if settings is None:
            return False
        run = self._participant.journal.numbering.epoch
        observer = Observer(settings.jid, settings.nickname, run)
        if observer != self._observer:
            self._leave("")
            self._observer = observer
            self.recorder.add(observer)
        return True

    def _enter(self, record: Record) -> None:
        self._inside.add(record.room)
        # If the session was resumed (XEP-0198), the server has kept all stanzas for us.
        since = self._since.setdefault(record.room, steady())
        asked = self._asked.get(record.room, since)
        self.recorder.add(Entered(record.room, record.at, since, min(asked, since)))

    def _leave(self, room: str) -> None:
        """Note that we have left the room; if `room` is empty, that we have left all."""
        for name in [room] if room else [*self._inside]:
            self._inside.discard(name)
            self.recorder.add(Left(name, time.time(), steady()))

    def _happened(self, record: Record) -> Happened:
        event = record.event
        public = isinstance(event, MessageReceived) and event.type == "groupchat"
        shared = public or isinstance(event, events.Shared)
        earlier = shared and (record.earlier or record.room not in self._inside)
        exact = events.encode(_seen_by_all(event) if shared else event)
        return Happened(record.at, record.room, exact, shared, earlier, record.number, steady())


def _seen_by_all(event: Event) -> Event:
    """Return `event` without the marks that only this observer has seen."""
    match event:
        case MessageReceived(own=True):
            return event._replace(own=False)
        case events.OccupantPresence() | events.OccupantLeft() if event.self_:
            return replace(event, self_=False, codes=event.codes - {ABOUT_US})
        case events.NicknameChanged(self_=True):
            return replace(event, self_=False)
    return event
