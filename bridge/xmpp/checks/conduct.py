"""Finds causes in how a program comes and goes, and in how programs treat each other. Pure.

`answering` has the causes in how a program answers others, `diagnosis` names all causes.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice, pairwise, takewhile

from bridge.text import iso, name_of, searchable
from bridge.wire.speech import ANSWER_SECONDS, THREAD_SECONDS, has_arguments, is_command
from bridge.xmpp.checks.evidence import (
    MISTAKABLE,
    Evidence,
    Finding,
    Person,
    absent,
    list_of,
    occupant_of,
    words_of,
)
from bridge.xmpp.checks.exchanges import Answered, circles, exchanges, is_message, speaks
from bridge.xmpp.model import events
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.room import MAKE_PERSISTENT, TEMPORARY, Occupant, RoomStatus

STAYS = 3
"""An occupant who leaves and comes back this often within `STAYS_SECONDS` "comes and goes"."""

STAYS_SECONDS = 3_600.0
"""The seconds in which departures are counted."""

REGULAR = 0.1
"""Departures are regular if the times between them differ by no more than this fraction."""

FEW = 2
"""Others said a message just before each departure. If they said at most this many for each
departure, that is no chance."""

PULSES = 6
"""An occupant who speaks this often in a row, always after the same pause, is not answering."""

IDLE_SECONDS = 10.0
"""Nothing ends a connection as idle after less than so many seconds."""

COPIES = "Or two copies of it have one account and resource, and put each other out."
"""What else may be the matter with an occupant who comes and goes."""

IDLE = (
    "So regular: an idle timeout? A server, a proxy or a router may end connections that are "
    "silent for long: let the program ping more often."
)
"""What to do if an occupant comes and goes after the same time."""

HISTORY_SECONDS = 5.0
"""What a program says within this time after it came may answer the history."""

HISTORY_ANSWERS = 2
"""An occupant answers the history if it answers at least this many of its messages. A single
message that seems to be an answer may be chance."""

HISTORY_MESSAGES = 50
"""Most messages of a room's history, as we assume; rooms send 20 by default."""

QUOTED_CHARACTERS = 3
"""The fewest characters of a text that we look for in other messages. They may contain a shorter
text by chance."""

MAX_NAMESAKES = 3
"""Most occupants that we ping because they may be the same program."""

_BROKEN = re.compile(
    r"\b(connect|disconnect|stream|socket|eof|reset|time[d ]*-?out|broken pipe|lost|unreachable)",
    re.IGNORECASE,
)
"""Matches a status text that a server wrote because the connection broke, in whatever words."""

_DID = {events.OccupantJoined: "came", events.OccupantChanged: "changed its presence"}
"""The words for what an occupant did, other than speaking, after which a program may fail."""

_SUFFIX = re.compile(r"[\W_\d]+|[\W_][0-9a-f]{8,}")
"""Matches what a program adds to a nickname that is taken."""


def namesakes(status: RoomStatus, occupant: Occupant) -> list[Occupant]:
    """Return the occupants who may be the same program: the same person, or a similar nickname."""
    others = [other for other in status.others if other.jid != occupant.jid]
    person = Person.of(occupant)
    are_same = [(other, person.is_same(Person.of(other))) for other in others]
    same = [other for other, is_same in are_same if is_same]
    unknown = [other for other, is_same in are_same if is_same is None]
    like = [other for other in unknown if is_like(other.nickname, occupant.nickname)]
    return [*same, *like][:MAX_NAMESAKES]


def is_like(nickname: str, other: str) -> bool:
    """Whether a program may have one nickname since the other was taken."""
    short, long = sorted((searchable(nickname), searchable(other)), key=len)
    return long.startswith(short) and bool(_SUFFIX.fullmatch(long[len(short) :]))


