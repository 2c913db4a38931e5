"""The plugin in runs of pytest of its own, as whoever installs the package has it."""

import re
import sys
from pathlib import Path

import pytest

from bridge.testing.server import FixtureServer
from tests.servers.server import XmppServer
from tests.testing.servers import env_file

pytest_plugins = ["pytester"]

TRUSTS = ("XMPP_TLS_CA_FILE", "XMPP_ALLOW_PLAINTEXT")

PING = """
def test_blocking(xmpp_actor_sync, xmpp_room):
    alice, bob = xmpp_actor_sync("Alice"), xmpp_actor_sync("Bob")
    assert alice.room == xmpp_room
    alice.say("!ping")
    bob.expect("!ping", from_="Alice")
"""

ASYNC = """
import asyncio


async def test_awaited(xmpp_actor, xmpp_server):
    alice, bob = await asyncio.gather(xmpp_actor("Alice"), xmpp_actor("Bob"))
    answering = asyncio.create_task(answer(bob))  # a bot in the test's own loop
    await alice.say("!ping")
    await alice.expect(contains="PONG", from_="Bob")
    await answering


async def answer(bob):
    await bob.expect("!ping")
    await bob.say("pong")
"""

STRICT = "import pytest" + ASYNC.replace("async def test", "@pytest.mark.asyncio\nasync def test")

FAILING = """
def test_failing(xmpp_server, xmpp_actor_sync):
    alice, bob = xmpp_actor_sync("Alice"), xmpp_actor_sync("Bob")
    environment = xmpp_server.environment()
    bob.say("hello \\u202eworld")
    bob.say("private")
    bob.expect_join("Alice")
    alice.expect("pong", from_="Bob", within=0.1)
"""


def run(pytester: pytest.Pytester, *given: str | Path) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *given)


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({"test_plain": PING}, ("-p", "no:asyncio")),
        ({"test_plain": PING, "test_async": ASYNC}, ("-o", "asyncio_mode=auto")),
    ],
    ids=["without asyncio", "auto"],
)
def test_actors_work_in_every_mode(
    pytester: pytest.Pytester, files: dict[str, str], options: tuple[str, ...]
) -> None:
    pytester.makepyfile(**files)
    run(pytester, *options).assert_outcomes(passed=len(files))


def test_a_failure_is_reported_with_what_was_seen_in_the_room(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FAILING)
    result = run(pytester, "--showlocals")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            '>       alice.expect("pong", from_="Bob", within=0.1)',
            "E       bridge.testing.errors.ExpectationError: Alice waited 0.1 s for a message *",
            "E       What came instead, nearest first:",
            "E         another text: * <Bob> hello ?u{202E}world",
            "environment = <XMPP_SERVICE, *",
            "*- XMPP: test-*@rooms.localhost as Alice saw it -*",
            "*Z * <Alice> is here (moderator, owner)",
            "*Z <Bob> hello ?u{202E}world",
            "*- XMPP: the last stanzas of Alice -*",
            "*Z out: <presence *",
            "*Z in: <message *<body>private</body>*",
        ]
    )
    assert "[redacted]" in result.stdout.str()
    assert "concurrent/futures" not in result.stdout.str()  # the test's own line stands alone


HIDDEN = {"override": "\u202e", "NUL": "\0", "colour": "\x1b[31m", "line": "\u2028"}
RAW = {
    "the actor's nickname": "xmpp_actor_sync('A' + raw)",
    "its room": "xmpp_actor_sync('A', room=f'{raw}@rooms.localhost')",
    "its account": "xmpp_actor_sync('A', account='x' + raw)",
    "a message that differs": "assert said(xmpp_actor_sync) == 'the one\\nand the other'",
    "what the program prints": "print(raw); print(raw, file=sys.stderr); assert False",
    "an exception of its own": "raise RuntimeError(raw)",
    "a configuration": "xmpp_actor_sync('A').configure({raw: True})",
    "somebody awaited": "xmpp_actor_sync('A').expect_join(raw, within=0)",
}
"""What strangers' hidden characters come into a failure by."""

FAILING_RAW = """
import sys
import pytest
HIDDEN = {hidden!r}

def said(actor):
    alice, bob = actor("Alice"), actor("Bob")
    bob.say("the one\\nand \\u202e\\u2029the other")
    return alice.expect(from_="Bob").body

@pytest.mark.parametrize("raw", HIDDEN.values(), ids=HIDDEN)
def test_it(raw, xmpp_server, xmpp_actor_sync):
    {line}
"""


