"""`xmpp-bridge tap`: stands between a bot and its server, and says what goes wrong."""

import asyncio
import ipaddress
import os
import signal
import socket
import ssl
import sys
from argparse import Namespace
from asyncio import FIRST_COMPLETED
from asyncio.subprocess import Process
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile

from bridge import logs
from bridge.capture.finding import Finding, Severity
from bridge.capture.verdict import verdict
from bridge.client.process import terminate
from bridge.commands.configuration import complain_of, read
from bridge.commands.exit import FAILURE, SUCCESS, USAGE, UsageError, needing
from bridge.commands.report import captured_page, report_path, write_captured
from bridge.logs import complain, open_log, write_out
from bridge.recording.tapped import folder_of
from bridge.sandbox.certificate import self_signed
from bridge.sandbox.stream import TlsIdentity
from bridge.settings import values
from bridge.settings.table import Settings
from bridge.settings.values import FlawError, Secret, Service
from bridge.tap.listener import Link, listen
from bridge.tap.record import CaptureFile
from bridge.tap.witness import Witness
from bridge.text import one_line, quoted
from bridge.views.explain import as_json
from bridge.views.termination import stop_on_signal
from bridge.xmpp.link.from_slixmpp import load

LISTEN = "127.0.0.1:5222"
"""Where tap listens without a COMMAND, unless --listen says otherwise."""

TICK_SECONDS = 0.5
"""How often the rules learn that nothing more has come. So a finding of absence is at most a second
late."""

ENDED_BY_OTHERS = frozenset(
    code
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
    for code in (-number, 128 + number)
)
"""What a program ends with, also by way of a shell, if somebody ended it: that is no error."""

CHANGES_TO_MAKE = """\
Let the bot connect to {address}, keep its domain ({XMPP_DOMAIN}), and trust {XMPP_TLS_CA_FILE}:
  slixmpp    client.ca_certs = "{XMPP_TLS_CA_FILE}"; client.connect("{host}", {port})
  xmpp.js    client({{service: "{XMPP_SERVICE}", domain: "{XMPP_DOMAIN}", ...}}), and in its
             environment NODE_EXTRA_CA_CERTS={NODE_EXTRA_CA_CERTS}
  go-xmpp    xmpp.Options{{Host: "{address}", ...}}, and in its environment
             SSL_CERT_FILE={SSL_CERT_FILE}
  Smack      .setHostAddress(InetAddress.getByName("{host}")).setPort({port}), and a trust manager
             with {XMPP_TLS_CA_FILE}
Ctrl-C ends tap."""

CHANGE_OF_COMPONENT = "Let the component connect to {address}. Ctrl-C ends tap."


def run(parsed: Namespace) -> int:
    """Stand between the bot and its server until either is over."""
    load()
    settings = _settings(parsed)
    with ExitStack() as stack:
        identity = None
        if not parsed.component:
            with needing("tap", "tap"):
                identity = stack.enter_context(self_signed(settings.domain, "tap"))
        return asyncio.run(_Tap(parsed, settings, identity).run())


class _Tap:
    """One run of the command."""

    def __init__(self, parsed: Namespace, settings: Settings, identity: TlsIdentity | None) -> None:
        self._parsed, self._settings, self._identity = parsed, settings, identity
        self._stop = asyncio.Event()
        self._is_decided = False
        """Whether an error was shown, after which `--once` shows nothing more."""
        self._report = report_path(parsed, [])
        self._page = captured_page(parsed)
        account = settings.jid if settings.username and not parsed.to else ""
        folder = folder_of(os.environ)
        self._record = CaptureFile(folder, settings.domain if parsed.component else account)
        self._witness = Witness(
            self._record,
            settings.rooms,
            self._show,
            command=parsed.command_text or "",
            draw=self._page.take if self._report else None,
        )

    async def run(self) -> int:
        """Pass on until the program has ended, the time is over, or something else says stop."""
        parsed, settings, loop = self._parsed, self._settings, asyncio.get_running_loop()
        stop_on_signal(self._stop)
        sock = _listening(parsed.listen or ("127.0.0.1:0" if parsed.program else LISTEN))
        host, port = sock.getsockname()[:2]
        scheme = "xmpps" if settings.service and settings.service.direct_tls else "xmpp"
        service = str(Service(scheme, host, port))
        address = service.removeprefix(f"{scheme}://")
        link = partial(Link, settings, self._identity, self._witness, logs_in=parsed.login)
        passing, program, code = loop.create_task(listen(sock, link)), None, None
        ends: list[asyncio.Task[object]] = [passing, loop.create_task(self._stop.wait())]
        try:
            with _leading(settings.domain, service, self._identity) as environment:
                environment |= self._own()
                if parsed.program:
                    program = await self._start(environment)
                    ends.append(loop.create_task(program.wait()))
                else:
                    how = CHANGES_TO_MAKE if self._identity else CHANGE_OF_COMPONENT
                    complain(how.format(host=host, port=port, address=address, **environment))
                if parsed.seconds is not None:
                    ends.append(loop.create_task(asyncio.sleep(parsed.seconds)))
                while not any(each.done() for each in ends):
                    await asyncio.wait(ends, timeout=TICK_SECONDS, return_when=FIRST_COMPLETED)
                    self._witness.pause()
        finally:
            # First of all: the rules must not judge how the program ends at our signal.
            passing.cancel()
            await asyncio.wait([passing])
            sock.close()  # without a program to start, nobody has begun to listen
            if program is not None:
                code = program.returncode if not self._stop.is_set() else None
                await terminate(program)
        how = ""
        if code:
            how = f"with exit code {code}" if code > 0 else f"by signal {-code}"
        self._witness.close(settings.domain, "" if code in ENDED_BY_OTHERS else how)
        if not passing.cancelled():
            passing.result()  # raises the mistake that ended it
        return self._conclude(address, how)

    def _own(self) -> dict[str, str]:
        """Return the variables of the account and the rooms, if the user named the bot's settings.

        Settings that tap looked up are the bridge's own.
        """
        if self._parsed.to or not self._parsed.env_file:
            return {}
        name, password = self._settings.username, self._settings.password.reveal()
        own = {"XMPP_USERNAME": name, "XMPP_PASSWORD": password}
        own["MUC_ROOM"] = ",".join(self._settings.rooms)
        return {name: value for name, value in own.items() if value}

    def _conclude(self, here: str, how: str) -> int:
        """Write the verdict; `how` the program ended, if it was not by itself in good order."""
        capture, report = self._witness.capture, self._report
        streams = capture.streams
        is_written = write_captured(self._page, capture, streams, report) == SUCCESS
        findings = [finding for each in streams for finding in each.findings()]
        conclusion = verdict(findings, capture.holes)
        if self._parsed.json:
            error = write_out(*as_json(streams, conclusion, capture.holes))
            is_written = not logs.complain_of(error) and is_written
        if how:
            complain(f"xmpp-bridge: the bot ended {how}")
        if not streams:
            never = f"never came to {here}: let it connect there, and not to its server"
            what = f"connected to {here}, and sent nothing" if self._witness.sessions else never
            complain(f"xmpp-bridge: the bot {what}")
            return USAGE
        if self._record.path is not None:
            complain(f"xmpp-bridge: what passed is in {one_line(str(self._record.path))}")
        complain(one_line(conclusion))
        has_error = any(each.has_error() for each in streams)
        return SUCCESS if is_written and not has_error else FAILURE

    def _show(self, finding: Finding) -> None:
        if not self._is_decided:
            complain(one_line(f"{finding.severity} {finding.sentence} {finding.advice}"))
        if self._parsed.once and finding.severity is Severity.ERROR:
            self._is_decided = True
            self._stop.set()

    async def _start(self, environment: dict[str, str]) -> Process:
        words, out = self._parsed.program, sys.stderr if self._parsed.json else None
        try:
            every = os.environ | environment
            return await asyncio.create_subprocess_exec(*words, env=every, stdout=out)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"{words[0]!r} does not start: {why}") from error


