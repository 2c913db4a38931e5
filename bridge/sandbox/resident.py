"""The resident of the standing room: somebody to talk to when nobody else is there."""

from dataclasses import dataclass
from xml.etree.ElementTree import Element

from bridge.sandbox.stanza import (
    CLIENT,
    DELAY,
    DISCO_INFO,
    IQ,
    MESSAGE,
    MUC,
    PING,
    PRESENCE,
    answer,
    bounce,
    build,
)

NOTICE = "A sandbox for trying things out; for anything else run Prosody or ejabberd."
"""What the sandbox says of itself, as the subject of the standing room and in disco."""


@dataclass(frozen=True)
class Resident:
    """An occupant inside the server, which answers whatever another occupant says."""

    jid: str
    room: str
    nick: str = "Echo"

    def entrance(self) -> list[Element]:
        """Give what it sends once, before anybody else is there."""
        joining = build(PRESENCE, {"to": f"{self.room}/{self.nick}"}, build(MUC + "x"))
        subject = build(CLIENT + "subject", text=NOTICE)
        return [joining, build(MESSAGE, {"to": self.room, "type": "groupchat"}, subject)]

    def receive(self, stanza: Element) -> list[Element]:
        """Answer what was said in the room or to it alone, never itself and never history."""
        sender = stanza.get("from", "")
        room, _, nick = sender.partition("/")
        if stanza.tag == IQ and stanza.get("type") in ("get", "set"):
            return self._answer_request(stanza)
        if stanza.tag != MESSAGE or stanza.get("type") == "error":
            return []
        body = stanza.findtext(CLIENT + "body")
        if not body or stanza.find(DELAY + "delay") is not None:
            return []
        if room != self.room or nick in ("", self.nick):
            return []
        kind = "groupchat" if stanza.get("type") == "groupchat" else "chat"
        to = room if kind == "groupchat" else sender
        said = build(CLIENT + "body", text=f"You said: {body}")
        identity = {"id": f"echo-{stanza.get('id')}"} if "id" in stanza.attrib else {}
        return [build(MESSAGE, {"to": to, "type": kind, **identity}, said)]

    def _answer_request(self, iq: Element) -> list[Element]:
        if iq.find(PING + "ping") is not None:
            return answer(iq)
        if iq.find(DISCO_INFO + "query") is not None:
            identity = {"category": "client", "type": "bot", "name": self.nick}
            return answer(
                iq, build(DISCO_INFO + "query", {}, build(DISCO_INFO + "identity", identity))
            )
        return bounce(iq, "service-unavailable")