def ghost(evidence: Evidence) -> Finding:
    """Find out whether a dead session of the program has its nickname.

    A similar nickname alone proves nothing. A dead session of another person is no fault of the
    occupant.
    """
    if evidence.occupant is None or evidence.ping is None:
        return absent(evidence)
    if evidence.ping.seconds is None and evidence.answers:
        return Finding(True, f"{evidence.who} has answered the bridge, so it is no dead session.")
    person = Person.of(evidence.occupant)
    for nickname, ping in evidence.namesakes.items():
        pair = (evidence.nickname, evidence.ping), (nickname, ping)
        for (dead, its), (alive, other) in (pair, pair[::-1]):
            lives = other.seconds is not None and (other.error is None or other.error.reachable)
            if its.alone and its.seconds is None and lives:
                namesake = occupant_of(evidence.status, nickname)
                same = namesake is not None and person.is_same(Person.of(namesake))
                why = "is of the same account" if same else "has a similar name"
                remark = not same or dead == nickname
                detail = f"{name_of(dead)} does not answer a ping, and {name_of(alive)}, which "
                detail += f"{why}, does: {name_of(dead)} {'may' if remark else 'seems to'} be left "
                detail += f"over from a lost connection, and {'' if remark else 'to '}hold the "
                detail += "nickname."
                hint = "A moderator can kick it, or it goes when the server gives its session up. "
                hint += "Let the program leave the room before it ends, and take its nickname back."
                return Finding(None if remark else False, detail, hint, remark)
    if not evidence.namesakes:
        return Finding(None, f"Nobody else in the room seems to be {evidence.who}, too.")
    names = list_of([evidence.nickname, *evidence.namesakes])
    return Finding(True, f"No dead session is seen among {names}.")


def pair(evidence: Evidence) -> Finding:
    """Find out whether the occupant and one or two others answer each other without end."""
    for circle in circles(evidence.acts, evidence.nickname):
        if evidence.bridges & {*circle.names} or circle.is_commanded:
            continue
        fast = circle.is_fast
        if fast or all(map(evidence.programs.get, circle.names)):
            began, last, count = circle.turns[0], circle.turns[-1], len(circle.turns)
            *others, other = map(name_of, circle.names)
            words = next(act.body for act in evidence.acts if act.number == began.number)
            detail = f"{', '.join(others)} and {other} answer each other: {count} messages in turn "
            detail += f"until {iso(last.at)}; {others[0]} began at {iso(began.at)}, with "
            detail += f"{words_of(words)}."
            hint = "Let each ignore what programs say. It also ends if one of them answers "
            hint += "commands only, and says nothing that is a command to the others."
            # Even if all say that they are programs, slow turns prove nothing: people speak so,
            # too.
            return Finding(False if fast else None, detail, hint, not fast, symptom=not fast)
    if not evidence.past.spoken:
        return Finding(None, f"{evidence.who} has said nothing that could be answered.")
    return Finding(True, f"{evidence.who} and no other program answer each other in turn.")


def partners(evidence: Evidence) -> set[str]:
    """Return the nicknames of all who may be in a loop with the occupant, and its own."""
    names = (circle.names for circle in circles(evidence.acts, evidence.nickname))
    return set().union(*names)


def stays(evidence: Evidence) -> Finding:
    """Find out whether the occupant leaves and comes back again and again."""
    who, moves = evidence.who, evidence.past.moves
    lately = [move for move in reversed(moves) if evidence.now - move.at <= STAYS_SECONDS]
    left = [
        before
        for before, after in pairwise(lately)
        if isinstance(before.event, events.OccupantLeft)
        and isinstance(after.event, events.OccupantJoined)
    ]
    if len(left) < STAYS:
        if evidence.occupant is None and not moves:
            return absent(evidence)
        return Finding(True, f"{who} does not come and go.")
    between = [after.at - before.at for before, after in pairwise(left)]
    pauses, half = sorted(between), len(between) // 2
    period = (pauses[half] + pauses[~half]) / 2  # the median
    regular = max(between) - min(between) <= REGULAR * period
    explained = history(evidence).ok is False
    every = f"every {_duration(period)}" if regular else f"within {_duration(sum(between))}"
    last, is_lost = left[-1].event, all(is_lost_connection(move.event) for move in left)
    detail = f"{who} comes and goes: it left and came back {len(left)} times, {every}, at last at "
    detail += f"{iso(left[-1].at)} ({way_out(last)})"
    before = [done_just_before(evidence, move) for move in left]
    by_messages = _is_by_messages(evidence, before, left[0].at, period)
    regular = regular and period >= IDLE_SECONDS and not by_messages
    if not regular and (what := _cause_of_each(before)):
        detail += f", each time just after {what}"
    posts = _posts(evidence, left)
    detail += ", each time just after it had spoken: does it only post" if posts else ""
    detail += f"{'?' if posts else '.'}{MISTAKABLE if evidence.past.mistakable else ''}"
    if posts or not is_lost:
        hint = "It seems to end and to be started again, or to leave the room: see what restarts "
        hint += f"it (a supervisor, a timer), and whether it ends by an error. {COPIES}"
        if posts:
            hint = f"If it only posts and ends, nothing is wrong. Else: {hint}"
            return Finding(False, detail, hint, remark=True, symptom=True)
        if events.meanings_of(last):
            hint = "The room puts it out each time: see why, before it comes again."
        elif regular and not getattr(last, "status", None):
            hint = f"{IDLE} {hint}"  # some servers say nothing of a connection that broke
        return Finding(False, detail, hint, symptom=explained)
    hint = "Its connection ends, and it comes back: its own log should say why."
    hint = IDLE if regular else f"{hint} {COPIES}"
    return Finding(False, detail, hint, symptom=not regular)


