"""What people paste: damaged by a web page or by hand, cut off, or one stanza alone."""

import pytest

from bridge.capture.finding import Finding
from bridge.capture.formats import MAX_NAMED, named_in
from bridge.capture.stanza import FAILURE as FAILURE_TAG
from bridge.capture.stanza import FOOTER, HOLE, MAX_EXCERPT
from bridge.capture.verdict import NO_ERROR, UNKNOWN, verdict
from bridge.wire.names import HEADER as HEADER_TAG
from bridge.wire.names import STREAM_ERROR as STREAM_ERROR_TAG
from tests.capture.logs import (
    ACCOUNT,
    ASK,
    BIND,
    HEADER,
    JOIN,
    LOGIN,
    MECHANISMS,
    ROOM,
    SASL,
    SEAT,
    STANZAS,
    STREAM_ERRORS,
    STREAMS,
    USER,
    bounce,
    captured,
    error,
    examined,
    found,
    out,
    refusal,
    said,
    says,
    stream_error,
    timed,
)

TEXTS = "urn:ietf:params:xml:ns:xmpp-stanzas"
REFUSED = ["  <not-authorized/>", "</failure>"]
BOUNCE = bounce("not-acceptable").removeprefix("<<< ")
REFUSAL = refusal("registration-required").removeprefix("<<< ")
OTHER = f"<presence from='{{}}' to='{ACCOUNT}' type='error'>{error('gone', ' no more ')}</presence>"
STATED = "<stream:error><{0}/><text>{1}</text></stream:error>"
PING = "<<< <iq type='get' id='p' from='ann@x/y' to='bot@x/y'><ping xmlns='urn:xmpp:ping'/></iq>"
TRACE = [
    "Traceback (most recent call last):",
    '  File "bot.py", line 31, in weather',
    "KeyError: 'city'",
]
THROWN = ["StreamError: conflict - replaced", "  at f (a.js:1:2)", "  at g (a.js:3:4)"]
COMPRESS = "<{} xmlns='http://jabber.org/protocol/compress'/>"
REGISTER = "<iq type='set' id='r'><query xmlns='jabber:iq:register'/></iq>"
DESTROYED = out().replace("<item", "<destroy jid='new@x.org'><reason>late</reason></destroy><item")
GET = "<iq from='ann@x/y' to='c.x' id='1' type='get'><query xmlns='jabber:iq:register'/></iq>"
GROUPCHAT = ">>> <message to='ann@x.example' type='groupchat' id='m1'><body>hi</body></message>"
TERMINATE = "<body xmlns='http://jabber.org/protocol/httpbind' type='terminal' condition='{}'/>"

STARTTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
OFFER = "<<< <stream:features>{}</stream:features>"
CLOSE = ">>> </stream:stream>"
MUC = "http://jabber.org/protocol/muc"
ROUND = str.maketrans("<>", "()")
PINGED = (
    f"<iq from='example.org' to='{ACCOUNT}' id='1' type='get'><ping xmlns='urn:xmpp:ping'/></iq>"
)
COPY = (
    f"<message from='{ACCOUNT[:-2]}' to='{ACCOUNT}' type='error'><received "
    "xmlns='urn:xmpp:carbons:2'><forwarded xmlns='urn:xmpp:forward:0'>{}</message></forwarded>"
    "</received></message>"
)
FIRST_TAGS = [
    f"Received[c2s]: <presence to='{ROOM}/bot'>",
    "Received[c2s]: <iq id='a' type='get'>",
    *["Sending[c2s]: <iq id='a' type='result'>"] * 3,
    f"Sending[c2s]: {REFUSAL.partition('>')[0]}>",
]
KICK = out(307).replace("<status code='110'/>", "")

TALKATIVE = bounce("not-acceptable").replace(
    error("not-acceptable"), error("not-acceptable", "Only those inside may speak, here and now")
)


def wrapped(head: str, stanza: str) -> list[str]:
    """The lines of a stanza, cut within tags, each behind the logger's own text."""
    return [f"{head.format(at % 10)}{stanza[at : at + 30]}" for at in range(0, len(stanza), 30)]


WRAPPED = [TALKATIVE[at : at + 65] for at in range(0, len(TALKATIVE), 65)]

TERM = (
    '{xmlel,<<"stream:error">>,[],[{xmlel,<<"conflict">>,[{<<"xmlns">>,'
    f'<<"{STREAM_ERRORS}">>}}],[]}},{{xmlel,<<"text">>,[],[{{xmlcdata,<<"so & so">>}}]}}]}}'
)

RECORD = (
    'got: #xmlel{{name = "message",attrs = [{}],children = [#xmlel{{name = "error",attrs = [],'
    'children = [{{xmlel,<<"not-acceptable">>,[],[]}}]}}]}}'
)

FAILURE = "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
SUCCESS = "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
OLD = "<<< <iq type='error' id='o'><query xmlns='jabber:iq:auth'/>{}</iq>"
AUTH = f">>> <auth xmlns='{SASL}' mechanism='PLAIN'>AGEAYg==</auth>"
REFUSED_LOGIN = f"<<< {FAILURE}<not-authorized/></failure>"
BOUND = "<<< <iq type='result' id='b'>{}</iq>".format(
    "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>bot@example.org/r</jid></bind>"
)

