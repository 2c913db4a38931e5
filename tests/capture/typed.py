"""Formats of logs that were typed from memory, without a look at the reader.

A session is what passed, as its client saw it. A format writes each part of
it as one library does.
"""

import html
import json
import re
from collections.abc import Callable

Part = tuple[bool, str]
"""Whether the client sent it, and its XML."""

_OPEN = (
    (
        True,
        (
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'"
            " to='example.org' version='1.0'>"
        ),
    ),
    (
        False,
        (
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'"
            " id='a81f' from='example.org' version='1.0'>"
        ),
    ),
)
_OFFER = (
    False,
    (
        "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
        "<mechanism>SCRAM-SHA-1</mechanism><mechanism>PLAIN</mechanism></mechanisms>"
        "</stream:features>"
    ),
)
_AUTH = (
    True,
    "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGJvdABwdw==</auth>",
)
_LOGIN: tuple[Part, ...] = (
    *_OPEN,
    _OFFER,
    _AUTH,
    (False, "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"),
    *_OPEN,
    (False, "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"),
    (
        True,
        (
            "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
            "<resource>r1</resource></bind></iq>"
        ),
    ),
    (
        False,
        (
            "<iq type='result' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
            "<jid>bot@example.org/r1</jid></bind></iq>"
        ),
    ),
    (True, "<presence/>"),
)
_JOIN = (
    True,
    (
        "<presence to='den@rooms.example.org/bot' id='p1'>"
        "<x xmlns='http://jabber.org/protocol/muc'/></presence>"
    ),
)
_IN: tuple[Part, ...] = (
    _JOIN,
    (
        False,
        (
            "<presence from='den@rooms.example.org/ann' to='bot@example.org/r1'>"
            "<x xmlns='http://jabber.org/protocol/muc#user'>"
            "<item affiliation='none' role='participant'/></x></presence>"
        ),
    ),
    (
        False,
        (
            "<presence from='den@rooms.example.org/bot' to='bot@example.org/r1' id='p1'>"
            "<x xmlns='http://jabber.org/protocol/muc#user'>"
            "<item affiliation='none' role='participant'/><status code='110'/></x></presence>"
        ),
    ),
    (
        False,
        (
            "<message from='den@rooms.example.org' to='bot@example.org/r1' type='groupchat'>"
            "<subject>welcome</subject></message>"
        ),
    ),
)


def _refused(condition: str, kind: str = "auth") -> Part:
    return (
        False,
        (
            "<presence from='den@rooms.example.org/bot' to='bot@example.org/r1' type='error'>"
            f"<error type='{kind}'><{condition} xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
            "</error></presence>"
        ),
    )


SESSIONS: dict[str, tuple[Part, ...]] = {
    "login": (
        *_OPEN,
        _OFFER,
        _AUTH,
        (False, "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>"),
    ),
    "join": (*_LOGIN, _JOIN, _refused("conflict", "cancel")),
    "removed": (
        *_LOGIN,
        *_IN,
        (
            False,
            (
                "<presence from='den@rooms.example.org/bot' to='bot@example.org/r1'"
                " type='unavailable'><x xmlns='http://jabber.org/protocol/muc#user'>"
                "<item affiliation='none' role='none'><reason>spam</reason></item>"
                "<status code='307'/><status code='110'/></x></presence>"
            ),
        ),
    ),
    "ended": (
        *_LOGIN,
        *_IN,
        (
            False,
            (
                "<stream:error><system-shutdown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
                "</stream:error>"
            ),
        ),
    ),
    "": (
        *_LOGIN,
        *_IN,
        (
            False,
            (
                "<message from='den@rooms.example.org/ann' to='bot@example.org/r1'"
                " type='groupchat' id='m1'><body>hi all</body></message>"
            ),
        ),
        (
            True,
            (
                "<message to='den@rooms.example.org' type='groupchat' id='g1'>"
                "<body>hello</body></message>"
            ),
        ),
        (
            False,
            (
                "<message from='den@rooms.example.org/bot' to='bot@example.org/r1'"
                " type='groupchat' id='g1'><body>hello</body></message>"
            ),
        ),
    ),
}
"""Sessions by the trouble in them; "" has none."""

MIDDLES = {
    f"{trouble} in the middle": parts[len(_LOGIN) :]
    for trouble, parts in SESSIONS.items()
    if trouble != "login"
}
"""The same without the login, as people paste them."""


def _clock(number: int) -> str:
    return f"10:{number // 60 % 60:02}:{number % 60:02}"


def _double(xml: str) -> str:
    return xml.replace("'", '"')


def _strophe(sent: bool, xml: str, n: int) -> str:
    return f"strophe.js:{3100 + 40 * sent} {'>>>' if sent else '<<<'} {xml}"


