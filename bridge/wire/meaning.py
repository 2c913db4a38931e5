"""What errors, status codes and elements of messages mean, and what to do about it. Pure.

The sentences are the same for an error that the bridge got, and for an error in the log of another
client. Only the names of what a user has to change differ: for the bridge they are its settings.
RFC 6120 and XEP-0045 define the conditions.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """A row of a table of errors: what to say if one of its conditions comes up in a situation.

    `*` means every condition, or every situation. Names in braces are filled in.
    """

    situations: Sequence[str]
    conditions: Sequence[str]
    outcome: str
    """The consequence of the error; each table has its own words for that."""
    message: str
    hint: str


def rows_of(table: str) -> tuple[Row, ...]:
    """Return the rows of a table of errors.

    Each row is written like this, where message and hint may go on in further lines:

        SITUATION...: CONDITION...; OUTCOME
            MESSAGE
            -> HINT
    """
    rows = []
    for row in re.split(r"\n(?=\S)", table.strip()):
        head, _, texts = row.partition("\n")
        where, outcome = head.split("; ")
        situations, conditions = where.split(": ")
        message, hint = " ".join(texts.split()).split(" -> ")
        rows.append(Row(situations.split(), conditions.split(), outcome, message, hint))
    return tuple(rows)


def first_row(rows: Sequence[Row], situation: str, condition: str | None) -> Row:
    """Return the first row for a situation and a condition; None means any condition."""
    return next(
        row
        for row in rows
        if not {situation, "*"}.isdisjoint(row.situations)
        and (condition is None or not {condition, "*"}.isdisjoint(row.conditions))
    )


ENCRYPTIONS = {
    "eu.siacs.conversations.axolotl": "OMEMO",
    "urn:xmpp:omemo:1": "OMEMO",
    "urn:xmpp:omemo:2": "OMEMO",
    "urn:xmpp:openpgp:0": "OpenPGP",
    "jabber:x:encrypted": "Legacy OpenPGP",
    "urn:xmpp:otr:0": "OTR",
}
"""Names of encryptions by the namespaces of their elements (XEP-0380, section 3.2)."""

SIGNALS = frozenset(
    {
        "http://jabber.org/protocol/chatstates",
        "urn:xmpp:receipts",
        "urn:xmpp:chat-markers:0",
    }
)
"""The namespaces of signals that clients send by themselves: the user is typing, a message came, a
message was shown (XEP-0085, XEP-0184, XEP-0333)."""

UNREACHED = frozenset({"remote-server-not-found", "remote-server-timeout", "service-unavailable"})
"""The conditions that say that a server did not reach a room's service. `service-unavailable` is
not certain: an entity that does not understand a request answers the same (RFC 6120, 8.3.3)."""

REMOVALS = {
    332: "dropped",
    333: "dropped",
    301: "banned",
    322: "not-a-member",
    321: "not-a-member",
    307: "kicked",
}
"""The situation of an occupant whom the room puts out, by the room's status code (XEP-0045, section
16.6). Of several codes the first in this table counts: a room may send 307 with any other code."""

OUR_WORDS: Mapping[str, str] = {
    "login": "XMPP_USERNAME and XMPP_PASSWORD",
    "own_domain": "XMPP_DOMAIN (or the domain in XMPP_USERNAME)",
    "server": "XMPP_SERVICE",
    "room_setting": "MUC_ROOM",
    "nickname_setting": "MCP_BOT_NICKNAME",
    "room_password": "MUC_PASSWORD",
    "password_is_wrong": "the one in MUC_PASSWORD is wrong",
    "again": "the bridge tries again by itself",
    "We_were": "We were",
    "us": "us",
}
"""The words for the names in braces if the bridge got the error."""

CLIENT_WORDS: Mapping[str, str] = {
    "login": "the client's user name and password",
    "own_domain": "the domain in the client's JID (a component's name: in the server's settings)",
    "server": "the host and port that the client connects to",
    "room_setting": "the address of the room that the client joins",
    "nickname_setting": "the client's nickname",
    "room_password": "the password with which the client joins",
    "password_is_wrong": "the client sent none, or a wrong one",
    "usual_service": "conference or muc, a dot, and the server's own",
    "again": "let the client try again, with growing pauses",
    "We_were": "The client was",
    "us": "the client",
}
"""The words for the names in braces if the error is in the log of another client."""

MEANINGS = rows_of("""
old-login: not-acceptable bad-request conflict service-unavailable feature-not-implemented; later
    {domain} refused the login of {account} ({condition}){why}.
    -> Best let it log in by SASL, else send a resource that is free, and no password in clear.
