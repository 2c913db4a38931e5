"""`xmpp-bridge init`, answered as a person does it: in a terminal, question by question."""

import re
import shlex
import signal
import subprocess
import tomllib
from asyncio import to_thread
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from time import monotonic

import pytest
from dotenv import dotenv_values

from tests.client.terminal import Terminal
from tests.docs.pages import ELISION, blocks, section
from tests.e2e.watching import Watching, shell
from tests.faults.scene import configure
from tests.faults.scripted_server import DOMAIN, PASSWORD, USERNAME, ScriptedServer
from tests.servers.certificates import Authority, Certificate
from tests.servers.process import ServerProcess
from tests.servers.server import XmppServer, write_settings
from tests.servers.witness import Witness

CTRL_C, CTRL_D = "\x03", "\x04"
TRUST = "Trust this certificate? (y/n) [n]: "
WRITE = "Write the file all the same? (y/n) [n]: "
CONSENT = "Write it? (y/n) [y]: "
REGISTER = "Register the bridge with Codex? (y/n) [y]: "
SETTINGS = ".config/xmpp-bridge.env"
README_SECTION = section("README.md", "## Your server and your agent")
DIAGNOSED_SECONDS = 120.0
"""Limit from an account and a room to a diagnosed bot."""


@contextmanager
def asking(
    home: Path, *arguments: str, columns: int = 80, environment: dict[str, str] | None = None
) -> Iterator[Terminal]:
    """The command in a terminal, which it leaves as it was."""
    with Terminal(home, arguments, environment, command="init", columns=columns) as terminal:
        yield terminal
        assert terminal.modes == terminal.modes_before
    assert "Traceback" not in terminal.written


def answer(terminal: Terminal, answers: Sequence[tuple[str, str]]) -> None:
    """Answer these questions, in this order, each with what is typed."""
    for question, typed in answers:
        terminal.ends_with(question)
        terminal.type(f"{typed}\r")


def squeezed(terminal: Terminal) -> str:
    """What stands on the screen, without its blanks and its breaks of lines."""
    return "".join("".join(terminal.screen.lines).split())


