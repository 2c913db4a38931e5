"""An actor: an occupant of one room, on a connection of its own, that does what a test says.

Every public coroutine of `Actor`, except `bridge.testing.collector.NO_VERBS`, is a verb of
scenario files. After adding one, run `python -m tests.testing.documents`, which writes
docs/scenario.schema.json.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Literal, TypeAlias, Unpack
from xml.etree.ElementTree import Element, SubElement

from bridge.settings.table import Settings
from bridge.testing import expectation
from bridge.testing.errors import ActorError, ExpectationError
from bridge.testing.expectation import Conditions, Expectation, Expected
from bridge.text import iso, one_line, quoted
from bridge.wire import names
from bridge.xmpp.errors import NotInRoomError, UnsendableError
from bridge.xmpp.link import stanzas
from bridge.xmpp.model.events import (
    Event,
    Joined,
    MessageReceived,
    MessageSent,
    OccupantJoined,
    OccupantLeft,
    encode,
)
from bridge.xmpp.model.faults import FaultError, quoted_text
from bridge.xmpp.model.formatting import format_event
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.message_body import check_body
from bridge.xmpp.model.room import Occupant
from bridge.xmpp.muc.participant import Participant
from bridge.xmpp.muc.publisher import NextRecord
from bridge.xmpp.muc.stanza_filter import stanzas_of

__tracebackhide__ = True  # pytest shows the line of the test; `--full-trace` shows ours

ENTER_SECONDS = 30.0
"""The time for connecting, logging in and joining together."""

ANSWER_SECONDS = 10.0
"""The time for the room to send back what an actor said, or to answer a request."""

SEEN_SECONDS = 5.0
"""The time for the other actors in the room to see an actor that enters. A room may show them no
presence (XEP-0045, section 16.5.3, `presencebroadcast`)."""

ROOM_CONFIGURATION = "http://jabber.org/protocol/muc#roomconfig"
OPTION = "muc#roomconfig_"

Show: TypeAlias = Literal["available", "away", "chat", "dnd", "xa"]
Role: TypeAlias = Literal["moderator", "participant", "visitor"]
Affiliation: TypeAlias = Literal["owner", "admin", "member", "none", "outcast"]

LATE_SECONDS = 1.0
"""How long a failed expectation goes on looking, to be able to say that an answer came late."""

MAX_EVENTS, MAX_STANZAS = 60, 40
"""The newest events and stanzas in the report of a failed test."""

MAX_STANZA_CHARACTERS = 1_000
"""Characters of one stanza in that report."""

MAX_MISSES, MAX_NAMED = 10, 20
"""Events and occupants that a failed expectation names: as many as a reader takes in."""

MAX_LINE_CHARACTERS = 400
"""Characters of one event in a failed expectation; the timeline has more."""

MAX_OPTIONS = 2_000
"""Characters of the list of a room's options; ejabberd has 40 options."""


