"""What each rule says: a sentence, what to change, how bad it is, and the standard's clause. Pure.

`bridge.wire.meaning` says what an error's condition means, in the same words for the bridge itself
and for the clients whose logs it reads.
"""

from collections.abc import Mapping
from sys import intern

from bridge.capture.client import Entity
from bridge.capture.finding import Finding, Severity, key_of_finding
from bridge.capture.stanza import MAX_TEXT, LogPlace
from bridge.text import quoted
from bridge.wire.meaning import CLIENT_WORDS, MEANINGS, Row, first_row, rows_of
from bridge.wire.names import domain_of, lower_bare

_CAUSES = {
    row.situations[0]: row
    for row in rows_of("""
closed: ended; error, RFC 6120, 4.4
    The server closed the stream without an error{after}.
    -> Let the client connect again; if the stream was silent before, let it ping (XEP-0199), too.
closing: ended; note, RFC 6120, 4.4
    The server closed the stream, and the client may have before: the log has nothing that it sent.
    -> Log both directions.
error: ended; error, RFC 6120, 4.9.3
    {message}{sent}{after}
    -> {hint}
own-error: ended; error, RFC 6120, 4.9
    The client itself ended the stream with an error ({condition}){why}.{got}
    -> It did not take what the server had sent: look there, and update the client's library.
not-xml: ended; error, RFC 6120, 4.9.3
    {message}{sent}{after}
    -> Find what the client sent last: escape what it puts into XML, and take characters out that
    XML cannot have; best let a library write the XML. If it had sent nothing yet, it may speak TLS
    or HTTP to this port.
too-big: ended; error, RFC 6120, 13.12
    {message}{sent}{after}
    -> The stanza may be larger than the server takes: let the client shorten its answers, or send a
    link (XEP-0363). Else it sent too much, or too fast.
too-high: ended; error, XEP-0198, 4
    {message}{sent}{after}
    -> Let the client count messages, presence and iqs only, from enabled on, and begin anew with
    each session that is not resumed.
headless: ended; error, RFC 6120, 6.4.6
    {message}{sent}{after}
    -> Let the client log in once, and then begin a new stream before it sends anything else.
no-answer: ended; error, RFC 6120, 4.2
    The server never answered the client's stream header{within}.
    -> Check host and port: behind them may be TLS from the first byte (port 5223), another protocol
    than XMPP, or a firewall.
no-reply: ended; error, RFC 6120, 6.4
    The server never answered the client's {what}{within}.
    -> The server was there, and fell silent: see in its log whether its check of passwords hangs.
    If it did answer, something between the two keeps the answer back.
unauthorized: ended; error, RFC 6120, 4.9.3.12
    {message}{sent}{after}
    -> For a component, check its secret: it has to be the same in the server's configuration. For a
    client, check user name and password, and let it send nothing before it has logged in.
taken-over: ended; error, RFC 6120, 4.9.3.3
    {message}{after}
    -> A second copy of the client, or another program, logs in with the same account and resource.
    Let the server choose the resource, or run one copy. Some servers say so too if the account was
    removed, or an admin ended its session.
name-taken: ended; error, XEP-0114, 3
    The server did not take the component, since its name is in use{why}.
    -> Another copy of the component is connected, or the server serves that name itself, as a host
    or by a module: end that, or give the component a name of its own.
cut: ended; error, RFC 6120, 4.6
    The connection broke, and neither side had ended the stream{after}.{got}
    -> See whether the program ended; otherwise look at the network between the client and the
    server. If the stream was silent before, let the client ping the server (XEP-0199).
dropped: ended; error, RFC 6120, 4.6
    The connection broke on the server's side, and neither side had ended the stream{after}.
    -> Most often the server was stopped or started anew, or a proxy or firewall before it cut the
    connection: let the client connect again, and ping (XEP-0199) if the stream was silent.
given-up-on: ended; error, RFC 6120, 8.2.3
    The stream ended without an error{after}.{got}{ignored}
    -> Let the client answer what the server asks, at least with an error. It may also have hung.
crashed: ended; error, RFC 6120, 4.6
    The connection broke, and neither side had ended the stream{after}. Just before, the program had
    failed: {failure}.
    -> See whether the program ended by that exception, and was started again: then mend that line.
    If it went on, look at the network between the client and the server.
period: ended; error, RFC 6120, 4.6.1
    {count} streams of this client ended after {seconds:.0f} s each.{ignored}
    -> A fixed period is a timeout of the server, a proxy or a NAT: let the client ping (XEP-0199).
no-tls: tls; error, RFC 6120, 5.4.1
    The server requires TLS{offer}, and the client did not begin it.
    -> Switch STARTTLS on in the {side}, or let the client use direct TLS (usually on port 5223).
unoffered-tls: tls; error, RFC 6120, 5.4.2.1
    The client began TLS, which the server does not offer{offer}.
    -> Switch TLS on in the server, or let the client use its port for direct TLS (usually 5223).
tls-refused: tls; error, RFC 6120, 5.4.2.2
    The server could not begin TLS.
    -> See the server's log: it may have no certificate for the domain, or cannot read the key.
failed-at-tls: tls; error, RFC 6120, 5.4.3.2
    TLS was begun, and the program failed before another stanza came: {failure}.
    -> If that is about the certificate: check its names, its dates, and what the client trusts.
left-at-tls: tls; error, RFC 6120, 5.4.3.2
    The client asked for TLS, and ended the stream before it was secure.
    -> Its own log may say why, most often that it does not trust the certificate, or has no TLS.
failed-at-login: login; error, RFC 6120, 6.4
    The client began its login, and the program failed before that was over: {failure}.
    -> See what it waited for, and how long; a slow server may need more time than it gives.
stops-at-tls: tls; note, RFC 6120, 5.4.3.2
    No stanza came after TLS was begun: the client may not trust the certificate.
    -> Check the server's certificate, its names and its dates, and what the client trusts.
stops-at-question: login; note, RFC 6120, 4.3
    The log ends before the {who} answered the {whose}'s {what} {where}.
    -> See in the client's other lines whether it still waits; the server may hang, or the network.
stops-at-offer: login; note, RFC 6120, 6.3.3
    No stanza came after the server had offered {offered}: the client may use none of these.
    -> See in the client's other lines why it did not log in.
stops-in-part: login; note, RFC 6120, 6
    The log ends with {what}, and does not show {lacks}.
    -> Run explain on more of the log.
refused-login: login; error, RFC 6120, 6.5
    {message}
    -> {hint}
bound: login; error, RFC 5802, 6
    {message} The login was bound to the TLS connection (channel binding).
    -> The password may be right: something between ends TLS (a proxy), or the two sides bind to
    different things. Try a mechanism without -PLUS.
downgrade: login; error, RFC 5802, 6
    {message} The client said that the server has no channel binding (flag y).
    -> The password may be right: the server has channel binding, and takes the flag for a
    downgrade. Update the client, or let it offer no channel binding (flag n).
secret: login; error, XEP-0114, 3
    The server refused the component's handshake{why}.
    -> Check the secret: it has to be the same in the server's configuration and in the component's.
    It is no password of an account.
could-bind: login; warning, RFC 5802, 6
    The client said by {mechanism} that the server has no channel binding (flag y), and the server
    offers {offered}. This server let it in; one that checks this refuses it as a downgrade.
    -> Update the client, or let it offer no channel binding (flag n).
flag: login; note, RFC 5802, 6
    The client said that it knows channel binding, and that the server has none (flag y).
    -> Nothing: the server offers none here. Behind a proxy that hides the offer, flag n is safer.
empty-response: login; error, RFC 6120, 6.4.2
    {message} What the client sent last by {mechanism} is empty in the log, or its user name is.
    -> Unless the logger hides it, the client sent no user name or no password: see whether both are
    set, and reach the library. Else check both.
jid-for-name: login; error, RFC 6120, 6.3.7
    {message} The user name that the client sent has an at sign.
    -> Most servers want the part before the at sign alone: give the library that for the user name,
    and the domain apart. If that fails too, check the password.
no-password: login; error, RFC 6120, 6.5
    {message} The client used {mechanism}, which most often checks no password.
    -> Give the client what that wants, such as a token, a ticket or a certificate, or let it use a
    mechanism that checks a password.
malformed-response: login; error, RFC 6120, 6.5.8
    {message} The server could not read what the client sent by {mechanism}.
    -> It is the library, not the password: update it, or let it use another mechanism.
old-mechanism: login; error, RFC 6331, 1
    {message} The client used {mechanism}, which many libraries have wrong.
    -> The mechanism may be what fails: let the client use another that the server offers
    ({others}). If that fails too, check the client's user name and password.
given-up: login; error, RFC 6120, 6.4
    The client gave up its login by {mechanism} {when}.
    -> If SCRAM came to its last step, the password is wrong, or the server is another than meant;
    the client's own log says more.
no-mechanism: login; error, RFC 6120, 6.3.3
    The client tried no login when the server had offered{offer} {offered}: it uses none of these,
    or it ended for a reason of its own.
    -> If its program went on, switch a mechanism on that both sides have. Many use PLAIN, or log
    in at all, under TLS only: then switch STARTTLS on, or use the port for direct TLS (5223).
no-login: login; error, RFC 6120, 6.4.1
    The server offers no way to log in{offer}: neither a mechanism nor STARTTLS.
    -> Switch mechanisms on in the server. It may take the connection for unencrypted, for example
    behind a proxy: then let it trust the proxy.
resumption: session; warning, XEP-0198, 5
    The server refused to resume the former session: what was on the way is lost, and the client is
    out of its rooms.
    -> Let the client join its rooms again after each session that was not resumed.
unable: session; warning, XEP-0198, 3
    The server refused stream management ({condition}){why}: the client had no resource yet.
    -> Let the client send enable only once the server has given it a resource (bind).
acknowledgement: session; warning, XEP-0198, 4
    The client asked for an acknowledgement, and the server gave none within 10 s.
    -> The connection may be dead: let the client close it and resume the session.
own-acknowledgement: session; warning, XEP-0198, 4
    The server asked for an acknowledgement, and the client gave none within 10 s.
    -> Let the client answer each r by a with the number of stanzas that it got; in some libraries a
    plugin for XEP-0198 does so. Otherwise the server may end the stream as dead.
bind-refused: session; warning, RFC 6120, 7.7.2.2
    The server refused the client a resource ({condition}){why}.
    -> With conflict another session has this resource: let the server choose one, or run one copy.
    Otherwise the server's log says more.
unmanaged: session; warning, XEP-0198, 3
    The client sent {element} of stream management, which it had not enabled.
    -> Let the client send enable, and wait for enabled, before it acknowledges or asks.
overcounted: session; warning, XEP-0198, 4
    The {who} acknowledged {handled}, and had got {count}.
    -> Let it count messages, presence and iqs only, from enabled on, and begin anew with each
    session that is not resumed.
uncompressed: session; warning, XEP-0138, 5
    The server refused to compress the stream{why}.
    -> Switch compression off in the client.
unbound: session; warning, RFC 6120, 7.1
    The server refused the request {what}, since the client had no resource yet.
    -> Let the client wait for its resource (the answer to bind) before it asks for anything else.
    If it asked for a new account, the server registers none that way (XEP-0077).
not-registered: login; error, XEP-0077, 3.1
    The server registered no account for the client ({condition}){why}.
    -> With conflict the name is taken. With not-acceptable or bad-request the form is not filled in
    as the server asks. With resource-constraint or policy-violation, wait before the next try. Else
    the server registers none that way: have its admin make the account.
priority: session; warning, RFC 6121, 8.5.2.1.1
    The client is available with the negative priority {priority}: the server delivers no message to
    it that is addressed to the account alone.
    -> Send presence without a priority, or with 0.
no-nickname: join; error, XEP-0045, 7.2.1
    The client asked to join the room {room} without a nickname.
    -> Send the presence to ROOM@SERVICE/NICKNAME.
refused-join: join; error, XEP-0045, 7.2
    {message}
    -> {hint}
captcha: join; error, XEP-0158, 3
    {message}
    -> {hint}
no-room: join; error, XEP-0045, 7.2.1
    The client asked to join {room}, which is no room: it is not of the form ROOM@SERVICE.
    -> Send the presence to ROOM@SERVICE/NICKNAME.
no-muc: join; error, XEP-0045, 7.2.1
    The client's presence to the room {room} had no muc element, so it did not ask to join, and got
    an error ({condition}){why}.
    -> Put <x xmlns='http://jabber.org/protocol/muc'/> into the presence.
unanswered-join: join; error, XEP-0045, 7.2.2
    The room {room} never answered the client's request to be let in, though others answered.
    -> Check the address of the room, and whether its service is there.
again: join; error, XEP-0045, 7.2
    The client asked {count} times in a row to be let into the room {room}, each time after the room
    had refused it or put it out.{more}
    -> Let the client give up, or wait longer each time, and say so to its operator.
renamed-in-vain: join; warning, XEP-0045, 7.2.2
    The client asked for the nickname {asked} in the room {room}, got {nickname}, and did not answer
    to it.
    -> Let the client take its nickname from its own presence (status 110).
renamed: join; note, XEP-0045, 7.2.2
    The client asked for the nickname {asked} in the room {room}, and got {nickname}.
    -> Let the client take its nickname from its own presence (status 110).
old-name: join; error, XEP-0045, 7.2.2
    The client is {nickname} in the room {room}, and still answers to the name {former}.
    -> Let the client take its nickname from its own presence (status 110).
never-joined: join; error, XEP-0045, 7.2
    The client spoke to the room {room}, and had never asked to join it.
    -> First send presence with the muc element to ROOM@SERVICE/NICKNAME, and wait for it.
not-rejoined: join; error, XEP-0045, 7.2
    The client was in the room {room} when its former stream ended, and did not ask to join it again
    {within} after it had logged in.
    -> Let the client join its rooms after each login, and not only after the first.
not-yet-rejoined: join; note, XEP-0045, 7.2
    The client logged in again, and the log ends before it asks to join the room {room} again.
    -> Let the client join its rooms after each login, and not only after the first.
stops-at-join: join; note, XEP-0045, 7.2.2
    The log has no answer of the room {room} to the client's request to be let in{though}.
    -> See in the client's other lines whether it still waits; run explain on more of the log.
created: join; note, XEP-0045, 10.1
    The room {room} was not there, and the client made it by joining: some servers let others in
    only once its owner has set it up.
    -> If the room should have been there, check its address. Else let the client send the room's
    form of configuration, which may be empty (XEP-0045, 10.1.2).
roomless: join; note, XEP-0045, 7.2
    The client logged in, and has asked to join no room.
    -> Unless it needs none: let it send presence with the muc element to ROOM@SERVICE/NICKNAME.
left: join; note, XEP-0045, 7.14
    The client itself left the room {room}.
    -> If it should have stayed, see where the program sends presence of type unavailable.
too-early: join; error, XEP-0045, 7.2.2
    The client spoke to the room {room} before its own presence had come back, and the room did not
    take it.
    -> Wait for the presence with status 110 before the first message.
unnoticed: join; error, XEP-0045, 7.2
    The client spoke to the room {room} as if it were inside, though the room had refused it
    {where}.
    -> Let the client look at presence of type error: it has not joined.
put-out: removed; warning, XEP-0045, 16.6
    {message}
    -> {hint}
went-on: removed; error, XEP-0045, 8.2
    The client went on speaking to the room {room}, which had put it out {where}.{more}
    -> Let the client look at presence of type unavailable with its own nickname. {hint}
bounced: refused; error, RFC 6120, 8.3
    {message}{sent}
    -> {hint}
bounced-groupchat: refused; error, XEP-0045, 7.4
    {message} It was of type groupchat, to one occupant.{sent}
    -> Send groupchat to the room's bare JID; to one occupant send type chat.
bounced-serviceless: refused; error, XEP-0045, 7.4
    {message} It was of type groupchat, to {other}, which is no room.{sent}
    -> Send groupchat to ROOM@SERVICE, the bare JID of the room.
bounced-person: refused; error, RFC 6121, 5.2.2
    {message} It was of type groupchat.{sent}
    -> If this is no room, send type chat to it. {hint}
presence-refused: refused; error, RFC 6120, 8.3
    The server refused the client's presence ({condition}){why}.
    -> Check the form of what it sends, as the server says; and let the client log in and wait for
    its resource before it sends presence.
presence-bounced: refused; warning, RFC 6120, 8.3
    {other} refused the client's presence ({condition}){why}.
    -> Check the presence's address and form. If it is a room's, the client is not in that room.
unheard: silent; note, XEP-0045, 7.4
    {messages} named the client, or {were}; `--command TEXT` makes that an error, once the log goes
    on for 10 s.
    -> Give --command the beginning of the messages that the client should answer.
only-sent: unanswered; note, RFC 6120, 8.2.3
    The log has nothing whole that the client received: what the server said is not known.
    -> Log both directions.
only-received: unanswered; note, RFC 6120, 8.2.3
    The log has only what the client received: what it sent is not known.
    -> Log both directions.
doubted: unanswered; note, RFC 6121, 5.2.3
    Somebody had said this entry in line {line}, word for word: it is not known whether the program
    printed these words, or the logger wrote an entry of its own.
    -> Let the logger write times to the millisecond, and the program print what others say in one
    line and in quotes.
bounced-signal: refused; note, RFC 6120, 8.3
    {message} It was only a signal, such as that the user is typing or has read something.{sent}
    -> Nothing: the other side is not online, or takes no signals.
other-error: refused; note, RFC 6120, 8.3
    {other} sent the error {condition}{why}, by {kind}. It refuses no message of the client.
    -> Nothing, unless the client needed what it asked for there.
refused-request: refused; note, RFC 6120, 8.3
    The client's request {what} was refused by {other} ({condition}){why}.
    -> Nothing, unless the client needs what it asked for: many ask what the other side can do.
untold: refused; note, RFC 6120, 8.3
    The client's request {what} was refused by {other}, and the log does not tell why.
    -> Let the logger write whole stanzas (in Prosody, by mod_stanza_debug).
excerpt: refused; note, RFC 6120, 8.3
    The log has little else: it is not known whether the client needed what was refused.
    -> See in the program, or in more of the log, what the client did next.
refused-outside: refused; note, XEP-0410, 3.2
    The client's request {what} was refused by {other} ({condition}){why}: a room answers so for its
    occupants if the client is not in it.
    -> If that is a room, let the client join it again.
unread: refused; error, XEP-0045, 7.4
    The client sent a message of type {type} to the room {room}, which passes on none of that type.
    -> Send what the whole room should read with type groupchat.
bounced-chat: refused; error, XEP-0045, 7.4
    {message} It was of type {type}, to the whole room.{sent}
    -> Send what the whole room should read with type groupchat.
asks: unanswered; warning, RFC 6120, 8.2.3
    The client never answered the request {what} of {other}.
    -> Answer each iq of type get or set, at least with the error service-unavailable. Libraries do
    so by themselves unless a handler raises.
asked: unanswered; warning, RFC 6120, 8.2.3
    The client's request {what} was never answered by {other}.
    -> Let the client give up after a while, and look whether the other side is there.
silent: silent; error, XEP-0045, 7.4
    The message {what} reached the client, and it sent no answer {within}. So it is the program,
    not the network.
    -> Look at the client's handler for messages: whether it is called, raises, waits, or passes
    over who asked.
astray: misplaced; error, XEP-0045, 7.4
    The message {what} in the room {room} got no answer there {within}: the client sent one
    {other} instead.
    -> Answer with type groupchat to the bare JID of the message's from.
raised: silent; error, XEP-0045, 7.4
    The message {what} reached the client, and its program failed on it: {failure}.
    -> Mend that line of the program, or have it catch the exception and say what went wrong.
failed: silent; note, RFC 6120, 8
    The program failed {when}: {failure}.
    -> See whether it should have handled what came just before.
died: silent; note, RFC 6120, 8
    No stanza came after that failure.
    -> See whether it ended the program.
complained: silent; note, RFC 6120, 8
    This line seems to tell of {what}, unless it quotes somebody{after}.
    -> See what it says.
exited: silent; error, RFC 6120, 4.4
    The program of the client ended by itself, {how}.{before}
    -> Look at its own output for the reason.
mentioned: silent; warning, XEP-0045, 7.4
    The message {what} names the client, and it sent no answer {within}.
    -> If it was meant for the client, run explain with --command and such messages' beginning.
private: misplaced; error, XEP-0045, 7.4
    The message {what} in the room {room} was answered in private.
    -> Answer with type groupchat to the room's bare JID.
elsewhere: misplaced; error, XEP-0045, 7.4
    The message {what} in the room {room} was answered in another room, {other}.
    -> Answer to the bare JID of the message's from.
encrypted: misplaced; error, XEP-0384, 1
    The message {what} in the room {room} was answered encrypted, which few in the room can read.
    -> Switch encryption off for rooms in which it was not used.
unreadable: misplaced; warning, XEP-0384, 1
    A message of {other}, encrypted with {with_}, reached the client, and nothing shows that the
    client can read it.
    -> Let people write to it in clear, or give the client a library for this encryption.
bodiless: misplaced; error, RFC 6121, 5.2.3
    The message {what} in the room {room} was answered without a body that people can see.
    -> Put the answer into the body.
error-to-room: misplaced; error, RFC 6120, 8.3.1
    The client sent an error to {whom} room {room}{why}{then}.
    -> Answer nothing of a room with an error; rooms put out who sends them. Some libraries do
    so if the program fails on a message: its log has the exception.
answers-itself: misplaced; error, XEP-0045, 7.4
    The client answers its own messages in the room {room}.{renamed}
    -> Pass over messages whose from is the client's own occupant JID.
answers-history: misplaced; error, XEP-0045, 7.2.13
    The client answers the history of the room {room}: {what} was said before it came.
    -> Pass over messages with a delay element, or join with <history maxstanzas='0'/>.
loop: misplaced; error, XEP-0045, 7.4
    The client and {other} answer each other in the room {room}, at once, for {count} messages and
    more.
    -> Pass over messages of other programs, or answer only to commands.
""")
}


