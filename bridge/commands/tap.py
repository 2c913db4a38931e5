"""`xmpp-bridge tap`: stands between a bot and its server, and says what goes wrong."""

import argparse
import asyncio
import ipaddress
import os
import signal
import socket
import ssl
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from bridge.capture.finding import Finding, Severity
from bridge.capture.verdict import verdict
from bridge.commands.configuration import complain_of, read
from bridge.commands.exit import FAILURE, SUCCESS, USAGE, UsageError
from bridge.commands.report import report_path, write_report
from bridge.logs import complain, open_log, write_out
from bridge.page.captured import CapturedPage
from bridge.page.chronicle import Chronicle
from bridge.page.pseudonyms import Pseudonyms
from bridge.recording.tapped import folder_of
from bridge.sandbox.stream import TlsIdentity
from bridge.settings import values
from bridge.settings.table import Settings
from bridge.settings.values import FlawError, Secret, Service
from bridge.tap.listener import Upstream, listen
from bridge.tap.record import CaptureFile
from bridge.tap.relay import CHANGES
from bridge.tap.witness import Witness
from bridge.text import one_line, quoted
from bridge.views.explain import as_json
from bridge.xmpp.link.from_slixmpp import load

LISTEN = "127.0.0.1:5222"
"""Where tap listens without a COMMAND, unless --listen says otherwise."""

TICK_SECONDS = 0.5
"""How often the rules learn that nothing more has come: a finding of absence is said a second late
at most."""

END_SECONDS = 5.0
"""How long the program has to end after SIGTERM; then it is killed."""

CHANGES_TO_MAKE = """\
Let the bot connect to {host}:{port}, keep its domain ({XMPP_DOMAIN}), and trust {XMPP_TLS_CA_FILE}:
  slixmpp    client.ca_certs = "{XMPP_TLS_CA_FILE}"; client.connect("{host}", {port})
  xmpp.js    client({{service: "{XMPP_SERVICE}", domain: "{XMPP_DOMAIN}", ...}}), and in its
             environment NODE_EXTRA_CA_CERTS={NODE_EXTRA_CA_CERTS}
  go-xmpp    xmpp.Options{{Host: "{host}:{port}", ...}}, and in its environment
             SSL_CERT_FILE={SSL_CERT_FILE}
  Smack      .setHostAddress(InetAddress.getByName("{host}")).setPort({port}), and a trust manager
             with {XMPP_TLS_CA_FILE}
Ctrl-C ends tap."""


def run(parsed: argparse.Namespace) -> int:
    """Stand between the bot and its server until either is over."""
    try:
        load()
        settings, account = _settings(parsed)
        with nullcontext() if parsed.component else _identity(settings.domain) as identity:
            return asyncio.run(_Tap(parsed, settings, account, identity).run())
    except UsageError as error:
        if str(error):
            complain(f"xmpp-bridge: {one_line(str(error))}")
        return USAGE


