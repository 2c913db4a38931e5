"""TCP ports on the loopback interface: free ones, and one that answers nothing."""

import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_CANDIDATES = range(20_000, 32_000)
"""Below the range from which the kernel takes ports for outgoing connections (32768 and up).

A server that was killed must find its port free when it comes back. A port that `bind(0)` picks is
one that any outgoing connection may take meanwhile; a client that keeps dialling it can even get
it as its own source port and be connected to itself.
"""


def free_ports(count: int) -> tuple[int, ...]:
    """Different ports on 127.0.0.1 that nobody listened on a moment ago.

    Another process may take one before the caller does: check who answers, and ask again.
    """
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            listener = held.enter_context(socket.socket())
            # As the servers do, so that a port in TIME_WAIT counts as free.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            candidate = secrets.choice(_CANDIDATES)
            try:
                listener.bind(("127.0.0.1", candidate))
            except OSError:
                continue  # taken, which is why we ask
            ports.append(candidate)
    return tuple(ports)


@contextmanager
def silent_address() -> Iterator[tuple[str, int]]:
    """An address that answers nothing: a queue of connections that nobody takes, full."""
    with ExitStack() as held:
        listener = held.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            filler = held.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()
