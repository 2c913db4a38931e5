"""`xmpp-bridge diagnose`, on a connection of its own and from the store."""

import json
from pathlib import Path

import pytest

from bridge.sandbox.server import LOBBY
from tests.e2e.bridge_process import NOWHERE
from tests.e2e.checking import SGR, XTERM, on_screen
from tests.e2e.here import run_here
from tests.e2e.watching import Watching, run
from tests.faults.scene import configure
from tests.servers.server import XmppServer
from tests.servers.witness import Witness
from tests.store.shelf import Shelf

SAY = ("--say", "!ping")
CASES: dict[str, tuple[dict[str, str], tuple[str, ...], int, str]] = {
    "it answers": ({}, ("Echo", *SAY), 0, "Nothing is wrong: "),
    "nothing was said": ({}, ("Echo",), 2, "\nNext: xmpp-bridge diagnose --sandbox --say "),
    "it is not there": ({}, ("Nobody",), 2, '"Nobody" was never in the room '),
    "all programs": ({}, (), 2, "is wrong with the programs (1 of 1 other occupant)."),
    "all programs, and it speaks": ({}, SAY, 0, 'said last: "Echo" after '),
    "read-only": ({"BRIDGE_READ_ONLY": "1"}, ("Echo",), 2, "\nNext: xmpp-bridge watch --sandbox"),
    "read-only, and it speaks": ({"BRIDGE_READ_ONLY": "1"}, ("Echo", *SAY), 2, "READ_ONLY in the"),
    "nobody to ask": ({"BRIDGE_CONFIRM_SEND": "1"}, ("Echo", *SAY), 1, "CONFIRM_SEND in the"),
    "no log": ({}, ("Echo", "--log", "/nowhere.log"), 2, '/nowhere.log" cannot be read: No such'),
    "whose log": ({}, ("--log", "/nowhere.log"), 2, "--log goes with NICKNAME"),
    "an empty name": ({}, ("",), 2, "NICKNAME is empty"),
    "in full": ({}, ("Echo", "--full"), 2, "\npresent    ok      "),
    "another room": ({}, ("Echo", "--room", "nix"), 2, '--room "nix" is no room'),
}


@pytest.mark.parametrize("case", CASES)
def test_the_exit_code_says_whether_a_cause_was_found(case: str, tmp_path: Path) -> None:
    changed, arguments, expected, told = CASES[case]
    ran = run_here(tmp_path, "diagnose", "--sandbox", *arguments, **changed)
    assert (ran.returncode, told in ran.stdout + ran.stderr) == (expected, True), ran
    looked = "\nLooked at what happened " in ran.stdout
    assert looked is ("xmpp-bridge: " not in ran.stderr)


@pytest.mark.parametrize("first", [True, False])
def test_the_next_command_names_the_file_of_the_settings(first: bool, tmp_path: Path) -> None:
    file, words = tmp_path / "my.env", ["diagnose", "--sandbox", "Echo"]
    file.write_text("MCP_BOT_NICKNAME=Me\n")
    given = ["--env-file", str(file)]
    ran = run_here(tmp_path, *([*given, *words] if first else [*words, *given]))
    assert (ran.returncode, ran.stderr) == (2, "")
    assert f"--env-file {file} --say '!ping' Echo\n" in ran.stdout


@pytest.mark.parametrize("how", ["option", "setting", "option, by address"])
def test_the_bots_own_log_gives_the_cause(how: str, tmp_path: Path) -> None:
    log = tmp_path / "bot.log"
    log.write_text(
        f"SEND: <presence to='{LOBBY}/Echo'><x xmlns='http://jabber.org/protocol/muc'/></presence>\n"
        f"RECV: <presence from='{LOBBY}/Echo'><x xmlns='http://jabber.org/protocol/muc#user'>"
        "<item affiliation='member' role='participant'/><status code='110'/></x></presence>\n"
        "RECV: <stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
        "</stream:error>\n"
    )
    option = () if how == "setting" else ("--log", str(log))
    who = f"{LOBBY}/Echo" if how == "option, by address" else "Echo"
    setting = {"BRIDGE_BOT_LOGS": f"Echo={log}"} if how == "setting" else {}
    ran = run_here(tmp_path, "diagnose", "--sandbox", who, *option, **setting)
    assert ran.returncode == 1, ran
    assert "Another session took over this one" in ran.stdout.partition("\n")[0]


