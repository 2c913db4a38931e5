"""`xmpp-bridge sandbox`: a small local XMPP server, until it is stopped."""

import argparse
import asyncio
import os
import stat
import sys
from contextlib import ExitStack, suppress

from bridge.commands.exit import FAILURE, SUCCESS, UsageError, needing
from bridge.logs import complain, show
from bridge.sandbox.certificate import self_signed
from bridge.sandbox.fault import STRIKES
from bridge.sandbox.server import HOST, Sandbox
from bridge.sandbox.stream import TlsIdentity
from bridge.text import one_line
from bridge.views.termination import stop_on_signal

KEYS = ("room", "nickname", "seconds")
"""The keys that may follow the name of a fault."""


def run(parsed: argparse.Namespace) -> int:
    """Run the server and print the settings that reach it."""
    with ExitStack() as stack:
        identity = None
        if parsed.tls:
            with needing("expect", "--tls"):
                identity = stack.enter_context(self_signed())
        return asyncio.run(_serve(parsed.accounts, parsed.faults, identity))


async def _serve(accounts: list[str], faults: list[str], identity: TlsIdentity | None) -> int:
    stopped = asyncio.Event()
    stop_on_signal(stopped)
    sandbox = Sandbox(identity=identity)
    try:
        for account in accounts:
            _add_account(sandbox, account)
        for fault in faults:
            _begin_fault(sandbox, fault)
    except ValueError as error:  # its text never has a password in it
        raise UsageError(str(error)) from error
    async with sandbox:
        _keep_private(sys.stdout.fileno())
        if not show([f"{name}={value}" for name, value in sandbox.environment().items()]):
            return FAILURE
        complain(
            f"[Server] A server for trying out listens at {HOST}:{sandbox.port}; the lines "
            "above are the .env that reaches it. Ctrl-C ends it. For anything else use Prosody or "
            "ejabberd."
        )
        await stopped.wait()
    return SUCCESS


def _keep_private(descriptor: int) -> None:
    """Let only its owner read an empty file: a shell made it for the settings, with a password."""
    status = os.fstat(descriptor)
    is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    if is_ours and not status.st_size:
        with suppress(OSError):  # a file system that knows no modes
            os.fchmod(descriptor, 0o600)


def _add_account(sandbox: Sandbox, text: str) -> None:
    name, _, password = text.partition(":")
    if not password:
        raise ValueError("--account takes NAME:PASSWORD")
    if sandbox.add_account(name, password) != password:
        raise ValueError("--account names an account that is there already")


def _begin_fault(sandbox: Sandbox, text: str) -> None:
    name, _, options = text.partition(":")
    given = dict(option.partition("=")[::2] for option in options.split(",") if option)
    try:
        for key, value in given.items():
            if key not in KEYS:
                raise ValueError(f"unknown key {one_line(key, 100)}; keys are {', '.join(KEYS)}")
            if not value:
                raise ValueError(f"{key} has no value")
        seconds = given.pop("seconds", None)
        if name in STRIKES and seconds is None:
            raise ValueError(f"{name} needs seconds=N")
        is_number = seconds is not None and seconds.replace(".", "", 1).isdecimal()
        number = float(seconds if is_number else "nan") if seconds else None
        sandbox.fault(name, seconds=number, **given)
    except ValueError as error:
        raise ValueError(f"--fault {one_line(text, 100)}: {error}") from None
