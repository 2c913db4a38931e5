"""Requests to a model that a person can send as they are."""

import json
from typing import Annotated

from bridge.mcp.toolset import Completes, prompt
from bridge.text import one_line
from bridge.tools.entries import NOTICE
from bridge.tools.link import RoomLink

MAX_NAME_CHARACTERS = 200
"""Of a nickname, which a stranger chose; beyond it the length is given."""


def nicknames(link: RoomLink, /) -> list[str]:
    """Who is in the rooms, for completion."""
    here = (one for room in link.participant.memberships for one in room.status().occupants)
    return sorted({one_line(one.nickname, MAX_NAME_CHARACTERS) for one in here})


def rooms(link: RoomLink, /) -> list[str]:
    """The rooms of the settings, the default room first, for completion."""
    return [one.name for one in link.participant.memberships]


def _quoted(name: str) -> str:
    return json.dumps(one_line(name, MAX_NAME_CHARACTERS), ensure_ascii=False)


def _which(room: str) -> str:
    return f" The room is {_quoted(room)}; give that as `room` to each tool." if room else ""


@prompt("diagnose-room", title="Why does the room not work?")
def diagnose_room(
    problem: Annotated[str, "what is wrong, in your words"] = "",
    nickname: Annotated[str, "whom it concerns", Completes(nicknames)] = "",
    room: Annotated[str, "which of several rooms", Completes(rooms)] = "",
) -> str:
    """Find out why the XMPP room, or somebody in it, does not behave."""
    concerns = f" It concerns the occupant {_quoted(nickname)}." if nickname else ""
    seen = f" What I see: {problem}" if problem else ""
    return (
        f"Something is wrong with our XMPP chat room.{seen}{_which(room)}{concerns}\n\n"
        "Ask xmppStatus first. If it is not connected, run xmppCheck, and report the step that "
        "fails, the condition, and what the hint says to change. If `roomCreated` is true, the "
        "name of the room is probably misspelt. If it is connected and somebody in the room is in "
        "question: xmppDiagnose with their nickname names the cause, or what it could not tell. "
        "Only if I agreed to a test message in the room, call xmppSend with `awaitSeconds` before "
        "it, with what they should answer. For the rest: xmppOccupants tells who is there; "
        "xmppHistory with kinds join, leave, nick, role, config and error who came, went, was "
        "kicked, renamed or silenced, and what was refused; xmppTrace the stanzas themselves. "
        "End with the most likely cause in one sentence, the evidence for it, and the next step. "
        f"{NOTICE}"
    )


@prompt("summarise-room", title="What was said in the room?")
def summarise_room(
    nickname: Annotated[str, "only what this occupant said", Completes(nicknames)] = "",
    room: Annotated[str, "which of several rooms", Completes(rooms)] = "",
) -> str:
    """Sum up the recent conversation in the XMPP room."""
    whose = f" Keep to what {_quoted(nickname)} said." if nickname else ""
    return (
        "Sum up the recent conversation in our XMPP chat room: read xmppHistory with kind message "
        "(all pages while `more` is true, or as many as I asked for), and tell who said what, "
        f"what was decided and what is open.{_which(room)}{whose} {NOTICE}"
    )