NAMED: dict[str, tuple[list[str], str]] = {
    "a failed login without namespaces, beside a stanza": (
        [PING, "<<< <failure><not-authorized/></failure>"],
        "refused the login",
    ),
    "a failed login without namespaces, in several lines": (
        ["rx  <failure>", "rx    <aborted></aborted>", "rx  </failure>"],
        "gave up its login",
    ),
    "the first tag of a failed login, before a stanza": (
        [f"<<< {FAILURE}", PING],
        "refused the login",
    ),
    "the first tag of a failed login, where the logger prints first tags": (
        [f"c2s5 debug {way}" for way in [*FIRST_TAGS[:-1], f"Sending[c2s]: {FAILURE}"]],
        "refused the login",
    ),
    "the first tag of a stream error": ([PING, "<<< <stream:error>"], "ended the connection"),
    "an old login that lacks something": (
        [OLD.format(error("not-acceptable"))],
        "a resource that is free",
    ),
    "an old login whose resource is taken": (
        [OLD.format(error("conflict"))],
        "a resource that is free",
    ),
    "an old login that the server does not take": (
        [OLD.format(error("service-unavailable"))],
        "log in by SASL",
    ),
    "TLS that the server cannot begin": (
        [f">>> {STARTTLS}", "<<< <failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>", CLOSE],
        "could not begin TLS",
    ),
    "a header without an answer, and a later login": (
        timed(f">>> {HEADER}", "pause 60", f">>> {HEADER}", AUTH, REFUSED_LOGIN),
        "refused the login",
    ),
    "a refused message alone": ([BOUNCE], "is not in it"),
    "a room that forbids, and is not seen to let the client in": (
        [bounce("forbidden")],
        "if the client has not joined the room",
    ),
    "an error cut off within its condition": (
        [BOUNCE[: BOUNCE.index("not-acceptable") + 25]],
        "is not in it",
    ),
    "an error cut off in the name of its condition": (
        [REFUSAL[: REFUSAL.index("ion-required")]],
        "members only",
    ),
    "an end of the stream cut in the name of its condition": (
        ["<<< <stream:error><not-w"],
        "ended the connection (not-well-formed)",
    ),
    "an end of the stream cut in its name": (
        [PING, "<<< <stream:er"],
        "ended the connection (no known condition)",
    ),
    "a code alone, as servers wrote it before there were conditions": (
        [f"<<< <message from='{ROOM}' to='{ACCOUNT}' type='error'><error code='406'/></message>"],
        "is not in it",
    ),
    "a stream error with a name of the server's own": (
        ["<<< <stream:error><ack id='1'/></stream:error>"],
        'ended the connection (no known condition). It says: "ack"',
    ),
    "an error cut off in its own tag, behind the code": (
        [f"<<< <message from='{ROOM}' to='{ACCOUNT}' type='error'><body/><error code='406' ty"],
        "is not in it",
    ),
    "a refused request over HTTP that is cut in its first tag": (
        ["RECV: <body xmlns='http://jabber.org/protocol/httpbind'><iq type='error' i"],
        'request "iq" was refused by "\u2026"',
    ),
    "a value with straight quotes before it and curly ones behind": (
        ["<<< " + BOUNCE.replace("'m1'", "'m1\u2019")],
        "is not in it",
    ),
    "a protocol like XMPP, whose client tells features too": (
        [
            ">>  <stream:features><presence/></stream:features>",
            "<<  <stream:error><ack/></stream:error>",
        ],
        "The server ended the connection (no known condition)",
    ),
    "what a component itself refuses": (
        [
            f"<<< {GET}",
            ">>> <iq from='c.x' to='ann@x/y' id='1' type='error'>" + error("gone") + "</iq>",
        ],
        '"c.x" sent the error gone, by iq',
    ),
    "another nickname that a room refuses": (
        [
            *JOIN,
            f">>> <presence to='{ROOM}/Bo'/>",
            refusal("not-allowed").replace("/bot'", "/Bo'"),
        ],
        'did not take the presence of the client as "Bo" (not-allowed). In a room the nickname',
    ),
    "a client that names its process": (
        ["`Send:#:<0.1.0>: <presence to='r@x/bot'/>", "Recv:#:<0.1.0>: " + OTHER.format("r@x")],
        "To get into it, join with the muc element",
    ),
    "terms of Elixir beside XML": (
        [
            f'bot [OUTGOING] "{HEADER}"',
            'bot [INCOMING] {:xmlstreamstart, "stream:stream", [{"from", "example.org"}]}',
            "bot [INCOMING] " + TERM.replace("<<", "").replace(">>", "").replace("{xml", "{:xml"),
        ],
        'It says: "so & so"',
    ),
    "terms of Erlang": ([f"c2s5 debug sends {TERM}"], 'It says: "so & so"'),
    "records of Erlang": (
        [
            RECORD.format(f'{{"type","error"}},{{"from","{ROOM}"}}'),
        ],
        "is not in it",
    ),
    "names with their namespaces in braces": (
        [
            "IN [bot thread:0001]",
            f"<{{jabber:client}}:message {{jabber:client}}:from='{ROOM}' {{a}}:type='error'>",
            f"  <{{a}}:error><{{b}}:not-acceptable {{c}}:xmlns='{STANZAS}'/></{{a}}:error>",
            "</{jabber:client}:message>",
        ],
        "is not in it",
    ),
    "a request to the client's own server, and its error": (
        [
            "<iq from='bot@x.org' type='set' id='p'><a xmlns='b:c'/></iq>",
            f"<iq to='bot@x.org' type='error' id='p'>{error('gone')}</iq>",
        ],
        'request "{b:c}a" was refused by "its server" (gone)',
    ),
    "a stream error whose brackets somebody left out": (
        [
            f'stream:error xmlns:stream="{STREAMS}"',
            f'connection-timeout xmlns="{STREAM_ERRORS}"',
            f'text xmlns="{STREAM_ERRORS}">idle',
        ],
        "had heard nothing from the client",
    ),
    "the end of a session over HTTP without brackets": (
        [TERMINATE.format("item-not-found")[1:-2].replace("terminal", "terminate")],
        "knows no such session over HTTP",
    ),
    "a name with a hyphen at the end of a line": (
        BOUNCE.replace("<not-acceptable ", "<not-acceptable\n").split("\n"),
        "is not in it",
    ),
    "a refused nickname that is not known": (
        [f"<presence from='{ROOM}' type='error'><x xmlns='{MUC}'/>{error('conflict')}</presence>"],
        "The nickname of the client is taken",
    ),
    "behind words": ([f"bot.js: [xmpp error]{BOUNCE}"], "is not in it"),
    "presence that another address than a room refused": (
        [OTHER.format("ann@x.example")],
        '"ann@x.example" refused the client\'s presence (gone) ("no more")',
    ),
    "presence that another address than a room refused, and little else": (
        [OTHER.format("ann@x.example")],
        "Whether there was an error is not known",
    ),
    "a refused resource, and little else": (
        [f"<<< <iq type='error' id='b'><bind xmlns='{BIND}'/>{error('conflict')}</iq>"],
        "Whether there was an error is not known",
    ),
    "presence of a component that the server refused, to the address it was from": (
        [f"<presence to='ann@x.example' type='error'>{error('bad-request')}</presence>"],
        "The server refused the client's presence (bad-request)",
    ),
    "a room without a service": (
        [f"<<< {OTHER.format('lab/bot').replace('gone', 'remote-server-not-found')}"],
        'knows no server "lab"',
    ),
    "a stream error without namespaces": (
        ["<<< " + STATED.format("conflict", "replaced")],
        "Another session took over",
    ),
    "a stream error of words alone": (
        ["<<< <stream:error>Bad header</stream:error>"],
        'It says: "Bad header"',
    ),
    "a stream that was not authorized": (
        [f"<<< <stream:error><not-authorized xmlns='{STREAM_ERRORS}'/></stream:error>"],
        "For a component, check its secret",
    ),
    "the end of a session over HTTP, with a type of somebody's own": (
        [TERMINATE.format("policy-violation")],
        "breaking one of its rules",
    ),
    "the end of a session over HTTP, with a condition of the gateway's own": (
        [TERMINATE.format("blocked-by-firewall")],
        'It says: "blocked-by-firewall"',
    ),
    "a first tag alone, without a mark of direction": (
        ["[Debug] onPresence", REFUSAL.partition("<error")[0], "Log.ts:102"],
        f'The room "{ROOM}" refused the client',
    ),
    "groupchat to a person": (
        [GROUPCHAT, bounce("service-unavailable", "ann@x.example")],
        "send type chat to it",
    ),
    "a session over HTTP that is over": (
        [TERMINATE.replace("terminal", "terminate").format("item-not-found")],
        "knows no such session",
    ),
    "Markdown around a name": (
        [f"<<< <failure xmlns='{SASL}'><**not-authorized**/></failure>"],
        "refused the login",
    ),
    "Markdown before an attribute": ([BOUNCE.replace(" to=", " `to=")], "is not in it"),
    "a placeholder for a name": ([f"<<< {REFUSAL.replace('room@', '<ROOM>@')}"], "members only"),
    "a placeholder in small letters": (
        [f"<<< {REFUSAL.replace('room@', '<my room>@')}'"],
        "members only",
    ),
    "what less shows for a hidden character": (
        [f"<<< {REFUSAL.replace('/bot', '/b<200d>t')}"],
        "members only",
    ),
    "a login refused, and nothing before": (
        [f"<<< <failure xmlns='{SASL}'><malformed-request/></failure>"],
        "could not read what the client sent by its mechanism",
    ),
    "a placeholder in a text": (
        [f"<<< {BOUNCE.replace('</error>', '</error><body>to <NICK></body>')}"],
        "is not in it",
    ),
    "behind the declaration of XML": (
        [
            "<?xml version='1.0'?>",
            *BOUNCE.replace("><", ">\n<").replace(" to=", " `to=").split("\n"),
        ],
        "is not in it",
    ),
    "a refusal without its end": ([f"<<< {REFUSAL[: REFUSAL.index('</error>')]}"], "members only"),
    "a kick without its end": ([out(307)[: out(307).index("</x>")], "more"], "kicked"),
    "parentheses for brackets": (
        [f"ERROR:bot: {REFUSAL}".replace(" from", " xmlns='jabber:client' from").translate(ROUND)],
        "members only",
    ),
    "a stream error whose first tag a page ate": (
        ["RECV: stream:errorslow</stream:error>", "RECV: </stream:stream>"],
        'It says: "slow"',
    ),
    "a stream error that is wrapped within its end": (
        ["RECV: <stream:error><conflict/><", "/stream:error>"],
        "Another session",
    ),
    "a stream error whose brackets a page ate": (
        ["RECV: stream:error<conflict/>/stream:error/stream:stream"],
        "Another session",
    ),
    "a stream error whose brackets a page ate, in several lines": (
        ["RECV:", "stream:error", "<conflict/>", "/stream:error"],
        "Another session",
    ),
    "another nickname than asked for, in two stanzas alone": (
        [
            f"<presence to='{ROOM}/Bo' from='bot@x/r'><x xmlns='{MUC}'/></presence>",
            f"<presence from='{ROOM}/Al' to='bot@x'><x xmlns='{USER}'>{SEAT}</x></presence>",
        ],
        'asked for the nickname "Bo"',
    ),
    "no new stream after the login": (
        [
            f">>> <auth xmlns='{SASL}' mechanism='PLAIN'>AGEAYg==</auth>",
            f"<<< <success xmlns='{SASL}'/>",
            "<<< " + STATED.format("not-well-formed", "x"),
        ],
        "no header of the client since its login",
    ),
    "an offer without a way to log in": (
        [f">>> {HEADER}", f"<<< {HEADER}", OFFER.format("<register xmlns='x'/>"), CLOSE],
        "no way to log in (in line 3)",
    ),
    "TLS asked for, and given up": (
        [
            *[f">>> {HEADER}", f"<<< {HEADER}", OFFER.format(STARTTLS + MECHANISMS)],
            *[f">>> {STARTTLS}", ">>> <presence type='unavailable'/>", CLOSE],
        ],
        "bot.log:6: The client asked for TLS, and ended the stream before it was secure",
    ),
    "a login for another account": (
        [f"<<< <failure xmlns='{SASL}'><invalid-authzid/></failure>"],
        "refused the login of the client (invalid-authzid). The account for which it asked",
    ),
    "an offer, and nothing after it": (
        [f">>> {HEADER}", f"<<< {HEADER}", OFFER.format(MECHANISMS)],
        'not known. bot.log:3: No stanza came after the server had offered "SCRAM-SHA-1"',
    ),
    "an offer of TLS, and nothing after it": (
        [f">>> {HEADER}", f"<<< {HEADER}", OFFER.format(STARTTLS)],
        'No stanza came after the server had offered "STARTTLS"',
    ),
    "a refused request, and an end without a reason": (
        [
            PING,
            f"<<< <iq type='error' id='r'>{error('not-authorized')}</iq>",
            "<<< </stream:stream>",
        ],
        "A warning: bot.log:2: The server refused the request",
    ),
    "an answer that has an error, though its type is another": (
        ["<<< <iq type='result'><query xmlns='jabber:iq:auth'/><error code='401'>No</error></iq>"],
        'refused the login of the client ("No")',
    ),
    "a refused message to an address that the log does not name": (
        [f"<<< <message to='{ACCOUNT}' id='1' type='error'>{error('gone')}</message>"],
        "Nobody is there at the server",
    ),
    "the end of a stream alone, behind its length": (
        ["(10:00:01) jabber: Recv (ssl)(16): </stream:stream>"],
        "The server closed the stream",
    ),
    "an offer without STARTTLS": (
        [f">>> {HEADER}", f"<<< {HEADER}", OFFER.format(MECHANISMS), CLOSE],
        '"SCRAM-SHA-1" without STARTTLS',
    ),
    "a kick of the client's name, without its join": (
        [said("Ann", "bye").replace("<body", f"<x xmlns='{USER}'/><body"), KICK],
        "kicked",
    ),
    "the program failed on a request": (
        [PING, *TRACE, "<<< <presence from='a@b' to='c@d'/>"],
        'failed after the iq in line 1: "KeyError" ("\'city\'") in "bot.py", line 31',
    ),
    "a whole stream in one entry": (
        [HEADER.replace(" to=", " from=") + STATED.format("conflict", "replaced") + CLOSE[4:]],
        "Another session took over",
    ),
    "an error that came to another session of the account": (
        ["<<< " + COPY.format(f"<message type='error' from='a@b.example'>{error('gone')}")],
        'Nobody is there at "a@b.example"',
    ),
    "a refused request in an exception, of another client": (
        [f"IqError: <iq from='a@x.example/y' to='{ACCOUNT}' type='error'>{error('gone')}</iq>"],
        'was refused by "a@x.example/y" (gone)',
    ),
    "a logger that prints first tags, of which an error's says enough": (
        [f"10:00:01 c2s5\tdebug\t{way}" for way in FIRST_TAGS],
        f'The room "{ROOM}" refused the client',
    ),
    "a failed login cut in its first tag": (
        [
            f">>> <auth xmlns='{SASL}' mechanism='PLAIN'>AGEAYg==</auth>",
            f"<<< <failure xmlns='{SASL[:23]}",
        ],
        "refused the login of the client",
    ),
    "an end of the stream cut in its first tag": (
        ["<<< <stream:error xmlns:stream='http://etherx"],
        "The server ended the connection",
    ),
    "elements of a web page before what it logs": (
        [f"<div class='in'><b>10:00:00</b> {BOUNCE}</div>"],
        "is not in it",
    ),
    "a program that failed before what was pasted": (
        [*TRACE, CLOSE],
        'The program failed before any stanza: "KeyError"',
    ),
    "a refused message cut in its first tag": (
        [f"<<< {BOUNCE[: BOUNCE.index('type=')]}type='error' id='m"],
        "was refused (no known condition)",
    ),
    "a refused request that the error repeats": (
        [f"<iq to='{ACCOUNT}' type='error'><query xmlns='jabber:iq:roster'/>{error('gone')}</iq>"],
        '"{jabber:iq:roster}query" was refused by "its server" (gone)',
    ),
    "a refused request in an exception": (
        [f"IqError: <iq from='x.example' to='{ACCOUNT}' type='error'>{error('gone')}</iq>"],
        'was refused by "x.example" (gone)',
    ),
    "a refused request that the log's end cuts in its first tag, after whole stanzas": (
        [PINGED, f"<iq from='x.example' to='{ACCOUNT}' type='error' id='7'>"],
        'was refused by "x.example"',
    ),
    "an error within what it repeats": (
        [f"<iq from='x.example' to='{ACCOUNT}' type='error'><a xmlns='b'>{error('gone')}</a></iq>"],
        'was refused by "x.example" (gone)',
    ),
    "a server's entry whose words name both sides": (
        [f'what=s2s pid=<0.1.0> from_jid=a@b to_jid=c@d packet="{BOUNCE}" origin=<0.1.0>'],
        "is not in it",
    ),
    "a text that is wrapped": (
        [f"INFO {'x' * 60}", f"INFO {'y' * 60}", *WRAPPED],
        '"Only those inside may speak, here and now"',
    ),
    "a stream error by its other name": (
        [f"<<< <error xmlns='{STREAM_ERRORS}'><conflict/><text>new</text></error>"],
        "Another session took over",
    ),
    "a stream error by its other name, without its end": (
        [f"<<< <error xmlns='{STREAM_ERRORS}'><conflict/>", PING],
        "Another session took over",
    ),
    "a word for who sends before the word for sending": (
        [f"Server send:{STATED.format('conflict', 'new')}"],
        "Another session took over",
    ),
    "a refusal that is cut off within a tag, before other entries of the logger": (
        [f"12:00:01 RECV: {REFUSAL[:-12]}$", "12:00:02 left <the room> again"],
        "is for members only",
    ),
    "a stream error to another server, in the log of a server": (
        [
            f"s2sin1 debug received: {HEADER.replace('client', 'server', 1)[:-1]} from='x.org'>",
            f"s2sin1 debug sending: {STATED.format('invalid-xml', 'en_US')}",
        ],
        '"example.org" ended the connection (invalid-xml)',
    ),
    "a stream error of the client's own": (
        [PING, ">>> " + STATED.format("bad-format", "odd")],
        'itself ended the stream with an error (bad-format) ("odd"). It had just got the iq',
    ),
    "a stream error before the client sends features, as protocols like XMPP's have it": (
        ["rx: " + STATED.format("conflict", "new"), "tx: <stream:features></stream:features>"],
        "Another session took over",
    ),
    "a comment of XML before each stanza, which names no direction": (
        ["<!-- In So 23 Okt 2016 12:14:57 CEST -->", bounce("gone", "ann@x.example/y")[4:]],
        'Nobody is there at "ann@x.example"',
    ),
    "an element of the logger's own around each stanza": (
        [f"got: <box>{BOUNCE}</box>"],
        "is not in it",
    ),
    "a word that means a direction, since the stanzas behind it agree": (
        [f"response: {PINGED}", "response: </stream:stream>"],
        "The server closed the stream",
    ),
    "an error that only the server can have sent, behind a word of its own": (
        [f"Send XML on stream = {BOUNCE}"],
        "is not in it",
    ),
    "a binary without its end": (
        [f"received {each}" for each in ('<<"<presence/>">>', f'<<"{BOUNCE}')],
        "is not in it",
    ),
    "a binary that another entry cuts off": (
        [f"received {each}" for each in (f'<<"{BOUNCE}', '<<"<presence/>">>')],
        "is not in it",
    ),
    "bytes without their end": ([f'received b"{BOUNCE}'], "is not in it"),
    "an escaped text without its end": (
        ['RECV: "<presence/>' + BOUNCE[: BOUNCE.index("</error>")].replace("'", '\\"')],
        "is not in it",
    ),
    "a stream error in an exception alone": (
        [f">>> {HEADER}", f"<<< {HEADER}", *THROWN],
        "Another session took over",
    ),
    "a refused login in an exception alone": (
        [f">>> {HEADER}", *[each.replace("Stream", "SASL") for each in THROWN]],
        "refused the login",
    ),
    "a stream error after an end without a reason": (
        ["<<< </stream:stream>", ">>> </stream:stream>", stream_error("connection-timeout")],
        "it had heard nothing from the client",
    ),
    "a refused registration": (
        [f">>> {REGISTER}", f"<<< <iq type='error' id='r'>{error('conflict', 'taken')}</iq>"],
        'registered no account for the client (conflict) ("taken")',
    ),
    "a refused registration that the error repeats": (
        ["<<< <iq type='error'><query xmlns='jabber:iq:register'/><error/></iq>"],
        "registered no account for the client (no known condition)",
    ),
    "a refused registration, by a server that the log does not name": (
        ["<<< <iq type='error' from='x.example'><query xmlns='jabber:iq:register'/><error/></iq>"],
        "registered no account for the client (no known condition)",
    ),
    "a resource that is taken, in one stanza that says no more": (
        [f"<iq type='error' id='b'>{error('conflict')}</iq>"],
        "refused the client a resource (conflict)",
    ),
    "a value without its last quote": (
        ["<<< " + REFUSAL.replace("' to=", " to=")],
        "members only",
    ),
    "a value in the quotes of word processors, cut off": (
        ["<<< " + REFUSAL.partition("<error")[0].replace("'error'", "“error”") + "<error a"],
        "refused the client (no known condition)",
    ),
    "an error within what the stanza repeats": (
        [f"<<< <iq from='a@x' type='error'><query xmlns='a:b'>{error('gone')}</query></iq>"],
        'was refused by "a@x" (gone)',
    ),
    "the name of a component that is in use": (
        [
            "<<< <stream:stream xmlns='jabber:component:accept' from='irc.x'/>",
            stream_error("conflict"),
        ],
        "did not take the component",
    ),
    "an address that is none, with its nickname": (
        [says("hi", f"{ROOM}/a b", "chat"), bounce("jid-malformed", f"{ROOM}/a b")],
        f'"{ROOM}/a b" is no address',
    ),
    "a room that has moved": (
        [refusal("gone").replace("/></error>", ">xmpp:new@muc.example.org</gone></error>")],
        'was destroyed, or has moved ("xmpp:new@muc.example.org")',
    ),
    "a room that is destroyed, with another in its place": (
        [*JOIN, DESTROYED],
        'was destroyed ("late: new@x.org")',
    ),
    "a copied error cut off before its address": (
        ["<<< " + COPY.partition("{}")[0] + "<message type='error' id"],
        'The message to "…" was refused',
    ),
    "an error cut off before its address": (
        ["<<< <message type='error' id='m1' to='bot@exa"],
        'The message to "…" was refused',
    ),
    "an error to a room, without the join": (
        [f">>> <message to='{ROOM}' type='error'><error><text>oh</text></error></message>"],
        f'sent an error to the whole room "{ROOM}" ("oh").',
    ),
    "a password that the server does not change": (
        [
            f">>> {REGISTER}",
            f"<<< <iq type='error' id='r' from='x.org' to='{ACCOUNT}'>{error('forbidden')}</iq>",
        ],
        'was refused by "x.org" (forbidden)',
    ),
    "a message that a rule of the server refuses, with its words": (
        [
            bounce("policy-violation").replace(
                "</error>", f"<text xmlns='{TEXTS}'>Encrypt!</text></error>"
            )
        ],
        'was refused ("Encrypt!"): it breaks a rule',
    ),
    "namespaces in the lines after the names": (
        [f">>> {HEADER}", f"<<< {HEADER}", "<<< <failure", f"  xmlns='{SASL}'>", *REFUSED],
        "refused the login",
    ),
    "the end of a stream, where the log has only what came": (
        [PING, "<<< </stream:stream>"],
        "the client may have before",
    ),
    "a kick that an answer by mail quotes": (
        [
            f"> {line}"
            for line in [
                "this is what I get:",
                "",
                f"<presence type='unavailable' to='{ACCOUNT}'",
                f"from='{ROOM}/bot'>",
                f"  <x xmlns='{USER}'><status code='307'/><status code='110'/></x>",
                "</presence>",
            ]
        ],
        "was kicked from the room",
    ),
    "the end of a stream alone": (["RECV: </stream:stream>"], UNKNOWN),
    "an offer of nothing, without a header": (["RECV: <stream:features/>"], UNKNOWN),
    "an offer of nothing behind a login without namespaces": (
        ["tx <auth>a</auth>", "rx <stream:features></stream:features>"],
        UNKNOWN,
    ),
    "an offer of nothing": (
        [f">>> {HEADER}", f"<<< {HEADER}", "<<< <stream:features/>", CLOSE],
        "offers no way to log in",
    ),
    "the end of a stream in an element of the library's own": (
        [
            f"in response: <lib>{PING[4:].replace('ann@x/y', 'x')}</lib>",
            "in response: <lib></stream:stream></stream></lib>",
        ],
        "the client may have before",
    ),
    "a refused session over HTTP, cut off in a server's log": (
        ["SENT(null): " + TERMINATE[:-2].format("item-not-found") + " mes... [44 more]"],
        "knows no such session",
    ),
    "a login that the log has only in part": (
        [f">>> {HEADER}", f"<<< {HEADER}", OFFER.format(MECHANISMS)[:40]],
        "not known. bot.log:3: The log ends with a stanza that it has only in part, and",
    ),
    "a login whose headers and end the log has only in part": (
        [
            f">>> {STARTTLS}",
            f"<<< {STARTTLS}".replace("starttls", "proceed"),
            OFFER.format(MECHANISMS)[:60],
        ],
        "with a stanza that it has only in part, and",
    ),
    "an excerpt that ends in the middle of a stanza": (
        [PING, said("Ann", "hi"), said("Ann", "what is")[:-20]],
        "not known. bot.log:3: The log ends with a stanza that it has only in part, and does not",
    ),
    "a join that nobody answers": (
        [PING, ASK],
        f'not known. bot.log:2: The log has no answer of the room "{ROOM}"',
    ),
    "a join that only the room's messages answer": (
        [PING, ASK, said("Ann", "hi")],
        "request to be let in, though the room's messages came",
    ),
    "an entry of level error that nothing follows": (
        [PING, "12:00 xmpp: ERR: Unrecoverable TLS error", "12:00 xmpp: DBG: Closing socket."],
        "not known. bot.log:2: This line seems to tell of an error, unless it quotes somebody; no",
    ),
    "an entry of level error whose word somebody had said": (
        [PING, said("Ann", "ERROR"), "12:00 ERROR bot: the handler failed"],
        "not known. bot.log:3: This line seems to tell of an error, unless it quotes somebody;",
    ),
    "a nickname that looks like a level": (
        [PING, said("[error]", "hi"), "12:00 INFO [error] said hi"],
        "not known. bot.log:3: This line seems to tell of an error, unless it quotes somebody;",
    ),
    "an entry of level error with a stanza in it": (
        [PING, f"12:00 [error] Unexpected info: {PING[4:]}"],
        "not known. bot.log:2: This line seems to tell of an error, unless it quotes somebody; no",
    ),
    "a warning in an excerpt": (
        [PING, "12:00 xmpp: WARN: we are out", PING],
        "not known. bot.log:2: This line seems to tell of an error, unless it quotes somebody.",
    ),
    "a warning of Prosody, and one of an Erlang server with a stanza in it": (
        ["c2s5 warn\tnobody is there", f"12:00 [warning] who is that: {PING[4:]}", PING],
        "not known. bot.log:1: This line seems to tell of an error, unless it quotes somebody.",
    ),
    "an end that the client could not send": (
        [PING, "12:00 DEBUG down", "12:00 INFO Failed to send b'</stream:stream>'"],
        "bot.log:3: This line seems to tell of an error, unless it quotes somebody; no stanza",
    ),
    "a message that the client could not write": (
        [PING, f"level=debug could not write {says('hi')[4:]}: broken pipe"],
        "bot.log:2: This line seems to tell of an error, unless it quotes somebody; no stanza",
    ),
    "a connection that ended in an entry of the library's own": (
        [*LOGIN, *JOIN, "12:00 INFO connection_lost: (None,)", "12:00 DEBUG bye"],
        "This line seems to tell of the end of the connection, unless it quotes somebody; no",
    ),
    "a failure that nothing follows": ([PING, *TRACE], "No stanza came after that failure."),
    "a failure whose words are a stanza": (
        [PING, *TRACE[:-1], f"slixmpp.exceptions.IqTimeout: {PING[4:]}"],
        "No stanza came after that failure.",
    ),
    "a resource that the log's end leaves open": (
        [f">>> {HEADER}", f"<<< {HEADER}", LOGIN[-2]],
        "before the server answered the client's iq in line 3",
    ),
    "compression that the server refuses": (
        [f"<<< {COMPRESS.format('failure')[:-2]}><setup-failed/></failure>"],
        'refused to compress the stream ("setup-failed")',
    ),
    "the logger's own text before each line of a wrapped tag": (
        wrapped("12:00:0{}.000 I/app (31): <-- ", BOUNCE),
        "is not in it",
    ),
    "the logger's own text before each line of a wrapped tag, without its word": (
        [line.replace("<m", "<== <m") for line in wrapped("I/app: ", BOUNCE)],
        "is not in it",
    ),
    "a tag that is cut off before an entry behind the same text": (
        [f"{PING[:40]}", stream_error("conflict")],
        "Another session took over",
    ),
    "one stanza that was sent": (
        [">>> <presence/>"],
        "Whether there was an error is not known. bot.log:1: The log has nothing whole that the",
    ),
    "answers whose ends the logger cut off": (
        [ASK, f"<<< {BOUNCE[:60]}...", says("hello"), f"<<< {BOUNCE[:60]}..."],
        "Whether there was an error is not known. bot.log:1: The log has nothing whole that the",
    ),
    "a refused message cut in its body": (
        [f"<<< {BOUNCE[: BOUNCE.index('<error')]}<body>one", "two"],
        "was refused (no known condition)",
    ),
}
"""A log, and what its verdict says."""


