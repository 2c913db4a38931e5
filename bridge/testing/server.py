"""The server that tests run against: the sandbox, or a real one; and what a test began on it."""

import os
import re
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Self, TypedDict, Unpack

import pytest

from bridge.sandbox.server import Sandbox
from bridge.settings.load import load
from bridge.settings.table import Settings
from bridge.settings.values import Secret
from bridge.testing.actor import Actor, BlockingActor
from bridge.testing.engine import Engine
from bridge.testing.errors import ActorError, XmppTestError
from bridge.text import one_line

BOT = "bot"
"""The name of the bot's account in the sandbox, unless the test names another."""


class Environment(dict[str, str]):
    """Variables whose values are not shown: a report may have the locals of a failed test."""

    def __repr__(self) -> str:
        return f"<{', '.join(self)}>"


class Options(TypedDict, total=False):
    """What an actor may be given beside its nickname."""

    account: str
    """The name of its account, or a full JID; else the file's, or one of its own in the sandbox."""
    password: str
    """Of that account; not needed in the sandbox."""
    room: str
    """A bare JID; else the room of the test."""
    room_password: str


class Server:
    """What the fixture `xmpp_server` gives: a server, which runs in a `with` block."""

    def __init__(self, env_file: Path | None = None, bot_env_file: Path | None = None) -> None:
        """Read the files; without any it is the sandbox. Raises `pytest.UsageError`."""
        if bot_env_file is not None and env_file is None:
            raise pytest.UsageError("--xmpp-bot-env-file goes with --xmpp-env-file: give that, too")
        self._sandbox = None if env_file else Sandbox()
        if env_file is not None:
            self._settings = _read("--xmpp-env-file", env_file)
            self._bot = (
                _read("--xmpp-bot-env-file", bot_env_file) if bot_env_file else self._settings
            )
        self._actors: list[Actor] = []
        self._faults: list[Callable[[], None]] = []
        self._room = ""

    def __enter__(self) -> Self:
        self._engine = Engine()
        if self._sandbox is not None:
            address = self._engine.run(self._sandbox.__aenter__())
            self._settings = self._bot = _load(address.environment())
        return self

    def __exit__(self, *_: object) -> None:
        self.end_test()
        if self._sandbox is not None:
            self._engine.run(self._sandbox.__aexit__())
        self._engine.close()

    @property
    def room(self) -> str:
        """The bare JID of the test's room; no other test has it."""
        if not self._room:
            self._room = f"test-{secrets.token_hex(6)}@{self._settings.room.partition('@')[2]}"
        return self._room

    def environment(self, account: str | None = None, room: str | None = None) -> dict[str, str]:
        """Return the variables with which a bot reaches the server, and the room of the test.

        Without `account` it is that of `--xmpp-bot-env-file`, else of `--xmpp-env-file`; in the
        sandbox every name gets an account. Raises `XmppTestError` for one that is not known.
        """
        settings = self._bot
        if self._sandbox is not None:
            settings = self._with_account(account or BOT)
        elif account not in {None, settings.username, settings.jid}:
            raise XmppTestError(
                f"The password of {account!r} is not known: name a file with its settings by "
                "--xmpp-bot-env-file."
            )
        found = {
            "XMPP_SERVICE": "" if settings.service is None else str(settings.service),
            "XMPP_DOMAIN": settings.domain,
            "XMPP_USERNAME": settings.username,
            "XMPP_PASSWORD": settings.password.reveal(),
            "MUC_ROOM": room or self.room,
            "XMPP_TLS_CA_FILE": str(settings.tls_ca_file or ""),
            "NODE_TLS_REJECT_UNAUTHORIZED": "" if settings.tls_verify else "0",
            "XMPP_ALLOW_PLAINTEXT": "1" if settings.allow_plaintext else "",
        }
        return Environment({name: value for name, value in found.items() if value})

    async def actor(self, nickname: str, **options: Unpack[Options]) -> Actor:
        """Return an actor who is in the room; raises `ActorError`."""
        __tracebackhide__ = True
        actor = self._new(nickname, **options)
        await actor.enter()
        return actor

    def actor_sync(self, nickname: str, **options: Unpack[Options]) -> BlockingActor:
        """Return an actor who is in the room, for a plain test; raises `ActorError`."""
        __tracebackhide__ = True
        actor = self._new(nickname, **options)
        self._engine.run(actor.enter())
        return BlockingActor(actor)

    def fault(
        self, name: str, *, room: str = "", nickname: str = "", seconds: float | None = None
    ) -> Callable[[], None]:
        """Begin a fault of the sandbox (see `Sandbox.fault`), and return what ends it early.

        It ends with the test. Skips the test on a real server, which has no faults on request.
        """
        if self._sandbox is None:
            pytest.skip(f"a real server has no fault {name!r} on request")
        fault = partial(self._sandbox.fault, name, room=room, nickname=nickname, seconds=seconds)
        end = partial(self._engine.call, self._engine.call(fault))
        self._faults.append(end)
        return end

    def report(self, nickname: str | None) -> list[tuple[str, str]]:
        """Return what the actor of this name saw, else the first one, as titles and texts."""
        named = [one for one in self._actors if one.nickname == nickname] or self._actors
        return self._engine.run(named[0].report()) if named else []

    def end_test(self) -> None:
        """End what the test began: its actors leave, its faults end, its room is no more."""
        for end in self._faults:
            end()
        for actor in self._actors:
            self._engine.run(actor.leave())
        self._faults, self._actors, self._room = [], [], ""

    def _new(self, nickname: str, **options: Unpack[Options]) -> Actor:
        account, password = options.get("account"), options.get("password", "")
        settings = self._settings
        if self._sandbox is not None:
            settings = self._with_account(account or re.sub("[^a-z0-9]+", "-", nickname.lower()))
        elif account and password:
            username, _, domain = account.partition("@")
            domain = domain or settings.domain
            settings = settings._replace(
                username=username, domain=domain, password=Secret(password)
            )
        elif account:
            raise ActorError(nickname, f"The account {account!r} needs its password, too.")
        secret = options.get("room_password")
        settings = settings._replace(
            nickname=nickname,
            rooms=(options.get("room") or self.room,),
            room_password=Secret(secret) if secret else None,
        )
        self._actors.append(Actor(self._engine, settings))
        return self._actors[-1]

    def _with_account(self, name: str) -> Settings:
        """Return the settings of an account in the sandbox."""
        assert self._sandbox is not None
        password = self._sandbox.add_account(name)
        return self._settings._replace(username=name, password=Secret(password))


def _read(option: str, path: Path) -> Settings:
    """Return the settings in a file; raises `pytest.UsageError` with what is wrong with them."""
    return _load(dict(os.environ), f"{option} {path}", path)


def _load(
    environ: Mapping[str, str], source: str = "the sandbox", path: Path | None = None
) -> Settings:
    here = Path.cwd()
    found = load(environ, cwd=here, package_root=here, env_file=path, searching=False)
    if found.settings is None:
        problems = "".join(f"\n  {one_line(str(one))}" for one in found.problems)
        raise pytest.UsageError(f"{source} has no settings for a room:{problems}")
    return found.settings
