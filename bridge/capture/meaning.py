"""Says what an error means that a client got, in the words of `bridge.wire.meaning`. Pure."""

from bridge.capture.stanza import bare
from bridge.capture.stream import Room, Stream
from bridge.text import quoted
from bridge.wire.meaning import CLIENT_WORDS, MEANINGS, first_row


def meaning(
    situation: str,
    condition: str,
    stream: Stream,
    text: str = "",
    room: Room | None = None,
    *,
    to: str = "",
) -> tuple[str, str]:
    """Return a sentence on what the error means, and one on what to change.

    `condition` is empty for a situation that has one meaning. `text` is what the server or the room
    said. `to` is the address of a message that came back.
    """
    row = first_row(MEANINGS, situation, condition or None)
    jid = room.jid if room else bare(to)
    domain = bare(stream.account).partition("@")[2]
    words = {
        "room": quoted(jid),
        "room_service": quoted(jid.partition("@")[2]),
        "nickname": quoted(room.nickname if room else ""),
        "account": quoted(bare(stream.account)) if stream.account else "the client",
        "domain": quoted(domain) if domain else "the server",
        "service": "the server",
        "condition": condition,
        "by": "",
        "why": f" ({quoted(text)})" if text else "",
    }
    message = row.message.format_map({**CLIENT_WORDS, **words})
    if text and "{why}" not in row.message:
        message += f" It says: {quoted(text)}."
    return message[:1].upper() + message[1:], row.hint.format_map({**CLIENT_WORDS, **words})
