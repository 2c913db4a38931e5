"""Exceptions in a log, as languages write them."""

import pytest

from bridge.capture.capture import Capture
from bridge.capture.failures import Failure, Failures
from bridge.capture.verdict import UNKNOWN, verdict
from tests.capture.logs import (
    ASK,
    IN,
    JOIN,
    LOGIN,
    ROOM,
    captured,
    error,
    examined,
    found,
    refusal,
    said,
    says,
    stream_error,
)

PYTHON = """\
Traceback (most recent call last):
  File "/usr/lib/python3.11/asyncio/events.py", line 80, in _run
    self._context.run(self._callback, *self._args)
  File "/srv/bot.py", line 31, in on_message
    raise_it(words[1])
    ^^^^^^^^^^^^^^^^^^
  File "/srv/venv/lib/python3.11/site-packages/lib/it.py", line 7, in raise_it
    return {}[key]
KeyError: 'oslo'"""
TWISTED = "Traceback (most recent call last):\nFailure: x.TimeoutError: no answer"
JAVASCRIPT = """\
TypeError: Cannot read properties of undefined (reading 'x')
    at Object.get (/srv/node_modules/lib/it.js:9:1)
    at onStanza (/srv/bot.js:31:14)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)"""
JAVA = """\
Exception in thread "main" java.lang.NullPointerException: oslo
\tat org.example.Bot.onMessage(Bot.java:31)
\tat org.jivesoftware.smack.X.run(X.java:812)"""
CSHARP = """\
Unhandled exception. System.NullReferenceException: Object reference not set
   at Bot.OnMessage(Message m) in C:\\srv\\bot.cs:line 31"""
RUBY = """\
Weather::CityError: oslo
\tfrom /srv/bot.rb:31:in `on_message'
\tfrom /usr/lib/gems/blather.rb:7:in `call'"""
PLACES = "    /usr/lib/gems/xmpp.rb:3:in `block in send'\n    /srv/bot.rb:31:in 'Bot#on_message'"
PHP = """\
PHP Fatal error:  Uncaught TypeError: oslo in /srv/bot.php:31
Stack trace:
#0 /srv/bot.php(31): weather()
#1 {main}"""
GO = """\
panic: runtime error: oslo
goroutine 1 [running]:
main.onMessage(...)
\t/srv/bot.go:31 +0x1d"""

ELIXIR = """\
[error] GenServer Bot terminating
** (MatchError) no match of right hand side value: "oslo"
    (bot 0.1.0) lib/bot.ex:31: Bot.handle_info/2
    (stdlib 4.2) gen_server.erl:1123: :gen_server.try_dispatch/4"""

RUST = """\
thread 'main' panicked at 'no such town', src/bot.rs:31:17
stack backtrace:
   0: std::panicking::begin_panic
             at /rustc/library/std/src/panicking.rs:411
   1: bot::weather
             at src/bot.rs:31"""

