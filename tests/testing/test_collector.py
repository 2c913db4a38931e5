"""Scenario files in runs of pytest of their own: what is played, and how failures are told."""

from pathlib import Path

import pytest

from tests.servers.server import XmppServer
from tests.testing.servers import env_file

pytest_plugins = ["pytester"]


def _scenario(*steps: str | tuple[str, str]) -> str:
    """The text of a file with these steps; who takes one, is named before it."""
    texts = [
        f'actor = "{each[0]}"\n{each[1]}' if isinstance(each, tuple) else each for each in steps
    ]
    return "".join(f"[[step]]\n{text}\n\n" for text in texts)


TALK = _scenario(
    'expect_join = "Observer"',
    ("Alice", 'say = "hello"'),
    ("Bob", 'say = "to nobody"'),
    'whisper = { nickname = "Alice", body = "psst" }',
    ("Alice", 'expect = { from = "Bob", text = "psst", private = true }'),
    'presence = { nickname = "Ally" }',
    'say = "renamed"',
    'presence = "away"',
    ("Bob", 'expect = { from = "Ally", text = "renamed" }'),
    "leave = true",
    ("Observer", 'expect_leave = "Bob"'),
    ("Bob", 'say = "again"'),
    ("Alice", 'expect = { pattern = "^ag.in$", from = "Bob" }'),  # whatever the room calls her
    ("Observer", 'expect = "to nobody"'),
    'expect_nothing = { contains = "psst", during = 0.2 }',
)

OFFICE = _scenario(
    ("Alice", 'configure = { moderatedroom = true, roomname = "Hall" }'),
    ("Bob", 'expect_join = "Alice"'),
    ("Alice", 'role = { nickname = "Bob", role = "moderator" }'),
    'affiliation = { who = "somebody@localhost", affiliation = "member" }',
    'kick = { nickname = "Bob", reason = "noise" }',
    'expect_leave = { nickname = "Bob", within = 5 }',
    'ban = "somebody@localhost"',
)

HELLO = '[[step]]\nsay = "hello"'
DROP = '[[step]]\nfault = "drop"'

FAULTS = _scenario(
    ("Alice", 'fault = { name = "late-reflection", seconds = 0.5 }'),
    'say = "slow"',
    "wait = 0.1",
    'fault = { name = "duplicate-nickname", nickname = "Bob" }',
    ("Bob", 'say = "I am here"'),
)
# The next in the order of the files has a Bob too.
AFTER = _scenario(("Bob", 'say = "hello"'))


def _run(pytester: pytest.Pytester, *given: str | Path) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *given)


def _save(pytester: pytest.Pytester, **files: str) -> None:
    for name, text in files.items():
        (pytester.path / f"{name}.room.toml").write_text(text, "utf-8")


def test_actors_talk_whisper_come_again_and_the_owner_of_the_room_moderates_it(
    prosody: XmppServer, pytester: pytest.Pytester
) -> None:
    _save(pytester, talk=TALK, office=OFFICE, fault=DROP)
    _run(pytester).assert_outcomes(passed=3)
    ran = _run(pytester, "--xmpp-env-file", env_file(prosody, pytester.path))
    ran.assert_outcomes(passed=2, skipped=1)


def test_faults_begin_with_their_step_and_end_with_the_scenario(pytester: pytest.Pytester) -> None:
    _save(pytester, faults=FAULTS, then=AFTER)
    ran = _run(pytester)
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(["faults.room.toml, line 16, say: Bob did not get into *: another *"])


def test_mistakes_are_told_in_the_file_or_at_the_step_and_other_tests_are_known(
    pytester: pytest.Pytester,
) -> None:
    _save(
        pytester,
        fault='[[step]]\nfault = "earthquake"',
        hello=HELLO,
        named='[[step]]\nfault = { name = "earthquake" }',
        nothing='[[step]]\nexpect_nothing = { pattern = "[" }',
        pattern='[[step]]\nexpect = { pattern = "(" }',
        wrong=f'{HELLO}\nto = "Bob"',
    )
    (pytester.path / "binary.room.toml").write_bytes(b"\xff")
    ran = _run(pytester, "--continue-on-collection-errors")
    ran.assert_outcomes(passed=1, errors=4, failed=2)
    ran.stdout.fnmatch_lines_random(
        [
            "binary.room.toml: 'utf-8' codec can't decode*",
            "fault.room.toml: line 2: step 1.fault: one of drop, kick, * is wanted",
            "named.room.toml: line 2: step 1.fault.name: one of drop, kick, * is wanted",
            "wrong.room.toml: line 3: step 1.to: there is no such key; known are actor, *",
            "nothing.room.toml, line 2, expect_nothing: missing *",
            "pattern.room.toml, line 2, expect: missing *",
        ]
    )
    ran.stdout.no_fnmatch_line("*Traceback*")


def test_a_failure_has_the_line_the_reason_the_bot_the_room_and_the_stanzas(
    pytester: pytest.Pytester,
) -> None:
    (pytester.path / "bot.py").write_text("print('one\\ntwo')\nraise SystemExit(0)", "utf-8")
    _save(
        pytester,
        ended='[bot]\ncommand = ["python", "bot.py"]\njoins_as = "Robot"\n' + HELLO,
        absent='[bot]\ncommand = ["no-such-program"]\njoins_as = "Robot"\n' + HELLO,
    )
    (pytester.path / "late.py").write_text("import time\ntime.sleep(60)", "utf-8")
    late = '[bot]\ncommand = ["python", "late.py"]\njoins_as = "Robot"\nwithin = 0.2\n' + HELLO
    _save(pytester, late=late)
    ran = _run(pytester)
    ran.assert_outcomes(failed=3)
    ran.stdout.fnmatch_lines(
        [
            "absent.room.toml, before the first step: the bot does not start: *no-such-program*",
            "ended.room.toml, before the first step: the bot ended with exit code 0.",
            "What the bot wrote at last:",
            "  one",
            "  two",
            "-* XMPP: test-*@rooms.localhost as Observer saw it -*",
            "* in the room as test-*@rooms.localhost/Observer*",
            "-* XMPP: the last stanzas of Observer -*",
            'late.room.toml, before the first step: Observer waited 0.2 s for "Robot" to join*',
            'In the room: "Observer".',
            "FAILED absent.room.toml::absent - Failed: absent.room.toml, before the first *",
        ]
    )
    assert "MUC_ROOM" not in ran.stdout.str()  # the room of a test is new


def test_files_are_selected_as_other_tests_are(pytester: pytest.Pytester) -> None:
    _save(pytester, again=HELLO, hello=HELLO)
    (pytester.path / "test_more.py").write_text("def test_more(): pass", "utf-8")
    _run(pytester, "-k", "again").assert_outcomes(passed=1, deselected=2)
    _run(pytester, "hello.room.toml::hello").assert_outcomes(passed=1)
