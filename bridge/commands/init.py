"""`xmpp-bridge init`: asks for account, server and room, and writes the settings file.

Each answer is tried out before the next question. The file is written after the last answer. Words
of strangers stand above a question, in lines that are broken here, and never within it.
"""

import argparse
import asyncio
import os
import shlex
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from getpass import getpass
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import TypeAlias

from bridge.commands.configuration import PACKAGE_ROOT, current_directory
from bridge.commands.exit import FAILURE, INTERRUPTED, SUCCESS, UsageError, exit_on_termination
from bridge.files import temporary_file
from bridge.logs import complain, write_out
from bridge.registration.clients import installed
from bridge.registration.errors import RegistrationError
from bridge.registration.files import ConfigFile
from bridge.registration.launch import ENV_FILE_OPTION, own_command
from bridge.registration.register import home_folder
from bridge.settings import sources
from bridge.settings.env_file import changed, with_variables
from bridge.settings.load import load
from bridge.settings.table import SECRETS, TABLE, VARIABLES, Configuration, Settings
from bridge.settings.values import SettingsError
from bridge.text import name_of, one_line
from bridge.views.output import display_of
from bridge.xmpp.checks.attempt import Attempt, look_at_certificate, try_out
from bridge.xmpp.link import certificate, endpoint, from_slixmpp
from bridge.xmpp.model.faults import ConnectionFailedError, Retry

with suppress(ImportError):  # some builds of Python lack it
    import readline  # noqa: F401 - it makes `input` edit lines, and write the prompt to stdout

Read: TypeAlias = Callable[[str], str]
"""Turns what is typed into the value of a variable."""

ASKED = tuple(row.name for row in TABLE if row.participant)
"""The variables that `init` may change: they decide whether the room can be joined."""

UNKNOWN = {"XMPP_PASSWORD": "-", "MUC_ROOM": "room@conference.invalid"}
"""Values of variables that must be set, until the person has answered."""

FROM_DNS = "-"
"""The answer that stands for the server that DNS names. Then XMPP_SERVICE is not set."""

LOOK_SECONDS = 0.2
"""How long a signal waits if it comes after a question is shown and before its answer is read."""

MAX_ROOMS = 30
"""The most rooms in the list: so many fit on a terminal. The person may name any other room."""

JID_CHARACTERS = 200
"""The most characters of a room's JID in the list. A JID may have 3,000."""


def run(parsed: argparse.Namespace) -> int:
    """Ask, write the file, check it, and offer to register it."""
    if not is_possible():
        raise UsageError("init asks questions, and works on a terminal only")
    from_slixmpp.load()
    exit_on_termination()
    ending = "Nothing was written."
    try:
        home, cwd = home_folder(), current_directory()
        environ = {**os.environ, "HOME": str(cwd / home)}
        named = parsed.env_file or sources.users_file(environ)
        assert named is not None  # HOME is absolute
        path = sources.absolute(named, cwd, environ)
        with temporary_file(Path(gettempdir())) as trusted:
            setup = Setup(path, trusted)
            setup.ask()
            try:
                if not setup.write():
                    return FAILURE
            finally:
                if setup.is_written():
                    ending = f"The settings are in {path}. To check them again: xmpp-bridge check"
                    # A search may find another file, or none.
                    if load(os.environ, cwd=cwd, package_root=PACKAGE_ROOT).env_file != str(path):
                        ending += f" {ENV_FILE_OPTION} {shlex.quote(str(path))}"
        return follow_up(path, home)
    except (KeyboardInterrupt, EOFError):
        complain("")  # ends the line of the question
        return INTERRUPTED
    except (RegistrationError, SettingsError, UnicodeError) as error:
        complain(f"xmpp-bridge: {one_line(str(error))}")
        return FAILURE
    finally:
        say(ending)


def follow_up(path: Path, home: Path) -> int:
    """Check what was written, and offer to register it; return the exit code."""
    command, *options = own_command(sys.argv[0], sys.executable)
    # A variable of the environment would win over the file.
    environment = {name: os.environ[name] for name in os.environ.keys() - set(VARIABLES)}

    def start(*words: str) -> int:
        words = (command, *options[:-1], *words, ENV_FILE_OPTION, str(path))
        return subprocess.call(words, env=environment)  # noqa: S603 - this very program

    passed = start("check") == SUCCESS
    for client in installed(os.environ, home):
        if agrees(f"Register the bridge with {client.title}?", default=passed):
            start("register", client.key)
    return SUCCESS if passed else FAILURE