@pytest.mark.parametrize("case", NAMED)
def test_what_was_pasted_is_named(case: str) -> None:
    log, words = NAMED[case]
    lines = [line for entry in log for line in entry.split("\n")]
    assert words in verdict(_every(lines)), verdict(_every(lines))


ODD = f"<<< <presence from='{ROOM}/`*a*`' to='{ACCOUNT}'><x xmlns='{USER}'>{{}}</x></presence>"
SILENT = {
    "failures of tests": [
        "<testcase><failure>",
        "expected <a/>",
        "</failure>",
        "<failure><x-y/></failure>",
        PING,
    ],
    "a login that was refused before the client got its resource": [
        AUTH,
        REFUSED_LOGIN,
        AUTH,
        BOUND,
    ],
    "a login that was refused before one that was not, where the logger prints first tags": [
        f"c2s5 debug {way}"
        for way in [*FIRST_TAGS[:-1], f"Sending[c2s]: {FAILURE}", f"Sending[c2s]: {SUCCESS}"]
    ],
    "Markdown in the nickname of a whole stanza": [ODD.format("<item nick='*'/>")],
    "a message cut off": [f"<<< <message from='{ROOM}/Ann' to='{ACCOUNT}'><body>error", "x"],
    "a new nickname, cut off": [
        out(303).replace("<item", "<item nick='b'")[: out(303).index("</x>")],
        "x",
    ],
    "a header that is queued and sent": [
        *[f"conn {word}: {HEADER}" for word in ("QUEUED", "SENT")],
        f"conn RECV: {HEADER}",
    ],
    "a header that a parser ended": [f"<<< <?xml version='1.0'?>{HEADER}</stream:stream>"],
    "a header in words": ["c2s1 debug Client sent opening <stream:stream> to x.example", PING],
    "a stream error in words": [f"INFO bot: saw stream:error again {ROOM}", PING],
    "an old login": [
        *[f">>> {HEADER}", f"<<< {HEADER}", OFFER.format("<auth xmlns='x'/>")],
        *[">>> <iq type='set' id='a'><query xmlns='jabber:iq:auth'/></iq>", "<<< <iq id='a'/>"],
        CLOSE,
    ],
    "a kick of another, without the join": [
        said("Ann", "bye"),
        KICK.replace("/bot'", "/Ben'"),
    ],
    "an answer without addresses and id, which either side may have sent": [
        f"<iq type='error'><a xmlns='b'/>{error('gone')}</iq>"
    ],
    "words in parentheses": ["bot: (message xmlns='jabber:client' (error"],
    "a word that ends another line": [
        "INFO bot message sent",
        f"INFO {PING.removeprefix('<<< ')}",
        f"RECV: {PING.removeprefix('<<< ')}",
    ],
    "header after header, without times": [f">>> {HEADER}"] * 2,
    "a header with the id of the former stream, after compression": [
        f"<<< {HEADER}",
        OFFER.format("<compression xmlns='http://jabber.org/features/compress'/>"),
        f">>> {COMPRESS.format('compress')}",
        f"<<< {COMPRESS.format('compressed')}",
        ">>> " + HEADER.replace(" to=", " id='7' from='bot@example.org' to="),
        "<<< " + HEADER.replace(" to=", " id='7' from="),
    ],
    "the stream to another server, in the log of a server": [
        f"s2sout12 debug {way}{HEADER.replace('jabber:client', 'jabber:server')}"
        for way in ("sending: ", "received: ")
    ]
    + ["s2sout12 debug received: <stream:features/>", "s2sout12 debug sending: </stream:stream>"],
    "an error to the client's own account": [
        f"<<< <presence to='{ACCOUNT}' from='ann@x.example/y'/>",
        f">>> <message to='{ACCOUNT[:-2]}' type='error'/>",
    ],
    "a component's error to a person": [
        f"<<< <message from='{ACCOUNT}' to='c.x.example'/>",
        f">>> <message from='c.x.example' to='{ACCOUNT[:-2]}' type='error'/>",
    ],
    "a password that the server does not change": [
        f">>> {REGISTER}",
        f"<<< <iq type='error' id='r' from='x.org' to='{ACCOUNT}'>{error('forbidden')}</iq>",
    ],
    "what the server sent until a client that had logged in by SASL2 left": [
        *["<<< <stream:features/>", ">>> <presence/>", CLOSE, "<<< </stream:stream>"],
    ],
    "the beginnings of two streams, from two clients": [
        *[f">>> {HEADER}", f"<<< {HEADER}", OFFER.format(MECHANISMS), "And with the other client:"],
        *[f">>> {HEADER}", f"<<< {HEADER}", OFFER.format(MECHANISMS)],
    ],
    "a login that goes on behind STARTTLS, which the excerpt does not have": timed(
        OFFER.format(MECHANISMS), f">>> {HEADER}", f"<<< {HEADER}", ">>> <presence/>"
    ),
    "a login whose success the log does not have": timed(
        *[f">>> {HEADER}", f"<<< {HEADER}", OFFER.format(MECHANISMS)],
        *[f">>> <auth xmlns='{SASL}' mechanism='PLAIN'>AGEAYg==</auth>", f">>> {HEADER}"],
    ),
    "an error to a room, in a line of a server's log that does not name the client": [
        f"Received <message from='{ACCOUNT}' to='{ROOM}' type='error'>{error('gone')}</message>"
    ],
    "an offer of a resource, without the login": [
        f"<<< {HEADER}",
        OFFER.format("<x/><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>x"),
        CLOSE,
    ],
    "a header that was answered at the second try": timed(
        *[f">>> {HEADER}", "pause 15", f">>> {HEADER}", f"<<< {HEADER}<stream:features><mechani"]
    ),
    "the presence of another who left": [
        f"<<< <presence from='{ROOM}/Ann' to='{ACCOUNT}' type='unavailable'><x xmlns='{USER}'>",
        "x",
    ],
}
"""What only looks like damage or like a refusal."""


