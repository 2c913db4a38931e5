"""Clients in one room of any server, and what each of them is told, a line for each stanza."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from xml.etree.ElementTree import Element

from slixmpp import ClientXMPP

from bridge.wire.names import LANGUAGE
from tests.sandbox.wire import LIMIT
from tests.servers.server import Account, XmppServer

MUC = "http://jabber.org/protocol/muc"

SHARED_FIELDS = (
    "muc#roominfo_description",
    "muc#roominfo_occupants",
    "muc#roomconfig_roomdesc",
    "muc#roomconfig_roomsecret",
    "muc#roomconfig_persistentroom",
    "muc#roomconfig_publicroom",
    "muc#roomconfig_moderatedroom",
    "muc#roomconfig_membersonly",
)
"""Fields of forms that both servers have in the same place; Prosody has more."""

JOIN = (
    "<presence to='{room}/{nick}'><x xmlns='http://jabber.org/protocol/muc'>{more}</x></presence>"
)


def enters(nick: str, more: str = "") -> str:
    return JOIN.replace("{nick}", nick).replace("{more}", more)


def leaves(nick: str, more: str = "") -> str:
    return f"<presence to='{{room}}/{nick}' type='unavailable'>{more}</presence>"


def shows(nick: str, more: str) -> str:
    return f"<presence to='{{room}}/{nick}'>{more}</presence>"


def sends(content: str, nick: str = "", kind: str = "groupchat") -> str:
    to = f"{{room}}/{nick}" if nick else "{room}"
    return f"<message to='{to}' type='{kind}' id='m'>{content}</message>"


def says(text: str, nick: str = "") -> str:
    return sends(f"<body>{text}</body>", nick, "chat" if nick else "groupchat")


def asks(kind: str, query: str, nick: str = "") -> str:
    to = f"{{room}}/{nick}" if nick else "{room}"
    return f"<iq to='{to}' type='{kind}' id='q'>{query}</iq>"


def pings(nick: str = "") -> str:
    return asks("get", "<ping xmlns='urn:xmpp:ping'/>", nick)


def changes(item: str, reason: str = "") -> str:
    """A role or an affiliation: `item` has the attributes; `{guest}` is the guest's account."""
    why = f"<reason>{reason}</reason>" if reason else ""
    return asks("set", f"<query xmlns='{MUC}#admin'><item {item}>{why}</item></query>")


def affiliates(who: str, affiliation: str, reason: str = "") -> str:
    return changes(f"jid='{{{who}}}' affiliation='{affiliation}'", reason)


def gives(nick: str, role: str, reason: str = "") -> str:
    return changes(f"nick='{nick}' role='{role}'", reason)


def lists(item: str) -> str:
    return asks("get", f"<query xmlns='{MUC}#admin'><item {item}/></query>")


def configures(form_type: str = "roomconfig", kind: str = "submit", **fields: str) -> str:
    values = {f"muc#roomconfig_{name}": value for name, value in fields.items()}
    shown = "".join(
        f"<field var='{name}'><value>{value}</value></field>"
        for name, value in {"FORM_TYPE": f"{MUC}#{form_type}", **values}.items()
    )
    return owns("set", f"<x xmlns='jabber:x:data' type='{kind}'>{shown}</x>")


def owns(kind: str, content: str) -> str:
    return asks(kind, f"<query xmlns='{MUC}#owner'>{content}</query>")


def discovers(what: str = "info") -> str:
    return asks("get", f"<query xmlns='http://jabber.org/protocol/disco#{what}'/>")


