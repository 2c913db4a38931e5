"""Finds causes in whether an occupant is in the room and may speak. Pure."""

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from difflib import get_close_matches

from bridge.text import NAME_CHARACTERS, iso, name_of, quoted, searchable
from bridge.wire.meaning import CLIENT_WORDS, MEANINGS, REMOVALS, first_row
from bridge.xmpp.checks.answering import instead, is_left_out
from bridge.xmpp.checks.conduct import (
    STAYS_SECONDS,
    by_whom,
    done_just_before,
    is_like,
    is_lost_connection,
    way_out,
)
from bridge.xmpp.checks.evidence import (
    FLOOD,
    MAX_ALIKE,
    Evidence,
    Finding,
    Past,
    Person,
    absent,
    list_of,
    words_of,
)
from bridge.xmpp.checks.exchanges import is_message
from bridge.xmpp.model import events
from bridge.xmpp.model.journal import Record

MAX_COMPARED = 500
"""Most names that we compare with an absent occupant's name. Each takes up to 0.1 ms."""


def bridge(evidence: Evidence) -> Finding:
    """Find out whether the bridge itself is in the room."""
    if evidence.status.connected:
        return Finding(True, "The bridge is in the room.")
    fault = evidence.status.out_of(evidence.room)
    return Finding(False, fault.message, fault.hint)


def present(evidence: Evidence) -> Finding:
    """Find out whether the occupant is in the room, and if not, why."""
    who, status = evidence.who, evidence.status
    if not status.connected:
        return Finding(None, f"The bridge cannot see whether {who} is in the room.")
    if evidence.occupant is not None and evidence.occupant.own:
        hint = "Give the nickname of another occupant; xmppOccupants lists them."
        return Finding(False, f"{who} is the bridge itself.", hint)
    if evidence.occupant in status.unlisted:
        detail = f"{who} speaks in the room, and is not shown by the room."
        return Finding(True, detail, remark=True)
    if evidence.occupant is not None:
        more = f"{_predecessor(evidence)}{_says(evidence)}{_flood(evidence)}"
        return Finding(True, f"{who} is in the room.{more}", remark=bool(more))
    return _missing(evidence)


def _missing(evidence: Evidence) -> Finding:
    """Return why an occupant is not in the room, as far as that is known."""
    who, past, status = evidence.who, evidence.past, evidence.status
    similar = alike(evidence.nickname, [occupant.nickname for occupant in status.others])
    near = f"; in the room is {list_of(similar)}" if similar else ""
    other, answered = instead(evidence)
    answered = f"{evidence.placed}{answered}{_barred(evidence)}{reconfigured(evidence)}"
    if unseen := _left_unseen(past):
        hint = "It left or was put out meanwhile, perhaps with all others: its own log says which. "
        hint += "Let it join again."
        detail = f"{who} {unseen}{near}.{answered}"
        return Finding(False, detail, hint, symptom=True, leads_to=other)
    if past.gone:
        (detail, hint), *before = map(_departure, past.gone)
        detail = f"{who} {detail}"
        for earlier, _ in before:
            detail += f"; before, {_who_before(past)} {earlier}"
        event, before_it = past.gone[0].event, done_just_before(evidence, past.gone[0])
        if before_it and is_message(before_it) and not events.meanings_of(event):
            detail += f", right after {words_of(before_it.body)} of {name_of(before_it.sender)}"
            detail += ", which it had answered" * bool(before_it.is_own and evidence.answers)
        if isinstance(event, events.NicknameChanged):
            return Finding(False, f"{detail}.", hint, leads_to=event.new_nickname)
        unclear = all(_is_unclear(record.event) for record in past.gone)
        person = past.person
        same = [it.nickname for it in status.others if person.is_same(Person.of(it))][:MAX_ALIKE]
        if same:
            unclear, near = False, f"; {who} is in the room as {list_of(same)}"
            hint = "Ask about that nickname: the room may have kept the former one for a while."
        detail += f"{near}.{answered}"
        return Finding(False, detail, hint, symptom=unclear, leads_to=[*same, other][0])
    if not status.shows_all:
        detail = f"Whether {who} is in the room is unknown: the room does not show everybody, and "
        detail += f"{who} was not heard while the bridge watched{evidence.since}{near}."
        detail += evidence.placed
        return Finding(None, detail)
    detail = f"{who} was never in the room while the bridge watched{evidence.since}{near}"
    if status.room_created:
        detail += "; the bridge made the room by joining it"
    if evidence.rooms:
        detail += f"; rooms of the service with a similar name: {list_of(evidence.rooms)}"
    hint = "Is the program running, and does it join this room under this nickname?"
    if near:
        hint = f"Case and hidden characters matter in a nickname. {hint}"
    leads_to = similar[0] if len(similar) == 1 else other
    is_typo = status.room_created and bool(evidence.rooms)
    return Finding(False, f"{detail}.{answered}", hint, symptom=not is_typo, leads_to=leads_to)