@pytest.mark.parametrize("line", RAW.values(), ids=RAW)
def test_hidden_characters_are_escaped_in_every_part_of_a_failure(
    line: str, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(FAILING_RAW.format(hidden=HIDDEN, line=line))
    junit = pytester.path / "junit.xml"
    result = run(pytester, "--color=no", f"--junit-xml={junit}", "--showlocals")
    result.assert_outcomes(failed=len(HIDDEN))
    shown = result.stdout.str() + junit.read_text("utf-8")
    assert {raw for raw in HIDDEN.values() if raw in shown} == set()
    assert re.search(r"\\u\{(202E|0|1B|2028)\}", shown)


WRONG = {
    'xmpp_server.fault("drp")': "E   ValueError: there is no such fault; there are drop, *",
    'xmpp_server.environment("a b")': "E   ValueError: an account's name has no blanks *",
    'xmpp_actor_sync("A", account="a b")': "E   ValueError: an account's name has no blanks *",
    'xmpp_actor_sync("A").expect(pattern="(")': "E   *PatternError: missing ): (",
    'xmpp_actor_sync("A").expect(contain="x")': "E   TypeError: *'contain'",
    'xmpp_actor_sync("A").say("")': 'E   *ActorError: A could not say "": the message is empty*',
    'xmpp_actor_sync("")': "E   *ActorError:  is not in *",
    'await (await xmpp_actor("A")).expect("x", within=0)': "E   *ExpectationError: A waited 0 s *",
    'await xmpp_actor("A", room="a@b.invalid")': "E   *ActorError: A is not in a@b.invalid. *",
    'await xmpp_actor("A", pasword="secret")': "E   TypeError: *pasword*",
}
"""What a test may do wrong, and what it is told."""


def test_what_a_test_did_wrong_is_told_at_its_own_line(pytester: pytest.Pytester) -> None:
    lines = [
        f"async def test_{number}(xmpp_server, xmpp_actor, xmpp_actor_sync): {wrong}"
        for number, wrong in enumerate(WRONG)
    ]
    pytester.makepyfile("\n".join(lines))
    result = run(pytester, "-o", "asyncio_mode=auto")
    result.assert_outcomes(failed=len(WRONG))
    for line, told in zip(lines, WRONG.values(), strict=True):
        result.stdout.fnmatch_lines([f">   {line}", told])
    assert "_ _ _ _" not in result.stdout.str()  # which stands between frames


APART = """
rooms = set()


def test_one(xmpp_server, xmpp_room):
    assert xmpp_server.environment()["MUC_ROOM"] == xmpp_room
    assert xmpp_server.environment(room="a@b")["MUC_ROOM"] == "a@b"
    rooms.add(xmpp_room)


def test_two(xmpp_server, xmpp_actor_sync, xmpp_room):
    assert xmpp_server.environment("carol")["XMPP_USERNAME"] == "carol"
    assert xmpp_actor_sync("Alice").occupants().keys() == {"Alice"}
    assert xmpp_room not in rooms


def test_silence(xmpp_server, xmpp_actor_sync):
    alice, bob = xmpp_actor_sync("Alice"), xmpp_actor_sync("Bob")
    xmpp_server.fault("silence", nickname="Bob")
    alice.say("one")
    bob.expect_nothing(during=0.2)
    xmpp_server.fault("duplicate-nickname", nickname="Carol")


def test_no_silence(xmpp_actor_sync):
    xmpp_actor_sync("Carol").say("here")
"""


def test_each_test_has_a_room_and_faults_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(APART)
    run(pytester).assert_outcomes(passed=4)


def test_a_run_that_uses_nothing_of_it_imports_the_plugin_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        def test_imports():
            ours = {name for name in sys.modules if name.partition(".")[0] == "bridge"}
            assert ours == {"bridge", "bridge.testing", "bridge.testing.plugin"}
            assert "slixmpp" not in sys.modules
    """)
    options = ("-p", "no:xdist", "-p", "no:asyncio")
    pytester.runpytest_subprocess(*options, timeout=60).assert_outcomes(passed=1)


def test_the_same_tests_run_on_a_real_server_in_strict_mode_and_by_workers(
    pytester: pytest.Pytester, prosody: XmppServer
) -> None:
    actors, bot = env_file(prosody, pytester.path), env_file(prosody, pytester.path, prosody.robot)
    pytester.makepyfile(
        test_ping=PING,
        test_async=STRICT,
        test_environment=f"""
            def test_bot(xmpp_server, xmpp_room):
                given = xmpp_server.environment()
                assert given["XMPP_USERNAME"] == "{prosody.robot.username}"
                assert given["XMPP_PASSWORD"] == "{prosody.robot.password}"
                assert xmpp_room.endswith("@{prosody.muc}")
                assert given["XMPP_TLS_CA_FILE"] == "{prosody.ca_file}"

            def test_fault(xmpp_server):
                xmpp_server.fault("drop")
        """,
    )
    options = (f"--xmpp-env-file={actors.name}", f"--xmpp-bot-env-file={bot}", "-n2")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options, timeout=60)
    result.assert_outcomes(passed=3, skipped=1)
    assert "Warning" not in f"{result.stdout}{result.stderr}"


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        (
            None,
            ("--xmpp-env-file=no.env",),
            [
                "ERROR: --xmpp-env-file no.env has no settings *",
                "  --xmpp-env-file names *no.env*(missing)*",
            ],
        ),
        (
            "XMPP_USERNAME=a@b",
            ("--xmpp-env-file=a.env",),
            ["ERROR: --xmpp-env-file a.env*", "*XMPP_PASSWORD is not*", "*MUC_ROOM is not*"],
        ),
        ("", ("--xmpp-bot-env-file=a.env",), ["ERROR: --xmpp-env-file is missing*"]),
    ],
)
def test_settings_that_do_not_do_are_told_once_at_the_start(
    pytester: pytest.Pytester, content: str | None, options: tuple[str, ...], told: list[str]
) -> None:
    if content is not None:
        (pytester.path / "a.env").write_text(content, "utf-8")
    pytester.makepyfile(PING)
    result = run(pytester, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(told)
    assert "Traceback" not in result.stderr.str()


def test_the_plugin_is_left_out_by_name(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(xmpp_server): pass")
    run(pytester, "-p", "no:xmpp-bridge", "-p", "no:asyncio").stdout.fnmatch_lines(
        ["*fixture 'xmpp_server' not found"]
    )


def test_the_sandbox_has_tls_where_its_library_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for trust in TRUSTS:
        with FixtureServer() as server:
            assert [name for name in TRUSTS if name in server.environment()] == [trust]
            server.actor_sync("Alice").say("hello")
        monkeypatch.setitem(sys.modules, "cryptography", None)


TELLING = """
import os
import subprocess
import sys

import pytest


def test_compared(xmpp_server, xmpp_actor_sync):
    alice, bob = xmpp_actor_sync("Alice"), xmpp_actor_sync("Bob")
    bob.say("it is " + xmpp_server.environment()["XMPP_PASSWORD"])
    said = alice.expect(from_="Bob")
    assert said.body == "pong"


def test_printed(xmpp_server):
    environment = {**os.environ, **xmpp_server.environment()}
    program = "import os; print('it is', os.environ['XMPP_PASSWORD'])"
    subprocess.run([sys.executable, "-c", program], env=environment)


def test_entered(xmpp_server, xmpp_actor_sync):
    word = xmpp_server.environment()["XMPP_PASSWORD"]
    xmpp_actor_sync("Bob" + word, account="bob")
    xmpp_actor_sync("Alice").expect("pong", within=0)


def test_noted(xmpp_server, record_property):
    record_property("said", "it is " + xmpp_server.environment()["XMPP_PASSWORD"])


def test_excused(xmpp_server):
    pytest.xfail("it is " + xmpp_server.environment()["XMPP_PASSWORD"])


def test_told(xmpp_server, request):
    request.config.told = xmpp_server.environment()["XMPP_PASSWORD"]
    with open("word", "w") as file:
        file.write(request.config.told)


def test_short(xmpp_server):
    xmpp_server._secrets.add("short")
    xmpp_server.environment()
    assert "short" == "pong"
"""

FOREIGN = """
import pytest


class Odd:
    def __init__(self, word):
        self.word = word

    def toterminal(self, tw):
        tw.line("odd: it is " + self.word)


class Item(pytest.Item):
    def runtest(self):
        raise ValueError

    def repr_failure(self, excinfo):
        return Odd(self.config.told)


class File(pytest.File):
    def collect(self):
        yield Item.from_parent(self, name="item")


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".odd":
        return File.from_parent(parent, path=file_path)
"""
"""A plugin that reports in a way of its own."""


def test_no_part_of_any_report_has_what_the_bot_told(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(FOREIGN)
    files = (pytester.makepyfile(TELLING), pytester.makefile(".odd", ""))
    options = (
        "--showlocals",
        "-rA",
        "-o",
        "junit_logging=all",
        "--junitxml=results.xml",
        "-Wdefault",
    )
    result = run(pytester, *files, *options)
    result.assert_outcomes(passed=3, failed=4, xfailed=1)
    word = (pytester.path / "word").read_text("utf-8")
    for told in (result.stdout.str(), (pytester.path / "results.xml").read_text("utf-8")):
        assert told.count("it is ***") > 3
        assert "odd: it is ***" in told
        assert "Bob***" in told
        for part in (word, word[-6:]):
            assert part not in told
    # What may be a word is not masked, so that reports stay readable.
    result.stdout.fnmatch_lines(["E   *assert 'short' == 'pong'*"])


PLAIN = """
def test_told({told}):
    {told}.environment()


def test_failing():
    raise ValueError("one line\\nand another")


def test_failing_in_a_group():
    raise ExceptionGroup("several", [ValueError("one")])
"""


def test_reports_without_a_password_are_as_pytest_makes_them(pytester: pytest.Pytester) -> None:
    reports = []
    for told in ("tmp_path", "xmpp_server"):
        source = PLAIN.format(told=told).replace("tmp_path.environment", "tmp_path.exists")
        pytester.makepyfile(test_apart=source)
        result = run(pytester, "--durations=0")
        result.assert_outcomes(passed=1, failed=2)
        reports.append(result.stdout.str().partition("slowest durations")[0])
    assert reports[0] == reports[1]