sasl old-login: not-authorized; never
    {domain} refused the login of {account}{why}.
    -> Check {login}: one of them may be wrong.
sasl: invalid-authzid; never
    {domain} refused the login of {account} ({condition}){why}.
    -> The account for which it asked to act (authzid) is another than its own, or malformed: let it
    send none, and check {login}.
sasl: credentials-expired; never
    The password of {account} has expired, or its token{why}.
    -> Get a new one, and correct {login}.
sasl: account-disabled; never
    {domain} refused the login of {account}, since it has disabled the account{why}.
    -> Ask an admin of {domain} to enable it; {login} need not be wrong.
sasl: temporary-auth-failure; soon
    {domain} cannot check logins just now{why}.
    -> The server's account store has a problem; {again}.
sasl: invalid-mechanism; later
    {domain} does not take the mechanism by which {account} logs in ({condition}){why}.
    -> Choose a mechanism that the server offers; {login} need not be wrong.
sasl old-login: *; later
    {domain} refused the login of {account} ({condition}){why}.
    -> Check {login}. The server's log says more.
stream: host-unknown; later
    {service} does not serve the domain {domain}.
    -> Check {own_domain}: it is the domain of the account's JID, often not the name of
    the host.
stream: host-gone; later
    {service} no longer serves the domain {domain}.
    -> Check {server} and {own_domain}: the domain may have moved.
stream: conflict; soon
    Another session took over this one.
    -> Another program, or another copy of this one, logs in with the same account and resource;
    {again}.
stream: system-shutdown; soon
    {domain} is shutting down.
    -> When the server is back, {again}.
barred: policy-violation; later
    {domain} refused the connection before the login was over.
    -> Most often too many logins from this address have failed: correct {login}, and wait until the
    server lets this address in again. Otherwise the server's log names the rule.
stream: policy-violation; soon
    {domain} ended the connection for breaking one of its rules.
    -> Too much, too fast or too long, or TLS is required; the server's log names the rule.
stream: not-authorized; soon
    {domain} ended the connection: not authorized.
    -> Check {login}.
stream: invalid-from; soon
    {domain} ended the connection: a stanza had a `from` that is not the sender's to use.
    -> A client leaves `from` out; a component puts an address at its own domain there.
stream: invalid-namespace; soon
    {domain} ended the connection: streams with this namespace do not belong here.
    -> Check {server}: a component needs the port for components (often 5347 or 5275), a client the
    port for clients (5222).
stream: see-other-host; later
    {service} sends its clients to another server.
    -> The redirect is not followed; if you trust the server that it names, change {server}.
stream: item-not-found; soon
    {domain} knows no such session over HTTP (BOSH).
    -> It timed out, or another window goes on with it: begin a new session, with a new sid.
stream: resource-constraint; soon
    {domain} cannot take another connection just now.
    -> After a pause {again}.
stream: connection-timeout; soon
    {domain} ended the connection, since it had heard nothing from {us} for too long.
    -> The connection or the program hung, or the program answers no ping (XEP-0199) or no r
    (XEP-0198); {again}.
stream: *; soon
    {domain} ended the connection ({condition}).
    -> The server's log says more; {again}.
join: not-authorized; later
    The room {room} wants a password, and {password_is_wrong}.
    -> Set {room_password} to the room's password.
join: forbidden; later
    {account} is banned from the room {room}, may not make it, or may not reach {room_service}.
    -> Check {room_setting}: if there is no such room, {account} may not create it. If it is right,
    ask an admin of the room to lift the ban.
join: registration-required; later
    The room {room} is for members only, and {account} is not one.
    -> Ask an admin of the room to make the account a member.
join: item-not-found; soon
    The room {room} does not exist, or is locked while its owner sets it up.
    -> Check {room_setting}; if it is right, let the owner finish its configuration.
join: not-allowed; later
    {room_service} does not let {account} into the room {room}.
    -> Either the room does not exist and {account} may not create it: check {room_setting}, also
    its domain, or create the room first. Or the service admits no users of other servers, or none
    without an account: ask its admin. In a room, its nickname stays as it was.
join rename: not-acceptable; later
    The room {room} does not accept the nickname {nickname}.
    -> Set {nickname_setting} to the nickname that is registered for the account, or another.
join rename: conflict; soon
    The nickname {nickname} is taken in the room {room}.
    -> Set {nickname_setting} to a free one.
join: service-unavailable; soon
    The room {room} is full, or {room_service} is no room service.
    -> Check the domain in {room_setting}; if it is right, wait for somebody to leave.
join: remote-server-not-found; later
    {domain} knows no server {room_service}.
    -> Check the domain in {room_setting}: usually {usual_service}.
