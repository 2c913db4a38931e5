"""`xmpp-bridge` as a child that is forked from an interpreter which has imported all of it already.

Hundreds of commands are started here, and their imports would take most of the time of the tests.
A child is the command in all but that: its own process, arguments, environment, directory, streams
and end. What changes how an interpreter starts (a variable of Python's, a shell around it) is
started as users start it.
"""

import ctypes
import fcntl
import gc
import json
import os
import socket
import subprocess
import sys
import termios
import threading
import time
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import bridge.commands
from bridge import cli
from bridge.xmpp.link.from_slixmpp import load

PR_SET_CHILD_SUBREAPER = 36
REQUEST_BYTES = 1 << 17
USUAL = subprocess.Popen
_turn = threading.Lock()


@cache
def _parent() -> "tuple[socket.socket, subprocess.Popen[bytes]]":
    """Start the interpreter that forks; it ends once this process has."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = USUAL(
        [sys.executable, "-P", __file__, str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]},
        start_new_session=True,
    )
    theirs.close()
    return ours, process


class Popen(subprocess.Popen[Any]):
    """A child as `subprocess` starts it, forked if it is a command of ours."""

    def _execute_child(self, args: Any, *more: Any) -> None:
        _, preexec, _, kept, cwd, env, *_ = more
        streams, session = more[9:15], more[-2]
        words = [args] if isinstance(args, str | os.PathLike) else [*map(str, args)]
        program = str(Path(sys.executable).parent / "xmpp-bridge")
        if words[:3] == [sys.executable, "-m", "bridge"]:
            words[:3] = [str(Path(bridge.__file__ or "").parent / "__main__.py")]
        elif words[0] != program:
            return self._start(args, *more)
        environment = dict(os.environ if env is None else env)
        if kept or any(name.startswith("PYTHON") for name in environment):
            return self._start(args, *more)
        request = [words, environment, str(cwd or Path.cwd()), session, preexec is not None]
        theirs = [
            given if given != -1 else ours
            for ours, given in enumerate((streams[0], streams[3], streams[5]))
        ]
        with _turn:
            parent, _ = _parent()
            _take_orphans(1)
            socket.send_fds(parent, [json.dumps(request).encode()], theirs)
            self.pid = int(parent.recv(64))
            _take_orphans(0)
        self._child_created = True
        self._close_pipe_fds(*streams)  # type: ignore[attr-defined]
        return None

    def _start(self, *arguments: Any) -> None:
        super()._execute_child(*arguments)  # type: ignore[misc]


def _take_orphans(now: int) -> None:
    """Whether the children of a child that ends become ours, and not those of the system."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, now, 0, 0, 0)


def _serve(control: socket.socket, tests: int) -> list[Any]:
    """Fork at each request; return the request in the child, and end with the tests."""
    while True:
        request, descriptors, *_ = socket.recv_fds(control, REQUEST_BYTES, 3)
        if not request:
            sys.exit()
        if child := os.fork():
            os.waitpid(child, 0)
            for descriptor in descriptors:
                os.close(descriptor)
        elif os.fork():
            os._exit(0)
        else:
            while os.getppid() != tests:
                time.sleep(0.0005)
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            found: list[Any] = json.loads(request)
            return found


def main() -> int:
    """Import everything, and be the command at each request."""
    for module in iter_modules(bridge.commands.__path__):
        import_module(f"bridge.commands.{module.name}")
    load()
    gc.collect()
    gc.disable()
    gc.freeze()  # or each child would copy, at its end, what all have in common
    control = socket.socket(fileno=int(sys.argv[1]))
    words, environment, home, session, controls = _serve(control, os.getppid())
    gc.enable()
    os.chdir(home)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    if session:
        os.setsid()
    if controls:
        fcntl.ioctl(1, termios.TIOCSCTTY, 0)
    sys.argv = words
    sys.path.insert(0, str(Path(words[0]).parent))
    how: Any = {"errors": "surrogateescape", "closefd": False}
    sys.stdin = sys.__stdin__ = open(0, **how)  # type: ignore[misc]  # noqa: SIM115 - for good
    sys.stdout = sys.__stdout__ = open(1, "w", **how)  # type: ignore[misc]  # noqa: SIM115 - for good
    how["errors"] = "backslashreplace"
    sys.stderr = sys.__stderr__ = open(2, "w", 1, **how)  # type: ignore[misc]  # noqa: SIM115 - for good
    control.send(str(os.getpid()).encode())
    control.close()
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
