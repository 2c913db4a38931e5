"""Resolves a domain to the addresses of its server and connects to one of them.

RFC 6120, section 3.2; XEP-0368; RFC 8305.
"""

import asyncio
import os
import re
import socket
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from threading import Thread
from typing import Any

from bridge.settings.table import Settings
from bridge.settings.values import Service
from bridge.xmpp.link.from_slixmpp import srv_records
from bridge.xmpp.model import faults
from bridge.xmpp.model.faults import ConnectionFailedError, Place

STARTTLS_PORT = 5222
"""The port for clients (RFC 6120, section 14.7)."""

LEAST_SHARE_SECONDS = 2.0
"""The least time for connecting to each host, if a domain names many."""

ATTEMPT_DELAY_SECONDS = 0.25
"""The time from the start of one attempt to the start of the next, as RFC 8305, section 8,
recommends."""

HOSTS_FILE = Path("/etc/hosts")
"""Names and addresses that the administrator of this machine has set (hosts(5))."""

DNS_SECONDS = 3.0
"""How long we wait for DNS if the file of hosts has the name. Without a name server, DNS may take
half a minute to fail."""

_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
"""A host name (RFC 1123, section 2.1). `_` is allowed too, since some names have it."""


@dataclass(frozen=True)
class Endpoint:
    """An address to connect to."""

    service: Service
    """The service at that address, as the settings or DNS name it."""
    family: socket.AddressFamily
    address: tuple[Any, ...]
    """The address in the form that `socket.connect` takes."""

    @property
    def where(self) -> str:
        """The IP address with its port; an IPv6 address has brackets."""
        host, port = self.address[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def resolve(
    settings: Settings, on_finding: Callable[[str], None] = lambda _: None
) -> list[list[Endpoint]]:
    """Return the addresses of each host to try, the best host first.

    Raises `OSError` if no host has an address, and `ConnectionFailedError` if the domain declares
    that it offers no XMPP.
    """
    if settings.service is not None:
        services = [settings.service]
        on_finding(f"XMPP_SERVICE is {settings.service}")
    else:
        services = await _services_of(settings, on_finding)
    hosts: list[list[Endpoint]] = []
    failure: OSError | None = None
    for service in services:
        try:
            named = settings.service is None and _is_absolute(service.host)
            hosts.append(await (_absolute if named else _look_up)(service, service.host))
        except OSError as error:
            failure = error
            on_finding(f"{service.host}: no address")
            continue
        addresses = list(dict.fromkeys(endpoint.address[0] for endpoint in hosts[-1]))
        if addresses != [service.host]:
            on_finding(f"{service.host}: {', '.join(addresses)}")
    if not hosts and failure is not None:
        raise failure
    return hosts


async def _services_of(settings: Settings, on_finding: Callable[[str], None]) -> list[Service]:
    """Return the hosts that DNS names for the domain, or else the domain itself, the best first."""
    kinds = ["xmpps-client", "xmpp-client"]
    # Our messages quote the names of hosts, and DNS can hold any text. So we drop texts that no
    # host can have as its name.
    records = [
        record
        for record in await srv_records(settings.domain, STARTTLS_PORT, kinds)
        if not record[1] or _HOST.fullmatch(record[1])
    ]
    for kind, host, port in records:
        on_finding(f"SRV _{kind}: {host or '.'}:{port}")
    # A record without a host says that there is no such service (RFC 2782). The record of the usual
    # service says so of XMPP as a whole, the other record only of direct TLS (XEP-0368).
    if not any(host for _, host, _ in records):
        if any(kind == "xmpp-client" for kind, _, _ in records):
            raise ConnectionFailedError(faults.of("no-xmpp", Place.of(settings)))
        on_finding(f"no SRV records of {settings.domain}, so {settings.domain}:{STARTTLS_PORT}")
        # An IPv6 address has brackets as a domain, and none as a host.
        records = [("xmpp-client", settings.domain.strip("[]"), STARTTLS_PORT)]
    return [
        Service(kind.removesuffix("-client"), host, port) for kind, host, port in records if host
    ]


def _is_absolute(host: str) -> bool:
    """Whether a host from DNS is a whole name: neither an address nor a name of this machine."""
    last = host.rpartition(".")[2]
    return "." in host and ":" not in host and last != "localhost" and not last[:1].isdigit()


async def _absolute(service: Service, host: str) -> list[Endpoint]:
    """Look a whole name up, without the resolver's search list.

    With the list, a name that does not exist may become the name of a host in another domain. A dot
    at the end turns the list off. It turns the file of hosts off too, so this function reads that
    file itself.
    """
    listed = await asyncio.to_thread(_in_hosts_file, host)
    try:
        async with asyncio.timeout(DNS_SECONDS if listed else None):
            return await _look_up(service, f"{host}.")
    except OSError:
        if not listed:
            raise
    return [endpoint for address in listed for endpoint in await _look_up(service, address)]


def _in_hosts_file(host: str) -> list[str]:
    """Return the addresses of a host in the file of hosts."""
    with suppress(OSError, UnicodeError):
        name = host.encode("idna").decode().lower()
        lines = HOSTS_FILE.read_text("utf-8", "replace").splitlines()
        entries = [line.partition("#")[0].lower().split() for line in lines]
        return [entry[0] for entry in entries if name in entry[1:]]
    return []


async def _look_up(service: Service, host: str) -> list[Endpoint]:
    """Look a host up with the system's resolver, in a thread of its own.

    Without a name server the lookup takes half a minute. At its exit, the process would wait for a
    thread of the loop's executor. It does not wait for a daemon thread.
    """
    answer: Future[list[Endpoint]] = Future()

    def look_up() -> None:
        try:
            infos = socket.getaddrinfo(host, service.port, type=socket.SOCK_STREAM)
            answer.set_result([Endpoint(service, info[0], info[4]) for info in infos])
        except UnicodeError:  # the IDNA codec raises it for a label that is too long
            answer.set_exception(socket.gaierror(socket.EAI_NONAME, "no host can have such a name"))
        except OSError as error:
            answer.set_exception(error)

    answer.set_running_or_notify_cancel()  # a caller that stops waiting cannot cancel it
    Thread(target=look_up, name="resolver", daemon=True).start()
    return await asyncio.wrap_future(answer)


async def connect(
    hosts: list[list[Endpoint]], seconds: float, on_finding: Callable[[str], None] = lambda _: None
) -> tuple[Endpoint, socket.socket]:
    """Try the hosts in turn, each for its share of `seconds`; raises the last `OSError`.

    Attempts at the addresses of one host overlap, so that a silent address costs little time.
    """
    share = max(seconds / len(hosts), LEAST_SHARE_SECONDS)
    failure: OSError | None = None
    for addresses in hosts:
        try:
            endpoint, sock = await _race(_alternating(addresses), share, on_finding)
        except OSError as error:
            failure = error
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            on_finding(f"{endpoint.where}: connected")
            return endpoint, sock
    assert failure is not None
    raise failure


def _alternating(endpoints: list[Endpoint]) -> list[Endpoint]:
    """Interleave the two address families; the first address stays first (RFC 8305, section 4)."""
    family = endpoints[0].family
    first = [endpoint for endpoint in endpoints if endpoint.family == family]
    other = [endpoint for endpoint in endpoints if endpoint.family != family]
    return [endpoint for pair in zip_longest(first, other) for endpoint in pair if endpoint]


async def _race(
    endpoints: list[Endpoint], seconds: float, on_finding: Callable[[str], None]
) -> tuple[Endpoint, socket.socket]:
    """Return the first endpoint that connects, with its socket (RFC 8305, section 5).

    Raises the last `OSError`.
    """
    loop = asyncio.get_running_loop()
    waiting = deque(endpoints)
    running: dict[asyncio.Task[socket.socket], tuple[Endpoint, float]] = {}
    failure: OSError | None = None
    try:
        async with asyncio.timeout(seconds):
            while waiting or running:
                if waiting:
                    endpoint = waiting.popleft()
                    running[loop.create_task(_connected(endpoint))] = endpoint, loop.time()
                done, _ = await asyncio.wait(
                    running,
                    timeout=ATTEMPT_DELAY_SECONDS if waiting else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in done:
                    endpoint, _ = running.pop(task)
                    try:
                        return endpoint, task.result()
                    except OSError as error:
                        failure = error
                        on_finding(f"{endpoint.where}: {_reason(error)}")
    finally:
        # This awaits nothing. If we were cancelled during a wait, the winner's socket would leak.
        for task, (endpoint, began) in running.items():
            on_finding(f"{endpoint.where}: no answer within {round(loop.time() - began, 2):g} s")
            task.cancel()
            task.add_done_callback(_close)
    assert failure is not None
    raise failure


async def _connected(endpoint: Endpoint) -> socket.socket:
    sock = socket.socket(endpoint.family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, endpoint.address)
    except (OSError, asyncio.CancelledError):
        sock.close()
        raise
    return sock


def _close(attempt: "asyncio.Task[socket.socket]") -> None:
    """Close the socket of an attempt that connected after the winner."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()


def _reason(error: OSError) -> str:
    # asyncio's text repeats the call and the address.
    return os.strerror(error.errno).lower() if error.errno else type(error).__name__