class Actor:
    """One occupant, from `enter` to `leave`. It runs in one loop; tests use it by `ActorProxy`.

    An expectation looks at all events since the event that met the expectation before it. So it
    does not miss an answer that is faster than the test. What the actor says in between does not
    matter. Expectations of messages form one sequence. Expectations of joins and leaves form
    another for each nickname, so that their order does not matter. All methods raise `ActorError`
    if the room or the server refuses what they do.
    """

    def __init__(self, settings: Settings, mask: Callable[[str], str]) -> None:
        """Prepare to enter; `mask` removes secrets from texts of others."""
        self._mask = mask
        self.nickname = settings.nickname
        self.room = settings.room
        """The bare JID of the actor's room."""
        self._name = one_line(settings.nickname)
        self._participant = Participant(settings)
        self._membership = self._participant.memberships[0]
        self._next_record = NextRecord(self._participant.listen)
        self._looked: dict[str, int] = {}
        """The number of the event that met the last expectation. The key is a nickname for joins
        and leaves, and an empty text for messages."""
        self._running: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        """Join the room."""
        self._running = asyncio.create_task(self._participant.run())
        until = asyncio.get_running_loop().time() + ENTER_SECONDS
        while not (status := self._participant.status()).connected:
            if status.last_error is not None or not await self._next_record.by(until):
                raise self._not_in_room()
        ours = stanzas.occupant_jid(self._membership.jid, self.nickname)
        if self._membership.occupant != ours:
            raise self._error(f"did not get into {self.room}: another occupant has this nickname.")

    async def leave(self) -> None:
        """Leave the room and hang up."""
        self._participant.leave()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait((self._running,))

    async def say(self, body: str) -> MessageReceived:
        """Say `body` in the room; return it as the room sent it back."""
        with self._doing(f"say {quoted(body)}"):
            return (await self._membership.say(body, ANSWER_SECONDS)).message

    async def expect(
        self, text: str | None = None, *, within: float = 5.0, **conditions: Unpack[Conditions]
    ) -> MessageReceived:
        """Wait for a message that is `text` and meets all conditions, and return it.

        The message is a public one, unless `private` is set. Raises `ExpectationError` if none
        comes `within` so many seconds.
        """
        conditions.setdefault("private", False)
        return await self._expect(expectation.message(text, **conditions), "", within)

    async def expect_nothing(
        self, text: str | None = None, *, during: float = 1.0, **conditions: Unpack[Conditions]
    ) -> None:
        """Raise `ExpectationError` if such a message comes, public or private.

        It must not come in the next `during` seconds, and not have come since the last expectation.
        """
        unwanted = expectation.message(text, **conditions)
        until = asyncio.get_running_loop().time() + during
        record = await self._find(unwanted, self._looked.get("", 0), until)
        if record is not None:
            raise ExpectationError(
                self.nickname,
                f"{self._name} expected for {during:g} s not to get {unwanted.wanted}, and got:\n"
                f"  {self._line(record)}",
            )

    async def expect_join(self, nickname: str, *, within: float = 5.0) -> OccupantJoined:
        """Wait until an occupant with this nickname enters; occupants who are there already count.

        Raises `ExpectationError` if none enters `within` so many seconds.
        """
        wanted = Expectation(OccupantJoined, f"{quoted(nickname)} to join", nickname)
        return await self._expect(wanted, nickname, within)

    async def expect_leave(self, nickname: str, *, within: float = 5.0) -> OccupantLeft:
        """Wait until an occupant with this nickname leaves the room, or is put out of it.

        Raises `ExpectationError` if none leaves `within` so many seconds.
        """
        wanted = Expectation(OccupantLeft, f"{quoted(nickname)} to leave", nickname)
        return await self._expect(wanted, nickname, within)

    async def whisper(self, nickname: str, body: str) -> None:
        """Say `body` to one occupant alone (XEP-0045, section 7.5)."""
        with self._doing(f"whisper to {quoted(nickname)}"):
            check_body(body)
            status = self._participant.status()
            is_there = nickname in {occupant.nickname for occupant in status.occupants}
            if status.connected and status.shows_all and not is_there:
                raise self._error(f"could not whisper to {quoted(nickname)}, who is not there.")
            message = stanzas.groupchat_message(self.room, body, secrets.token_hex(12))
            message.attrib.update(to=f"{self.room}/{nickname}", type="chat")
            SubElement(message, f"{{{names.MUC_USER}}}x")
            self._membership.connection.send(message)

    async def set_presence(
        self, show: Show = "available", status: str = "", nickname: str = ""
    ) -> None:
        """Show another availability, or go on under another nickname (sections 7.7 and 7.6)."""
        nickname = nickname or self._participant.status().nickname
        presence = Element(names.PRESENCE, {"to": f"{self.room}/{nickname}"})
        for name, text in {"show": show.removeprefix("available"), "status": status}.items():
            if text:
                SubElement(presence, f"{{{names.CLIENT}}}{name}").text = text
        until = asyncio.get_running_loop().time() + ANSWER_SECONDS
        with self._doing(f"be {quoted(nickname)}"):
            self._membership.connection.send(presence)
            while self._participant.status().nickname != nickname:
                if not await self._next_record.by(until):
                    raise TimeoutError

    async def kick(self, nickname: str, reason: str = "") -> None:
        """Put an occupant out of the room (XEP-0045, section 8.2)."""
        await self._administer("kick", nickname, reason, role="none")

    async def ban(self, who: str, reason: str = "") -> None:
        """Put an account, given by a nickname or a JID, out of the room for good (section 9.1)."""
        await self._administer("ban", who, reason, affiliation="outcast")

    async def set_role(self, nickname: str, role: Role, reason: str = "") -> None:
        """Give an occupant a role (section 5.1)."""
        await self._administer(f"make {role} of", nickname, reason, role=role)

    async def set_affiliation(self, who: str, affiliation: Affiliation, reason: str = "") -> None:
        """Give an account, by a nickname or a JID, an affiliation (section 5.2)."""
        await self._administer(f"make {affiliation} of", who, reason, affiliation=affiliation)

    async def configure(self, options: Mapping[str, Any]) -> None:
        """Change options of the room, such as `{"moderatedroom": True, "roomsecret": "word"}`.

        Options have the names of the room's form, with or without `muc#roomconfig_` (section
        16.5.3). Raises `ActorError` for an option that the room does not have.
        """
        what = f"configure {quoted(', '.join(options))}"
        form = await self._request(Element(f"{{{names.MUC_OWNER}}}query"), what, "get")
        fields = form.iterfind(f".//{{{names.DATA_FORMS}}}field[@var]")
        changeable = (field for field in fields if field.get("type") not in ("hidden", "fixed"))
        known = [field.get("var", "") for field in changeable]
        named = {}
        for name, value in options.items():
            full = name if name in known else f"{OPTION}{name}"
            if full not in known:
                has = ", ".join(option.removeprefix(OPTION) for option in known)
                why = f"the room has no option {quoted(name)}"
                raise self._error(f"could not {what}: {why}; it has {quoted(has, MAX_OPTIONS)}.")
            named[full] = value
        query = stanzas.default_configuration()
        for name, value in {"FORM_TYPE": ROOM_CONFIGURATION, **named}.items():
            field = SubElement(query[0], f"{{{names.DATA_FORMS}}}field", {"var": name})
            text = str(int(value)) if isinstance(value, bool) else str(value)
            SubElement(field, f"{{{names.DATA_FORMS}}}value").text = text
        await self._request(query, what)

    async def sees(self, nickname: str) -> bool:
        """Return True as soon as an occupant with this nickname is in the room.

        Returns False after `SEEN_SECONDS`, or when the actor is out of the room.
        """
        until = asyncio.get_running_loop().time() + SEEN_SECONDS
        while (status := self._participant.status()).connected:
            if any(occupant.nickname == nickname for occupant in status.occupants):
                return True
            if not await self._next_record.by(until):
                break
        return False

    async def occupants(self) -> dict[str, Occupant]:
        """Return who is in the room, by nickname."""
        return {occupant.nickname: occupant for occupant in self._participant.status().occupants}

    async def wait(self, seconds: float) -> None:
        """Do nothing for so many seconds."""
        await asyncio.sleep(seconds)

    async def report(self) -> list[tuple[str, str]]:
        """Return titles and texts for the report of a failed test: escaped, without secrets."""
        events = [self._line(record) for record in [*self._participant.journal][-MAX_EVENTS:]]
        traced = [
            f"{iso(piece.at)} {piece.direction}: "
            + one_line(self._mask(stanzas.xml_of(piece.xml)), MAX_STANZA_CHARACTERS)
            for piece in self._participant.trace
            # Pings, service discovery and the framing of the stream are left out.
            if not isinstance(piece.xml, str) and piece.xml.get("type") not in {"get", "result"}
        ]
        return [
            (f"XMPP: {one_line(self.room)} as {self._name} saw it", "\n".join(events)),
            (f"XMPP: the last stanzas of {self._name}", "\n".join(traced[-MAX_STANZAS:])),
        ]

    async def played(self) -> list[tuple[float, dict[str, object], list[str]]]:
        """Return each event: its time, its exact form, and the stanzas behind it, redacted.

        A message that the room sent back to the actor is in the list once.
        """
        traced, journal = [*self._participant.trace], [*self._participant.journal]
        heard = {record.event.id for record in journal if isinstance(record.event, MessageReceived)}
        xml_of = {piece.number: stanzas.xml_of(piece.xml) for piece in traced}
        return [
            (
                record.at,
                encode(_not_as_new(record.event)),
                [xml_of[number] for number in sorted(stanzas_of(record, traced))],
            )
            for record in journal
            if not isinstance(record.event, MessageSent) or record.event.id not in heard
        ]

    async def _expect(self, wanted: Expectation[Expected], track: str, within: float) -> Expected:
        looked, due = self._looked.get(track, 0), time.time() + within
        until = asyncio.get_running_loop().time() + within
        record = await self._find(wanted, looked, until)
        if record is None:
            await self._find(wanted, looked, until + LATE_SECONDS)
            journal = iter(self._participant.journal)
            misses = expectation.nearest_misses(wanted, journal, looked, due)
            raise ExpectationError(self.nickname, self._why(wanted.wanted, within, misses))
        self._looked[track] = max(record.number, looked)
        event = record.event
        assert isinstance(event, wanted.kind)
        return event

    async def _find(
        self, wanted: Expectation[Expected], number: int, until: float
    ) -> Record | None:
        """Return the first wanted event after `number`; None if it is not there by `until`."""
        while True:
            for record in self._participant.journal.after(number):
                number = record.number
                if wanted.is_met_by(record.event):
                    return record
            if not await self._next_record.by(until):
                return None

    def _why(self, wanted: str, within: float, misses: list[tuple[str, Record]]) -> str:
        lines = [f"{self._name} waited {within:g} s for {wanted}, in vain."]
        lines += ["What came instead, nearest first:" if misses else "Nothing came."]
        for differs, record in misses[:MAX_MISSES]:
            lines.append(f"  {differs}: {self._line(record)[:MAX_LINE_CHARACTERS]}")
        if len(misses) > MAX_MISSES:
            lines.append(f"  ... and {len(misses) - MAX_MISSES} more")
        status = self._participant.status()
        named = ", ".join(quoted(other.nickname) for other in status.occupants[:MAX_NAMED])
        lines.append(f"In the room: {named}." if status.connected else str(self._not_in_room()))
        return "\n".join(lines)

    async def _administer(self, what: str, who: str, reason: str, **held: str) -> None:
        query = Element(f"{{{names.MUC_ADMIN}}}query")
        item = {"jid" if "@" in who else "nick": who, **held}
        changed = SubElement(query, f"{{{names.MUC_ADMIN}}}item", item)
        SubElement(changed, f"{{{names.MUC_ADMIN}}}reason").text = reason
        await self._request(query, f"{what} {quoted(who)}")

    async def _request(self, query: Element, what: str, type_: str = "set") -> Element:
        with self._doing(what):
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._membership.connection.request(type_, self.room, query)
        raise AssertionError  # `_doing` has raised

    def _line(self, record: Record) -> str:
        record = record._replace(event=_not_as_new(record.event))
        return self._mask(format_event(self._participant.journal.encode(record)))

    @contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        """Raise the exceptions of the `with` block as `ActorError`."""
        try:
            yield
        except NotInRoomError:
            raise self._not_in_room() from None
        except stanzas.IqError as refused:
            why = refused.error.condition + quoted_text(refused.error.text)
        except TimeoutError:
            why = f"no answer came within {ANSWER_SECONDS:g} s."
        except (FaultError, UnsendableError) as error:
            why = str(error)
        else:
            return
        raise self._error(f"could not {what}: {why}")

    def _error(self, message: str) -> ActorError:
        return ActorError(self.nickname, f"{self._name} {message}")

    def _not_in_room(self) -> ActorError:
        status = self._participant.status()
        why = f"The phase is {status.phase}."
        if status.last_error is not None:
            why = f"{status.last_error.fault.message} {status.last_error.fault.hint}"
        return self._error(f"is not in {self.room}. {why}")


def _not_as_new(event: Event) -> Event:
    """Return an event without the note that joining made the room: a test's room is always new."""
    return replace(event, created=False) if isinstance(event, Joined) else event


class ActorProxy:
    """An actor for a test: the coroutines of `Actor` are run in the actor's own loop.

    `run` runs a coroutine there. It returns the result or, for another loop, an awaitable.
    """

    def __init__(self, actor: Actor, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._actor = actor
        self._run = run

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._actor, name)
        if not iscoroutinefunction(attribute):
            return attribute

        @wraps(attribute)
        def call(*given: object, **named: object) -> object:
            return self._run(attribute(*given, **named))

        return call