TRACES = {
    "Rust": (RUST, ("panicked", "src/bot.rs")),
    "Rust, without the lines that lead there": (
        "thread 'main' panicked at src/bot.rs:31:17:\nno such town",
        ("panicked", "src/bot.rs"),
    ),
    "Python": (PYTHON, ("KeyError", "/srv/bot.py")),
    "Java, a class in a class": (
        JAVA.replace("java.lang.Null", "org.example.Bot$Null"),
        ("Bot$NullPointerException", "Bot.java"),
    ),
    "Java, each line behind a time and a name": (
        "\n".join(f"04-25 19:39:15 W System.err: {line}" for line in JAVA.split("\n")),
        ("NullPointerException", "Bot.java"),
    ),
    "Java, each line behind the name of its logger in brackets": (
        "\n".join(f"04-25 19:39:15 INFO [x.Bot] {line}" for line in JAVA.split("\n")),
        ("NullPointerException", "Bot.java"),
    ),
    "Java, each line behind the small colon of Android Studio": (
        "\n".join(f"W/System.err\ufe55 {line.strip()}" for line in JAVA.split("\n")),
        ("NullPointerException", "Bot.java"),
    ),
    "Python, a file without a suffix": (
        PYTHON.replace("/srv/bot.py", "/srv/bot"),
        ("KeyError", "/srv/bot"),
    ),
    "Python, a timeout": (
        PYTHON.replace("KeyError", "slixmpp.exceptions.IqTimeout"),
        ("IqTimeout", "/srv/bot.py"),
    ),
    "Python, a name that tells nothing": (
        PYTHON.replace("KeyError: 'oslo'", "weather.Unknown: oslo"),
        ("Unknown", "/srv/bot.py"),
    ),
    "Python, an exception whose words are a stanza": (
        PYTHON.replace("KeyError: 'oslo'", "slixmpp.exceptions.IqTimeout: <iq type='get' id='1'/>"),
        ("IqTimeout", "/srv/bot.py"),
    ),
    "Python, the name alone": (
        PYTHON.replace("KeyError: 'oslo'", "KeyboardInterrupt"),
        ("KeyboardInterrupt", "/srv/bot.py"),
    ),
    "Python, an exception of the plainest kind, behind a message": (
        "12:00 ERROR Error in handler\n" + PYTHON.replace("KeyError", "Exception"),
        ("Exception", "/srv/bot.py"),
    ),
    "Python, the heading alone behind a time": (
        f"12:00 ERROR {PYTHON}",
        ("KeyError", "/srv/bot.py"),
    ),
    "JavaScript, an error of the plainest kind": (
        JAVASCRIPT.replace("TypeError", "node:events:491\n      throw er;\n\nError"),
        ("Error", "/srv/bot.js"),
    ),
    "Python, each line behind a time": (
        "\n".join(
            f"2026-01-01 12:00:00 {line}" for line in PYTHON.splitlines() if line[4:5] != " "
        ),
        ("KeyError", "/srv/bot.py"),
    ),
    "JavaScript": (JAVASCRIPT, ("TypeError", "/srv/bot.js")),
    "JavaScript, modules": (
        JAVASCRIPT.replace("(/srv", "(file:///srv"),
        ("TypeError", "/srv/bot.js"),
    ),
    "Java": (JAVA, ("NullPointerException", "Bot.java")),
    "C#": (CSHARP, ("NullReferenceException", "C:\\srv\\bot.cs")),
    "Ruby": (RUBY, ("CityError", "/srv/bot.rb")),
    "Ruby, as its interpreter writes it": (
        "/srv/bot.rb:31:in `on_message': oslo (Weather::CityError)\n\tfrom /srv/bot.rb:7:in `run'",
        ("CityError", "/srv/bot.rb"),
    ),
    "Ruby, the name alone, and places without a word": (
        f"12:00 WARN -- : EXCEPTION:\n    IOError\n    closed\n{PLACES}",
        ("IOError", "/srv/bot.rb"),
    ),
    "Java, a program without the names of its files": (
        "\n".join(
            f"04-25 19:39:15 1-2/x W/System.err: {line}"
            for line in JAVA.replace("Bot.java:31", "Unknown Source:31").split("\n")
        ),
        ("NullPointerException", "org.example.Bot"),
    ),
    "Java, a program with other names": (
        JAVA.replace("Bot.java:31", "SourceFile:31"),
        ("NullPointerException", "org.example.Bot"),
    ),
    "PHP": (PHP, ("TypeError", "/srv/bot.php")),
    "Go": (GO, ("panic", "/srv/bot.go")),
    "Elixir, an exception of the plainest kind": (
        ELIXIR.replace("MatchError", "Bot.Error"),
        ("Error", "lib/bot.ex"),
    ),
    "Elixir": (ELIXIR, ("MatchError", "lib/bot.ex")),
}


def test_an_exception_of_twisted_is_named_without_frames() -> None:
    (failure,) = failures(TWISTED)
    assert failure.sentence == '"TimeoutError" ("no answer")'


def test_a_class_is_named_if_the_log_knows_no_line_of_it() -> None:
    (failure,) = failures(JAVA.replace("Bot.java:31", "Unknown Source"))
    assert failure.sentence == '"NullPointerException" ("oslo") in "org.example.Bot"'


def failures(log: str) -> list[Failure]:
    reader = Failures()
    lines = enumerate(f"{log}\n<end>".split("\n"))
    return [each for number, line in lines if (each := reader.feed(line, number))]


@pytest.mark.parametrize("language", TRACES)
def test_the_exception_is_named_with_the_line_of_the_program(language: str) -> None:
    log, (name, file) = TRACES[language]
    (failure,) = failures(log)
    assert (failure.name, failure.file, failure.line) == (name, file, 31)
    assert [each.line for each in failures(f"{log}\n{log}")] == [31, 31]