def reconfigured(evidence: Evidence) -> str:
    """Return a sentence on what changed in the room lately: it may keep the occupant out."""
    record = evidence.past.configured
    if record is None or evidence.now - record.at > STAYS_SECONDS:
        return ""
    changed = ", ".join(getattr(record.event, "changed", ()))
    what = f": {words_of(changed)}" if changed else ""
    return f" The room's configuration changed at {iso(record.at)}{what}."


def _barred(evidence: Evidence) -> str:
    """Return, as sentences, what of the room or of the nickname may keep the occupant out."""
    status, new = evidence.status, {*filter(_is_new, evidence.nickname)}
    bars = {
        "The room is for members only.": status.members_only,
        "The room wants a password.": status.password_protected,
        f"Many services refuse a nickname with {quoted(''.join(new))}.": new,
    }
    return "".join(f" {sentence}" for sentence, applies in bars.items() if applies)


def _is_new(character: str) -> bool:
    """Whether a character is younger than Unicode 3.2, the last for resourceprep (RFC 6122)."""
    return unicodedata.ucd_3_2_0.category(character) == "Cn"


def _is_unclear(event: events.Event) -> bool:
    """Whether an occupant left in a way that does not say why.

    Some servers say nothing of a connection that broke.
    """
    words = getattr(event, "codes", ()) or getattr(event, "status", None)
    return is_lost_connection(event) or not words


def _left_unseen(past: Past) -> str:
    """Return that an occupant left while the bridge was out; empty if the bridge saw it leave."""
    joined = [it for it in past.moves[:1] if isinstance(it.event, events.OccupantJoined)]
    presences = [*filter(None, [past.presence_on_entry]), *joined]
    came = max(presences, key=lambda it: it.number, default=None)
    if came is None or (past.gone and past.gone[0].number > came.number):
        return ""
    return f"was in the room at {iso(came.at)}, and not when the bridge came back to it"


def _says(evidence: Evidence) -> str:
    """Return a sentence on what the presence of a silent occupant says; empty if nothing."""
    here = evidence.occupant
    says = [it for it in (here.show, here.status) if it] if here and evidence.is_silent else []
    return f" Its presence says {', '.join(map(words_of, says))}." if says else ""


def _flood(evidence: Evidence) -> str:
    """Return a sentence on how often the presence changed lately; empty unless that is a flood."""
    changes = evidence.past.changes
    if len(changes) < FLOOD or (seconds := changes[0] - changes[-1]) > FLOOD:
        return ""
    return f" Its presence changed {FLOOD} times in {seconds:,.1f} s, until {iso(changes[0])}."


def _predecessor(evidence: Evidence) -> str:
    """Return a sentence on a former owner of the nickname; empty unless that was another person.

    If the room shows too little to tell, an occupant that it put out may have been another person.
    """
    for gone in evidence.past.gone[:1]:
        same = evidence.past.person.is_same(Person.of(gone.event))
        if same is False or (same is None and events.meanings_of(gone.event)):
            return f" Before, {_who(same)} {_departure(gone)[0]}."
    return ""


def _who_before(past: Past) -> str:
    """Return who had the nickname before its last owner, for a sentence."""
    last, before = (Person.of(record.event) for record in past.gone)
    return _who(last.is_same(before))


def _who(same: bool | None) -> str:
    if same is None:
        return "it, or another occupant (the room shows neither accounts nor ids)"
    return "it" if same else "another occupant of this nickname"


