"""Every format by round trip, and logs as dirty as they come."""

import html
import json
import time
from collections.abc import Callable, Iterable

import pytest

from bridge.capture import elements, fragments
from bridge.capture import reader as reading
from bridge.capture.reader import LogReader
from bridge.capture.stanza import FOOTER, HOLE, Stanza
from bridge.wire.names import HEADER, local
from tests.capture import typed
from tests.capture.healthy import Passed
from tests.capture.logs import ACCOUNT, ASK, LOGIN, bounce, examined, refusal, says
from tests.capture.writers import WRITERS, written

PIECES = [
    Passed(0, True, "<iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>"),
    Passed(
        0,
        False,
        "<message from='a@b/c' type='groupchat'><body>ä \\ \"x\" 'y' &lt;z&gt;</body></message>",
    ),
    Passed(0, True, "<presence/>"),
    Passed(0, False, "<iq type='result' id='1'/>"),
]


def read(lines: Iterable[str | bytes]) -> list[Stanza]:
    reader, captured = LogReader("log"), list[Stanza]()
    for line in lines:
        data = line.encode() if isinstance(line, str) else line
        captured += reader.feed(data + b"\n")
    return captured + reader.end()


def shape(captured: Iterable[Stanza]) -> list[tuple[bool, str]]:
    return [(each.sent, local(each.element.tag)) for each in captured]


EXPECTED = [(sent, xml[1:].partition(" ")[0].rstrip("/>")) for _, sent, xml in PIECES]


@pytest.mark.parametrize("format_", WRITERS)
def test_a_format_gives_back_what_was_written_in_it(format_: str) -> None:
    log = written(format_, PIECES)
    captured = read(log.split("\n"))
    assert shape(captured) == EXPECTED
    assert captured[1].element.findtext("body") == "ä \\ \"x\" 'y' <z>"


@pytest.mark.parametrize("format_", WRITERS)
def test_other_lines_between_the_stanzas_change_nothing(format_: str) -> None:
    lines = []
    for piece in PIECES:
        lines += ["2026-11-24 17:49:31 INFO polling", *written(format_, [piece]).split("\n")]
    assert shape(read(lines)) == EXPECTED


@pytest.mark.parametrize("format_", WRITERS)
def test_a_whole_element_that_is_no_stanza_makes_no_hole(format_: str) -> None:
    state = Passed(0, True, "<inactive xmlns='urn:xmpp:csi:0'/>")
    log = "\n".join(written(format_, [piece, state]) for piece in PIECES)
    assert [each for each in shape(read(log.split("\n"))) if each[1] != "inactive"] == EXPECTED


@pytest.mark.parametrize(
    ("odd", "is_whole"),
    [
        ("<push xmlns='p1:push'><keepalive max='1'/></push>", True),
        ("<db:result xmlns:db='jabber:server:dialback' to='x'>abc</db:result>", True),
        ("<session xmlns='jabber:x'/>", True),
        ("<query xmlns='jabber:iq:roster'>", False),
        ("<push xmlns='p1:push'><keepalive max='1'/>", False),
        ("<push xmlns='p1:push'/></iq>", False),
        ("<not-authorized/>", False),
        ("<forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>", False),
        ("<x xmlns='http://jabber.org/protocol/muc#user'><status code='307'/></x>", False),
    ],
)
def test_an_element_with_any_name_is_a_hole_if_it_is_not_whole(odd: str, *, is_whole: bool) -> None:
    lines = [f"SEND: {xml}" if sent else f"RECV: {xml}" for _, sent, xml in PIECES]
    tags = [each.element.tag for each in read([*lines, f"SEND: {odd}"])]
    assert (HOLE in tags) != is_whole


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize("step", [7, 200])
def test_a_log_that_lost_bytes_anywhere_is_read_without_a_crash(format_: str, step: int) -> None:
    log = written(format_, PIECES).encode()
    for begin in range(0, len(log), 3):
        read((log[:begin] + log[begin + step :]).split(b"\n"))