def cause(
    name: str, place: LogPlace, key: str = "", *, about: str = "", **words: object
) -> Finding:
    """Return the finding of a cause in the table.

    `words` fill in the names in braces; a stranger's words in them must be `quoted`, except for
    `why`. The room is the address that it is `about`, unless they say another. Findings with the
    same cause and `key`, about the same address, are shown once.
    """
    return finding_of(_CAUSES[name], place, words, key, about)


def finding_of(
    row: Row, place: LogPlace, words: Mapping[str, object], key: str = "", about: str = ""
) -> Finding:
    """Return the finding of a row, which may be of another table, as `cause` does."""
    said, condition = str(words.get("why") or ""), _known(str(words.get("condition", "")))
    own = {"condition": condition, "why": _in_parentheses(said)}
    words = {"room": quoted(about), **words, **own}
    about, name = lower_bare(about)[:MAX_TEXT], row.situations[0]
    severity, _, clause = row.outcome.partition(", ")
    message, hint = row.message.format(**words), row.hint.format(**words)
    (rule,) = row.conditions
    key = key_of_finding(name, key, about)
    # A thousand streams with the same error then share one text in memory.
    return Finding(rule, Severity(severity), message, intern(hint), clause, place, key, about)


def _in_parentheses(text: str | None) -> str:
    return f" ({quoted(text)})" if text else ""


