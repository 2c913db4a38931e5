"""The server for tests, the sandbox or a real one, with the actors and faults of each test."""

import asyncio
import json
import os
import re
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

import pytest

from bridge.page.played import Played, Step
from bridge.sandbox.certificate import self_signed
from bridge.sandbox.fault import FaultName
from bridge.sandbox.server import HOST, LOBBY, Sandbox
from bridge.sandbox.stanza import DOMAIN
from bridge.sandbox.stream import TlsIdentity
from bridge.settings.load import MIN_MASKED, load
from bridge.settings.table import Settings
from bridge.settings.values import Secret, Service
from bridge.testing.actor import Actor, ActorProxy
from bridge.testing.bot import Mask
from bridge.testing.engine import Engine
from bridge.testing.errors import XmppTestError
from bridge.testing.streams import BotStreams
from bridge.text import one_line, visible

__tracebackhide__ = True  # pytest shows the line of the test; `--full-trace` shows ours

BOT = "bot"
"""The name of the bot's account in the sandbox, unless the test gives another."""


class Environment(dict[str, str]):
    """Variables whose values `repr` leaves out: pytest may show the locals of a failed test."""

    def __repr__(self) -> str:
        return f"<{', '.join(self)}>"


class FixtureServer:
    """The server that the fixture `xmpp_server` gives. It runs in a `with` block."""

    def __init__(self, env_file: Path | None = None, bot_env_file: Path | None = None) -> None:
        """Read the files; without any, the server is the sandbox. Raises `pytest.UsageError`."""
        self._streams = BotStreams()
        is_real = env_file is not None or bot_env_file is not None
        self._stack = ExitStack()
        self._identity = None if is_real else self._certified()
        observe = self._streams.observe
        self._sandbox = None if is_real else Sandbox(identity=self._identity, observe=observe)
        if self._sandbox is None:
            self._settings = self._bot = _read("--xmpp-env-file", env_file)
            if bot_env_file is not None:
                self._bot = _read("--xmpp-bot-env-file", bot_env_file)
        self.steps: list[Step] = []
        """The steps that the scenario has taken."""
        self._actors: list[Actor] = []
        self._faults: list[Callable[[], None]] = []
        self._room = ""
        self._bots: set[str] = set()
        """The names of the accounts that bots were given."""
        self._secrets: set[str] = set()
        """The passwords that bots were given."""
        self._mask = self._report_mask = Mask(())
        """Masks these passwords in texts. `_report_mask` leaves out short ones: a whole report
        would have them by chance."""

    def __enter__(self) -> Self:
        self._engine = Engine()
        if self._sandbox is not None:
            port = self._engine.run(self._sandbox.__aenter__()).port
            self._settings = self._bot = Settings(
                BOT,
                DOMAIN,
                Secret(""),
                (LOBBY,),
                service=Service("xmpp", HOST, port),
                tls_ca_file=self._identity.path if self._identity else None,
                allow_plaintext=self._identity is None,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.end_test()
        if self._sandbox is not None:
            self._engine.run(self._sandbox.__aexit__())
        self._engine.close()
        self._stack.close()

    def _certified(self) -> TlsIdentity | None:
        """Return a certificate for the sandbox, or None without the library that makes it."""
        try:
            return self._stack.enter_context(self_signed())
        except ImportError:  # the extra `[expect]` is not installed
            return None

    @property
    def room(self) -> str:
        """The bare JID of the test's room; no other test has it."""
        if not self._room:
            self._room = f"test-{secrets.token_hex(6)}@{self._settings.room.partition('@')[2]}"
        return self._room

    def environment(self, account: str | None = None, room: str | None = None) -> dict[str, str]:
        """Return the variables with which a bot reaches the server, and the room of the test.

        Without `account`, the bot has the account of `--xmpp-bot-env-file`, or else of
        `--xmpp-env-file`. In the sandbox every name gets an account. Raises `XmppTestError` if the
        password of the account is not known.
        """
        settings = self._bot
        if self._sandbox is not None or account not in {None, settings.username, settings.jid}:
            settings = self._with_account(settings, account or BOT, "")
        self._bots.add(settings.username.lower())
        variables = {
            "XMPP_SERVICE": str(settings.service or ""),
            "XMPP_DOMAIN": settings.domain,
            "XMPP_USERNAME": settings.username,
            "XMPP_PASSWORD": settings.password.reveal(),
            "MUC_ROOM": room or self.room,
            "XMPP_TLS_CA_FILE": str(settings.tls_ca_file or ""),
            "NODE_EXTRA_CA_CERTS": str(settings.tls_ca_file or ""),
            "NODE_TLS_REJECT_UNAUTHORIZED": "" if settings.tls_verify else "0",
            "XMPP_ALLOW_PLAINTEXT": "1" if settings.allow_plaintext else "",
        }
        if (password := variables["XMPP_PASSWORD"]) not in self._secrets:
            self._secrets.add(password)
            self._mask = Mask(self._secrets)
            long = (secret for secret in self._secrets if len(secret) >= MIN_MASKED)
            self._report_mask = Mask(long)
        return Environment({name: value for name, value in variables.items() if value})

    async def actor(self, nickname: str, **options: str) -> ActorProxy:
        """Return an actor who is in the room, and whose methods are awaited.

        `account` is the name of its account, or a bare JID. By default it is the account of the
        file; in the sandbox, one of its own. `password` is the password of that account, which the
        sandbox does not need. `room` is a bare JID, by default the room of the test;
        `room_password` is the password of the room. Raises `XmppTestError`, or `ValueError`.
        """
        actor = self._new(nickname, **options)
        await self._engine.wait(self._enter(actor))
        return ActorProxy(actor, self._engine.wait)

    def actor_sync(self, nickname: str, **options: str) -> ActorProxy:
        """Return an actor for a plain test, whose methods return when they are done."""
        actor = self._new(nickname, **options)
        self._engine.run(self._enter(actor))
        return ActorProxy(actor, self._engine.run)

    def fault(
        self, name: FaultName, *, room: str = "", nickname: str = "", seconds: float | None = None
    ) -> Callable[[], None]:
        """Begin a fault of the sandbox (`Sandbox.fault`); return the function that ends it early.

        It ends with the test. Skips the test on a real server, which has no faults on request.
        """
        if self._sandbox is None:
            pytest.skip(f"a real server has no fault {name!r} on request")
        fault = partial(self._sandbox.fault, name, room=room, nickname=nickname, seconds=seconds)
        end = partial(self._engine.call, self._engine.call(fault))
        self._faults.append(end)
        return end

    def clean(self, text: str) -> str:
        """Return a text of a report without secrets, and with hidden characters as escapes."""
        return visible(self._report_mask(text))

    def report(self, nickname: str | None) -> list[tuple[str, str]]:
        """Return what went wrong on the streams of bots, and what an actor saw: titles and texts.

        The actor is the last one of this name, or else the first of all. Only the sandbox has the
        streams of bots.
        """
        named = [actor for actor in self._actors if actor.nickname == nickname]
        actors = named[-1:] or self._actors[:1]
        looked = partial(self._streams.report, self._bots)
        streams = self._engine.call(looked) if self._bots else []
        return streams + (self._engine.run(actors[0].report()) if actors else [])

    def played(self) -> str:
        """Return what the test did so far, as the JSON of a `Played`; empty without an actor.

        The actor that saw the most tells what happened in the room.
        """
        if not self._actors:
            return ""
        seen = max((self._engine.run(actor.played()) for actor in self._actors), key=len)
        streams = self._engine.call(partial(self._streams.streams, self._bots))
        findings = [finding for _, findings in streams for finding in findings]
        return self._mask(json.dumps(Played(self.room, seen, self.steps, findings)))

    def end_test(self) -> None:
        """End what the test began: its faults end, its actors leave, its room is given up."""
        for end in self._faults:
            end()
        for actor in self._actors:
            self._engine.run(actor.leave())
        self._streams.end_test()
        self._bots.clear()
        self._faults, self._actors, self._room, self.steps = [], [], "", []

    async def _enter(self, actor: Actor) -> None:
        """Have `actor` join; on a real server, wait until the other actors in its room see it.

        In the sandbox they see it at once, unless a fault silences them.
        """
        await actor.enter()
        if self._sandbox is None:
            others = [other for other in self._actors if other is not actor]
            here = [other for other in others if other.room == actor.room]
            await asyncio.gather(*(other.sees(actor.nickname) for other in here))

    def _new(
        self,
        nickname: str,
        *,
        account: str = "",
        password: str = "",
        room: str = "",
        room_password: str = "",
    ) -> Actor:
        settings = self._settings
        if self._sandbox is not None:
            account = account or re.sub("[^a-z0-9]+", "-", nickname.lower()) or "-"
        if account:
            settings = self._with_account(settings, account, password)
        secret = Secret(room_password) if room_password else None
        rooms = (room or self.room,)
        settings = settings._replace(nickname=nickname, rooms=rooms, room_password=secret)
        actor = Actor(settings, mask=lambda text: self._mask(text))
        self._actors.append(actor)
        return actor

    def _with_account(self, settings: Settings, account: str, password: str) -> Settings:
        name, _, domain = account.partition("@")
        if self._sandbox is not None:
            password = self._engine.call(partial(self._sandbox.add_account, name))
        if not password:
            raise XmppTestError(
                f"The password of the account {account!r} is not known: give an actor its "
                "`password`, and name a file with the settings of a bot by --xmpp-bot-env-file."
            )
        domain = domain or settings.domain
        return settings._replace(username=name, domain=domain, password=Secret(password))


def _read(option: str, path: Path | None) -> Settings:
    """Return the settings in a file; raises `pytest.UsageError` with what is wrong with them."""
    if path is None:
        raise pytest.UsageError(f"{option} is missing: the actors need an account, too")
    here = Path.cwd()
    configuration = load(os.environ, cwd=here, package_root=here, env_file=path)
    if configuration.settings is not None:
        return configuration.settings
    complaint = f"{option} {path} has no settings for a room:"
    for problem in configuration.problems:
        if problem.variable == "--env-file":
            problem = problem._replace(variable=option)
        complaint += f"\n  {one_line(str(problem))}"
    raise pytest.UsageError(complaint)
