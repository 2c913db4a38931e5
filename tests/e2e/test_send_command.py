"""`xmpp-bridge send` as a script runs it, and as a person."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from bridge.tools.entries import NOTICE
from bridge.xmpp.model.message_body import MAX_BODY_BYTES
from tests.e2e.bridge_process import COMMAND, run_in
from tests.e2e.checking import XTERM
from tests.e2e.here import run_here
from tests.e2e.watching import Watching, run, shell
from tests.faults.scene import configure
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

SENDER = "McpDebug-send"


async def test_it_ends_with_the_proof_and_the_answer_as_xmppsend_gives_them(
    xmpp_server: XmppServer, tmp_path: Path
) -> None:
    environment = xmpp_server.environment(LANG="C")
    room = environment["MUC_ROOM"]
    arguments = ("東京?", "--await", "10", "--from", "Wilma", "--json")
    async with Witness(xmpp_server, xmpp_server.witness, room, "Wilma") as wilma:
        async with Watching(tmp_path, environment, *arguments, command="send") as sending:
            assert (await wilma.heard("東京?")).nick == SENDER
            wilma.say("はい\u202e")
            assert await sending.ended() == 0
        await wilma.left(SENDER)
    assert (sending.out.isascii(), sending.err) == (True, "")
    result = json.loads(sending.out)
    (answer,) = result["answers"]
    assert (result["sent"], result["to"], result["message"]) == (True, room, "東京?")
    assert (answer["sender"], answer["body"], answer["how"]) == ("Wilma", "はい\\u{202E}", "public")


async def test_a_signal_ends_the_wait_for_an_answer_and_it_leaves_the_room_in_good_order(
    prosody: XmppServer, tmp_path: Path
) -> None:
    environment = prosody.environment()
    room = environment["MUC_ROOM"]
    async with Witness(prosody, prosody.witness, room, "Wilma") as wilma:
        async with Watching(tmp_path, environment, "?", "--await", "40", command="send") as sending:
            await wilma.heard("?")
            sending.signal(signal.SIGTERM)
            assert await sending.ended() == 128 + signal.SIGTERM
        # Without a goodbye the server would wait for it to resume its session (XEP-0198).
        await wilma.left(SENDER)
    assert (sending.out, sending.err) == ("", "")


CASES: dict[str, tuple[dict[str, str], tuple[str, ...], int, str]] = {
    "sent": ({}, ("hello",), 0, " sent it back after "),
    "not answered": ({}, ("hello", "--await", "1", "--from", "Fred"), 1, "\nNo answer.\n"),
    "nor by whom": (
        *({}, ("hello", "--await", "1", "--from", "Fred's"), 1),
        """\nNext: xmpp-bridge diagnose 'Fred'"'"'s'\n""",
    ),
    "read-only": ({"BRIDGE_READ_ONLY": "1"}, ("no",), 2, "BRIDGE_READ_ONLY in the environment"),
    "nobody to ask": ({"BRIDGE_CONFIRM_SEND": "1"}, ("no",), 1, "CONFIRM_SEND in the environment"),
    "too long a wait": ({}, ("no", "--timeout", "41", "--await", "10"), 2, "--await and"),
    "answers of whom": ({}, ("no", "--from", "Fred"), 2, "--from goes with --await"),
    "another room": ({}, ("no", "--room", "nix"), 2, '--room "nix" is no room'),
    "wrong settings": ({"MUC_ROOM": " "}, ("no",), 2, "xmpp-bridge init asks for"),
    "a wrong password": ({"XMPP_PASSWORD": "wrong-4711"}, ("no",), 1, "[not-authorized] Check"),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_exit_code_says_whether_the_room_has_it(
    case: str, sandbox: XmppServer, tmp_path: Path
) -> None:
    changed, arguments, expected, told = CASES[case]
    room = sandbox.environment()["MUC_ROOM"]
    environment = {**sandbox.environment(MUC_ROOM=room), **changed}
    async with Witness(sandbox, sandbox.witness, room, "Wilma") as wilma:
        code, out, err = await run(tmp_path, environment, "send", *arguments)
        wilma.say("that was all")
        heard = await wilma.heard(lambda said: said.body != "hello" or "hello" in arguments)
    assert (code, told in out + err) == (expected, True), out + err
    assert heard.body == ("hello" if "hello" in arguments else "that was all")
    assert out.startswith(room) if out else "\nxmpp-bridge: " in f"\n{err}"
    assert "wrong-4711" not in out + err


async def test_another_room_gets_it_alone_and_not_the_password_of_the_default_room(
    prosody: XmppServer, tmp_path: Path
) -> None:
    rooms, secret = [prosody.room(), prosody.room()], "room-secret-0815"
    environment = prosody.environment(MUC_ROOM=",".join(rooms), MUC_PASSWORD=secret)
    async with (
        Witness(prosody, prosody.witness, rooms[0], "Wilma") as default,
        Witness(prosody, prosody.witness, rooms[1], "Wilma") as other,
    ):
        await configure(other, passwordprotectedroom="1", roomsecret=secret)
        code, _, err = await run(tmp_path, environment, "send", "hello", "--room", rooms[1])
        default.say("nobody came")
        assert (await default.heard(lambda _: True)).body == "nobody came"
    assert (code, "MUC_PASSWORD" in err) == (1, True)


def test_a_servers_words_are_quoted_without_what_is_said_to_models(
    prosody: XmppServer, tmp_path: Path
) -> None:
    ran = run_here(tmp_path, "send", "hello", **prosody.environment(XMPP_PASSWORD="wrong"))
    is_quoted = 'refused the login of bot@localhost ("' in ran.stderr
    assert (ran.returncode, is_quoted, NOTICE in ran.stderr) == (1, True, False)


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (r"printf 'two\nlines\n'", 0, '"message": "two\\nlines"'),
        (r"printf 'aa\377'", 2, "standard input is not UTF-8: byte 3"),
        (f"head -c {MAX_BODY_BYTES + 2} /dev/zero", 2, f"more than {MAX_BODY_BYTES:,} bytes"),
    ],
)
def test_the_text_may_come_from_stdin(typed: str, code: int, said: str, tmp_path: Path) -> None:
    ran = shell(f'{typed} | "$@"', tmp_path, "send", "--sandbox", "--json", "-")
    assert (ran.returncode, said in ran.stdout + ran.stderr) == (code, True), ran


@pytest.mark.parametrize(
    ("stdout", "why"),
    [(">/dev/full", "stdout cannot be written: No space left"), (">&-", "stdout is closed")],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
async def test_what_is_said_is_said_though_stdout_takes_nothing(
    stdout: str, why: str, form: tuple[str, ...], sandbox: XmppServer, tmp_path: Path
) -> None:
    environment = sandbox.environment()
    async with Witness(sandbox, sandbox.witness, environment["MUC_ROOM"], "Wilma") as wilma:
        command = f'exec "$0" "$@" {stdout}'
        ran = await asyncio.to_thread(
            run_in, tmp_path, "/bin/sh", "-c", command, COMMAND, "send", "hi", *form, **environment
        )
        await wilma.heard("hi")
    (line,) = ran.stderr.splitlines()
    assert (ran.returncode, line.startswith(f"xmpp-bridge: {why}")) == (0, True)


SEND = ("send", "hi\u202e")
DIAGNOSE = ("diagnose", "Wilma", "--await", "1", "--say", "hi\u202e")


@pytest.mark.parametrize(
    ("command", "keys", "code", "told"),
    [
        (SEND, b"y\n", 0, "sent it back after"),
        (SEND, b"\n", 1, "chose to decline"),
        (SEND, b"\x03", 130, ""),
        (DIAGNOSE, b"y\n", 2, "this silence means nothing"),
        (DIAGNOSE, b"yy\n", 1, "chose to decline"),
    ],
)
async def test_a_person_is_asked_on_the_terminal_and_only_a_yes_is_one(
    command: tuple[str, ...], keys: bytes, code: int, told: str, sandbox: XmppServer, tmp_path: Path
) -> None:
    environment = sandbox.environment(BRIDGE_CONFIRM_SEND="1") | XTERM
    room = environment["MUC_ROOM"]
    name, *arguments = command
    expected = "hi\u202e" if keys == b"y\n" else "that was all"
    async with (
        Witness(sandbox, sandbox.witness, room, "Wilma") as wilma,
        Watching(tmp_path, environment, *arguments, command=name, columns=80) as sending,
    ):
        await sending.shows(r'"hi\u{202E}" (U+202E RIGHT-TO-LEFT OVERRIDE) [y/N] ')
        assert f"Send this to everybody in the room {room}?" in sending.out
        sending.press(keys)
        assert await sending.ended() == code
        wilma.say("that was all")
        assert (await wilma.heard(lambda _: True)).body == expected
    assert told in sending.out


def test_the_rate_holds_over_the_runs_and_those_of_diagnose(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    environment = sandbox.environment(BRIDGE_SEND_RATE="1")
    # What was not sent does not count.
    assert run_here(tmp_path, "send", " ", **environment).returncode == 2
    assert run_here(tmp_path, "send", "hi", **environment).returncode == 0
    for command in (("send", "hi"), ("diagnose", "Fred", "--say", "hi")):
        ran = run_here(tmp_path, *command, **environment)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert "1 message a minute may be sent" in ran.stderr
        assert "BRIDGE_SEND_RATE in the environment" in ran.stderr