class _Tap:
    """One run of the command."""

    def __init__(
        self,
        parsed: argparse.Namespace,
        settings: Settings,
        account: str,
        identity: TlsIdentity | None,
    ) -> None:
        self._parsed, self._settings, self._identity = parsed, settings, identity
        self._stop = asyncio.Event()
        self._failed = False
        self._said = set[str]()
        self._report = report_path(parsed, [])
        chronicle = Chronicle(Pseudonyms(on=parsed.pseudonyms))
        self._page = CapturedPage(chronicle, lambda stream: True)
        self._record = CaptureFile(folder_of(os.environ, Path.home()), account)
        draw = self._page.take if self._report else None
        command = parsed.command_text or ""
        rooms = settings.rooms
        self._witness = Witness(self._record, rooms, self._show, command=command, draw=draw)

    async def run(self) -> int:
        """Pass on until the program has ended, the time is over, or something else says stop."""
        parsed, loop = self._parsed, asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop.set)
        sock = _listening(parsed.listen or ("127.0.0.1:0" if parsed.program else LISTEN))
        upstream = Upstream(self._settings, self._identity, parsed.login)
        tasks = [
            loop.create_task(listen(sock, upstream, self._witness, self._say_changed)),
            loop.create_task(self._tick()),
        ]
        for task in tasks:
            task.add_done_callback(lambda task: self._stop.set())
        program, here = None, ":".join(map(str, sock.getsockname()[:2]))
        try:
            with _leading(self._settings, sock, self._identity) as environment:
                if parsed.program:
                    program = await self._start(environment)
                else:
                    complain(_changes_to_make(environment, here))
                async with asyncio.timeout(parsed.seconds):
                    await self._stop.wait()
        except TimeoutError:
            pass
        finally:
            # First of all, so that the end of the program is not taken for its own doing.
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            if program is not None:
                await _end(program)
        self._witness.close(self._settings.domain)
        for mistake in (each for each in outcomes if isinstance(each, Exception)):
            raise mistake
        return self._conclude(here)

    def _conclude(self, here: str) -> int:
        capture, report = self._witness.capture, self._report
        streams = capture.streams
        if report:
            timeline = self._page.timeline(streams, time.time(), capture.holes)
            if write_report(timeline, report) != SUCCESS:
                return FAILURE
        findings = [finding for each in streams for finding in each.findings()]
        conclusion = verdict(findings, capture.holes)
        if self._parsed.json:
            write_out(*as_json(streams, conclusion, capture.holes))
        if not self._witness.sessions:
            complain(f"xmpp-bridge: the bot never came to {here}, and must not go to its server")
            return USAGE
        if self._record.path is not None:
            complain(f"xmpp-bridge: what passed is in {one_line(str(self._record.path))}")
        complain(one_line(conclusion))
        return FAILURE if self._failed or any(each.has_error() for each in streams) else SUCCESS

    def _show(self, finding: Finding) -> None:
        if self._failed and self._parsed.once:
            return
        complain(one_line(f"{finding.severity} {finding.sentence} {finding.advice}"))
        if finding.severity is Severity.ERROR:
            self._failed = True
            if self._parsed.once:
                self._stop.set()

    def _say_changed(self, tag: str) -> None:
        if tag not in self._said:
            self._said.add(tag)
            complain(f"xmpp-bridge: taken out: {CHANGES[tag]}")

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._witness.pause()

    async def _start(self, environment: Mapping[str, str]) -> Process:
        words = self._parsed.program
        out = sys.stderr if self._parsed.json else None
        try:
            program = await asyncio.create_subprocess_exec(
                *words, env={**os.environ, **environment}, stdout=out
            )
        except (OSError, ValueError) as error:
            raise UsageError(f"{words[0]!r} does not start: {error}") from error
        self._waiting = asyncio.create_task(program.wait())
        self._waiting.add_done_callback(lambda task: self._stop.set())
        return program


def _settings(parsed: argparse.Namespace) -> tuple[Settings, str]:
    """Return the settings of the server, and the name of the account or component, if known."""
    parsed.sandbox = False
    configuration = read(parsed, {})
    settings, account, service = configuration.settings, "", configuration.service
    if settings is not None and not parsed.to:
        account = settings.jid
    elif settings is None and not (parsed.to or parsed.component):
        complain_of(configuration)
        raise UsageError
    open_log("[Tap]", configuration.log_level)
    if settings is None:
        domain = configuration.domain or (service.domain if service else "")
        settings = Settings("", domain, Secret(""), (), service=service)
        settings = settings._replace(tls_ca_file=configuration.tls_ca_file)
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
    return settings, settings.domain if parsed.component else account


def _listening(text: str) -> socket.socket:
    """Return the socket that listens at HOST:PORT; warn unless it is of this machine alone."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]")
    is_loopback = host == "localhost"
    with suppress(ValueError):
        is_loopback = is_loopback or ipaddress.ip_address(host).is_loopback
    if not is_loopback:
        complain(f"WARNING: --listen {quoted(host)} lets others in this network use tap")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.create_server((host, int(port)), family=family, backlog=128)
    except (OSError, ValueError, OverflowError) as error:
        raise UsageError(f"--listen {text!r}: {getattr(error, 'strerror', '')}") from error
    sock.setblocking(False)
    return sock


@contextmanager
def _identity(domain: str) -> Iterator[TlsIdentity]:
    try:
        # Its library is an extra.
        from bridge.sandbox.certificate import self_signed
    except ImportError as error:
        raise UsageError("tap needs the extra: pip install 'xmpp-debug-bridge[tap]'") from error
    with self_signed(domain, "tap") as identity:
        yield identity


@contextmanager
def _leading(
    settings: Settings, sock: socket.socket, identity: TlsIdentity | None
) -> Iterator[dict[str, str]]:
    """Yield the variables that lead a bot to tap; say what to change in bots without them."""
    host, port = sock.getsockname()[:2]
    scheme = "xmpps" if settings.service and settings.service.direct_tls else "xmpp"
    service, domain = str(Service(scheme, host, port)), settings.domain
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


def _changes_to_make(environment: Mapping[str, str], here: str) -> str:
    if "SSL_CERT_FILE" not in environment:
        return f"Let the component connect to {here}. Ctrl-C ends tap."
    host, _, port = here.rpartition(":")
    return CHANGES_TO_MAKE.format(host=host, port=port, **environment)


async def _end(program: Process) -> None:
    """End the program, unless it has ended."""
    with suppress(ProcessLookupError):
        program.terminate()
    try:
        async with asyncio.timeout(END_SECONDS):
            await program.wait()
    except TimeoutError:
        program.kill()
        await program.wait()