@pytest.mark.parametrize("case", SILENT)
def test_what_is_damaged_or_cut_accuses_nobody(case: str) -> None:
    assert [each for each in _every(SILENT[case]) if each.severity != "note"] == []


@pytest.mark.parametrize("login", [[], LOGIN], ids=["without a login", "after a login"])
@pytest.mark.parametrize("stanzas", [1, MAX_EXCERPT, MAX_EXCERPT + 1])
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_refused_request_is_no_all_clear_where_the_log_shows_little_else_of_it(
    login: list[str], stanzas: int, is_whole: bool
) -> None:
    tag = "<<< <iq type='error' id='q' from='x.example' to='bot@example.org/r'>"
    refused = f"{tag}{error('forbidden')}</iq>" if is_whole else tag
    log = [*login, *[f"<<< <presence from='x@y/{each}'/>" for each in range(stanzas - 1)], refused]
    words = verdict(_every(log))
    assert '"x.example"' in words
    assert words.startswith(UNKNOWN) == (not is_whole or (not login and stanzas <= MAX_EXCERPT)), (
        words
    )


INVITING = f"<x xmlns='{USER}'><invite to='cyd@x.example'/></x>"
OUTSIDE = "is not in it"
REFUSING = {"forbidden": "", "not-allowed": "", "item-not-found": "", "not-acceptable": OUTSIDE}