def _logcat(sent: bool, xml: str, n: int) -> str:
    thread = "XmlWriter" if sent else "XmlReader"
    word = "SEND" if sent else "RECV"
    return f"05-12 {_clock(n)}.{n % 1000:03}  4211  42{30 + sent} D {thread}: {word} {xml}"


def _blather(sent: bool, xml: str, n: int) -> str:
    head = f"D, [2012-03-04T{_clock(n)}.{n:06} #4123] DEBUG -- : "
    if sent:
        return f"{head}SENDING: (/usr/lib/ruby/gems/blather/stream.rb:{n % 90}:in `send')\n{xml}"
    return f"{head}RECEIVING:\n{xml}\n"


def _purple(sent: bool, xml: str, n: int) -> str:
    if sent:
        return f"({_clock(n)}) jabber: Sending (ssl) (bot@example.org/r1): {xml}"
    return f"({_clock(n)}) jabber: Recv (ssl)({len(xml)}): {xml}"


def _node(sent: bool, xml: str, n: int) -> str:
    word = "send" if sent else "receive"
    return f"  node-xmpp-core:connection {word}: {xml} +{n % 7}ms"


def _mongoose(sent: bool, xml: str, n: int) -> str:
    what = "c2s_received_element" if sent else "c2s_sending_element"
    text = xml.replace('"', '\\"')
    return (
        f"when=2021-05-05T{_clock(n)}.{n:06}+00:00 level=debug what={what} pid=<0.{1200}.0>"
        f' at=mongoose_c2s:handle/3:{n % 40} xml="{text}"'
    )


def _xml_stream(sent: bool, xml: str, n: int) -> str:
    if sent:
        return f"XML::Stream: Send: ({xml})"
    return f"XML::Stream: Read: buff({xml})"


def _xmpp4r(sent: bool, xml: str, n: int) -> str:
    return f"{_clock(n)} D {'SENDING' if sent else 'RECEIVED'}:\n{xml}"


def _flutter(sent: bool, xml: str, n: int) -> str:
    return f"I/flutter (12{n % 10}45): {'---> ' if sent else '<--- '}{xml}"


def _openfire(sent: bool, xml: str, n: int) -> str:
    return (
        f"2019.05.03 {_clock(n)} DEBUG [socket_c2s-thread-{n % 3}]: org.jivesoftware.util."
        f"PrintingFilter - C2S - {'RECV' if sent else 'SENT'} (77): {xml}"
    )


def _logfmt(sent: bool, xml: str, n: int) -> str:
    return (
        f"ts=2021-05-05T{_clock(n)}Z level=debug msg={'outgoing' if sent else 'incoming'}"
        f" stanza={json.dumps(xml)}"
    )


def _miranda(sent: bool, xml: str, n: int) -> str:
    way = "sent" if sent else "received"
    return f"[{_clock(n)} JABBER] (SSL) Data {way}\n{xml}"


FIRST: dict[str, Callable[[bool, str, int], str]] = {
    "Converse console": _strophe,
    "logcat": _logcat,
    "Blather": _blather,
    "libpurple": _purple,
    "node-xmpp": _node,
    "MongooseIM": _mongoose,
    "XML::Stream": _xml_stream,
    "xmpp4r": _xmpp4r,
    "Flutter": _flutter,
    "Openfire": _openfire,
    "logfmt": _logfmt,
    "Miranda": _miranda,
}
"""The first dozen, typed before the reader was written."""


def written(form: Callable[[bool, str, int], str], parts: tuple[Part, ...]) -> str:
    """The session `parts` as `form` writes it."""
    return "".join(f"{form(sent, xml, n)}\n" for n, (sent, xml) in enumerate(parts))


def _psi(sent: bool, xml: str, n: int) -> str:
    return f"<!-- {'Outgoing' if sent else 'Incoming'} XML {_clock(n)} -->\n{xml}"


def _gajim(sent: bool, xml: str, n: int) -> str:
    mark = "::::: DATA SENT" if sent else "::::: DATA RECEIVED"
    return f"{_clock(n)} (D) nbxmpp.client (bot@example.org) {mark}\n{xml}\n"


def _smack(sent: bool, xml: str, n: int) -> str:
    spread = xml.replace("><", ">\n  <") if not xml.startswith("<stream:stream") else xml
    return f"{_clock(n)} {'SENT' if sent else 'RECV'} (0): \n{spread}\n"


def _ags(sent: bool, xml: str, n: int) -> str:
    return f"[{_clock(n)}] {'OnWriteXml' if sent else 'OnReadXml'}: {xml}"


