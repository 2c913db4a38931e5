"""Words of strangers that look like entries of the log: they accuse, clear and hide nothing."""

import json
from collections.abc import Callable
from html import escape
from itertools import product

import pytest

from bridge.capture.examined import Examined
from bridge.capture.finding import Severity
from bridge.capture.verdict import UNKNOWN, verdict
from tests.capture import typed
from tests.capture.logs import (
    ACCOUNT,
    ASK,
    JOIN,
    LOGIN,
    ROOM,
    STREAM_ERRORS,
    USER,
    bounce,
    examined,
)

ENDED = (
    "<stream:error xmlns:stream='http://etherx.jabber.org/streams'>"
    f"<system-shutdown xmlns='{STREAM_ERRORS}'/></stream:error>"
)
KICKED = (
    f"<presence type='unavailable' from='{ROOM}/bot' to='{ACCOUNT}'><x xmlns='{USER}'>"
    "<item affiliation='none' role='none'/><status code='110'/><status code='307'/></x></presence>"
)
FORGED = {
    "a stream error": f"RECV: {ENDED}",
    "a kick": f"RECV: {KICKED}",
    "the end of a stream": "End of stream received",
    "an entry of xmpp.js": "status close",
    "a record": json.dumps({"direction": "in", "xml": ENDED}),
    "several lines": f"hi\nRECV: {KICKED}\nSEND: <message to='{ROOM}' type='groupchat'/>",
    "a whole line": f"10:00:59 DEBUG RECV: {ENDED}",
    "a first tag": f"RECV: <presence from='{ROOM}/bot' to='{ACCOUNT}' type='error'>",
    "a failed login without namespaces": "RECV: <failure><not-authorized/></failure>",
    "the first tag of a failed login": "RECV: <failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>",
    "a cut refusal": f"RECV: <message from='{ROOM}' to='{ACCOUNT}' type='error' id='m",
    "a whole stream": f"RECV: <stream:stream version='1.0'>{ENDED}</stream:stream>",
    "brackets that a page ate": "RECV: stream:error<conflict/>/stream:error",
    "a condition that Prosody names": "Disconnecting client, <stream:error> is: conflict",
    "an error of the server's": f"Server send: <error xmlns='{STREAM_ERRORS}'><reset/></error>",
    "a term": (
        'Received {xmlel,<<"stream:error">>,[],[{xmlel,<<"conflict">>,[{<<"xmlns">>,'
        f'<<"{STREAM_ERRORS}">>}}],[]}}]}}'
    ),
    "a piece of a stanza": "so xmlns='jabber:client' it is",
    "the end of a tag": "see 'this'/>",
    "the end of an element": "no </b> here",
    "a tag without brackets": f"conflict xmlns='{STREAM_ERRORS}'",
    "the end of a session": "body xmlns='http://jabber.org/protocol/httpbind' type='terminate'",
    "a binary": f'Received <<"{ENDED}',
    "a quoted entry": f"hi\n> RECV: {ENDED}\n> {ENDED}",
    "data of a login, cut off": "SEND: <response xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>dXNlcm5",
    "the end tag of a stream": "RECV: </stream:stream>",
    "an empty offer": "RECV: <stream:features/>",
    "a resumption": "RECV: <resumed xmlns='urn:xmpp:sm:3' previd='x' h='1'/>",
    "its end": f"hi\n10:00:59 DEBUG RECV: {KICKED}",
}
PRINTED: dict[str, Callable[[str], list[str]]] = {
    "by the bot": lambda said: f"10:00:59 DEBUG Mallory: {said}".split("\n"),
    "alone": lambda said: said.split("\n"),
    "as a value": lambda said: [f"10:00:59 DEBUG got {{'nick': {said!r}, 'role': 'none'}}"],
    "by its library": lambda said: f"10:00:59 INFO presence of {ROOM}/{said} : {said}".split("\n"),
    "as JSON": lambda said: [json.dumps({"message": f"chat: {said}", "level": "info"})],
}
SAID: dict[str, Callable[[str], str]] = {
    "a body": lambda said: (
        f"<message from='{ROOM}/M' to='{ACCOUNT}' type='groupchat'><body>{said}</body></message>"
    ),
    "a nickname": lambda said: f"<presence from='{ROOM}/{said}' to='{ACCOUNT}'/>",
    "a status": lambda said: (
        f"<presence from='{ROOM}/M' to='{ACCOUNT}'><status>{said}</status></presence>"
    ),
    "a subject": lambda said: (
        f"<message from='{ROOM}/M' to='{ACCOUNT}' type='groupchat'><subject>"
        f"{said}</subject></message>"
    ),
}
TALK = f"<<< <message from='{ROOM}/Ann' to='{ACCOUNT}' type='groupchat'><body>well</body></message>"


