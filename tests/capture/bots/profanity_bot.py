"""Drives Profanity, a program for terminals, as slixmpp_bot.py says; its log goes to stderr."""

import ctypes
import os
import pty
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

PR_SET_PDEATHSIG = 1
ACCOUNT = """\
[bot]
enabled=true
jid={name}@{domain}
resource={resource}
password={password}
server={host}
port={port}
tls.policy=trust
"""


class Bot:
    """One stream, in a terminal of its own."""

    def __init__(self, number: int, name: str, password: str, resource: str, option: str) -> None:
        del option
        self._folder = tempfile.mkdtemp()
        service = urlsplit(os.environ["XMPP_SERVICE"])
        accounts = Path(self._folder) / "data" / "profanity" / "accounts"
        accounts.parent.mkdir(parents=True)
        words = {"name": name, "password": password, "resource": resource}
        words |= {"host": str(service.hostname), "port": str(service.port)}
        accounts.write_text(ACCOUNT.format(domain=os.environ["XMPP_DOMAIN"], **words), "utf-8")
        log = Path(self._folder) / "log"
        os.mkfifo(log)
        self._child, self._terminal = pty.fork()
        if not self._child:
            environment = os.environ | {"TERM": "xterm", "XDG_DATA_HOME": f"{self._folder}/data"}
            environment |= {"XDG_CONFIG_HOME": self._folder, "COLUMNS": "200", "LINES": "50"}
            # Without its terminal it would go on, and take a processor for itself.
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            command = ["profanity", "-l", "DEBUG", "-f", str(log), "-a", "bot"]
            os.execvpe(command[0], command, environment)  # noqa: S606 - it is to have a terminal
        Thread(target=self._follow, args=(log, number), daemon=True).start()
        Thread(target=self._drain, daemon=True).start()

    def type(self, *lines: str) -> None:
        os.write(self._terminal, "".join(f"{line}\r" for line in lines).encode())

    def end(self) -> None:
        """End the program, which goes on when its stream has ended."""
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        shutil.rmtree(self._folder)

    def _follow(self, log: Path, number: int) -> None:
        with log.open("rb") as lines:
            for line in lines:
                sys.stderr.buffer.write(line)
                sys.stderr.flush()
                if b"XMPP_CONN_DISCONNECT" in line:
                    sys.stdout.write(f"closed {number}\n")
                    sys.stdout.flush()

    def _drain(self) -> None:
        with suppress(OSError):
            while os.read(self._terminal, 65_536):
                pass


def main() -> None:
    bots: list[Bot] = []
    for line in sys.stdin:
        text = line.rstrip("\n")
        if text.startswith("login "):
            if bots:
                bots[-1].end()
            bots.append(Bot(len(bots) + 1, *text.split(" ")[1:]))
        elif text == "close":
            bots[-1].type("/disconnect")
        else:
            bots[-1].type("/xmlconsole", text)
    bots[-1].end()


if __name__ == "__main__":
    main()