def _known(condition: str) -> str:
    """Return a condition in words: an error may have none, or be cut off before it."""
    return "no known condition" if condition == "undefined-condition" else condition


def meaning(
    situation: str,
    condition: str,
    client: Entity,
    text: str | None = "",
    *,
    room: str = "",
    nickname: str = "",
    by: str = "",
) -> Mapping[str, str]:
    """Return what the error means and what to change, as the words `message` and `hint`.

    `condition` is empty for a situation that has one meaning. `text` is what the server or the room
    said, `by` who did it. `room` is the address of a room, or of another entity to which a message
    went.
    """
    row = first_row(MEANINGS, situation, condition or None)
    account = quoted(lower_bare(client.account)) if client.account else "the client"
    account += " (of this stream alone, by the mechanism ANONYMOUS)" * client.is_anonymous
    unknown = "of the client" if condition.startswith("host-") else "the server"
    words = {
        "room": quoted(room) if room else "the server",
        "room_service": quoted(domain_of(room)),
        "nickname": quoted(nickname) if nickname else "of the client",
        "account": account,
        "domain": quoted(client.domain) if client.domain else unknown,
        "service": "the server",
        "condition": _known(condition),
        "by": f" by {quoted(by)}" if by else "",
        "why": _in_parentheses(text),
    }
    message = row.message.format_map({**CLIENT_WORDS, **words})
    if text and "{why}" not in row.message:
        message += f" It says: {quoted(text)}."
    hint = row.hint.format_map({**CLIENT_WORDS, **words})
    return {"message": message[:1].upper() + message[1:], "hint": hint}