def pulse(evidence: Evidence) -> tuple[float, Record] | None:
    """Return at which interval the occupant speaks unasked, in seconds, and when it did so last.

    What it said right after another may be an answer, so a time may be missing. Return None if the
    times are not regular, or if the bridge came into the room since.
    """
    last, at = list[Record](), float("-inf")
    for act in evidence.acts:
        is_alone = act.at - at > ANSWER_SECONDS  # no answer, nor a second line
        if is_alone and speaks(act) and evidence.is_theirs(act):
            last.append(act)
        at = act.at
    between = [after.at - before.at for before, after in pairwise(last[-PULSES - 1 :])]
    period = sorted(between)[len(between) // 2] if len(between) == PULSES else 0.0
    entered = evidence.past.entered
    off = (abs(it - round(it / period) * period) for it in between)
    if not period or max(off) > REGULAR * period:
        return None
    return None if entered and entered.number > last[-1].number else (period, last[-1])


def on_beat(evidence: Evidence) -> bool:
    """Whether all answers to the bridge came when the occupant speaks unasked."""
    replies, beat = evidence.past.replies, pulse(evidence)
    if beat is None or not replies:
        return False
    seconds, last = beat
    off = [abs((reply.at - last.at + seconds / 2) % seconds - seconds / 2) for reply in replies]
    return max(off) <= REGULAR * seconds


def is_unasked(evidence: Evidence) -> bool:
    """Whether the occupant spoke before the bridge did, long after what others had said."""
    ours, at = evidence.past.heard, float("-inf")
    for act in evidence.acts:
        if ours is not None and act.number >= ours.number:
            break
        if not evidence.is_theirs(act):
            at = act.at if is_message(act) else at
        elif speaks(act) and act.at - at > THREAD_SECONDS:
            return True
    return False


def is_lost_connection(event: events.Event) -> bool:
    """Whether an occupant left because its connection broke.

    The room says so by a code, or the server by a status text that it writes for the occupant.
    """
    status = getattr(event, "status", None) or ""
    codes: frozenset[int] = getattr(event, "codes", frozenset())
    return 333 in codes or (not codes and _BROKEN.search(status) is not None)


def way_out(event: events.Event) -> str:
    """Return how an occupant left, for a sentence.

    Some servers put an occupant out without a code: then its words may be theirs.
    """
    meanings = ", ".join(events.meanings_of(event))
    words = getattr(event, "reason", None) or getattr(event, "status", None)
    is_lost, by = is_lost_connection(event), by_whom(event)
    if words and not (meanings or is_lost):
        return f"its words were {words_of(words)}{by}"
    went = "its connection broke" if is_lost else "no reason was given"
    return f"{meanings or went}{by}{f', saying {words_of(words)}' if words else ''}"


def by_whom(event: events.Event) -> str:
    """Return who caused an event, for the end of a clause; empty if the room does not say."""
    return f" by {name_of(actor)}" if (actor := getattr(event, "actor", None)) else ""


def _posts(evidence: Evidence, moves: Sequence[Record]) -> bool:
    """Whether the occupant spoke each time just before it left, without another's doing."""
    acts, last = evidence.acts, list[Record]()
    for move in moves:
        soon = (act for act in acts if 0.0 <= move.at - act.at <= ANSWER_SECONDS)
        last.extend([act for act in soon if act.number < move.number][-1:])
        if done_just_before(evidence, move) is not None:
            return False
    return len(last) == len(moves) and all(evidence.is_theirs(it) and speaks(it) for it in last)


def done_just_before(evidence: Evidence, move: Record) -> Record | None:
    """Return what another did last before the occupant left, if the occupant left at once."""
    done = [act for act in evidence.acts if act.number < move.number]
    last = [act for act in done if not evidence.is_theirs(act)][-1:]
    return next((act for act in last if move.at - act.at <= ANSWER_SECONDS), None)


def fallen(evidence: Evidence) -> Record | None:
    """Return how the occupant left at once after the bridge's last message; None if it did not."""
    heard = evidence.past.heard if evidence.is_silent else None
    for move in reversed(evidence.past.moves) if heard else ():
        if heard and move.number > heard.number:
            is_soon = isinstance(move.event, events.OccupantLeft)
            return move if is_soon and move.at - heard.at <= ANSWER_SECONDS else None
    return None


def _is_by_messages(
    evidence: Evidence, before: Sequence[Record | None], first: float, period: float
) -> bool:
    """Whether messages led to the departures, and not a timer; `before` has what came before each.

    That is so if they are commands, which reset the timer of an idle connection. It is also so if
    others have said little else.
    """
    acts = [act for act in before if act and is_message(act)]
    said = [act for act in evidence.acts if is_message(act) and not evidence.is_theirs(act)]
    is_quiet = sum(first - act.at <= period for act in said) <= FEW * len(before)
    return len(acts) == len(before) and (is_quiet or all(is_command(act.body) for act in acts))


def _cause_of_each(before: Sequence[Record | None]) -> str:
    """Return what came `before` each departure, in words; empty if these have nothing in common.

    An act that is no message counts only if one occupant did it each time: many come and go by
    chance.
    """
    acts = [act for act in before if act is not None]
    if len(acts) < len(before):
        return ""
    last, who = acts[-1], name_of(acts[-1].sender)
    if all(map(is_message, acts)):
        return f"a message, at last {words_of(last.body)} of {who}"
    is_one = len({(act.sender, type(act.event)) for act in acts}) == 1
    return f"{who} {_DID[type(last.event)]}" if is_one and type(last.event) in _DID else ""


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(round(seconds), 1), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def history(evidence: Evidence) -> Finding:
    """Find out whether the occupant answered old messages when it came in."""
    who, acts = evidence.who, evidence.acts
    came = _entries(evidence)[-1:]
    if not came:
        return Finding(None, f"{who} was not seen to come into the room.")
    first_words, greetings = _first_words(evidence, came[0]), _greetings(evidence)
    said = [act for act in first_words if act.body not in greetings]
    before = [act for act in acts if act.number < came[0].number and speaks(act)]
    known = [
        exchange
        for exchange in exchanges(before)
        if evidence.is_theirs(exchange.answer)
        and exchange.seconds <= ANSWER_SECONDS
        and not _came_between(evidence, exchange)
    ]
    answers = {exchange.answer.body: exchange.asked for exchange in known}
    # What it only took note of then, it may say at any time, such as what it was to remind of.
    noted = {it.asked.body for it in known if not has_arguments(it.asked.body, it.answer.body)}
    asked = [act for act in before if not evidence.is_theirs(act)]
    asked = [*reversed(evidence.past.earlier), *asked][-HISTORY_MESSAGES:]
    again = [reply for reply in said if reply.body in answers]
    spoke_last = max((act.number for act in before if evidence.is_theirs(act)), default=None)
    waiting = [it for it in asked if spoke_last is None or it.number > spoke_last]
    if not again and not (again := _several(said, asked, waiting, noted)):
        ok = True if first_words else None
        return Finding(ok, f"{who} did not answer the history when it came.")
    detail = f"{who} answered what had been said before it came at {iso(came[0].at)}: it said "
    detail += f"{words_of(again[0].body)}"
    if (first := answers.get(again[0].body)) is not None:
        detail += f", as to {words_of(first.body)} of {name_of(first.sender)} before"
    if len(again) > 1:
        detail += f", and more: {len(again)} messages in all"
    detail += f".{MISTAKABLE if evidence.past.mistakable else ''}"
    hint = "Let the program ignore messages with a delay stamp (XEP-0203), or ask for no history "
    hint += "when it enters (maxstanzas 0)."
    return Finding(False, detail, hint)


def _entries(evidence: Evidence) -> list[Record]:
    """Return the events in which the occupant came, the oldest first."""
    moves = reversed(evidence.past.moves)
    return [move for move in moves if isinstance(move.event, events.OccupantJoined)]


def _first_words(evidence: Evidence, came: Record) -> list[Record]:
    """Return what the occupant said right after it `came`, before any other occupant acted."""
    after = (act for act in evidence.acts if act.number > came.number)
    first = takewhile(lambda act: speaks(act) and evidence.is_theirs(act), after)
    soon = takewhile(lambda act: act.at - came.at <= HISTORY_SECONDS, first)
    return [*islice(soon, HISTORY_MESSAGES)]


def _greetings(evidence: Evidence) -> set[str]:
    """Return what the occupant says each time it has come."""
    entries = _entries(evidence)
    said = ({act.body for act in _first_words(evidence, came)} for came in entries)
    return set.intersection(*said) if len(entries) > 1 else set()


def _came_between(evidence: Evidence, exchange: Answered) -> bool:
    """Whether the occupant came after the question, and so can know it only from the history."""
    numbers = range(exchange.asked.number, exchange.answer.number)
    return any(entry.number in numbers for entry in _entries(evidence))


def _several(
    said: Sequence[Record], asked: Sequence[Record], waiting: Sequence[Record], noted: set[str]
) -> list[Record]:
    """Return what was `said` if it answers several of the messages that were `asked` before.

    The arguments of a command that was only `noted` then show nothing. If it answers one of them
    for sure, and is as many messages as there are commands still `waiting` for an answer, it
    answers those.
    """
    ids = {getattr(it.event, "id", None) for it in asked} - {None}
    bodies = {text for it in asked if len(text := it.body) >= QUOTED_CHARACTERS}
    replies, answered = list[Record](), set[str | None]()
    for reply in said:
        to = {getattr(reply.event, "reply_to", None)} & ids
        repeated = {it for it in bodies if it in reply.body}
        taken_up = {it for it in bodies - noted if has_arguments(it, reply.body)}
        if to := to or repeated | taken_up:
            replies.append(reply)
            answered |= to
    if min(len(replies), len(answered)) >= HISTORY_ANSWERS:
        return replies
    if replies and len(said) == sum(is_command(it.body) for it in waiting) >= HISTORY_ANSWERS:
        return [*said]
    commands = Counter(form for it in asked if is_command(form := searchable(it.body)))
    for text, count in Counter(act.body for act in said).items():
        if count >= HISTORY_ANSWERS and count in commands.values():
            return [reply for reply in said if reply.body == text]
    return []


def room(evidence: Evidence) -> Finding:
    """Find out whether the room ends when all leave, and whether it has ended before.

    If the occupant owns it alone, and did not before, the occupant made it anew: the settings of
    the former room, and the rights in it, are gone. An occupant may also have made it first.
    """
    persistent, occupant = evidence.status.persistent, evidence.occupant
    if persistent is None:
        return Finding(None, "The room does not say whether it stays when all have left.")
    if persistent:
        return Finding(True, "The room is persistent.")
    others = evidence.status.others
    owners = [other.nickname for other in others if other.affiliation == "owner"]
    if occupant is not None and owners == [occupant.nickname]:
        who, had = evidence.who, evidence.past.had_other_rights
        made = "made it anew" if had else "may have made it anew"
        detail = f"{TEMPORARY}. {who} alone owns it now: {who} {made} by entering it, "
        detail += f"{'and' if had else 'so that'} its former settings and rights are gone."
        hint = f"Set the room up again. {MAKE_PERSISTENT}"
        return Finding(False if had else None, detail, hint, remark=not had)
    if others:
        return Finding(True, f"{TEMPORARY}.")
    detail = f"{TEMPORARY}, and nobody else is in it now."
    return Finding(False, detail, MAKE_PERSISTENT, symptom=True)
