"""The command `explain`, on files, pipes and what is no log."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.capture.logs import ASK, JOIN, LOGIN, SASL, STANZAS, bounce, refusal, said, says, timed
from tests.capture.test_failures import PYTHON
from tests.e2e.bridge_process import COMMAND, run_in
from tests.e2e.here import run_here

HEALTHY = [*LOGIN, *JOIN]
HEALTHY_LINES = [f"{line}\n" for line in HEALTHY]
REFUSED = timed(*LOGIN, ASK, refusal("registration-required"), says("hi"), bounce("not-acceptable"))


def explain(
    *arguments: str | Path, text: str = "", cwd: Path = Path("/")
) -> subprocess.CompletedProcess[str]:
    return run_here(cwd, "explain", *arguments, said=text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_verdict_is_the_error_that_explains_the_others(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "bot.log").write_bytes("\r\n".join(REFUSED).encode(encoding))
    ran = explain("bot.log", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout.count("  error bot.log:") == 3
    last = ran.stdout.splitlines()[-1]
    assert last.startswith("bot.log:14: ")
    assert "members only" in last
    assert "admin" in last


def test_json_has_each_stream_with_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("\n".join(REFUSED))
    command = (COMMAND, "explain", "--json", "a.log", "-")
    ran = run_in(tmp_path, *command, said="\n".join(HEALTHY), LANG="C")
    told = json.loads(ran.stdout)
    assert ran.returncode == 1
    refused, healthy = told["streams"]
    assert set(refused) == {"account", "rooms", "from", "to", "verdict", "findings"}
    assert set(healthy) == {"account", "rooms", "verdict"}
    assert refused["account"] == "bot@example.org"
    shown = {"name": "join", "severity": "error", "clause": "XEP-0045, 7.2", "at": "12:00:01.400"}
    assert (shown | {"file": "a.log", "line": 14}).items() <= refused["findings"][0].items()


@pytest.mark.parametrize(
    ("option", "name"), [("--account", "bot@example.org"), ("--nickname", "bot")]
)
def test_one_client_is_picked_or_the_others_are_named(option: str, name: str) -> None:
    text = "\n".join(REFUSED)
    assert explain(option, name, text=text).returncode == 1
    ran = explain(option, "somebody@else", text=text)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "somebody@else" in ran.stderr
    assert f'"{name}"' in ran.stderr
    assert explain(option, "x", text="SEND: <presence/>").stderr.rstrip().endswith("names nobody")


LOGIN_REFUSED = [*LOGIN[:4], f"<<< <failure xmlns='{SASL}'><not-authorized/></failure>"]


@pytest.mark.parametrize("options", [("--account", "bot@example.org"), ("--nickname", "bot")])
@pytest.mark.parametrize("before", [[], [*HEALTHY, ">>> </stream:stream>"]])
def test_a_login_that_failed_is_not_hidden_from_who_names_the_client(
    before: list[str], options: tuple[str, str]
) -> None:
    ran = explain(*options, text="\n".join([*before, *LOGIN_REFUSED]))
    assert ran.returncode == 1
    assert "refused the login" in ran.stdout.splitlines()[-1]


def test_the_command_that_should_be_answered_is_told_by_the_user() -> None:
    asked = said("Ann", "!ping")
    text = "\n".join(timed(*HEALTHY, asked, "pause 11", *["<<< <presence/>"] * 2))
    assert explain(text=text).returncode == 0
    ran = explain("--command", "!ping", text=text)
    assert (ran.returncode, "silent" in ran.stdout) == (1, True)
    ran = explain("--command", "!other", text=text)
    told = 'No error was found. No message that begins with "!other" reached the client, other than'
    assert (ran.returncode, told in ran.stdout.splitlines()[-1]) == (0, True)


def test_a_command_that_was_answered_has_reached_the_client() -> None:
    ran = explain(
        "--command", "!ping", text="\n".join([*HEALTHY, said("Ann", "!ping"), says("pong")])
    )
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, "No error was found.")


def test_a_note_is_shown_only_where_everything_is_asked_for() -> None:
    renamed = JOIN[1].replace("/bot'", "/Robby'")
    text = "\n".join([*LOGIN, ASK, renamed])
    ran = explain(text=text)
    assert (ran.returncode, " note " in ran.stdout) == (0, False)
    nothing, conclusion = ran.stdout.splitlines()[1:]
    assert nothing == "  nothing wrong was found"
    assert conclusion.startswith("No error was found. stdin:14: The client asked for the nickname")
    assert "  note " in explain("--all", text=text).stdout


def test_a_log_that_stops_while_tls_begins_says_so() -> None:
    tls = "xmlns='urn:ietf:params:xml:ns:xmpp-tls'"
    shown = explain(text=f">>> <starttls {tls}/>\n<<< <proceed {tls}/>").stdout
    assert "error is not known. stdin:2: No stanza came after TLS was begun: " in shown
    trace = PYTHON.replace("KeyError: 'oslo'", "ssl.SSLCertVerificationError: self-signed")
    ran = explain(text=f">>> <starttls {tls}/>\n<<< <proceed {tls}/>\n{trace}\n")
    assert ran.returncode == 1
    told = 'stdin:2: TLS was begun, and the program failed before another stanza came: "SSLCertVer'
    assert told in ran.stdout.splitlines()[-1]


def test_an_entry_that_somebody_had_said_is_named_and_clears_nothing() -> None:
    ended = "<<< <stream:error><conflict/></stream:error>"
    heard = said("Mallory", ended.replace("<", "&lt;"))
    ran = explain(text="\n".join([*HEALTHY, heard, ended]))
    line = len(HEALTHY) + 1
    unknown = f"is not known. stdin:{line + 1}: Somebody had said this entry in line {line}"
    assert (ran.returncode, unknown in ran.stdout.splitlines()[-1]) == (2, True)
    assert explain(text="\n".join([*HEALTHY, heard])).returncode == 0


def test_of_a_program_that_failed_before_any_stanza_the_exception_is_told() -> None:
    ran = explain(text=f"12:00 INFO starting\n{PYTHON}\n")
    assert (ran.returncode, ran.stdout) == (2, "")
    told = 'the program failed (in line 10): "KeyError" ("\'oslo\'") in "/srv/bot.py", line 31'
    assert ran.stderr.splitlines()[-1].endswith(told)


def test_an_error_of_the_servers_that_only_an_exception_names_is_the_verdict() -> None:
    trace = (
        "org.x.SASLErrorException: SASLError using PLAIN: not-authorized\n\tat org.x.Y(Y.java:1)"
    )
    ran = explain(text=f"12:00:00 connecting\n{trace}\n12:00:01 waiting\n")
    assert (ran.returncode, "stdin:2: The server refused the login" in ran.stdout) == (1, True)


def test_of_a_stream_that_never_got_on_the_line_that_names_an_error_is_told() -> None:
    opened = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='x.io'/>"
    ran = explain(text=f"info: closed by remote with error: invalid-xml\nreceived: {opened}\n")
    assert "The log names invalid-xml" in ran.stdout.splitlines()[-1]
    assert (ran.returncode, "is not known" in ran.stdout) == (2, True)
    ran = explain(text=f"ERROR of login: it took long\nreceived: {opened}\n")
    assert "ERROR" not in ran.stdout
    failed = "<failed xmlns='urn:xmpp:sm:3'><item-not-found/></failed>"
    assert "The log names" not in explain(text=f"received: {failed}\n").stdout
    ended = "<<< <stream:error><conflict/></stream:error>"
    assert "The log names" not in explain(text=f"{ended}\n").stdout


@pytest.mark.parametrize("further", [[], [f"<<< <success xmlns='{SASL}'/>"], [says("hi")]])
def test_a_log_that_has_only_a_login_is_quoted_with_its_first_error(further: list[str]) -> None:
    auth = f">>> <auth xmlns='{SASL}' mechanism='PLAIN'>AGI=</auth>"
    ran = explain(text="\n".join([auth, *further, "ERROR bot: authentication failure"]))
    assert ("authentication failure" in ran.stdout, ran.returncode) == (further == [], 2)


def test_what_is_no_log_is_said_with_what_was_looked_for(tmp_path: Path) -> None:
    ran = explain(text="nothing\nhere\n")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("xmpp-bridge: switch on the program's debug log")
    ran = explain(tmp_path / "missing")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "No such file" in ran.stderr
    packed = gzip.compress(b"SEND: <presence/>")
    for begin, what in ((b"\xd4\xc3\xb2\xa1", "packet capture"), (packed, "unpack")):
        (tmp_path / "x").write_bytes(begin + bytes(100))
        ran = explain("x", cwd=tmp_path)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert what in ran.stderr


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("DEBUG slixmpp.xmlstream: connected", "logging.DEBUG"),
        ("at org.igniterealtime.x(X.java:1)", "SmackConfiguration.DEBUG"),
        ("in node_modules/x.js", "@xmpp/debug"),
        ("  parent: [Circular],", "@xmpp/debug"),
        ("XmppJs: iq from ann@ejabberd.example/gajim.1", "@xmpp/debug"),
        ("ruby-3.3.0@chat/gems/blather-2.0.0/lib/x.rb:232:in `call'", "Blather"),
        ("c2s1 info Client connected in mod_c2s", "stanza_debug"),
        ("c2s1 debug mod_smacks hibernating session", "stanza_debug"),
        ("c2s1 debug x.example:smacks acking for 13 in mod_smacks", "stanza_debug"),
        ("socket debug server.lua: ssl handshake done", "stanza_debug"),
        ("modules/xmpp/xmpp.js: Strophe connecting", "xmlInput"),
        ("DEBUG libstrophe: no route", "XMPP_LEVEL_DEBUG"),
        ("o.jivesoftware.openfire.nio.X - Closing connection", "Debugger Tools"),
        ("matterbridge: xmpp: Connecting", "StreamLogger"),
        ("a slixmpp log <identity name='Prosody'", "logging.DEBUG"),
        ("<identity name='Prosody'/>", "elsewhere the level debug"),
    ],
)
def test_nothing_readable_says_first_how_the_library_writes_its_stanzas(
    text: str, how: str
) -> None:
    ran = explain(text=f"{text}\n")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert how in ran.stderr.splitlines()[0]


def test_a_verdict_that_rests_on_lines_without_a_direction_says_so() -> None:
    text = "\n".join(line.replace(">>> ", "").replace("<<< ", "") for line in REFUSED)
    assert explain(text=text).stdout.splitlines()[-1].count("without a mark of direction") == 1
    assert "without a mark" not in explain(text="\n".join(REFUSED)).stdout


def test_what_the_log_has_only_in_part_is_counted() -> None:
    cut = "<<< <message from='room@muc.exa"
    text = "\n".join([*HEALTHY, cut, "<<< <presence/>", cut, "<<< <presence/>"])
    ran = explain(text=text)
    assert ran.returncode == 0
    assert ": 2;" in ran.stdout.splitlines()[-1]
    told = json.loads(explain("--json", text=text).stdout)
    assert [told["holes"], told["streams"][0]["holes"]] == [2, 2]
    assert ": 2;" in told["verdict"]
    told = json.loads(explain("--json", text="\n".join(HEALTHY)).stdout)
    assert (told["verdict"], "holes" in told) == ("No error was found.", False)


def test_what_strangers_write_forges_no_line_and_moves_no_cursor() -> None:
    text = "x&#10;  error bot.log:1 tls: \u202eforged"
    explained = f"<text xmlns='{STANZAS}'>{text}</text></error>"
    log = [*LOGIN, ASK, refusal("forbidden").replace("</error>", explained)]
    ran = explain(text="\n".join(log))
    assert [line.startswith("  error ") for line in ran.stdout.splitlines()].count(True) == 1
    assert "\u202e" not in ran.stdout


MEMORY_KIB = 64 * 1024
LONG_BODY = "x" * 700
LARGE_REQUEST = (
    f"RECV: <iq type='get' id='{{0}}' from='a@b'><q xmlns='urn:q'>{'x' * 400_000}</q></iq>\n"
)


def lines_of_clients() -> Iterator[str]:
    """More streams than are kept, each with many errors."""
    for number in range(1_000):
        yield from HEALTHY_LINES
        for room in (f"r{room}@{number}" for room in range(20)):
            yield f"{says('hi', room, 'chat')}\n{bounce('forbidden', room)}\n"


def lines_of_talk() -> Iterator[str]:
    """More messages than a page has."""
    yield from HEALTHY_LINES
    yield from (f"{said('Ann', f'{number} {LONG_BODY}')}\n" for number in range(10_000))


def lines_of_rooms() -> Iterator[str]:
    """Rooms that take 70 MB if none is forgotten."""
    yield from (f"{line}\n" for line in LOGIN)
    yield from (ASK.replace("room@", f"room{number}@") + "\n" for number in range(60_000))


def lines_of_requests() -> Iterator[str]:
    yield from (LARGE_REQUEST.format(number) for number in range(150))


def lines_of_holes() -> Iterator[str]:
    """Patterns that take memory for each character, and many holes in one line."""
    for line in (
        'Send XML on stream = <<"' + '\\"' * 250_000,
        f"SEND: <stream:stream {'b ' * 200_000}",
        json.dumps({"log": "RECV: <a\n" * 150_000}),
    ):
        yield from [*HEALTHY_LINES, f"{line}\n"]


@pytest.mark.parametrize(
    "large",
    [lines_of_clients, lines_of_talk, lines_of_rooms, lines_of_requests, lines_of_holes],
)
def test_a_large_log_is_read_in_bounded_memory(
    large: Callable[[], Iterator[str]], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    option = ["--report", str(page)] if large is lines_of_talk else []
    program = (
        "import re, sys; from bridge.cli import main; main(['explain', '--json', *sys.argv[1:]]);"
        "sys.stderr.write(re.search('VmHWM:\\\\s+([0-9]+)', open('/proc/self/status').read())[1])"
    )
    ran = run_in(tmp_path, sys.executable, "-c", program, *option, said="".join(large()))
    assert int(ran.stderr) < MEMORY_KIB * (2 if option else 1)
    assert not option or '"leftOut":' in page.read_text("utf-8")


def test_a_stanza_as_deep_as_a_stranger_likes_leaves_the_report_as_it_is(tmp_path: Path) -> None:
    deep = f"<<< <message from='a@b/c'>{'<a>' * 5_000}{'</a>' * 5_000}</message>"
    (tmp_path / "bot.log").write_text("\n".join([*LOGIN, deep, ASK, refusal("conflict")]))
    ran = explain("bot.log", "--report", "page.html", cwd=tmp_path)
    assert (ran.returncode, ran.stderr, (tmp_path / "page.html").exists()) == (1, "", True)


def test_the_report_draws_the_streams_and_leaves_the_answer_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "bot.log").write_text("\n".join(REFUSED))
    plain = explain("bot.log", cwd=tmp_path)
    ran = explain("bot.log", "--report", "page.json", "--pseudonyms", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, plain.stdout, "")
    page = json.loads((tmp_path / "page.json").read_text())
    assert (page["source"], page["zone"], page["pseudonyms"]) == ("explain", "unknown", True)
    (part,) = page["parts"]
    assert (len(part["events"]), len(part["findings"])) == (len(REFUSED), 3)
    assert "bot@" not in json.dumps(page)
    explain("bot.log", "--report", "page.json", cwd=tmp_path)
    told = json.loads((tmp_path / "page.json").read_text())["verdict"]
    assert told == plain.stdout.splitlines()[-1]
    (tmp_path / "same.log").hardlink_to(tmp_path / "bot.log")
    for where in (".", "missing/page.html", "", "./bot.log", "same.log"):
        ran = explain("bot.log", "--report", where, cwd=tmp_path)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr.startswith("xmpp-bridge: --report: ")
    assert (tmp_path / "bot.log").read_text() == "\n".join(REFUSED)
    assert explain("--pseudonyms", text="").returncode == 2