def test_features_behind_a_login_that_the_log_has_twice_are_no_end_of_it() -> None:
    offer = "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"
    spread = offer.replace("><", ">\n<").split("\n")
    log = [f"STREAM IN: {offer}", f"RECEIVING: {spread[0]}", *spread[1:]]
    sent, came = (each[4:] for each in LOGIN[10:12])
    assert verdict(_every([*log, f"SENDING: {sent}", f"RECEIVING: {came}"])).startswith(NO_ERROR)


@pytest.mark.parametrize("condition", REFUSING)
@pytest.mark.parametrize(
    ("before", "is_repeated"),
    [([], True), ([], False), (LOGIN, False), ([*LOGIN, *JOIN], False), ([*LOGIN, *JOIN], True)],
)
def test_a_refused_invitation_is_no_message_of_the_wrong_type_nor_one_without_voice(
    condition: str, before: list[str], is_repeated: bool
) -> None:
    asked = f">>> <message to='{ROOM}' id='m1'>{INVITING}</message>"
    refused = bounce(condition).replace("<error", f"{INVITING}<error", is_repeated)
    log = [*before, *([] if is_repeated else [asked]), refused]
    (finding,) = [each for each in found(*log) if each.severity == "error"]
    assert (REFUSING[condition] or "did not pass the invitation on") in finding.message
    assert "groupchat" not in finding.hint
    forged = bounce(condition, f"{ROOM}/M").replace("<error", f"{INVITING}<error")
    assert not [each for each in found(*LOGIN, *JOIN, forged) if each.severity == "error"]