def prefixed(prefix: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [f"{prefix}{line}" for line in lines]


def as_objects(name: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [
        json.dumps({name: line, "time": "2026-11-24T17:49:31.0Z"}) for line in lines
    ]


TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "<stdin>", in <module>',
    "<x> is no <y/>",
]
DIRT: dict[str, Callable[[list[str]], list[str]]] = {
    "nothing": prefixed(""),
    "GitHub Actions": prefixed("2026-11-24T17:49:31.0000000Z "),
    "gh run view": prefixed("bot\tRun tests\t2026-11-24T17:49:31.0000000Z "),
    "Kubernetes": prefixed("2026-11-24T17:49:31.000000000Z stderr F "),
    "docker compose in colours": prefixed("\x1b[36mbot-1  |\x1b[0m DEBUG "),
    "journald": prefixed("Nov 24 17:49:31 host python[12]: DEBUG "),
    "journald, ISO": prefixed("2026-11-24T17:49:31+0100 host python[12]: DEBUG "),
    "journald, monotonic": prefixed("[ 1234.567890] host python[12]: DEBUG "),
    "loguru": prefixed("2026-11-24 17:49:31.050 | DEBUG    | slixmpp:send_raw:123 - "),
    "grep -n": prefixed("bot.log:7:"),
    "Markdown": prefixed("> "),
    "zeros": prefixed("\0" * 4096),
    "Docker": as_objects("log"),
    "journalctl -o json": as_objects("MESSAGE"),
    "structlog": as_objects("event"),
    "CRLF": lambda lines: [f"{line}\r" for line in lines],
    "zeros behind": lambda lines: [f"{line}\0" for line in lines],
    "a byte order mark": lambda lines: ["\ufeff" + lines[0], *lines[1:]],
    "tracebacks": lambda lines: [each for line in lines for each in (line, *TRACEBACK)],
    "repr": lambda lines: [f"{line[:6]}{line[6:]!r}" for line in lines],
    "Smack": lambda lines: [f"05:49:31 PM {line[:4]} (0):{line[5:]}" for line in lines],
    "a web page": lambda lines: [
        *["<html><body><pre>", *[f"<b>1</b> {html.escape(line)}<br/>" for line in lines]],
        "</pre></body></html>",
    ],
    "lower case": lambda lines: [f"{line[:4].lower()}{line[4:]}" for line in lines],
}


@pytest.mark.parametrize("dirt", DIRT)
def test_what_is_around_the_stanzas_changes_nothing_and_makes_no_hole(dirt: str) -> None:
    log = [*LOGIN, ASK, refusal("registration-required"), says("hi"), bounce("not-acceptable")]
    lines = [line.replace(">>> ", "SEND: ").replace("<<< ", "RECV: ") for line in log]
    streams = examined(*DIRT[dirt](lines))
    assert [(len(each.findings()), each.stream.holes) for each in streams] == [(3, 0)]


@pytest.mark.parametrize("dirt", ["Kubernetes", "docker compose in colours", "journald"])
def test_a_line_within_a_stanza_loses_what_a_container_puts_before_it(dirt: str) -> None:
    prefix = DIRT[dirt]([""])[0].removesuffix("DEBUG ")
    (stanza,) = read([f"{prefix}SEND: <message><body>a", f"{prefix}</body></message>"])
    assert stanza.element.findtext("body") == "a\n"


def test_the_time_is_that_of_the_line_or_else_of_its_object() -> None:
    lines = as_objects("log")(["SEND: <iq/>", "2026-11-24 09:00:00 SEND: <iq/>"])
    assert [stanza.place.at for stanza in read(lines)] == [
        "2026-11-24T17:49:31.0Z",
        "2026-11-24 09:00:00",
    ]


def test_headers_and_footers_are_told() -> None:
    header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
    captured = read([f">>> <?xml version='1.0'?>{header}", "<<< <presence/></stream:stream>"])
    assert [each.element.tag for each in captured] == [HEADER, "presence", FOOTER]


@pytest.mark.parametrize(
    ("line", "sent", "tag"),
    [
        ("status opening ", True, HEADER),
        ("status closing ", True, FOOTER),
        ("status close [object Object]", False, FOOTER),
        ("DEBUG    End of stream received", False, FOOTER),
        ("DEBUG    End of stream recieved", False, FOOTER),
        ("DEBUG:aioxmpp.StanzaStream:sending stop signal to task", True, FOOTER),
    ],
)
def test_words_that_stand_for_headers_and_footers_are_read(line: str, sent: bool, tag: str) -> None:
    (captured,) = read([line])
    assert (captured.sent, captured.element.tag) == (sent, tag)


@pytest.mark.parametrize("around", ["RECV b'{}'", 'RECV <<"{}">>', 'RECV <<"{}"/utf8>>'])
def test_socket_data_that_is_cut_anywhere_is_joined(around: str) -> None:
    xml = "<message from='a@b/c'><body>one</body></message><presence/>"
    for at in range(1, len(xml)):
        parts = [around.format(part.replace("'", "\\'")) for part in (xml[:at], xml[at:])]
        assert shape(read(parts)) == [(False, "message"), (False, "presence")], at


def test_an_erlang_binary_over_several_lines_is_joined() -> None:
    lines = ['(tls|<0.1.0>) Send XML on stream = <<"<message><bo"', '  "dy>x</body></message>">>']
    assert shape(read(lines)) == [(False, "message")]


@pytest.mark.parametrize("end", ["", '"'])
def test_a_binary_without_an_end_hides_nothing_that_follows(end: str) -> None:
    binary = f'DEBUG printed Received <<"<message>{end}'
    lines = [
        *["DEBUG RECV: <presence/>", "DEBUG SEND: <presence/>"] * 2,
        binary,
        "DEBUG RECV: <iq/>",
    ]
    assert shape(read(lines))[-1] == (False, "iq")


def test_what_ejabberd_writes_between_its_stanzas_changes_nothing() -> None:
    lines = [
        (
            "2026-11-24 19:43:29.488 [notice] <0.55.0> (tls|<0.55.0>) Received XML on stream = "
            '<<"<presence/>">>'
        ),
        '    {mfargs,{mod_muc,start_link,[<<"localhost">>,2]}},',
        "2026-11-24 19:43:29.489 [debug] <0.55.0> Running hook c2s_filter",
        '      name => <<"Chatrooms">>,',
        (
            "2026-11-24 19:43:29.490 [notice] <0.55.0> (tcp|<0.55.0>) Send XML on stream = "
            '<<"<presence/>">>'
        ),
    ]
    captured = read(lines)
    assert shape(captured) == [(True, "presence"), (False, "presence")]
    # TLS begins within a session, and the session goes on.
    assert captured[0].session == captured[1].session


FORGED = "b'\\x3cmessage from=\"room@x/Eve\"\\x3e\\x3c/message\\x3e'#"


@pytest.mark.parametrize(
    "lines",
    [
        [f"DEBUG RECV: <iq><body>SENT {FORGED}</body></iq>"],
        ["DEBUG RECV: <iq><body>x", f"RECV {FORGED}", "y</body></iq>"],
    ],
    ids=["in its line", "in a line of its own"],
)
def test_a_body_in_the_form_of_another_format_forges_no_stanza(lines: list[str]) -> None:
    assert shape(read(lines)) == [(False, "iq")]


def test_a_long_namespace_with_many_names_takes_no_memory() -> None:
    names = "".join(f"<p:a{number}/>" for number in range(10_000))
    (captured,) = read([f"RECV: <iq><q xmlns:p='{'n' * 4000}'>{names}</q></iq>"])
    assert (captured.element.tag, len(captured.element)) == ("iq", 0)


def test_a_stanza_is_read_up_to_its_most_names_and_hides_no_other_if_it_has_more() -> None:
    for more, children in ((0, elements.MAX_NAMES - 1), (1, 0)):
        inner = "<a/>" * (elements.MAX_NAMES - 1 + more)
        (captured,) = read([f"RECV: <iq>{inner}</iq>"])
        assert (captured.element.tag, len(captured.element)) == ("iq", children)


def test_a_stanza_is_read_up_to_its_greatest_depth_and_hides_no_other_if_it_is_deeper() -> None:
    for depth, children in ((elements.MAX_DEPTH, 1), (elements.MAX_DEPTH + 1, 0)):
        inner = "<a>" * (depth - 1) + "</a>" * (depth - 1)
        captured = read([f"RECV: <iq>{inner}</iq>", "RECV: <presence/>"])
        assert shape(captured) == [(False, "iq"), (False, "presence")]
        assert len(captured[0].element) == children


def test_prosodys_own_lines_tell_the_ends_of_streams() -> None:
    ends = [
        "Received </stream:stream>",
        "Disconnecting client, <stream:error> is: <stream:error><conflict/></stream:error>",
    ]
    captured = read([f"Nov 24 17:49:31 c2s55\tdebug\t{line}" for line in ends])
    assert shape(captured) == [(True, FOOTER), (False, "error")]
    assert {each.session for each in captured} == {"c2s55"}


def test_sessions_of_a_server_are_told_apart() -> None:
    lines = [f"{each}\tdebug\tRECV: <presence/>" for each in ("c2s1", "c2s2", "c2s1")]
    assert [each.session for each in read(lines)] == ["c2s1", "c2s2", "c2s1"]


@pytest.mark.parametrize(
    "line",
    [
        "DEBUG:aioxmpp.StanzaStream:sending <iq from=None id=':a' type=<IQType.SET: 'set'>>",
        "DEBUG:aioxmpp.x:incoming <message from='a@b/c' id='1' type=<MessageType.CHAT: 'chat'>>",
        "DEBUG:aioxmpp.callbacks:connecting <bound method A.b of <class 'aioxmpp.c.A'>>",
        "DEBUG:aioxmpp.x:connecting <bound method A.b of <c.A object at 0x7f67ce75aad0>> 'x'>",
        "Nov 24 17:49:31 c2s55\tdebug\tReceived[c2s]: <presence to='a@b/c' xml:lang='en'>",
        "Nov 24 17:49:31 c2s55\tdebug\tSending[c2s_unbound]: <iq id='a' type='result'>",
        "Nov 24 17:49:31 c2s55\tdebug\tSending <r> (inside timer, before send) from x",
        "Nov 24 17:49:31 c2s55\tdebug\tSending <r> from c2s-pre-ondrain - #queue=1",
        "Nov 24 17:49:31 c2s55\tdebug\tReceived <a> with h=3",
        "DEBUG sending <r> to the server",
        (
            "Nov 24 17:49:31 stanzarouter\tdebug\tDiscarding unhandled error presence "
            "(cancel, recipient-unavailable) from local: <presence to='a@b/c' type='error'>"
        ),
        "Nov 24 17:49:31 localhost:mam\tdebug\tNot archiving stanza: <message to='a@b'> (subject)",
    ],
)
def test_what_looks_like_a_part_of_a_stanza_is_none(line: str) -> None:
    assert read([line]) == []


def test_a_bracket_alone_in_a_line_ends_a_tag_though_the_arrow_is_like_it() -> None:
    lines = [f"{'>' if sent else '<'} {xml}" for _, sent, xml in PIECES]
    lines += ["> <message to='a@b'", ">", "<body>hi</body>", "</message", ">"]
    assert shape(read(lines)) == [*EXPECTED, (True, "message")]


def test_latin_1_is_read() -> None:
    (captured,) = read([b"SEND: <message><body>\xe4</body></message>"])
    assert captured.element.findtext("body") == "ä"


@pytest.mark.parametrize("written", ["\x10", "&#16;", "&#x10;"])
def test_a_character_that_xml_cannot_have_is_named(written: str) -> None:
    (captured,) = read([f"SEND: <message><body>{written}</body></message>"])
    assert captured.element.tag == HOLE
    assert "U+0010" in (captured.element.text or "")


@pytest.mark.parametrize(
    "line",
    [
        "SEND: <message><bo",
        "body>x</body></message>",
        'RECV b"<iq',
        '{"direction": "in", "xml": "<',
        r'Received XML on stream = <<"<\x{FFFFFFFFFFFFFFFF}">>',
        "RECV b'<'" + "+b''" * 10_000,
        "RECV b'<'+" + "-" * 10_000 + "'",
    ],
    ids=lambda line: line[:40],
)
def test_a_part_of_a_stanza_and_what_cannot_be_undone_is_a_hole(line: str) -> None:
    assert [each.element.tag for each in read([line])] == [HOLE]


def test_an_entry_is_read_up_to_its_limit_and_a_longer_one_is_a_hole() -> None:
    around = len("<message></message>") + len("\n")
    for more, tag in ((0, "message"), (1, HOLE)):
        body = "x" * (elements.MAX_ENTRY_CHARACTERS - around + more)
        captured = read(["SEND: <message>", f"{body}</message>"])
        assert [each.element.tag for each in captured] == [tag]


def test_a_line_is_read_up_to_its_limit_and_a_longer_one_is_a_hole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = b"SEND: <presence/>"
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", len(line) + 2)
    assert [each.element.tag for each in read([line])] == ["presence"]
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", len(line) + 1)
    assert [each.element.tag for each in read([line])] == [HOLE]


def test_the_rests_of_too_many_streams_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragments, "MAX_RESTS", 2)
    lines = [f'({each}|<0.{each}.0>) Send XML on stream = <<"<mess">>' for each in range(4)]
    assert [each.element.tag for each in read(lines)] == [HOLE] * 4