@pytest.mark.parametrize(
    "line",
    [
        "12:00 ERROR Error: see bot.py:31",
        '  File "bot.py", line 31, in f',
        "KeyError: 'x'",
        "at noon in room.example.org:5222",
        "connected at 12:00 (host.example.org:5222)",
        "x" * 100_000,
        "at " * 50_000,
    ],
)
def test_a_line_alone_is_no_failure(line: str) -> None:
    assert failures(line) == []
    assert failures(f"{line}\nhello\n{line}") == []


@pytest.mark.parametrize("name", ["ConnectionError", "BrokenPipeError", "NotConnectedError"])
@pytest.mark.parametrize("file", ["/srv/bot.py", "/srv/venv/lib/python3.11/site-packages/x.py"])
def test_a_library_that_lost_the_connection_failed_on_nothing(name: str, file: str) -> None:
    log = PYTHON.replace("KeyError: 'oslo'", f"{name}: not connected").replace("/srv/bot.py", file)
    assert [each.name for each in failures(log)] == ([name] if file == "/srv/bot.py" else [])


QUIET = ["<<< <presence from='a@b' to='c@d'/>"] * 6
ASKED = said("Ann", "!weather oslo")
SORRY = f">>> <message to='{ROOM}' type='error'>{error('bad-request')}</message>"

FAILED = {
    "at the end of the log": [ASKED, *PYTHON.split("\n")],
    "and said nothing": [ASKED, *JAVA.split("\n"), *QUIET],
    "again and again, with an error to the room": [ASKED, *JAVASCRIPT.split("\n"), SORRY, *QUIET]
    * 3,
    "on a question to it": [said("Ann", "bot: oslo?"), *RUBY.split("\n"), *QUIET],
    "on a message that names it": [said("Ann", "where is bot"), *GO.split("\n"), *QUIET],
}


@pytest.mark.parametrize("how", FAILED)
def test_a_failure_on_a_message_is_why_it_was_not_answered(how: str) -> None:
    first, *others = found(*IN, *FAILED[how])
    assert (first.name, first.severity, first.place.line) == ("silent", "error", len(IN) + 1)
    assert "line 31" in first.message
    assert ("3 times" in first.message) is ("again" in how)
    assert {each.name for each in others} <= {"misplaced"}


@pytest.mark.parametrize(
    "spoken",
    [
        [ASKED, *PYTHON.split("\n"), says("no such town"), *QUIET],
        [*PYTHON.split("\n"), ASKED, *QUIET],
        [said("Ann", "hello all"), *PYTHON.split("\n"), *QUIET],
        [ASKED, says("cold"), *PYTHON.split("\n"), *QUIET],
        [ASKED, *QUIET, *PYTHON.split("\n")],
    ],
    ids=["it answered", "before", "of no question", "after its answer", "much later"],
)
def test_a_failure_that_kept_no_answer_back_is_not_named(spoken: list[str]) -> None:
    assert found(*IN, *spoken) == []


@pytest.mark.parametrize("then", [[SORRY], [ASKED, *QUIET]], ids=["an error", "silence"])
def test_a_failure_on_what_is_no_question_is_told_with_what_it_may_explain(then: list[str]) -> None:
    liked = said("Ann", "").replace("<body></body>", "<reactions xmlns='urn:xmpp:reactions:0'/>")
    log = [*IN, ASKED, says("cold"), liked, *PYTHON.split("\n"), *then]
    (stream,) = examined(*log)
    assert "The program failed after the message in line" in verdict(stream.findings())


THROWN = ["StreamError: {}", "  at f (a.js:1:2)", "  at g (a.js:3:4)", "<<< <presence/>"]


@pytest.mark.parametrize(
    ("words", "condition"),
    [
        ("conflict", "conflict"),
        ("conflict - replaced by another", "conflict"),
        ("system-shutdown You can read more", "system-shutdown"),
        ("stream error: {urn:ietf:params:xml:ns:xmpp-streams}conflict (x)", "conflict"),
        ("StreamError with condition u'conflict': replaced", "conflict"),
        ("stream:error (conflict) text: replaced", "conflict"),
        ("stream was reset: CANCEL", ""),
        ("a conflict of versions", ""),
        ("conflict-free", ""),
    ],
)
def test_an_exception_passes_on_the_error_that_it_names(words: str, condition: str) -> None:
    (failure,) = failures("\n".join(THROWN).format(words))
    stated = () if failure.stated is None else failure.stated
    assert [each.tag for each in stated] == [condition] * bool(condition)


