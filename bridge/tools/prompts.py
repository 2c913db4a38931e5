"""Requests to a model that a person can send as they are."""

from typing import Annotated

from bridge.escaping import one_line
from bridge.mcp.resource import Completes, prompt
from bridge.tools.entries import NOTICE
from bridge.tools.link import RoomLink


def nicknames(link: RoomLink, /) -> list[str]:
    """Who is in the room, for completion."""
    return sorted(one_line(one.nickname) for one in link.participant.status().occupants)


@prompt("diagnose-room", title="Why does the room not work?")
def diagnose_room(
    problem: Annotated[str, "what is wrong, in your words"] = "",
    nickname: Annotated[str, "whom it concerns", Completes(nicknames)] = "",
) -> str:
    """Find out why the XMPP room, or somebody in it, does not behave."""
    concerns = f" It concerns the occupant {one_line(nickname)!r}." if nickname else ""
    told = f" What I see: {problem}" if problem else ""
    return (
        f"Something is wrong with our XMPP chat room.{told}{concerns}\n\n"
        "Ask xmppStatus first. If it is not connected, report the phase, the condition, and what "
        "its hint says to change. If it is connected, read bridge://room/occupants and "
        "bridge://room/messages, and use xmppSend only if I agreed to a test message in the room. "
        "End with the most likely cause in one sentence, the evidence for it, and the next step. "
        f"{NOTICE}"
    )


@prompt("summarise-room", title="What was said in the room?")
def summarise_room(
    nickname: Annotated[str, "only what this occupant said", Completes(nicknames)] = "",
) -> str:
    """Sum up the recent conversation in the XMPP room."""
    whose = f" Keep to what {one_line(nickname)!r} said." if nickname else ""
    return (
        "Sum up the recent conversation in our XMPP chat room: read bridge://room/messages, and "
        f"tell who said what, what was decided and what is open.{whose} {NOTICE}"
    )