WITHIN = "RECV: <message from='r@x/a'><body>hi"
"""The first line of a stanza whose body goes on in the next line."""


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"direction":"out","xml":"\\u003cpresence/\\u003e"}',
        '{"log":"SEND: \\u003ciq/\\u003e"}',
    ],
)
def test_a_line_of_a_body_that_looks_like_json_is_part_of_the_body(line: str) -> None:
    captured = read([WITHIN, line, "</body></message>", "SEND: <presence/>"])
    assert shape(captured) == [(False, "message"), (True, "presence")]
    assert captured[0].element.findtext("body") == f"hi\n{line}\n"


def test_an_object_without_an_end_is_a_hole() -> None:
    member = '"xml": "'.ljust(reading.MAX_OBJECT_CHARACTERS, "x")
    lines = ["{", member, "SEND: <presence/>"]
    assert shape(read(lines)) == [(False, HOLE), (True, "presence")]


@pytest.mark.parametrize("line", ['{"entries": 5}', '{"entries": null}', '{"entries": {}}'])
def test_json_of_other_programs_is_passed_over(line: str) -> None:
    assert read([line]) == []


@pytest.mark.parametrize(
    "lines",
    [
        ["RECV b'<" + "a" * 400_000 + "'"],
        ['Received XML on stream = <<"<a/>"', *['""'] * 400_000, 'x">>'],
        ["RECV b'<message>'", *["RECV b'<a>'"] * 40_000],
        ["RECV b'<message>'", f"RECV b'<a b=\"{'x' * 100_000}'", *["RECV b'>'"] * 20_000],
        [f"SEND: <a {'xmlns ' * 60_000}/>"],
    ],
    ids=["a name", "blank lines in a binary", "a stanza in parts", "a tag in parts", "namespaces"],
)
def test_what_goes_on_without_an_end_is_read_in_linear_time(lines: list[str]) -> None:
    started = time.process_time()
    read(lines)
    assert time.process_time() - started < 5