@pytest.mark.parametrize("before", [[], LOGIN[:2], LOGIN], ids=["alone", "after headers", "inside"])
@pytest.mark.parametrize("name", ["auth", "response", "challenge", "success", "handshake"])
def test_data_of_a_login_that_is_cut_off_is_a_part_of_the_log(name: str, before: list[str]) -> None:
    way = "<<<" if name in {"challenge", "success"} else ">>>"
    cut = f"{way} <{name} xmlns='{SASL}' mechanism='PLAIN'>AHVz"
    *_, last = captured(*before, cut)
    assert (last.element.tag, last.sent) == (HOLE, way == ">>>")


@pytest.mark.parametrize("word", ["WARNING", "ERROR", "Failed to send"])
def test_a_warning_says_nothing_after_a_login_and_never_in_a_strangers_words(word: str) -> None:
    for log in (
        [*LOGIN, *JOIN, f"12:00 {word} it is slow", PING],
        [*JOIN, *said("Ann", f"look:\n12:00 {word} all is lost").split("\n")],
    ):
        assert verdict(_every(log)).startswith(NO_ERROR)


@pytest.mark.parametrize("printed", ["Ann: failed to send", "Sending: Ann failed to send"])
@pytest.mark.parametrize(("entry", "rule"), [(BOUNCE, "refused"), (out(307)[4:], "removed")])
def test_nobody_hides_an_entry_by_words_on_the_line_before_it(
    printed: str, entry: str, rule: str
) -> None:
    log = [said("Ann", "failed to send")[4:], printed, entry]
    assert rule in {each.name for each in _every(log)}