def _qxmpp(sent: bool, xml: str, n: int) -> str:
    return f'{_clock(n)}.{n:03} QXmppLogger::{"SENT" if sent else "RECEIVED"} "{xml}"'


def _swift(sent: bool, xml: str, n: int) -> str:
    bar = "=" * 14
    return f"{'->' if sent else '<-'} {_clock(n)} {bar}\n{xml}"


def _tigase(sent: bool, xml: str, n: int) -> str:
    way = "Read" if sent else "Writing"
    return (
        f"2021-05-05 {_clock(n)}.{n:03} [pool-12-thread-{n % 4}] XMPPIOService.x() FINEST: "
        f"Socket: nick=bot, {way} packet: from=c2s@host/1, DATA={xml}, SIZE={len(xml)}"
    )


def _rust(sent: bool, xml: str, n: int) -> str:
    text = xml.replace('"', '\\"')
    return (
        f'[2021-05-05T{_clock(n)}Z TRACE tokio_xmpp::xmlstream] {">>" if sent else "<<"} "{text}"'
    )


def _monal(sent: bool, xml: str, n: int) -> str:
    return (
        f"2021-05-05 {_clock(n)}:{n:03} [{'SND' if sent else 'RCV'}] Monal[412:{n}] "
        f"{'sending' if sent else 'got'}: {xml}"
    )


def _go(sent: bool, xml: str, n: int) -> str:
    return f"{'SEND' if sent else 'RECV'}:\n{xml}\n"


def _pino(sent: bool, xml: str, n: int) -> str:
    return json.dumps(
        {"level": 20, "time": 1620208800000 + n, "dir": "tx" if sent else "rx", "data": xml}
    )


def _swedish(sent: bool, xml: str, n: int) -> str:
    return f"{_clock(n)} bot[{n % 3}] {'skickar' if sent else 'tog emot'}: {xml}"


SECOND: dict[str, Callable[[bool, str, int], str]] = {
    "Psi": _psi,
    "Gajim": _gajim,
    "Smack's pretty printer": _smack,
    "agsXMPP": _ags,
    "QXmpp": _qxmpp,
    "Swift": _swift,
    "Tigase": _tigase,
    "tokio-xmpp": _rust,
    "Monal": _monal,
    "go-xmpp": _go,
    "pino": _pino,
    "Swedish": _swedish,
}
"""The second dozen, typed once the reader was written; all were read at the first try."""


def _above(sent: bool, xml: str, n: int) -> str:
    what = "send_stanza:88] Outgoing" if sent else "handle_info:131] Incoming"
    return f"{_clock(n)} [debug] [bot_conn:{what} stanza:\n    {xml}"


def _ports(sent: bool, xml: str, n: int) -> str:
    arrows = (">>", "->") if sent else ("<<", "<-")
    return f"127.0.0.1:44312 {arrows[0]} tcp {arrows[1]} example.org:5222\n{xml}\n"


def _ruled(sent: bool, xml: str, n: int) -> str:
    return f"--- {'Sent' if sent else 'Received'} at {_clock(n)} ---\n{xml}\n"


def _template(sent: bool, xml: str, n: int) -> str:
    way = "sent" if sent else "received"
    return json.dumps({"@t": f"2021-05-05T{_clock(n)}Z", "@mt": f"Stanza {way}: {{X}}", "X": xml})


def _csv(sent: bool, xml: str, n: int) -> str:
    doubled = xml.replace("'", '""')
    return f'"{_clock(n)}","DEBUG","{"OUT" if sent else "IN"}","{doubled}"'


def _csv_words(sent: bool, xml: str, n: int) -> str:
    words = "SEND" if sent else "RECV"
    return f'"May 5, 2021 @ {_clock(n)}","{words}: {_double(xml).replace(chr(34), chr(34) * 2)}"'


def _csv_behind(sent: bool, xml: str, n: int) -> str:
    doubled = xml.replace("'", '""')
    return f'"{_clock(n)}","{doubled}",{"sent" if sent else "received"}'


def _har(sent: bool, xml: str, n: int) -> str:
    kind = "send" if sent else "receive"
    text = json.dumps({"type": kind, "time": 1620208800 + n, "data": xml}, indent=2)
    return "".join(f"      {line}\n" for line in text.split("\n"))[:-1] + ","


def _array(sent: bool, xml: str, n: int) -> str:
    return json.dumps({"data": _double(xml), "at": n, "dir": "tx" if sent else "rx"}) + ","


def _key_behind(sent: bool, xml: str, n: int) -> str:
    return f"level=debug xml={json.dumps(xml)} direction={'outgoing' if sent else 'incoming'}"