def test_an_object_ends_with_its_brace_or_with_the_log() -> None:
    lines = ["{", '"entries": [{"direction": "in", "xml": "<presence/>"}]', "}", "SEND: <iq/>"]
    assert shape(read(lines)) == [(False, "presence"), (True, "iq")]
    torn = ["{", '"xml": "<']
    assert shape(read([*torn, "}", "SEND: <iq/>"])) == [(False, "/hole"), (True, "iq")]
    assert shape(read(torn)) == [(False, "/hole")]


ERROR = "<error type='cancel'><conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
MUC = "<x xmlns='http://jabber.org/protocol/muc'/>"
PRESENCES = (
    f"<presence to='lab@r.example.org/bot'>{MUC}</presence>",
    (
        f"<presence from='lab@r.example.org/bot' to='bot@example.org/r'"
        f" type='error'>{ERROR}</presence>"
    ),
)
SHUTDOWN = "<system-shutdown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
BODY = "<body xmlns='http://jabber.org/protocol/httpbind'"
PASTED: dict[str, tuple[list[str], list[tuple[bool, str]]]] = {
    "two entries that look like one word": (
        ["conn send: <presence/> +5ms", "conn receive: <message from='a@b'/> +9ms"],
        [(True, "presence"), (False, "message")],
    ),
    "RCV": (
        [f"SENT (7): {PRESENCES[0]}", f"RCV  (7): {PRESENCES[1]}"],
        [(True, "presence"), (False, "presence")],
    ),
    "wrapped in a tag": (
        ["x:RECV: <message from='a@b'><bo", "dy>x</body></message>"],
        [(False, "message")],
    ),
    "wrapped in an attribute": (
        ["x:RECV: <message from='a@b' to='c@d", "e'><body/></message>"],
        [(False, "message")],
    ),
    "wrapped behind the name of a tag": (
        ["x:RECV: <message", "from='a@b'", "to='c@d'><bo", "dy/></message>"],
        [(False, "message")],
    ),
    "wrapped in a tag before the next": (
        [
            "x:RECV: <stream:error xmlns:stream='http://etherx.jabber.org/str",
            f"eams'>{SHUTDOWN}</stream:error>",
        ],
        [(False, "error")],
    ),
    "waiting for an end": (["INFO Waiting for </stream:stream> from server"], []),
    "a bare stream error": ([f"ERROR <stream:error>{SHUTDOWN}</stream:error>"], [(False, "error")]),
    "an abbreviated stanza": (
        ["C: <r xmlns='urn:xmpp:sm:3'>", f"S: <stream:error>{SHUTDOWN}</stream:error>"],
        [(True, "r"), (False, "error")],
    ),
    "BOSH": (
        [
            f"SENT: {BODY} rid='7' sid='s'><presence xmlns='jabber:client'/></body>",
            f"RECV: {BODY}><message xmlns='jabber:client' from='a@b'/></body>",
            f"RECV: {BODY} type='terminate' condition='policy-violation'/>",
        ],
        [(True, "presence"), (False, "message"), (False, "error"), (False, "/stream")],
    ),
    "framing": (
        [
            "status open <open xmlns='urn:ietf:params:xml:ns:xmpp-framing' id='s1'/>",
            "RECV: <close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>",
        ],
        [(False, "stream"), (False, "/stream")],
    ),
}