@pytest.mark.parametrize("arguments", [(), ("Robot",)])
def test_where_no_server_is_the_cause_is_that_the_bridge_is_not_in_the_room(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    ran = run_here(tmp_path, "diagnose", *arguments, **NOWHERE)
    assert ran.returncode == 1
    assert ran.stdout.startswith("The bridge is not in the room room@conference.localhost")
    assert ran.stdout.endswith("\nNext: xmpp-bridge check\n")
    assert "XMPP_SERVICE" in ran.stdout


async def test_without_a_nickname_the_exit_code_is_about_the_programs_in_the_room(
    prosody: XmppServer, tmp_path: Path
) -> None:
    environment = prosody.environment(LANG="C")
    code, out, err = await run(tmp_path, environment, "diagnose")
    assert (code, "No program is seen among the 0 other occupants." in out) == (2, True), out + err
    room, account = environment["MUC_ROOM"], prosody.robot
    async with Witness(prosody, account, room, "Robot") as robot:
        await configure(robot, whois="anyone")
        async with Witness(prosody, account, room, "Robot-2"):
            code, out, err = await run(tmp_path, environment, "diagnose")
    assert (code, '"Robot" has the same account as "Robot-2".' in out) == (1, True), out + err


async def test_who_greets_the_bridge_has_not_answered_it(
    prosody: XmppServer, tmp_path: Path
) -> None:
    environment, asks = prosody.environment(LANG="C"), ("--say", "!ping", "--await", "1")
    room = environment["MUC_ROOM"]
    environment["MUC_ROOM"] = f"{room},other-{room}"
    async with (
        Witness(prosody, prosody.robot, room, "Robot") as robot,
        Watching(tmp_path, environment, "Robot", *asks, command="diagnose") as looking,
    ):
        await robot.joined("McpDebug-diagnose")
        robot.say("Welcome!")
        assert await looking.ended() == 2
    assert f"Looked at what happened in {room} only, since 2" in looking.out


async def test_what_send_said_counts_if_it_was_recorded(
    prosody: XmppServer, tmp_path: Path
) -> None:
    Shelf(tmp_path / ".local/state/xmpp-bridge/rooms.db")
    environment = prosody.environment(LANG="C")
    async with Witness(prosody, prosody.witness, environment["MUC_ROOM"], "Robot") as robot:
        arguments = ("!ping", "--await", "10")
        async with Watching(tmp_path, environment, *arguments, command="send") as sending:
            await robot.heard("!ping")
            robot.say("pong\u202e")
            assert await sending.ended() == 0
        code, out, err = await run(tmp_path, environment, "diagnose", "Robot", "--json")
        assert (code, err, out.isascii()) == (0, "", True)
        result = json.loads(out)
        assert result["verdict"].startswith('Nothing is wrong: "Robot" answered ')
        (answer,) = result["answers"]
        assert answer["cursor"].startswith("recorded:")
        assert result["since"] < answer["at"]
        async with Watching(
            tmp_path, environment | XTERM, "Robot", command="diagnose", columns=40
        ) as looking:
            assert await looking.ended() == 0
        shown = on_screen(looking, 40)
        assert max(map(len, shown)) <= 40
        assert shown[0].startswith("Nothing is wrong: ")
        assert "<Robot> pong\\u{202E}" in " ".join(line.strip() for line in shown)
        plain, painted = environment | XTERM | {"NO_COLOR": "1"}, SGR.search(looking.out)
        async with Watching(tmp_path, plain, "Robot", command="diagnose", columns=40) as looking:
            assert await looking.ended() == 0
        assert (painted is None, SGR.search(looking.out)) == (False, None)