def _settings(parsed: Namespace) -> Settings:
    """Return the settings of the server; without a user name if the account is not known."""
    parsed.sandbox = False
    configuration = read(parsed, {})
    settings, service = configuration.settings, configuration.service
    if settings is None and not (parsed.to or parsed.component):
        complain_of(configuration)
        raise UsageError("with --to DOMAIN, tap needs no settings")
    open_log("[Tap]", configuration.log_level)
    if settings is None:
        domain = configuration.domain or (service.domain if service else "")
        anchors = configuration.tls_ca_file
        rooms = configuration.rooms or ()
        settings = Settings("", domain, Secret(""), rooms, service=service, tls_ca_file=anchors)
    if parsed.to:
        try:
            settings = settings._replace(domain=values.domain(parsed.to), service=None)
        except FlawError as error:
            raise UsageError(f"--to {parsed.to!r}: {error} would be right") from error
    if not settings.domain:
        raise UsageError("no server is named: set XMPP_DOMAIN or XMPP_SERVICE, or use --to DOMAIN")
    if not configuration.tls_verify:
        raise UsageError(
            "NODE_TLS_REJECT_UNAUTHORIZED is 0, and tap hands on no login to a server whose "
            "certificate is not checked; unset it, and name the certificate in XMPP_TLS_CA_FILE"
        )
    if parsed.login and (parsed.component or not settings.password.reveal()):
        raise UsageError("--login is for clients, and needs the account's password in the settings")
    return settings


def _listening(text: str) -> socket.socket:
    """Return a socket that listens at HOST:PORT; warn if other machines can reach it."""
    host, _, port = text.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        sock = socket.create_server((host.strip("[]"), int(port)), family=family, backlog=128)
    except (OSError, UnicodeError) as error:  # a name that no host can have
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"--listen {text!r}: {why}") from error
    sock.setblocking(False)
    if not ipaddress.ip_address(sock.getsockname()[0]).is_loopback:
        complain(f"WARNING: --listen {quoted(text)} lets others in this network use tap")
    return sock


@contextmanager
def _leading(domain: str, service: str, identity: TlsIdentity | None) -> Iterator[dict[str, str]]:
    """Yield the variables that lead a bot of a domain to the service of tap."""
    environment = {"XMPP_SERVICE": service, "XMPP_DOMAIN": domain}
    paths = ssl.get_default_verify_paths()
    with NamedTemporaryFile(prefix="xmpp-bridge-tap-", suffix=".pem") as trusted:
        if identity is not None:
            folder = sorted(Path(paths.capath).glob("*.0")) if paths.capath else []
            for file in [Path(paths.cafile)] if paths.cafile else folder:
                with suppress(OSError):
                    trusted.write(file.read_bytes() + b"\n")
            trusted.write(identity.path.read_bytes())
            trusted.flush()
            own = str(identity.path)
            environment |= {"XMPP_TLS_CA_FILE": own, "NODE_EXTRA_CA_CERTS": own}
            environment |= {"SSL_CERT_FILE": trusted.name}
        yield environment