def test_headers_named_in_prose_end_a_first_tag_that_was_open() -> None:
    reader = fragments.Fragments("bot.log")
    lines = ["Sending[c2s]: <iq from='a@b' type='error'>"]
    lines += ["Sent reply <stream:stream> to client"] * (fragments.MAX_BEHIND_TAG + 1)
    ended = [it for text in lines for it in reader.feed(fragments.Line(text, 1))]
    assert [element.tag for fragment in ended for element in fragment.elements] == ["iq"]


@pytest.mark.parametrize("paste", PASTED)
def test_what_people_pasted_is_read(paste: str) -> None:
    lines, expected = PASTED[paste]
    assert shape(read(lines)) == expected


def test_the_words_of_a_service_are_turned_round() -> None:
    lines = [
        f"RECV: {PRESENCES[0].replace(' to=', ' from=' + repr(ACCOUNT) + ' to=')}",
        f"SEND: {PRESENCES[1]}",
    ]
    assert shape(read(lines)) == [(True, "presence"), (False, "presence")]


def test_tokens_that_no_stream_has_in_both_directions_tell_no_streams_apart() -> None:
    lines = [
        f'[debug] Received XML on stream = <<"{PRESENCES[0]}">>',
        f'[debug] (tcp|<0.1.0>) Send XML on stream = <<"{PRESENCES[1]}">>',
    ]
    assert {each.session for each in read(lines)} == {""}