def _departure(gone: Record) -> tuple[str, str]:
    """Return how an occupant left, or its new nickname, and what to do about it."""
    event, at = gone.event, iso(gone.at)
    if isinstance(event, events.NicknameChanged):
        now = name_of(event.new_nickname)
        return f"took the nickname {now} at {at}", "Ask about that nickname."
    assert isinstance(event, events.OccupantLeft)
    detail = f"left the room at {at}: {way_out(event)}"
    if events.meanings_of(event):
        situation = next((REMOVALS[code] for code in REMOVALS if code in event.codes), "kicked")
        if situation == "kicked":
            return detail, "The room put it out: see why, then let it join again."
        return detail, first_row(MEANINGS, situation, None).hint.format_map(CLIENT_WORDS)
    hint = "It ended, or lost its connection: look at the program, and start it again."
    if not _is_unclear(event):
        hint = f"If the words are the server's, they say why it was put out. If not: {hint}"
    return detail, hint


def voice(evidence: Evidence) -> Finding:
    """Find out whether the occupant was addressed and may not speak."""
    occupant, who = evidence.occupant, evidence.who
    if occupant is None:
        return absent(evidence)
    if occupant.role == events.UNKNOWN:
        seen = "shows no role" if occupant in evidence.status.occupants else "is not shown"
        return Finding(None, f"Whether {who} may speak is unknown: its presence {seen}.")
    if occupant.role != "visitor":
        return Finding(True, f"{who} may speak (role {quoted(occupant.role)}).")
    taken, spoken = evidence.past.silenced, evidence.past.spoken
    came = taken.at if taken else occupant.since or 0.0
    changed = evidence.past.configured  # a room may have become moderated
    if spoken and spoken[0].at > max(came, changed.at if changed else 0.0):
        return Finding(True, f"{who} is a visitor, and the room lets visitors speak.")
    when = f" (since it came at {iso(occupant.since)})" if occupant.since else ""
    if taken is not None:
        when = f" (voice was taken at {iso(taken.at)}{by_whom(taken.event)})"
    hint = "A moderator can give it voice (role participant), the owner membership for good."
    is_asked = evidence.is_silent or is_left_out(evidence)
    if evidence.status.moderated is False:
        # Only a moderated room must refuse the message (XEP-0045, 7.4). Elsewhere, servers differ.
        detail = f"{who} is a visitor{when}; the room is not moderated, and some servers let no "
        detail += "visitor speak even there."
        stopped = is_asked and taken is not None and bool(spoken)
        return Finding(False if stopped else None, detail, hint, symptom=is_asked and not stopped)
    detail = f"{who} has no voice: it is a visitor, and the room passes on nothing that it says"
    return Finding(False if is_asked else None, f"{detail}{when}.", hint, symptom=not is_asked)


def account(evidence: Evidence) -> Finding:
    """Find out whether another occupant has the same account."""
    occupant, who = evidence.occupant, evidence.who
    if occupant is None:
        return absent(evidence)
    if occupant.account is None:
        return Finding(None, "The room does not show the bridge whose accounts are in it.")
    others = [it for it in evidence.status.occupants if it.jid != occupant.jid]
    same = [other for other in others if other.account == occupant.account]
    if not same:
        return Finding(True, f"Nobody else in the room has the account of {who}.")
    names = ["the bridge itself" if it.own else name_of(it.nickname) for it in same[:MAX_ALIKE]]
    detail = f"{who} has the same account as {', '.join(names)}."
    like = [other for other in same if is_like(other.nickname, evidence.nickname)]
    if not like or evidence.programs.get(evidence.nickname) is False:  # a person's clients
        hint = "Some programs pass over what their own account says."
        return Finding(None, detail, hint, remark=True)
    hint = "Is the program running twice? Let each program have an account of its own."
    return Finding(False, detail, hint)


def alike(name: str, names: Sequence[str]) -> list[str]:
    """Return the names that a reader may take for `name`, the most similar first."""
    spellings = defaultdict[str, list[str]](list)
    for other in names[:MAX_COMPARED]:
        spellings[searchable(other[:NAME_CHARACTERS])].append(other)
    close = get_close_matches(searchable(name[:NAME_CHARACTERS]), spellings, MAX_ALIKE)
    return [other for spelling in close for other in spellings[spelling]][:MAX_ALIKE]