class Setup:
    """The answers, and the file into which they are written."""

    def __init__(self, path: Path, trusted: Path) -> None:
        """Raises `RegistrationError` or `SettingsError` if `path` cannot be read or written.

        `trusted` is a file for the certificate that the person is asked to trust. `write` copies it
        to a place beside the settings.
        """
        self._file = ConfigFile(path)
        self._before = self._file.read() or ""
        self._file.check_writable()
        self._after: str | None = None
        """The text of the file with the answers; None until it is to be written."""
        self._values = dict(sources.read(path, trusted=True).values) if self._before else {}
        """The values of the file, replaced by the answers; an empty value counts as unset."""
        self._trusted = trusted

    def ask(self) -> None:
        """Ask all questions."""
        say(f"Your answers go into {self._file.path} at the end. Ctrl-C gives up.")
        for problem in self._load().problems:
            if problem.variable in ASKED and self._values.pop(problem.variable, ""):
                say(str(problem))
        self._ask_room(self._log_in())
        self._ask("MCP_BOT_NICKNAME", "Nickname", self._settings().nickname)

    def is_written(self) -> bool:
        """Read the file, and return whether it has the answers: Ctrl-C may have prevented that."""
        with suppress(RegistrationError):
            return self._after is not None and self._file.read() == self._after
        return False

    def write(self) -> bool:
        """Write the file. If it exists already, ask first; return False if the person refuses.

        The certificate is written last: nothing uses it without the settings. Raises
        `RegistrationError`.
        """
        path = self._file.path
        anchor, trusted = ConfigFile(path.with_name(f"{path.name}.pem")), self._trusted
        if trusts := self._values.get("XMPP_TLS_CA_FILE") == str(trusted):
            self._values["XMPP_TLS_CA_FILE"] = str(anchor.path)
        certificate_before = (anchor.read() or "") if trusts else ""
        after = with_variables(self._before, {name: self._values.get(name, "") for name in ASKED})
        if self._before and after != self._before:
            values = changed(self._before, after, ASKED) or ["no value"]
            say(f"This changes {', '.join(values)} in {path}.")
            if not agrees("Write it?", default=True):
                return False
        self._after = after
        if after != self._before:
            with suppress(OSError):
                path.chmod(0o600)  # the new file and the backup get the mode of the former
            self._file.replace(self._before, after)
        if trusts:
            anchor.replace(certificate_before, trusted.read_text("ascii"))
        return True

    def _load(self) -> Configuration:
        environ = {"HOME": os.environ.get("HOME", "")} | UNKNOWN | self._values
        folder = self._file.path.parent
        return load(environ, cwd=folder, package_root=folder, searching=False)

    def _settings(self) -> Settings:
        settings = self._load().settings
        assert settings is not None  # wrong values were dropped, and asked for again
        return settings

    def _ask(self, name: str, question: str, default: str = "", read: Read = str) -> None:
        """Ask for a variable until its value is right."""
        usual = default or self._values.get(name, "")
        while True:
            self._values[name] = read(ask(question, usual, secret=name in SECRETS))
            problems = [p for p in self._load().problems if p.variable in {name, "XMPP_DOMAIN"}]
            if not problems:
                return
            for problem in problems:
                say(str(problem))

    def _ask_account(self) -> None:
        """Ask for the account and its server."""
        known = self._load().settings
        self._values["XMPP_DOMAIN"] = ""  # the JID has it
        service = self._values.pop("XMPP_SERVICE", "")  # its host is no domain for a JID without
        say("The bridge needs an account. Its JID is such as bot@example.org.")
        self._ask("XMPP_USERNAME", "JID", known.jid if known else "")
        self._values["XMPP_USERNAME"] = self._settings().jid  # without a resource
        self._values["XMPP_SERVICE"] = service
        self._ask("XMPP_PASSWORD", "Password")
        say(f"DNS: {'; '.join(_look_up(self._settings())) or 'no answer'}.")
        say(f"A server is HOST, HOST:PORT, xmpps://HOST:PORT, or {FROM_DNS} as DNS says.")
        self._ask("XMPP_SERVICE", "Server", self._values.get("XMPP_SERVICE") or FROM_DNS, _service)

    def _log_in(self) -> Attempt:
        """Ask for the account until it can log in, or the person wants it written all the same."""
        self._ask_account()
        while fault := (attempt := asyncio.run(try_out(self._settings()))).fault:
            say(f"[{fault.condition}] {fault.message} {fault.hint}", failed=True)
            if attempt.findings:
                say(f"Tried: {'; '.join(attempt.findings)}.")
            if fault.condition == "certificate-verify-failed" and self._trusts_certificate():
                continue
            if fault.retry is Retry.NEVER:
                del self._values["XMPP_PASSWORD"]
            elif agrees("Write the file all the same?", default=False):
                break
            self._ask_account()
        return attempt

    def _trusts_certificate(self) -> bool:
        """Show the certificate; return whether the person trusts it from now on."""
        if self._values.get("XMPP_TLS_CA_FILE") == str(self._trusted):  # that was another server's
            del self._values["XMPP_TLS_CA_FILE"]
        settings, trusted = self._settings(), self._trusted
        presented = asyncio.run(look_at_certificate(settings)).certificate
        if presented is None:
            return False
        validity = certificate.validity(presented, datetime.now(UTC))
        say(f"It presents a {certificate.describe(presented)}, {validity}.")
        say(f"SHA-256 fingerprint: {sha256(presented.der).digest().hex(':').upper()}")
        trusted.write_text(ssl.DER_cert_to_PEM_cert(presented.der), "ascii")
        settings = settings._replace(tls_ca_file=trusted)
        if fault := asyncio.run(try_out(settings, log_in=False)).fault:
            say(f"To trust it would not help: {fault.message} {fault.hint}")
            return False
        if trusts := agrees("Trust this certificate?", default=False):
            self._values["XMPP_TLS_CA_FILE"] = str(trusted)
        return trusts

    def _ask_room(self, attempt: Attempt) -> None:
        """List the rooms, and ask for the room, and for its password if it needs one."""
        service = [*attempt.services, f"conference.{self._settings().domain}"][0]
        # The list has the rooms of every service; it shows one service after another.
        listed = sorted(attempt.rooms[:MAX_ROOMS], key=lambda room: room.jid.partition("@")[2])
        rooms = {str(number): room for number, room in enumerate(listed, 1)}
        for number, room in rooms.items():
            name = name_of(room.name) if room.name else ""
            say(f"{number:>3}  {one_line(room.jid, JID_CHARACTERS)}  {name}".rstrip())
        if len(attempt.rooms) > MAX_ROOMS:
            say(f"... and {len(attempt.rooms) - MAX_ROOMS} more")
        number = "its number, " * bool(rooms)
        say(f"A room is {number}its name at {service}, or its JID. Put commas between several.")

        def jids(text: str) -> str:
            items = (item.strip() for item in text.split(",") if item.strip())
            named = (rooms[item].jid if item in rooms else item for item in items)
            return ",".join(item if "@" in item else f"{item}@{service}" for item in named)

        self._ask("MUC_ROOM", "Room", read=jids)
        if attempt.fault is None:
            known, settings = self._values.pop("MUC_PASSWORD", ""), self._settings()
            if asyncio.run(try_out(settings, room=settings.room)).needs_password:
                self._ask("MUC_PASSWORD", "Password of the room", known)