def files(home: Path) -> dict[str, int]:
    """The files of a home, with their modes."""
    return {
        str(path.relative_to(home)): path.stat().st_mode & 0o777
        for path in home.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("program", "columns", "environment", "arguments"),
    [
        ("prosody", 40, {"LANG": "C"}, ("--env-file", "lab.env")),
        ("ejabberd", 80, {"NO_COLOR": "1"}, ()),
    ],
)
async def test_an_account_and_a_room_become_a_registered_bridge_and_a_diagnosis(
    program: str,
    columns: int,
    environment: dict[str, str],
    arguments: tuple[str, ...],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    process: ServerProcess = request.getfixturevalue(f"{program}_process")
    server, bot, has_password = process.server, process.server.bot, bool(arguments)
    room, where = server.room(), f"{server.host}:{server.starttls_port}"
    settings, began = tmp_path / (arguments[-1] if arguments else SETTINGS), monotonic()
    diagnose = shlex.split(blocks(README_SECTION, "text")[1].lines[0])[3:]
    (tmp_path / ".codex").mkdir()

    def converse(terminal: Terminal) -> None:
        answer(terminal, [("JID: ", "nobody")])
        terminal.shows("XMPP_DOMAIN is not set")
        answer(terminal, [("JID: ", bot.jid), ("Password: ", "wrong"), ("Server [-]: ", where)])
        # The server refuses the password, and is not asked for its certificate again.
        answer(terminal, [(TRUST, "y"), (f"JID [{bot.jid}]: ", ""), ("Password: ", bot.password)])
        answer(terminal, [(f"Server [xmpp://{where}]: ", "")])
        terminal.ends_with("Room: ")
        listed = re.search(rf"(\d+){room}", squeezed(terminal))
        assert listed is not None
        answer(terminal, [("Room: ", listed[1] if has_password else room.partition("@")[0])])
        answer(terminal, [("Password of the room: ", "open sesame")] * has_password)
        answer(terminal, [("Nickname [McpDebug]: ", "Zoë"), (REGISTER, "")])
        assert terminal.end() == 0

    async with Witness(server, server.witness, room, "Robot") as robot:
        options = {"publicroom": "1", "roomname": "The \u202elab"}
        if has_password:
            options |= {"passwordprotectedroom": "1", "roomsecret": "open sesame"}
        await configure(robot, **options)
        with asking(tmp_path, *arguments, columns=columns, environment=environment) as terminal:
            await to_thread(converse, terminal)
        # What a search finds is not named.
        words = (*diagnose, "--env-file", str(settings)) if arguments else diagnose
        async with Watching(tmp_path, {}, *words, command="diagnose") as diagnosing:
            await robot.heard("!ping")
            robot.say("pong")
            assert await diagnosing.ended() == 0, diagnosing.out
        assert monotonic() - began < DIAGNOSED_SECONDS
    screen = squeezed(terminal)
    fingerprint = sha256(process.certificate.der).digest().hex(":").upper()
    assert fingerprint in screen
    assert screen.count("SHA-256fingerprint") == 1
    for shown in ("[not-authorized]", room, r'"The\u{202E}lab', "Everythingworks:"):
        assert shown in screen
    block, _ = blocks(README_SECTION, "text")
    for line in block.lines[1:]:
        if line != ELISION and not line.startswith(" "):
            assert "".join(re.split(r"[\[:/]|conference", line)[0].split()) in screen
    assert bot.password not in screen
    assert ("\x1b[3" in terminal.written) is ("NO_COLOR" not in environment)
    certificate = settings.with_name(f"{settings.name}.pem")
    beside = files(settings.parent).items()
    written = {name: mode for name, mode in beside if name.startswith(settings.name)}
    assert written == {settings.name: 0o600, certificate.name: 0o600}
    assert settings.parent.stat().st_mode & 0o777 == 0o700
    secret = {"MUC_PASSWORD": "open sesame"} if has_password else {}
    assert dotenv_values(settings) == {
        "XMPP_USERNAME": bot.jid,
        "XMPP_PASSWORD": bot.password,
        "MUC_ROOM": room,
        "XMPP_SERVICE": f"xmpp://{where}",
        "MCP_BOT_NICKNAME": "Zoë",
        "XMPP_TLS_CA_FILE": str(certificate),
        **secret,
    }
    entry = tomllib.loads((tmp_path / ".codex/config.toml").read_text())["mcp_servers"]["xmpp"]
    assert entry["args"] == ["--env-file", str(settings)]


async def test_to_give_up_at_any_question_leaves_nothing(
    prosody: XmppServer, tmp_path: Path
) -> None:
    answers = [
        ("JID: ", prosody.bot.jid),
        ("Password: ", prosody.bot.password),
        ("Server [-]: ", f"{prosody.host}:{prosody.starttls_port}"),
        (TRUST, "y"),
        ("Room: ", "lab"),
        ("Nickname [McpDebug]: ", ""),
    ]
    for number, (question, _) in enumerate(answers):
        with asking(tmp_path) as terminal:
            answer(terminal, answers[:number])
            terminal.ends_with(question)
            # Enter wakes a readline that was not listening yet when the signal came.
            terminal.type(CTRL_D if number % 2 else f"{CTRL_C}\r")
            assert terminal.end() == 130
            assert terminal.screen.lines[-2:] == ["Nothing was written.", ""]
        assert files(tmp_path) == {}


async def test_a_certificate_that_would_not_do_is_not_offered(
    authority: Authority, tmp_path: Path
) -> None:
    certificate = authority.issue_expired(DOMAIN)

    def converse(terminal: Terminal, where: str) -> None:
        account = (("JID: ", f"{USERNAME}@{DOMAIN}"), ("Password: ", PASSWORD))
        answer(terminal, [*account, ("Server [-]: ", where), (WRITE, CTRL_C)])
        assert terminal.end() == 130

    async with ScriptedServer(certificate=certificate) as server:
        with asking(tmp_path) as terminal:
            await to_thread(converse, terminal, f"127.0.0.1:{server.port}")
        assert b"<auth" not in server.heard
    assert "Totrustitwouldnothelp" in squeezed(terminal)


async def test_to_trust_one_certificate_is_not_to_trust_the_next(
    authority: Authority, tmp_path: Path
) -> None:
    def converse(terminal: Terminal, first: str, second: str) -> None:
        jid = f"{USERNAME}@{DOMAIN}"
        again = ((f"JID [{jid}]: ", ""), ("Password [***]: ", ""))
        answer(terminal, [("JID: ", jid), ("Password: ", "wrong"), ("Server [-]: ", first)])
        answer(terminal, [(TRUST, "y"), again[0], ("Password: ", PASSWORD)])
        answer(terminal, [(f"Server [xmpp://{first}]: ", second), (TRUST, "n"), (WRITE, "n")])
        answer(terminal, [*again, (f"Server [xmpp://{second}]: ", ""), (TRUST, CTRL_C)])
        assert terminal.end() == 130

    (home := tmp_path / "home").mkdir()
    async with (
        ScriptedServer(certificate=self_signed(tmp_path)) as first,
        ScriptedServer(certificate=authority.issue(DOMAIN)) as second,
    ):
        with asking(home) as terminal:
            places = (f"127.0.0.1:{server.port}" for server in (first, second))
            await to_thread(converse, terminal, *places)
        assert (b"<auth" in first.heard, b"<auth" in second.heard) == (True, False)
    assert files(home) == {}


def self_signed(folder: Path) -> Certificate:
    """A certificate that signed itself, as `prosodyctl cert generate` makes them."""
    certificate = Certificate(folder / "own.crt", folder / "own.key", folder / "own.crt")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=own"]
    names = ["-addext", f"subjectAltName=DNS:{DOMAIN}", "-days", "9"]
    paths = ["-keyout", str(certificate.key), "-out", str(certificate.chain)]
    subprocess.run([*command, *names, *paths], check=True, capture_output=True)
    return certificate


def test_without_a_server_the_file_can_be_written_all_the_same(tmp_path: Path) -> None:
    with asking(tmp_path) as terminal:
        answer(terminal, [("JID: ", "bot@localhost/x"), ("Password: ", "'s \\ #' ")])
        answer(terminal, [("Server [-]: ", "::1"), ("Server [-]: ", "127.0.0.1:1")])
        answer(terminal, [(WRITE, "no"), (WRITE, "n"), ("JID [bot@localhost]: ", "bot")])
        answer(terminal, [("JID [bot@localhost]: ", "")])  # the server's host is not its domain
        answer(terminal, [("Password [***]: ", ""), ("Server [xmpp://127.0.0.1:1]: ", "")])
        answer(terminal, [(WRITE, "y"), ("Room: ", "1, b@c.d"), ("Nickname [McpDebug]: ", "Bot")])
        assert terminal.end() == 1
    for words in ("[connection-refused]", "Tried: 127.0.0.1:1: connection refused", "XMPP_SERVICE"):
        assert words in " ".join(terminal.screen.lines)
    assert dotenv_values(tmp_path / SETTINGS) == {
        "XMPP_USERNAME": "bot@localhost",
        "XMPP_PASSWORD": "'s \\ #' ",
        "MUC_ROOM": "1@conference.localhost,b@c.d",
        "XMPP_SERVICE": "xmpp://127.0.0.1:1",
        "MCP_BOT_NICKNAME": "Bot",
    }


def test_a_file_that_is_there_gives_the_defaults_and_is_kept(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    """Its comments, its other variables, and its secrets stay out of sight."""
    settings = tmp_path / SETTINGS
    (tmp_path / ".codex").mkdir()
    environment = sandbox.environment(BRIDGE_READ_ONLY="1", OTHER="0ther-s3cret")
    write_settings(settings, environment)
    settings.write_text(former := f"# mine\n{settings.read_text()}")
    settings.chmod(0o644)
    defaults = [
        (f"JID [{sandbox.bot.jid}]: ", ""),
        ("Password [***]: ", ""),
        (f"Server [{environment['XMPP_SERVICE']}]: ", ""),
        (f"Room [{environment['MUC_ROOM']}]: ", ""),
    ]
    with asking(tmp_path, environment={"MUC_ROOM": "other@conference.localhost"}) as terminal:
        answer(terminal, [*defaults, ("Nickname [McpDebug]: ", "Bot"), (CONSENT, "n")])
        assert terminal.end() == 1
    assert files(tmp_path) == {SETTINGS: 0o644}
    with asking(tmp_path, environment={"MUC_ROOM": "other@conference.localhost"}) as terminal:
        answer(terminal, [*defaults, ("Nickname [McpDebug]: ", "Bot"), (CONSENT, "")])
        answer(terminal, [(REGISTER, CTRL_C)])
        assert terminal.end() == 130
    assert "Tocheckthemagain:xmpp-bridgecheck" in squeezed(terminal)
    assert "--env-file" not in squeezed(terminal)
    assert "MCP_BOT_NICKNAMEin" in squeezed(terminal)
    assert f"Checking the way into {environment['MUC_ROOM']}" in " ".join(terminal.screen.lines)
    for secret in (sandbox.bot.password, "0ther-s3cret"):
        assert secret not in terminal.written
    assert settings.read_text().startswith("# mine\n")
    assert settings.with_name("xmpp-bridge.env.bak").read_text() == former
    assert files(tmp_path) == {SETTINGS: 0o600, f"{SETTINGS}.bak": 0o600}
    expected = environment | {"XMPP_USERNAME": sandbox.bot.jid, "MCP_BOT_NICKNAME": "Bot"}
    del expected["XMPP_DOMAIN"]
    assert dotenv_values(settings) == expected


@pytest.mark.parametrize(
    ("changed", "ending"), [("", "Nothingwaswritten."), (".pem", "Thesettingsare")]
)
def test_what_another_program_writes_meanwhile_stays_and_the_end_says_what_was_written(
    changed: str, ending: str, prosody: XmppServer, tmp_path: Path
) -> None:
    """Either the settings file or the file for the certificate is changed."""
    settings = tmp_path / "lab.env"
    environment = prosody.environment(XMPP_TLS_CA_FILE=None)
    write_settings(settings, environment)
    with asking(tmp_path, "--env-file", "lab.env") as terminal:
        answer(terminal, [(f"JID [{prosody.bot.jid}]: ", ""), ("Password [***]: ", "")])
        answer(terminal, [(f"Server [{environment['XMPP_SERVICE']}]: ", ""), (TRUST, "y")])
        answer(terminal, [(f"Room [{environment['MUC_ROOM']}]: ", "")])
        answer(terminal, [("Nickname [McpDebug]: ", "Bot")])
        terminal.ends_with(CONSENT)
        (other := tmp_path / f"lab.env{changed}").write_text("# theirs\n")
        answer(terminal, [(CONSENT, "y")])
        assert terminal.end() == 1
    _, reason, after = squeezed(terminal).partition(f"{other.name}waschangedbyanotherprogram")
    assert reason
    assert ending in after
    assert ("xmpp-bridgecheck--env-file" in after) is bool(changed)
    assert other.read_text() == "# theirs\n"
    written = {"lab.env", "lab.env.bak"} if changed else set()
    assert files(tmp_path).keys() == {"lab.env", other.name} | written


def test_a_quotation_mark_that_is_open_leaves_the_file_and_its_restriction_as_they_are(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = tmp_path / "lab.env"
    environment = sandbox.environment()
    write_settings(settings, environment)
    text = f"{settings.read_text()}OTHER='s3cret\nBRIDGE_READ_ONLY=1\n"
    settings.write_text(text)
    with asking(tmp_path, "--env-file", "lab.env") as terminal:
        answer(terminal, [(f"JID [{sandbox.bot.jid}]: ", ""), ("Password [***]: ", "")])
        answer(terminal, [(f"Server [{environment['XMPP_SERVICE']}]: ", "")])
        answer(terminal, [(f"Room [{environment['MUC_ROOM']}]: ", "")])
        answer(terminal, [("Nickname [McpDebug]: ", "My Bot")])
        assert terminal.end() == 1
    for words in ("BRIDGE_READ_ONLY", "quotationmarkinline", "Nothingwaswritten."):
        assert words in squeezed(terminal)
    assert "s3cret" not in terminal.written
    assert settings.read_text() == text
    assert files(tmp_path).keys() == {"lab.env"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ended_by_a_signal_it_leaves_nothing_of_a_certificate(
    number: signal.Signals, prosody: XmppServer, tmp_path: Path
) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    with asking(tmp_path, environment={"TMPDIR": str(temporary)}) as terminal:
        answer(terminal, [("JID: ", prosody.bot.jid), ("Password: ", prosody.bot.password)])
        answer(terminal, [("Server [-]: ", f"{prosody.host}:{prosody.starttls_port}")])
        terminal.ends_with(TRUST)
        (held,) = temporary.iterdir()
        assert held.read_text().startswith("-----BEGIN CERTIFICATE")
        terminal.process.send_signal(number)
        assert terminal.end() == 128 + number
    assert files(tmp_path) == {}


def test_without_a_terminal_or_a_place_for_the_file_it_ends_with_one_line(tmp_path: Path) -> None:
    ran = shell('echo bot@localhost | "$@"', tmp_path, "init")
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1)
    (tmp_path / SETTINGS).mkdir(parents=True)
    with asking(tmp_path) as terminal:
        assert terminal.end() == 1
    assert "xmpp-bridge.env cannot be read: a directory" in terminal.written
    (file := tmp_path / "lab.env").touch(0o400)
    for named, why in ((file, "is read-only"), (file / "x.env", "cannot be written")):
        with asking(tmp_path, "--env-file", str(named)) as terminal:
            assert terminal.end() == 1
        assert "JID: " not in terminal.written
        assert why in terminal.written