def test_what_a_logger_could_not_send_was_not_sent_but_its_reason_counts() -> None:
    unsent = ("Failed to send b'</stream:stream>'", f"level=debug could not write {says('x')[4:]}")
    assert [each.element.tag for each in captured(*unsent)] == [FAILURE_TAG]
    assert "refused" in {each.name for each in _every([f"Failed to send: {BOUNCE}"])}


def test_an_error_on_a_stream_to_another_server_is_not_taken_for_the_clients() -> None:
    for error_ in (STATED.format("gone", "x"), "remote-connection-failed"):
        words = f"info Disconnecting a.example->b.example[s2sout], <stream:error> is: {error_}"
        assert [*captured(f"s2sout5 {words}", f"mod_s2s {words}")] == []


def test_a_log_has_one_direction_only_if_none_of_its_streams_has_another() -> None:
    both = [f">>> {HEADER}", f">>> {HEADER}", f"<<< {HEADER}"]
    torn = [*both[:2], f"<<< {HEADER[:-1]}"]
    answers = [both[2], f">>> {HEADER[:-1]}"]
    for log, side in ((both, []), (both[:2], ["only-sent"]), (torn, ["only-sent"]), (answers, [])):
        assert [each.cause for each in _every(log) if each.cause.startswith("only-")] == side


def test_the_answer_of_the_clients_own_account_is_known_without_its_login() -> None:
    ask = ">>> <iq type='get' id='1'><query xmlns='jabber:iq:roster'/></iq>"
    answer = f"<<< <iq type='result' id='1' from='bot@example.org' to='{ACCOUNT}'/>"
    pings = [f"<<< <iq type='result' id='p{number}' to='{ACCOUNT}'/>" for number in range(8)]
    assert _every([ask, answer, *pings]) == []


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("a\n  SASLError: not-authorized - no\nb", 'names not-authorized: "SASLError: not-auth'),
        ("StreamError: conflict\n  at f (a.js:1:2)", 'conflict: "StreamError: conflict"'),
        ("<error type=auth><conflict xmlns='a'/>", "names conflict"),
        (f"{'x' * 500} item-not-found {'y' * 500}", "x item-not-found"),
        ("Closing session: Replaced by new connection (conflict)", "names conflict"),
        ("IN: ms'>sent too soon</text></stream:error>", "stream:error: \"IN: ms'>sent too soon"),
        ("protocol.Conflict: (u'conflict', '')", "names conflict"),
        ("ERROR:yowsup:Stream Error type: conflict", "names conflict"),
        ("[ERROR]: Stream error conflict", "names conflict"),
        ("Error joining a@b, reason: conflict\nmore", "names conflict"),
        ("* error\n  * conflict xmlns='urn:a'", 'names conflict: "* conflict'),
        ("see not-authorized-users.txt, a conflict, forbidden", ""),
        ("asks for a password.\nJoinError: not-authorized", 'names not-authorized: "JoinError'),
        ("10:00 WARN slow\n10:01 ERROR bot: No way to log in.", 'has "10:01 ERROR bot: No way'),
        ("10:00 [warning] SCRAM-SHA-256-PLUS: no binding", 'has "10:00 [warning] SCRAM-SHA-256-PL'),
        ('{"level":"fatal","msg":"expected features"}', 'has "{\\"level'),
        ("a SEVERE one is this:\nx.ConnectError: no route to host", 'has "x.ConnectError: no'),
        ("Feb 19 10:44:25 m\terror\tno module mod_a", 'has "Feb 19 10:44:25 m'),
        ("it says\n\nauth failure: no binding", 'has "auth failure: no binding'),
        ("E(c2s:64) : Failed authentication for a@b", 'has "E(c2s:64)'),
        ("an error\n\n`warn No component, bouncing", 'has "`warn No component'),
        ('<iq xmlns="w:p" to="example.org" type="get">', ""),
        ("[{stanza_error,auth,403,forbidden,", "names forbidden"),
        ("10:00:01 s2s info we can't reach a.example", 'has "10:00:01 s2s info we'),
        ("I can't tell why it failed. an ERROR:", ""),
        ("10:00:01 DEBUG dns: name not found", 'has "10:00:01 DEBUG dns: name not found'),
        ("10:00:01 INFO Incorrect order of packets", 'has "10:00:01 INFO Incorrect order'),
        ("log: Warning: MUC: join of a@b failed", 'has "log: Warning: MUC'),
        ("c2s1 info stream for <a@b> closed: not served", 'has "c2s1 info stream'),
        ("```\nerror: WebSocket closed unexpectedly", 'has "error: WebSocket'),
    ],
)
def test_a_log_without_stanzas_is_quoted_where_it_names_a_condition(log: str, words: str) -> None:
    assert words in named_in(log)
    assert bool(words) or named_in(log) == ""
    assert len(named_in(log)) < MAX_NAMED + 50