join: remote-server-timeout; soon
    {domain} cannot reach {room_service}.
    -> Check the domain in {room_setting}, and the connection between the two servers.
join rename: jid-malformed; later
    The room {room} or the nickname {nickname} has characters that the server refuses.
    -> Check {room_setting} and {nickname_setting}.
join: captcha-required; later
    The room {room} lets in only users who have solved its CAPTCHA.
    -> Only a person can solve it. Ask an admin of the room to make {account} a member, or to turn
    CAPTCHAs off.
join: gone; later
    The room {room} is no more: it was destroyed, or has moved{why}.
    -> Set {room_setting} to a room that exists.
join: resource-constraint; soon
    The room service {room_service} cannot take more occupants just now.
    -> After a pause {again}.
rename: *; later
    The room {room} did not take the presence of {us} as {nickname} ({condition}).
    -> In a room the nickname stays as it was. To get into it, join with the muc element.
join: *; soon
    The room {room} refused {us} ({condition}).
    -> Check {room_setting}; the server's log says more.
whispered: forbidden policy-violation; soon
    The room {room} refused the private message{why}: its own rules say who may send those.
    -> Let an owner of the room allow private messages (muc#roomconfig_allowpm), or say it in
    public.
retitled: forbidden not-allowed; later
    The room {room} refused the message{why}: it has a subject and no body, so it would have changed
    the room's subject, and {account} may not do that.
    -> Put what people should read into the body. If the subject is meant, let an owner of the room
    allow that (muc#roomconfig_changesubject).
mistyped: *; later
    The message to {room} was refused ({condition}){why}.
    -> Check its type and its address.
bounced: forbidden; soon
    The room {room} refused the message{why}: {account} has no voice in it.
    -> In a moderated room the account needs voice: ask a moderator of it.
bounced: not-acceptable; soon
    The room {room} refused the message{why}: {account} is not in it.
    -> Only occupants may speak in a room: join it first, and again when it has put you out.
bounced: resource-constraint policy-violation; soon
    The message to {room} was refused{why}: it breaks a rule, or is too much, too fast, or too long.
    -> Do as the server says. If it says nothing, send less at a time, and with pauses.
bounced: remote-server-not-found; soon
    The server of {room} is not known{why}.
    -> Check the domain of the address.
bounced: remote-server-timeout; soon
    The server of {room} could not be reached{why}.
    -> It may be down, or cut off from {domain}: send the message again later.
astray: *; later
    The message went to {room}, which names a server alone, and was refused ({condition}){why}.
    -> Write the address as ROOM@SERVICE for a room, NAME@DOMAIN for an account, and
    ROOM@SERVICE/NICKNAME for an occupant: a nickname by itself is none.
blocked: *; later
    The server did not pass the message to {room} on{why}: {account} has blocked that address.
    -> Take {room} off the block list of the account (XEP-0191).
bounced: bad-request; soon
    The message to {room} was refused (bad-request){why}.
    -> Check its type and its form: what a whole room should read has type groupchat.
bounced: service-unavailable; soon
    {room} did not take the message (service-unavailable){why}.
    -> Check the address: there may be no such account or service, or it is offline and nothing is
    kept for it. An account may also have blocked the sender.
bounced: item-not-found; soon
    There is no {room} to which the message could go{why}.
    -> Check the address; a room has to be joined first.
invited: *; later
    The room {room} did not pass the invitation on ({condition}){why}.
    -> It may let only its admins invite, be locked until its owner has set it up, or find nobody at
    the address that is invited.
bounced: jid-malformed; later
    {room} is no address{why}.
    -> Write it as ROOM@SERVICE for a room, NAME@DOMAIN for an account, and take out characters that
    an address cannot have.
bounced: recipient-unavailable gone; later
    Nobody is there at {room}{why}.
    -> Check the address; wait until it is there again.
bounced: *; soon
    The message to {room} was refused ({condition}){why}.
    -> The server's log says more. In a moderated room the account needs voice: ask a moderator of
    it.
destroyed: gone; later
    The room {room} was destroyed{why}.
    -> Set {room_setting} to a room that exists.
banned: forbidden; later
    {We_were} banned from the room {room}{by}{why}.
    -> Ask an admin of the room to lift the ban.
not-a-member: registration-required; later
    The room {room} is for members only now, and {account} is not one.
    -> Ask an admin of the room to make the account a member.
kicked: not-allowed; minute
    {We_were} kicked from the room {room}{by}{why}.
    -> Talk to the moderator; after a minute {again}.
dropped: recipient-unavailable; at once
    The room {room} dropped {us}{why}.
    -> After a pause {again}.
""")
"""The errors that a server or a room returns, and the ways in which a room puts an occupant out."""