def test_connections_with_numbers_are_told_apart_and_a_process_that_writes_is_joined() -> None:
    lines = [
        f"{word} ({number}): {PRESENCES[word != 'SENT']}"
        for number in (0, 1)
        for word in ("SENT", "RECV")
    ]
    assert [each.session for each in read(lines)] == ["0", "0", "1", "1"]
    header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'"
    lines = [
        f"<0.10.0>@x:y:1 Received XML on stream = <<\"{header} to='b'>\">>",
        f"<0.11.0>@x:z:2 Send XML on stream = <<\"{header} id='1' from='b'>\">>",
        '<0.80.0>@x:z:2 Send XML on stream = <<"</stream:stream>">>',
    ]
    assert [each.session for each in read(lines)] == ["<0.10.0>", "<0.10.0>"]


def test_lengths_in_brackets_tell_no_streams_apart() -> None:
    parts = typed.SESSIONS[""]
    lines = [f"{'sent' if sent else 'recv'} ({len(xml)}): {xml}" for sent, xml in parts]
    lines += [f"{'recv' if sent else 'sent'} ({len(xml)}): <presence/>" for sent, xml in parts]
    assert {each.session for each in read(lines)} == {""}


NOISE = ("INFO received command !ping", "sent a reply to Ann", "[chat] outgoing message")


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("each", [1, 2, 4])
def test_lines_of_the_program_before_entries_without_a_mark_give_no_direction(
    noise: str, each: int
) -> None:
    for parts in typed.SESSIONS.values():
        lines = list[str]()
        for number, (_, xml) in enumerate(parts):
            lines += [noise, xml] if number % each == 0 else [xml]
        ways = {xml: sent for sent, xml in parts}
        for stanza in read(lines):
            if stanza.element.tag != HOLE:
                assert stanza.sent == ways[lines[stanza.place.line - 1]]