def test_an_error_that_the_log_has_counts_once_though_an_exception_names_it_too() -> None:
    (ended,) = found(*IN, stream_error("conflict"), *[each.format("conflict") for each in THROWN])
    assert "Another session" in ended.message
    refusal = "<<< <failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>"
    thrown = [each.format("not-authorized").replace("Stream", "SASL") for each in THROWN]
    (refused,) = found(refusal, *thrown)
    assert "2 times" not in refused.message


def test_an_error_of_a_stream_that_the_log_does_not_have_is_known_from_an_exception() -> None:
    log = [each.format("system-shutdown") for each in ("a client", *THROWN)]
    (ended, *others) = found(*log)
    assert (ended.name, ended.place.line, others) == ("ended", 2, [])


@pytest.mark.parametrize("passed", range(4, 7))
def test_a_login_in_which_the_program_failed_is_an_error(passed: int) -> None:
    trace = PYTHON.split("\n")
    (failed,) = found(*LOGIN[:passed], *trace)
    assert (failed.name, failed.cause) == ("login", "failed-at-login")
    assert "KeyError" in failed.message
    assert found(*LOGIN[:passed], *trace, *LOGIN[passed:], *JOIN) == []
    again = found(*LOGIN[:passed], *trace, *IN)
    assert [each.cause for each in again] == ["failed-at-login"]


@pytest.mark.parametrize("file", ["/srv/bot.py", "/srv/site-packages/ssl/it.py"])
@pytest.mark.parametrize("seconds", [1, 3])
def test_an_exception_of_a_library_long_after_a_message_has_nothing_to_do_with_it(
    file: str, seconds: int
) -> None:
    passed = [f"12:00:00 {line}" for line in (*IN, said("Ann", "!weather"))]
    trace = [
        *(f"12:00:{seconds:02} ERROR the connection failed", "transport: <of TLS>", "more of it"),
        *("Traceback (most recent call last):", f'  File "{file}", line 3, in read', "EOFError"),
    ]
    causes = [each.cause for each in found(*passed, *trace, command="!weather")]
    assert causes == ["raised"] * (seconds < 2 or file == "/srv/bot.py")


FORGED = f"!weather\n{PYTHON}".replace("<", "&lt;")


@pytest.mark.parametrize("forged", [FORGED, f"!weather\n{TWISTED}"])
@pytest.mark.parametrize("prefix", ["", "12:00:00 Ann: ", "INFO:bot:"])
def test_a_trace_that_somebody_says_accuses_nobody(prefix: str, forged: str) -> None:
    printed = [f"{prefix}{line}" for line in forged.split("\n")]
    findings = found(*IN, *said("Ann", forged).split("\n"), *printed, *QUIET)
    assert not [each for each in findings if each.severity == "error"]


@pytest.mark.parametrize("words", ["Error", *PYTHON.split("\n")[:2], PYTHON.split("\n")[-1]])
def test_a_line_of_a_trace_that_somebody_says_hides_no_exception(words: str) -> None:
    heard = said("Mallory", words.replace("<", "&lt;"))
    (raised,) = found(*IN, heard, said("Ann", "!weather"), *PYTHON.split("\n"), command="!weather")
    assert "KeyError" in raised.message


def test_an_error_that_an_exception_names_is_not_known_if_somebody_said_the_trace() -> None:
    trace = [each.format("conflict") for each in THROWN[:3]]
    log = [*IN, *said("Mallory", "\n".join(trace)).split("\n"), said("Ann", "hi")]
    for printed in (trace, [f"chat: {each}" for each in trace]):
        (stream,) = examined(*log, *printed)
        assert verdict(stream.findings()).startswith(UNKNOWN)
    (ended,) = found(*log, trace[0], "    at g (a.js:9:9)", *trace[1:])
    assert "Another session" in ended.message


@pytest.mark.parametrize("condition", ["conflict", "not-authorized"])
def test_a_stanza_that_an_exception_quotes_is_no_hole(condition: str) -> None:
    refused = refusal(condition)
    quoted = refused.removeprefix("<<< ")
    task = f"future: <Task finished coro=<join()> exception=PresenceError({quoted})>"
    log = [*LOGIN, ASK, refused, "ERROR never retrieved", task, f"lib.PresenceError: {quoted}"]
    capture = Capture()
    for stanza in captured(*log, says("hello")):
        capture.take(stanza)
    (stream,) = capture.streams
    assert stream.stream.holes == 0
    assert [each.cause for each in stream.findings()] == ["refused-join", "unnoticed"]