def _service(text: str) -> str:
    """Return the URL of the server that was typed; empty if DNS is to name it."""
    if text == FROM_DNS:
        return ""
    return text if "://" in text else f"xmpp://{text}"


def _look_up(settings: Settings) -> list[str]:
    """Return what DNS says of the domain."""
    findings: list[str] = []
    with suppress(OSError, ConnectionFailedError):  # the findings have the failure too
        asyncio.run(endpoint.resolve(settings._replace(service=None), findings.append))
    return findings


def is_possible() -> bool:
    """Whether a person can be asked: both stdin and stdout are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def say(text: str, *, failed: bool = False) -> None:
    """Show a paragraph, broken into lines."""
    display = display_of(sys.stdout)
    lines = display.paragraph(one_line(text))
    write_out("\n".join(map(display.red, lines) if failed else lines))


def ask(question: str, default: str = "", *, secret: bool = False) -> str:
    """Return the line that is typed, or the default if it is empty; a `secret` is not shown."""
    usual = f" [{'***' if secret else one_line(default)}]" if default else ""
    with _signals_seen():
        typed = (getpass if secret else input)(f"{question}{usual}: ")
    return (typed if secret else typed.strip()) or default


def agrees(question: str, *, default: bool) -> bool:
    """Return whether the answer is yes; `default` is what an empty line means."""
    while (answer := ask(f"{question} (y/n)", "ny"[default]).lower()) not in {"y", "n"}:
        say("Please answer y or n.")
    return answer == "y"


@contextmanager
def _signals_seen() -> Iterator[None]:
    """Interrupt the reading of a line often enough for a handler of a signal to run.

    Python runs the handler of a signal that interrupts the reading. The handler of a signal that
    came just before would wait for a key.
    """
    former = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, LOOK_SECONDS, LOOK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