def _console(sent: bool, xml: str, n: int) -> str:
    return f"{xml}   {'xmlOutput' if sent else 'xmlInput'} @ strophe-debug.js:{12 if sent else 15}"


def _php(sent: bool, xml: str, n: int) -> str:
    text = json.dumps({"xml": _double(xml), "bytes": n}).replace("/", "\\/")
    return f"[{_clock(n)}] xmpp.DEBUG: Data {'sent' if sent else 'received'} {text} []"


def _pods(sent: bool, xml: str, n: int) -> str:
    message = f"{'->' if sent else '<-'} {_double(xml)}"
    return f"[pod/bot-6d5f9/bot] {json.dumps({'message': message, 'logger': 'a'})}"


def _nested(sent: bool, xml: str, n: int) -> str:
    source = {
        "at": {"time": f"2021-05-05T{_clock(n)}Z"},
        "message": f"{'SEND' if sent else 'RECV'} {xml}",
    }
    return json.dumps({"_index": "logs", "_source": source})


def _docker(sent: bool, xml: str, n: int) -> str:
    inner = json.dumps({"dir": "out" if sent else "in", "msg": _double(xml)})
    return json.dumps({"log": f"{inner}\n", "stream": "stdout", "time": f"2021-05-05T{_clock(n)}Z"})


def _members(sent: bool, xml: str, n: int) -> str:
    return f"{{\n  at: {n},\n  dir: '{'out' if sent else 'in'}',\n  xml: `{xml}`\n}}"


def _curly(sent: bool, xml: str, n: int) -> str:
    text = re.sub("'([^']*)'", "\u201c\\1\u201d", xml)
    return f"{_clock(n)} {'Sent' if sent else 'Received'}: {text}"


def _cdata(sent: bool, xml: str, n: int) -> str:
    spread = xml.replace("><", ">\n<") if "stream:stream" not in xml else xml
    words = f"<log4j:message><![CDATA[{'SENT' if sent else 'RECV'} (0): {spread}]]></log4j:message>"
    return f'<log4j:event timestamp="16202088{n}" level="DEBUG">\n{words}\n</log4j:event>\n'


def _jul(sent: bool, xml: str, n: int) -> str:
    message = f"  <message>{'OUT' if sent else 'IN'} {html.escape(xml)}</message>"
    return f"<record>\n  <date>2021-05-05T{_clock(n)}</date>\n{message}\n</record>"


def _page(sent: bool, xml: str, n: int) -> str:
    spread = xml.replace("><", ">\n  <") if "stream:stream" not in xml else xml
    return f"<b>{_clock(n)}</b> {'SENT' if sent else 'RECEIVED'}: {html.escape(spread)}<br/>"


def _parties(sent: bool, xml: str, n: int) -> str:
    return f"{_clock(n)} {'C->S' if sent else 'S->C'} {xml}"


def _parties_apart(sent: bool, xml: str, n: int) -> str:
    return f"{_clock(n)} xmpp: {'bot --> prosody' if sent else 'prosody --> bot'}: {xml}"


def _flag(sent: bool, xml: str, n: int) -> str:
    return f"level=debug incoming={'no' if sent else 'yes'} stanza={json.dumps(xml)}"


def _flag_behind(sent: bool, xml: str, n: int) -> str:
    return json.dumps({"at": n, "xml": xml, "outgoing": sent})


def _number(sent: bool, xml: str, n: int) -> str:
    return f"{_clock(n)} stanza outgoing={int(sent)} {xml}"


def _logger(sent: bool, xml: str, n: int) -> str:
    return f"{_clock(n)} xmpp/send_log: {'bot' if sent else 'muc'} {xml}"


THIRD: dict[str, Callable[[bool, str, int], str]] = {
    "Elasticsearch": _nested,
    "JSON in Docker's": _docker,
    "a console's objects": _members,
    "a word processor": _curly,
    "log4j's XML": _cdata,
    "java.util.logging's XML": _jul,
    "a web page": _page,
    "PHP": _php,
    "JSON behind the name of a container": _pods,
    "a line above": _above,
    "addresses and arrows above": _ports,
    "rules above": _ruled,
    "a template beside it": _template,
    "CSV": _csv,
    "CSV with the direction within": _csv_words,
    "CSV with the direction behind": _csv_behind,
    "a browser's archive": _har,
    "an array of objects": _array,
    "a key behind": _key_behind,
    "a browser's console with the function behind": _console,
    "an arrow between parties": _parties,
    "an arrow between names": _parties_apart,
    "a flag": _flag,
    "a flag behind": _flag_behind,
    "a flag as a number": _number,
    "a logger named for one side": _logger,
}
"""Formats typed from memory; the reader did not read them at the first try."""