class Company:
    """The clients that are named, each in the room by its deeds alone."""

    def __init__(self, server: XmppServer, names: Iterable[str]) -> None:
        self._server = server
        self._accounts = {
            "owner": server.bot,
            "guest": server.witness,
            "third": server.robot,
            "twin": server.witness,
        }
        self._room = server.room()
        self._told: dict[str, list[str]] = {each: [] for each in self._accounts if each in names}
        self._clients = {each: _client(server, self._accounts[each]) for each in self._told}
        self._pings = 0

    async def connect(self) -> None:
        for name, client in self._clients.items():
            client.add_filter("in", partial(self._record, name))
            client.connect(self._server.host, self._server.port(self._server.transports[0]))
        started = [each.wait_until("session_start", LIMIT) for each in self._clients.values()]
        await asyncio.gather(*started)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.disconnect(wait=LIMIT)
            if (sender := client._run_out_filters) is not None:  # noqa: SLF001 - never ended
                sender.cancel()
                await asyncio.wait([sender])

    async def does(self, who: str, xml: str) -> None:
        """Send a stanza, and wait until everybody has what came of it."""
        jids = {name: account.jid for name, account in self._accounts.items()}
        for name, value in {"room": self._room, **jids}.items():
            xml = xml.replace(f"{{{name}}}", value)
        self._clients[who].send_raw(xml)
        await self._round_trip(who)
        for name in self._clients:
            await self._round_trip(name)

    def told(self) -> tuple[str, ...]:
        """What they have been told since this was last asked."""
        lines = tuple(f"{name}: {line}" for name, told in self._told.items() for line in told)
        for told in self._told.values():
            told.clear()
        return lines

    async def _round_trip(self, who: str) -> None:
        self._pings += 1
        iq: Any = self._clients[who].make_iq_get(ito=self._server.domain)
        iq["id"] = f"round-trip-{self._pings}"
        iq.xml.append(Element("{urn:xmpp:ping}ping"))
        await iq.send(timeout=LIMIT)

    def _record(self, name: str, stanza: Any) -> Any:
        xml = stanza.xml
        if xml.get("from", "").startswith(self._room):
            self._told[name].append(self._line(xml))
        return stanza

    def _line(self, xml: Element) -> str:
        kind = xml.tag.rpartition("}")[2]
        words = [kind, xml.get("from", "").partition("/")[2] or "room", xml.get("type", "")]
        if (language := xml.get(LANGUAGE, "en")) != "en" and kind == "message":
            words.append(f"in {language}")  # Prosody adds the language of the stream
        for child in xml.iter():
            space, _, tag = child.tag[1:].rpartition("}")
            match space, tag:
                case (_, "item") if space.startswith(MUC):
                    named = child.get("nick"), child.get("jid")
                    words.append(f"{child.get('affiliation')}/{child.get('role')}")
                    words += [f"is {self._who(jid)}" for jid in named[1:] if jid]
                    words += [f"nick {nick}" for nick in named[:1] if nick]
                case (_, "actor"):
                    words.append(f"by {child.get('nick')}")
                case (_, "reason" | "body" | "subject" | "show" | "status") if child.text:
                    words.append(f"{tag} {child.text!r}")
                case (_, "status") if child.get("code", "100") != "100":
                    words.append(child.get("code", ""))
                case ("urn:xmpp:delay", _) | (_, "destroy"):
                    words.append(tag)
                case ("urn:ietf:params:xml:ns:xmpp-stanzas", _) if tag != "text":
                    words.append(tag)
                case (_, "error") if child.get("type") == "auth":
                    words.append("auth")
                case (_, "feature") if child.get("var", "").startswith("muc_"):
                    words.append(child.get("var", "").removeprefix("muc_"))
                case (_, "identity"):
                    words.append(f"{child.get('category')} {child.get('name', '')}".strip())
                case (_, "field") if child.get("var") in SHARED_FIELDS:
                    value = child.findtext("{jabber:x:data}value") or ""
                    name = child.get("var", "").partition("_")[2]
                    if value not in ("", "0"):  # Prosody leaves out what is off
                        words.append(f"{name}={value}")
        return " ".join(word for word in (*words[:3], *sorted(words[3:])) if word)

    def _who(self, jid: str) -> str:
        bare = jid.partition("/")[0]
        return next(name for name, each in self._accounts.items() if each.jid == bare)


@asynccontextmanager
async def company(server: XmppServer, names: Iterable[str]) -> AsyncIterator[Company]:
    """The clients, connected and in no room, until the block ends.

    There are owner, guest, third, and twin, who has the account of guest.
    """
    gathered = Company(server, names)
    try:
        await gathered.connect()
        yield gathered
    finally:
        await gathered.close()


def _client(server: XmppServer, account: Account) -> ClientXMPP:
    context = ssl.create_default_context(cafile=server.ca_file)
    client = ClientXMPP(account.jid, account.password, ssl_context=context)
    plain = server.transports[0] == "plaintext"
    client.enable_direct_tls, client.enable_starttls = False, not plain
    client.enable_plaintext = plain
    client.plugin["feature_mechanisms"].unencrypted_scram = plain
    return client
