"""The command `tap`, with unchanged bots of several libraries."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridge.sandbox.server import LOBBY
from tests.e2e.bridge_process import COMMAND
from tests.e2e.here import run_here
from tests.servers.process import ServerProcess
from tests.servers.server import XmppServer, write_settings
from tests.support.prerequisites import do_without, npm_packages
from tests.tap.tapping import STREAM

SECONDS = 60
BOT = (sys.executable, str(Path(__file__).parent.parent / "tap" / "room_bot.py"))
SHOW = (sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))")


class Place:
    """Where a tap is started: settings, state, and the variables of the bot."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.settings = folder / "bot.env"
        self.state = folder / "state"
        write_settings(self.settings, environment)
        keep = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        bot = {key: value for key, value in environment.items() if key != "XMPP_TLS_CA_FILE"}
        self.environment = {**keep, **bot, "XDG_STATE_HOME": str(self.state)}
        self.environment.pop("XMPP_SERVICE", None)

    def arguments(self, *options: str, bot: Sequence[str] = ()) -> list[str]:
        words = ["--env-file", str(self.settings), "tap", *options]
        return [COMMAND, *words, *(["--", *bot] if bot else [])]

    def tap(
        self, *options: str, bot: Sequence[str] = (), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.arguments(*options, bot=bot),
            env=self.environment | variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    @contextmanager
    def running(self, *options: str, bot: Sequence[str] = ()) -> "Iterator[subprocess.Popen[str]]":
        with subprocess.Popen(
            self.arguments(*options, bot=bot),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @property
    def captures(self) -> list[Path]:
        return sorted((self.state / "xmpp-bridge" / "tap").glob("*.jsonl"))


@pytest.fixture
def place(sandbox: XmppServer, tmp_path: Path) -> Place:
    return Place(tmp_path, sandbox.environment())


def verdict(ran: subprocess.CompletedProcess[str]) -> str:
    return ran.stderr.splitlines()[-1]


def test_a_healthy_bot_passes_and_its_stdout_is_its_own(place: Place) -> None:
    ran = place.tap(bot=BOT)
    assert (ran.returncode, ran.stdout) == (0, "the room has heard it\n"), ran.stderr
    assert verdict(ran) == "No error was found."
    (capture,) = place.captures
    assert str(capture) in ran.stderr
    explained = subprocess.run(
        [COMMAND, "explain", "--json", str(capture)], capture_output=True, text=True, check=False
    )
    (stream,) = json.loads(explained.stdout)["streams"]
    assert (explained.returncode, stream["account"]) == (0, "bot@localhost")
    assert place.environment["XMPP_PASSWORD"] not in capture.read_text("utf-8") + ran.stderr


def test_an_error_is_a_line_as_it_happens_and_the_verdict_the_last(place: Place) -> None:
    ran = place.tap("--once", bot=(*BOT, "never-joins"))
    assert ran.returncode == 1
    (line,) = [line for line in ran.stderr.splitlines() if line.startswith("error ")]
    assert " join: The client spoke to the room" in line
    assert "had never asked to join it" in verdict(ran)


TLS_FIRST = """
import os, socket
host, port = os.environ["XMPP_SERVICE"].partition("://")[2].split(":")
with socket.create_connection((host, int(port))) as tap:
    tap.sendall(b"\\x16")
    tap.recv(100)
"""


def test_with_once_an_error_that_shows_only_at_the_end_is_a_line_too(place: Place) -> None:
    ran = place.tap("--once", bot=(sys.executable, "-c", TLS_FIRST))
    told = [line.partition(" ")[0] for line in ran.stderr.splitlines() if " tls: " in line]
    assert (ran.returncode, told) == (1, ["note", "error"]), ran.stderr


def test_json_is_one_object_and_the_bots_stdout_goes_to_stderr(place: Place) -> None:
    page = place.settings.with_suffix(".html")
    ran = place.tap("--json", "--report", str(page), bot=BOT)
    told = json.loads(ran.stdout)
    assert told["verdict"] == "No error was found."
    assert [each["account"] for each in told["streams"]] == ["bot@localhost"]
    assert "the room has heard it\n" in ran.stderr
    assert "hello" in page.read_text("utf-8")


@pytest.mark.parametrize("what", ["json", "report"])
def test_what_cannot_be_written_is_a_failure_and_the_verdict_is_still_the_last_line(
    what: str, place: Place, tmp_path: Path
) -> None:
    folder, bot = tmp_path / "pages", [*BOT]
    folder.mkdir()
    options = ["--json"]
    if what == "report":
        options = ["--report", str(folder / "page.html")]
        bot = ["sh", "-c", 'rmdir "$0"; exec "$@"', str(folder), *BOT]
    with Path("/dev/full").open("w", encoding="ascii") as full:
        ran = subprocess.run(
            place.arguments(*options, bot=bot),
            env=place.environment,
            stdout=full if what == "json" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert (ran.returncode, verdict(ran)) == (1, "No error was found."), ran.stderr
    told = "stdout cannot be written" if what == "json" else f"'{folder}' is no folder"
    assert told in ran.stderr


def test_the_bot_is_led_to_tap_by_its_variables(place: Place) -> None:
    own = ("XMPP_USERNAME", "XMPP_PASSWORD", "MUC_ROOM")
    for name in own:
        del place.environment[name]
    environment = json.loads(place.tap(bot=SHOW).stdout)
    assert environment["XMPP_SERVICE"].startswith("xmpp://127.0.0.1:")
    assert environment["XMPP_DOMAIN"] == "localhost"
    settings = place.settings.read_text("utf-8")
    assert all(f"{name}='{environment[name]}'" in settings for name in own)
    assert environment["XMPP_TLS_CA_FILE"] == environment["NODE_EXTRA_CA_CERTS"]
    assert environment["SSL_CERT_FILE"] != environment["XMPP_TLS_CA_FILE"]
    # Settings that it looks up are the bridge's own, and another bot's account is another.
    looked_up = place.environment | {"TIA_ENV_PATH": str(place.settings)}
    ran = subprocess.run(
        [COMMAND, "tap", "--", *SHOW], env=looked_up, capture_output=True, text=True, check=False
    )
    assert json.loads(ran.stdout).keys().isdisjoint(own), ran.stderr


def test_a_program_is_started_with_the_systems_anchors_beside_taps(place: Place) -> None:
    anchors = place.settings.with_suffix(".pem")
    anchors.write_text("the system's\n", "ascii")
    bot = (sys.executable, "-c", "import os; print(open(os.environ['SSL_CERT_FILE']).read())")
    written = [place.tap(bot=bot, SSL_CERT_FILE=str(anchors)).stdout for _ in range(2)]
    assert {text.partition("\n")[0] for text in written} == {"the system's"}
    assert [text.count("BEGIN CERTIFICATE") for text in written] == [1, 1]
    assert written[0] != written[1]  # it is made anew each time


@pytest.mark.parametrize(
    ("options", "bot", "variables", "told"),
    [
        ([], SHOW, {}, "never came"),
        (["--for", "1s", "--listen", "127.0.0.1:0"], (), {}, "never came"),
        (["--for", "1s", "--listen", "[::1]:0"], (), {}, "Let the bot connect to [::1]:"),
        ([], ("/nonexistent",), {}, "does not start"),
        ([], SHOW, {"XMPP_USERNAME": "a b"}, "XMPP_USERNAME"),
        ([], SHOW, {"NODE_TLS_REJECT_UNAUTHORIZED": "0"}, "NODE_TLS_REJECT_UNAUTHORIZED is 0"),
        (["--component", "--login"], SHOW, {}, "--login"),
        (["--to", "a b"], SHOW, {}, "--to"),
        (["--listen", f"{'x' * 64}:5222"], SHOW, {}, "--listen 'xxx"),
        (["--for", "soon"], SHOW, {}, "--for"),
        (["--pseudonyms"], SHOW, {}, "--report"),
    ],
)
def test_a_bot_that_never_came_and_wrong_settings_are_2(
    options: list[str],
    bot: Sequence[str],
    variables: dict[str, str],
    told: str,
    place: Place,
    tmp_path: Path,
) -> None:
    _, *words = place.arguments(*options, bot=bot)
    ran = run_here(tmp_path, *words, **(place.environment | variables))
    assert (ran.returncode, told in ran.stderr) == (2, True), ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_library_that_tries_tls_from_the_first_byte_before_starttls_is_noted_once(
    prosody_process: ServerProcess, tmp_path: Path
) -> None:
    ran = Place(tmp_path, prosody_process.server.environment()).tap(bot=(*BOT, "tries-both"))
    told = [line.partition(" ")[0] for line in ran.stderr.splitlines() if " tls: " in line]
    assert (ran.returncode, told) == (0, ["note"]), ran.stderr


def test_a_bot_that_dies_is_at_fault_and_the_message_at_hand_is_named(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    place = Place(tmp_path, sandbox.environment(MUC_ROOM=LOBBY))
    ran = place.tap("--json", bot=(*BOT, "dies"))
    assert (ran.returncode, json.loads(ran.stdout)["verdict"]) == (1, verdict(ran)), ran.stderr
    assert (
        "The program of the client ended by itself, with exit code 3. It had not answered the "
        'message "You said: hello".'
    ) in verdict(ran)
    (capture,) = place.captures
    explained = run_here(tmp_path, "explain", str(capture))
    assert (explained.returncode, verdict(ran).partition(": ")[2]) == (
        1,
        explained.stdout.splitlines()[-1].partition(": ")[2],
    )


CONNECT = """
import os, socket, sys
host, port = os.environ["XMPP_SERVICE"].removeprefix("xmpp://").split(":")
with socket.create_connection((host, int(port))) as tap:
    tap.sendall(b"<stream:stream to='localhost'>")
    tap.recv(100)
"""


@pytest.mark.parametrize(
    ("bot", "told"),
    [
        ("raise SystemExit(7)", ["ended with exit code 7", "never came to"]),
        ("import os; os.kill(os.getpid(), 9)", ["ended by signal 9", "never came to"]),
        (re.sub(r"sendall\(.*\)", "shutdown(1)", CONNECT), ["sent nothing"]),
    ],
    ids=["an exit code", "a signal", "nothing sent"],
)
def test_a_bot_that_never_comes_is_told_by_how_far_it_got(
    bot: str, told: list[str], place: Place
) -> None:
    ran = place.tap(bot=(sys.executable, "-c", bot))
    lines = ran.stderr.splitlines()
    assert (ran.returncode, len(lines)) == (2, len(told)), ran.stderr
    assert all(words in line for words, line in zip(told, lines, strict=True))


def test_a_bot_that_dies_before_its_login_is_not_said_to_lack_a_mechanism(place: Place) -> None:
    reads = "while b'</stream:features>' not in tap.recv(9999): pass\n    sys.exit(3)"
    bot = CONNECT.replace("<stream:stream to='localhost'>", STREAM).replace("tap.recv(100)", reads)
    ran = place.tap(bot=(sys.executable, "-c", bot))
    assert "it ended for a reason of its own" in verdict(ran), ran.stderr
    began = verdict(ran).partition(": ")[2]
    assert began.startswith("The program of the client ended by itself, with exit code 3.")


def test_the_time_ends_it_and_a_bot_that_came_decides(place: Place) -> None:
    ran = place.tap("--for", "8s", bot=(*BOT, "stays"))
    assert (ran.returncode, verdict(ran)) == (0, "No error was found."), ran.stderr


def test_a_domain_on_the_command_line_wins_over_the_server_of_the_settings(place: Place) -> None:
    ran = place.tap("--to", "nowhere.invalid", bot=(sys.executable, "-c", CONNECT))
    assert (ran.returncode, "nowhere.invalid" in verdict(ran)) == (1, True), ran.stderr


def test_the_server_of_another_domain_takes_no_settings(tmp_path: Path) -> None:
    place = Place(tmp_path, {})
    words = [COMMAND, "tap", "--to", "nowhere.invalid", "--", sys.executable, "-c", CONNECT]
    ran = subprocess.run(
        words,
        env=place.environment | {"HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (ran.returncode, "did not reach its server" in verdict(ran)) == (1, True), ran.stderr
    assert [each.name for each in place.captures] == []


def test_without_a_command_it_says_what_to_change_until_it_is_stopped(place: Place) -> None:
    with place.running("--listen", "127.0.0.1:0") as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(9)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 2
    for library in ("slixmpp", "xmpp.js", "go-xmpp", "Smack"):
        assert any(line.strip().startswith(library) for line in lines)


def test_others_are_warned_of_when_tap_listens_for_them(place: Place) -> None:
    ran = place.tap("--listen", "0.0.0.0:0", bot=SHOW)
    assert "WARNING: --listen" in ran.stderr


@pytest.mark.parametrize("login", [[], ["--login"]], ids=["passed", "own"])
@pytest.mark.parametrize("library", ["slixmpp", "go-sendxmpp", "xmpp.js"])
def test_unchanged_bots_pass_at_a_real_server(
    library: str, login: list[str], prosody_process: ServerProcess, tmp_path: Path
) -> None:
    environment = prosody_process.server.environment()
    place = Place(tmp_path, environment)
    name, password = environment["XMPP_USERNAME"], environment["XMPP_PASSWORD"]
    bot: tuple[str, ...] = BOT
    match library:
        case "go-sendxmpp":
            if shutil.which("go-sendxmpp") is None:
                do_without("sudo apt-get install go-sendxmpp")
            service = 'exec go-sendxmpp -j "${XMPP_SERVICE#*://}"'
            words = f"-u {name}@localhost -p {password} -a Robot -c {environment['MUC_ROOM']}"
            bot = ("sh", "-c", f"echo hello | {{ {service} {words}; }}")
        case "xmpp.js":
            place.environment["NODE_MODULES"] = str(npm_packages())
            bot = ("node", str(Path(BOT[1]).with_suffix(".mjs")))
    ran = place.tap(*login, bot=bot)
    errors = [line for line in ran.stderr.splitlines() if line.startswith("error ")]
    if library == "go-sendxmpp":  # it does not wait until it is in the room
        errors = [line for line in errors if "before its own presence" not in line]
    else:
        assert ran.returncode == 0, ran.stderr
    assert errors == []
    assert password not in ran.stderr + place.captures[0].read_text("utf-8")