def log_of(lines: list[str]) -> list[str]:
    """The lines as a library with times writes them."""
    return [
        f"10:{n // 60 % 60:02}:{n % 60:02} DEBUG {line}".replace(">>>", "SEND:").replace(
            "<<<", "RECV:"
        )
        for n, line in enumerate(lines)
    ]


def errors(streams: list[Examined]) -> list[str]:
    return [
        each.name
        for stream in streams
        for each in stream.findings()
        if each.severity is Severity.ERROR
    ]


def doubts(streams: list[Examined]) -> int:
    """How many entries may be a stranger's words."""
    findings = [each for stream in streams for each in stream.findings()]
    is_unknown = verdict(findings).startswith(UNKNOWN)
    count = sum(each.cause == "doubted" for each in findings)
    assert is_unknown == (count > 0 and not errors(streams))
    return count


FEW, SOME, MANY = 3, 10, 36
"""Entries before: fewer than show the main shape, fewer than the lines kept undecided, and more."""


@pytest.mark.parametrize("entries", [FEW, SOME, MANY, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("forged", FORGED)
def test_words_of_a_stranger_accuse_and_clear_nobody(forged: str, entries: int) -> None:
    login = [*LOGIN, *JOIN]
    before = [*login, *[TALK] * entries][max(0, len(login) - entries + 1) :][: max(entries, 16)]
    for printed, (place, stanza) in product(PRINTED.values(), SAID.items()):
        said = FORGED[forged]
        said = said if place in {"a body", "a status"} else said.replace("\n", " ")
        entry = "<<< " + stanza(escape(said).replace("\n", "&#10;"))
        log = [*log_of([*before, entry]), *printed(said), *log_of([TALK])]
        streams = examined(*log)
        # Where the forged line is the logger's own to the letter, nobody can tell.
        is_open = entries < 1000 and "10:00:59 DEBUG RECV: <" in {line[:22] for line in log[-4:-1]}
        has_holes = any(each.stream.holes for each in streams)
        seen = errors(streams), doubts(streams) > 0, has_holes
        assert seen == ([], is_open, is_open), log[-4:]


@pytest.mark.parametrize("forged", FORGED)
def test_words_that_are_printed_swallow_no_entry_over_several_lines(forged: str) -> None:
    said = FORGED[forged]
    heard = ["IN [bot]", SAID["a body"](escape(said).replace("\n", "&#10;"))]
    refused = [
        "IN [bot]",
        *bounce("forbidden").removeprefix("<<< ").replace("><", ">\n<").split("\n"),
    ]
    log = [*heard, *f"Mallory: {said}".split("\n"), *refused]
    assert errors(examined("OUT [bot]", "<presence/>", *log)) == ["refused"]


def test_the_first_line_of_an_entry_that_somebody_said_makes_no_hole_of_it() -> None:
    entry = ["IN [bot]", *TALK.removeprefix("<<< ").replace("><", ">\n<").split("\n")]
    heard = ["IN [bot]", SAID["a body"](escape(entry[1]))]
    (stream,) = examined("OUT [bot]", "<presence/>", *entry, *heard, *entry)
    assert stream.stream.holes == 0


@pytest.mark.parametrize("said", ["<", ">", "RECV: <", "<message ", "xmlns="])
def test_a_sign_that_somebody_said_hides_no_entry_elsewhere(said: str) -> None:
    heard = "<<< " + SAID["a body"](escape(said))
    real = f"ERROR [bot] {bounce('forbidden').removeprefix('<<< ')}"
    assert errors(examined(*log_of([*JOIN, heard]), real)) == ["refused"]


@pytest.mark.parametrize("entries", [3, 10, 100])
@pytest.mark.parametrize("body", [ENDED, f"RECV: {ENDED}", f"10:00:58 DEBUG RECV: {ENDED}"])
def test_a_stream_error_that_was_said_first_does_not_hide_the_real_one(
    body: str, entries: int
) -> None:
    before = [*LOGIN, *JOIN, *[TALK] * entries][-entries:]
    said = "<<< " + SAID["a body"](escape(body))
    log = [*log_of([*before, said]), f"10:00:59 DEBUG Mallory: {body}"]
    real = f"11:00:59 DEBUG RECV: {ENDED}"
    assert errors(examined(*log, real)) == ["ended"]
    assert errors(examined(*log)) == []


FORMS: dict[str, Callable[[str, int], list[str]]] = {
    "times": lambda line, n: log_of([""] * n + [line])[n:],
    "no times": lambda line, _: [f"DEBUG {line}"],
    "no text of its own": lambda line, _: [line[4:]],
    "the word on the line before": lambda line, _: ["IN" if line[0] == "<" else "OUT", line[4:]],
    "objects": lambda line, _: [json.dumps({"message": line})],
    "a word for each kind": lambda line, _: [f"{line[:3]} ({line[5:8]}) {line[4:]}"],
}
"""How loggers write a line, by its number."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("entries", [3, 10, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("printed", ["", "chat: {}", "{}"])
def test_an_entry_that_was_said_before_it_came_is_no_all_clear(
    form: str, entries: int, printed: str
) -> None:
    write = FORMS[form]
    before = [*LOGIN, *JOIN, *[TALK] * entries][-max(entries, 10) :]
    real = write(f"<<< {ENDED}", len(before) + 1)
    for place, stanza in SAID.items():
        is_cut = place != "a nickname" and form != "objects"
        said = "\n".join(real)[: -len("stream:error>") if is_cut else None]
        said = said if place == "a body" else said.replace("\n", " ")
        entry = "<<< " + stanza(escape(said).replace("\n", "&#10;"))
        log = [line for n, each in enumerate([*before, entry]) for line in write(each, n)]
        printed_ = printed.format(said).split("\n") if printed else []
        cut = [*real[:-1], real[-1][:-8]] if is_cut else real
        streams = examined(*log, *printed_, *cut)
        assert errors(streams) == ["ended"] or doubts(streams) > 0, [*log[-2:], *printed_, *cut]


ECHOED: dict[str, tuple[str, Callable[[str], str]]] = {
    "the arguments of a command": ("!echo {}", str),
    "the beginning of the arguments": ("!echo {}", lambda words: words[:-20]),
    "a quotation in a sentence": ("say '{}' now", str),
    "words that it strips": ("  {}  ", str),
    "words in small letters": ("{}", str.lower),
}
"""What a program prints of what somebody said, and the words around that."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("echoed", ECHOED)
def test_an_entry_of_which_a_program_prints_a_part_of_what_was_said_accuses_nobody(
    form: str, echoed: str
) -> None:
    write, (around, printed) = FORMS[form], ECHOED[echoed]
    before = [*LOGIN, *JOIN, TALK]
    forged = "\n".join(write(f"<<< {ENDED}", len(before) + 1))
    said = around.format(forged.replace("<stream:error", "<STREAM:ERROR"))
    said = said if printed is str.lower else around.format(forged)
    entry = "<<< " + SAID["a body"](escape(said).replace("\n", "&#10;"))
    log = [line for n, each in enumerate([*before, entry]) for line in write(each, n)]
    log += [*printed(forged).split("\n"), *write(TALK, len(before) + 2)]
    streams = examined(*log)
    is_doubted = doubts(streams) > 0 or printed is str.lower  # the logger writes no such words
    assert (errors(streams), is_doubted) == ([], True), log[-4:]


def wrapped(lines: list[str], width: int) -> list[str]:
    """The lines as a terminal wraps them."""
    cut = [[line[at : at + width] for at in range(0, len(line), width)] for line in lines]
    return [piece for pieces in cut for piece in pieces or [""]]


@pytest.mark.parametrize("padding", [0, 1, 2], ids=["as it is", "after a wrap", "after two"])
@pytest.mark.parametrize("before", ["", "10:00:59 DEBUG Mallory: "])
@pytest.mark.parametrize("forged", ["a whole line", "a stream error", "a kick"])
def test_in_a_wrapped_log_words_of_a_stranger_accuse_nobody(
    forged: str, before: str, padding: int
) -> None:
    for number, (entries, stanza) in enumerate(product([3, 20], SAID.values())):
        # Each width beside each number of entries, and beside each stanza.
        width = (80, 132)[(number + number // len(SAID)) % 2]
        said = "x" * max(0, padding * width - len(before)) + FORGED[forged]
        entry = "<<< " + stanza(escape(said))
        lines = [*log_of([*LOGIN, *JOIN, *[TALK] * entries, entry]), f"{before}{said}"]
        log = wrapped([*lines, *log_of([TALK])], width)
        assert errors(examined(*log)) == [], log
        real = wrapped([f"11:00:59 DEBUG RECV: {ENDED}"], width)
        assert errors(examined(*log, *real)) == ["ended"]


def test_a_tag_that_somebody_said_hides_nothing_behind_the_object_that_it_is_in() -> None:
    said = (
        f"<presence from='{ROOM}/M' to='{ACCOUNT}'>\n<status>a <stream:error> b</status></presence>"
    )
    log = [json.dumps({"message": f"IN\n{text}"}) for text in (said, bounce("forbidden")[4:])]
    assert errors(examined(*log)) == ["refused"]


def test_without_times_a_line_that_somebody_said_is_a_hole() -> None:
    said = "<<< " + SAID["a body"](escape(f"<<< {ENDED}"))
    (stream,) = examined(*LOGIN, ASK, *JOIN, said, f"<<< {ENDED}")
    assert (errors([stream]), stream.stream.holes) == ([], 1)


@pytest.mark.parametrize("at", [15, 30, 70])
def test_without_times_messages_that_are_printed_in_one_line_accuse_nobody(at: int) -> None:
    line = f"<<< {ENDED}"
    said = ["<<< " + SAID["a body"](escape(each)) for each in (line[:at], line[at:])]
    (stream,) = examined(*LOGIN, ASK, *JOIN, *said, line)
    assert (errors([stream]), stream.stream.holes) == ([], 1)
    assert errors(examined(*LOGIN, ASK, *JOIN, said[1], line)) == ["ended"]


def test_a_term_that_somebody_said_in_a_field_with_doubled_quotes_accuses_nobody() -> None:
    term = '{xmlel,<<"stream:error">>,[],[{xmlel,<<"conflict">>,[],[]}]}'
    talk = SAID["a body"]("hi")
    lines = [*[talk] * FEW, SAID["a status"](escape(term, quote=False)).replace('"', '""')]
    assert errors(examined(*[f'10:00:01,IN,"{each}"' for each in lines], term)) == []


ESCAPED: dict[str, Callable[[str], str]] = {
    "with numbers": lambda xml: xml.replace("<", "\\u003c").replace(">", "\\u003e"),
    "with entities": escape,
    "in guillemets": lambda xml: xml.translate(str.maketrans("<>", "«»")),
}


@pytest.mark.parametrize("way", ESCAPED)
@pytest.mark.parametrize("other", ESCAPED)
def test_an_entry_is_read_in_the_way_in_which_it_begins(way: str, other: str) -> None:
    said = SAID["a body"](ESCAPED[other](ENDED) if other != way else "hi")
    lines = [f"10:00:01 in {ESCAPED[way](each)}" for each in (TALK[4:], said, TALK[4:])]
    assert errors(examined(*lines)) == []
    assert errors(examined(*lines, f"10:00:01 in {ESCAPED[way](ENDED)}")) == ["ended"]


@pytest.mark.parametrize("way", ESCAPED)
def test_a_tag_that_a_program_prints_hides_no_escaped_entry(way: str) -> None:
    lines = [f"in {ESCAPED[way](each)}" for each in (TALK[4:], bounce("forbidden")[4:])]
    assert errors(examined(lines[0], "note <message>", lines[1])) == ["refused"]


def test_a_tag_that_is_printed_in_a_comment_hides_no_entry_below_another() -> None:
    entries = [TALK[4:], SAID["a body"]("&lt;message "), bounce("forbidden")[4:]]
    lines = [line for each in entries for line in ("<!-- In 10:00:01 -->", each)]
    assert errors(examined(*lines[:4], "<!-- note <message  -->", *lines[4:])) == ["refused"]


def test_data_in_bytes_has_no_escape_of_a_character() -> None:
    forged = "10:00:02 read b'{}'".format(ENDED.replace("<", "\\u003c"))
    said = SAID["a body"](escape(forged))
    assert errors(examined(f"10:00:01 read {TALK[4:].encode()!r}", forged)) == []
    assert errors(examined(f"10:00:01 read {said.encode()!r}", forged)) == []


@pytest.mark.parametrize("tail", ["", " (chat)"])
def test_words_that_a_program_prints_as_its_logger_prints_entries_accuse_nobody(tail: str) -> None:
    stanzas = [TALK[4:], SAID["a body"](escape(ENDED)), ENDED]
    log = [f"10:00:0{at} {each}" for at, each in enumerate(stanzas)]
    streams = examined(*log[:2], f"{log[2]}{tail}")
    assert (errors(streams), doubts(streams)) == ([], 1)
    assert errors(examined(log[0], log[2])) == ["ended"]


def test_a_term_that_somebody_said_with_a_line_break_in_it_accuses_nobody() -> None:
    term = '{xmlel,<<"stream:error">>,[],[{xmlel,<<"gone">>,[{<<"xmlns">>,<<"a\nb">>}],[]}]}'
    said = SAID["a body"](escape(term))
    assert errors(examined(*f"RECV: {said}".split("\n"), f"chat {term!r}")) == []


def test_the_word_of_an_entry_in_an_object_may_stand_in_the_line_before() -> None:
    said = SAID["a body"](escape(ENDED.replace("<", "x <", 1)))
    lines = [{"level": "debug", "message": f"IN\n{each}"} for each in (TALK[4:], said, ENDED)]
    assert errors(examined(*map(json.dumps, lines))) == ["ended"]


def test_a_term_with_other_text_between_its_parts_is_none() -> None:
    term = 'in {xmlel,<<"stream:error">>,[],[{xmlel,<<"gone">>,[],[]}]}'
    assert errors(examined(term)) == ["ended"]
    assert errors(examined(term.replace("[{xmlel", "[x {xmlel"))) == []


def test_data_without_a_tag_that_somebody_said_hides_nothing_behind_it() -> None:
    entries = [f"read {each.encode()!r}" for each in (SAID["a body"]("read b'x'"), "x", ENDED)]
    assert errors(examined(*entries)) == ["ended"]


def test_the_line_before_says_nothing_where_an_arrow_follows_brackets() -> None:
    entries = [*[TALK] * SOME, "<<< x", f"<<< {ENDED}"]
    assert errors(examined(*[f"[12:00:01 DBG] {each}" for each in entries])) == ["ended"]


@pytest.mark.parametrize("words", ["stream:error", "a\nb stream:features", "/stream:stream"])
@pytest.mark.parametrize("joint", ["", "\n"])
def test_the_name_of_a_tag_that_somebody_said_breaks_no_stanza(words: str, joint: str) -> None:
    stanza = f"<<< {SAID['a body'](words)}".replace("><", f">{joint}<")
    log = [*LOGIN, *JOIN, *stanza.split("\n"), TALK]
    assert [each.stream.holes for each in examined(*log)] == [0]


@pytest.mark.parametrize("said", ["<", "<stream:error", "hi\n<", "status cl", ENDED[:60]])
def test_a_beginning_that_somebody_said_hides_no_entry_of_a_new_kind(said: str) -> None:
    stanza = SAID["a body"](escape(said))
    log = [f"RECEIVING (message) {stanza}", f"chat: {said}", f"RECEIVING (error) {ENDED}"]
    assert errors(examined(*log)) == ["ended"]
    assert errors(examined(*LOGIN, f"<<< {stanza}", "status close")) == ["ended"]


@pytest.mark.parametrize("printed", ["{}", "chat: {}", "chat: RECV: {}"])
@pytest.mark.parametrize("said", ["<stream:error>", f"<presence from='{ROOM}", "<message>"])
def test_a_tag_that_somebody_said_hides_nothing_where_the_word_is_on_the_line_before(
    said: str, printed: str
) -> None:
    def written(lines: list[str]) -> list[str]:
        ways = {">>>": "SENT", "<<<": "RECEIVED"}
        texts = [f"--- 10:00:09 {ways[line[:3]]} (9) ---\n  {line[4:]}\n" for line in lines]
        return "\n".join(texts).replace("><", ">\n  <").split("\n")

    log = [*LOGIN, *JOIN, "<<< " + SAID["a nickname"](escape(said))]
    lines = [*written(log), printed.format(said), *written([f"<<< {KICKED}", f"<<< {ENDED}"])]
    (stream,) = examined(*lines)
    assert [each.name for each in stream.findings()] == ["removed", "ended"]


@pytest.mark.parametrize("behind", ["", " joined"])
@pytest.mark.parametrize("words", [KICKED, KICKED[: KICKED.index("</x>")], bounce("gone")[4:-10]])
def test_without_times_several_lines_that_somebody_said_accuse_nobody(
    words: str, behind: str
) -> None:
    said = f"hi\n<<< {words}"
    log = [
        *LOGIN,
        *JOIN,
        "<<< " + SAID["a body"](escape(said)),
        *f"chat: {said}{behind}".split("\n"),
    ]
    (stream,) = examined(*log, TALK)
    assert [each for each in stream.findings() if each.severity is not Severity.NOTE] == []


def test_lines_within_an_element_are_its_content_whatever_they_look_like() -> None:
    stanza = SAID["a body"]("hi").replace("</message>", "<x xmlns='urn:x'>\n{}\n</x></message>")
    inner = [f"10:00:59 DEBUG RECV: {ENDED}"] * 20
    log = log_of([*LOGIN, *JOIN, "<<< " + stanza.replace("{}", "\n".join(inner)), TALK])
    assert errors(examined(*"\n".join(log).split("\n"))) == []


@pytest.mark.parametrize("stranger", [SAID["a body"], SAID["a status"]])
@pytest.mark.parametrize("name", [*typed.FIRST, *typed.SECOND, *typed.THIRD])
def test_an_entry_that_somebody_said_in_the_form_of_the_log_is_none(
    name: str, stranger: Callable[[str], str]
) -> None:
    form = (typed.FIRST | typed.SECOND | typed.THIRD)[name]
    forged = f"hi\n{form(False, ENDED, 50)}"
    parts = (*typed.SESSIONS[""], (False, stranger(escape(forged))))
    log = typed.written(form, parts).rstrip("\n").split("\n")
    printed = [*log, *f"chat: {forged}".split("\n")]
    assert errors(examined(*printed)) == []
    streams = examined(*printed, *form(False, ENDED, 59).split("\n"))
    assert errors(streams) == ["ended"] or any(each.stream.holes for each in streams)


def test_what_a_stanza_says_that_cannot_be_parsed_is_heard() -> None:
    stanza = SAID["a body"](escape(f"RECV: {ENDED}") + "&#1;")
    log = log_of([*LOGIN, *JOIN, f"<<< {stanza}"])
    assert errors(examined(*log, f"10:00:59 DEBUG Mallory: RECV: {ENDED}")) == []


@pytest.mark.parametrize("forged", FORGED)
def test_what_somebody_said_hides_nothing_in_a_log_without_times(forged: str) -> None:
    words = FORGED[forged]
    mallory = (
        f"<<< <message from='{ROOM}/M' type='groupchat'><body>{escape(words)}</body></message>"
    )
    log = [*LOGIN, *JOIN, *mallory.split("\n"), *f"Mallory: {words}".split("\n"), f"<<< {KICKED}"]
    assert errors(examined(*log)) == []
    assert any("kicked" in each.message for stream in examined(*log) for each in stream.findings())


def _in_an_object(level: str, line: str, second: int, members: str) -> str:
    entry = {"time": f"2026-11-29T10:00:{second:02}Z", "level": level, "message": line}
    return json.dumps({name: entry[name] for name in (*members.split(), "message")})


@pytest.mark.parametrize("behind", ["", ": ", " is here"])
@pytest.mark.parametrize("before", ["", "2026-11-29T10:00:00.5Z stdout F "])
@pytest.mark.parametrize("members", ["", "time", "level", "time level"])
def test_a_nickname_that_a_program_prints_first_is_no_entry_in_a_log_of_objects(
    members: str, before: str, behind: str
) -> None:
    forged = f"RECV: {ENDED}"
    lines = [("DEBUG", each.strip()) for each in log_of([*LOGIN, *JOIN])]
    lines = [(level, each[each.index("DEBUG") + 6 :]) for level, each in lines]
    lines.append(("DEBUG", f"RECV: {SAID['a nickname'](escape(forged))}"))
    lines.append(("INFO", f"{forged}{behind}"))
    log = [before + _in_an_object(*each, n, members) for n, each in enumerate(lines)]
    assert errors(examined(*log)) == []
    streams = examined(*log, before + _in_an_object("DEBUG", forged, 59, members))
    if "level" in members:
        assert errors(streams) == ["ended"]
    else:  # nothing tells the two apart
        assert errors(streams) == []
        assert any(each.stream.holes for each in streams)


@pytest.mark.parametrize("before", ["", "2026-11-29T10:00:00.5Z stdout F "])
def test_a_tag_that_a_logger_of_objects_did_not_escape_hides_nothing_that_follows(
    before: str,
) -> None:
    said_ = f"<<< <presence from='{ROOM}/M'><status>see <stream:error> there</status></presence>"
    lines = [*LOGIN, *JOIN, said_, f"<<< {KICKED}"]
    log = [f"{before}{json.dumps({'message': line})}" for line in lines]
    assert [each.name for stream in examined(*log) for each in stream.findings()] == ["removed"]


@pytest.mark.parametrize("behind", ["", ": "])
def test_in_a_container_a_line_without_times_that_somebody_said_is_a_hole(behind: str) -> None:
    forged = f"<<< {ENDED}"
    log = [*LOGIN, ASK, *JOIN, "<<< " + SAID["a nickname"](escape(forged)), f"{forged}{behind}"]
    (stream,) = examined(*(f"2026-11-29T10:00:00.5Z stdout F {line}" for line in log))
    assert (errors([stream]), stream.stream.holes) == ([], 1)


@pytest.mark.parametrize("nickname", ["fine to send", "SENT RECV", "a, sent to", "I'm sent (out)"])
@pytest.mark.parametrize("attribute", ["'{}'", '"{}"'])
def test_a_nickname_before_the_word_for_the_direction_turns_no_log_round(
    nickname: str, attribute: str
) -> None:
    from_ = attribute.format(escape(f"{ROOM}/{nickname}"))
    said = f"<message from={from_} to='{ACCOUNT}' type='groupchat'><body>hi</body></message>"
    log = [f"{ROOM}/{nickname} RECV {said}", f"{ROOM}/bot RECV {KICKED}"]
    (stream,) = examined(*log)
    assert "kicked" in verdict(stream.findings())