@pytest.mark.parametrize(
    "words",
    [
        "<iq><password>{}</password><conflict/>",
        "<password>{} <conflict/>",
        "password={}, not-authorized",
        "login of bot: Secret '{}' not-authorized",
        "<auth>{}</auth> not-authorized",
        "not-authorized AG1pY2{}hhZWwA",
    ],
)
def test_a_line_that_names_a_condition_is_quoted_without_secrets(words: str) -> None:
    said = named_in(words.format("hunter2"))
    assert "names" in said
    assert "hunter2" not in said


def test_a_word_for_the_direction_may_stand_before_a_block_of_code() -> None:
    ask = "<r xmlns='urn:xmpp:sm:3'/>"
    log = ["1. Send stanza:", "```xml", ask, "```", "2. Received stanza:", "```xml", ask, "```"]
    assert [each.sent for each in captured(*log)] == [True, False]


@pytest.mark.parametrize("block", [[], ["", "```xml"]])
def test_a_sentence_of_who_pastes_gives_no_direction(block: list[str]) -> None:
    told = "If the client sends a signal to nobody, the server will return this."
    bounced = f"<message type='error'>{error('service-unavailable')}</message>"
    assert [each.sent for each in captured(told, *block, bounced)] == [False]
    assert [each.sent for each in captured("The client sent:", *block, bounced)] == [True]


def test_a_word_for_the_direction_may_stand_on_a_line_of_the_same_logger() -> None:
    ask = "<r xmlns='urn:xmpp:sm:3'/>"
    for prefix in ("[log] ", "2026-01-01 10:00:0{} DEBUG bot: "):
        log = [prefix.format(number) + line for number, line in enumerate(["-- Sending: --", ask])]
        log += [each.replace("Sending", "Receiving") for each in log]
        assert [each.sent for each in captured(*log)] == [True, False]


@pytest.mark.parametrize("torn", [OTHER.format(ROOM)[:-50], PING[:-12], "<message>"])
def test_a_torn_stanza_hides_nothing_where_the_word_is_on_the_line_before(torn: str) -> None:
    entries = [PING, torn, REFUSAL, STATED.format("conflict", "replaced")]
    texts = [f"--- RECEIVED ---\n  {each.removeprefix('<<< ')}" for each in entries]
    read = [*captured(*"\n".join(texts).replace("><", ">\n  <").split("\n"))]
    assert [each.element.get("type") for each in read[-2:]] == ["error", None]
    assert read[-1].element.tag == STREAM_ERROR_TAG


def test_a_first_tag_says_nothing_where_the_whole_stanza_is_logged() -> None:
    wholes = [f"c2s5 debug SEND: {each}" for each in (PING.removeprefix("<<< "), REFUSAL)]
    tags = [f"c2s5 debug {way}" for way in FIRST_TAGS]
    (refused,) = found(wholes[0], *tags, wholes[1])
    assert "members only" in refused.message


def test_the_declaration_of_xml_is_no_part_of_a_stanza() -> None:
    log = [">>> <?xml version='1.0' ?>", f">>> {HEADER}", f"<<< {HEADER}"]
    assert [each.element.tag for each in captured(*log)] == [HEADER_TAG] * 2


def test_an_error_without_a_sender_is_the_clients_if_it_goes_to_no_resource() -> None:
    log = [f"<iq to='{to}' type='error'>{error('gone')}</iq>" for to in ("x.example", ACCOUNT)]
    assert [each.sent for each in captured(*log)] == [True, False]


def test_a_message_without_addresses_does_not_tell_who_sent_it() -> None:
    assert [each.element.tag for each in captured("<message><body>x</body></message>")] == [HOLE]


def test_a_place_of_the_loggers_own_may_have_begun_with_a_declaration() -> None:
    place, end = "c2s5 debug Sending[c2s]: ", "</stream:stream>"
    log = [f"{place}<?xml version='1.0'?>", *["c2s5 debug SEND: <presence/>"] * 12, place + end]
    assert [each.element.tag for each in captured(*log)] == ["presence"] * 12 + [FOOTER]


def test_what_a_logger_repeats_in_each_line_is_no_part_of_a_stanza() -> None:
    lines = STATED.format("reset", "late").replace("><", ">\n<").split("\n")
    (stanza,) = captured(*[f"rx {line}" for line in lines])
    assert "".join(stanza.element.itertext()).split() == ["late"]
    lines = stream_error("conflict").removeprefix("<<< ").replace("><", ">\n<").split("\n")
    (finding,) = found(*[f"RECV: {line}" for line in (PING.removeprefix("<<< "), *lines)])
    assert "It says" not in finding.message


def test_an_entry_of_ejabberd_may_say_the_direction_and_the_data_in_further_lines() -> None:
    log = list[str]()
    ended = STATED.format("conflict", "").replace(">", ">\n  ")
    for word, xml in (("Received", PINGED.replace("><", ">\n  <")), ("Send", ended)):
        head = "2023-10-05 11:18:00+02:00 [notice] (tls|<0.1.0>)"
        log += f'{head}\n  {word} XML on stream =\n  <<"{xml}">>'.split("\n")
    assert [(each.sent, each.session) for each in captured(*log)] == [
        (True, "<0.1.0>"),
        (False, "<0.1.0>"),
    ]


def _every(log: list[str]) -> list[Finding]:
    return [finding for stream in examined(*log) for finding in stream.findings()]
