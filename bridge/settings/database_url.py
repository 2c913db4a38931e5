"""The URL of a PostgreSQL database, with its password hidden."""

import hashlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from bridge.settings.values import FlawError, Secret, path

SHOWN = frozenset({"sslmode", "sslrootcert", "host", "hostaddr", "port", "dbname", "user"})
"""The parameters of the query that may be shown. Any other may be a secret."""

VERIFIED = "verify-full"
"""The `sslmode` with which the certificate and its name are checked."""

_URL = re.compile("(?i)[a-z][a-z0-9+.-]+://")
_BEHEADED = re.compile("(//|[^/])[^@]*:[^@/]*@")
"""Matches the rest of a URL whose beginning is wrong or missing: it may have a password."""
_POSTGRESQL = re.compile("(?i)postgres(ql)?:|.*password *=")
"""Matches a text that is meant as a database: a URL, or keywords of libpq with a password."""
_LOOPBACK = re.compile(r"127(\.[0-9]{1,3}){3}|::1|localhost|[/@].*|")
"""Matches a host that is this machine: an address, the folder of a socket, or no name at all."""

_HOSTS = (("host", "PGHOST"), ("hostaddr", "PGHOSTADDR"))
_SERVICE = ("service", "PGSERVICE")
"""Parameters of libpq that say where the database is, and the variables that stand for them."""

_PART = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
"""Matches one of the hosts, with its port."""


@dataclass(frozen=True)
class DatabaseUrl:
    """Where a database is, and how it is reached; it is printed without its password."""

    parameters: dict[str, str] = field(repr=False)
    """The parameters of libpq, without the password."""
    password: Secret | None
    without_secrets: str = field(repr=False)

    def __str__(self) -> str:
        return self.without_secrets

    def _in_effect(self, name: str, variable: str) -> str:
        """Return a parameter, or what libpq takes from the environment in its place."""
        return self.parameters.get(name) or os.environ.get(variable, "")

    @property
    def is_local(self) -> bool:
        """Whether every host is this machine, so that no network lies between."""
        named = [self._in_effect(*each) for each in _HOSTS]
        if self._in_effect(*_SERVICE) and "host" not in self.parameters:
            return False  # the file of services may name any host
        return all(map(_LOOPBACK.fullmatch, ",".join(filter(None, named)).split(",")))

    @property
    def sslmode(self) -> str | None:
        """The `sslmode` of libpq. None, on this machine only, leaves the choice to libpq."""
        return self.parameters.get("sslmode") or (None if self.is_local else VERIFIED)

    @property
    def warning(self) -> str | None:
        """A warning if the server's certificate is not checked; else None."""
        if self.is_local or self.sslmode == VERIFIED:
            return None
        return (
            f"BRIDGE_STORE has sslmode={self.sslmode}: anybody on the way can pose as the database "
            "server; remove it, so that the certificate is checked"
        )

    @property
    def name(self) -> str:
        """A hash that names the database; the same for every password.

        It differs by the user only if libpq takes the user's name for the database's.
        """
        more = (("port", "PGPORT"), ("dbname", "PGDATABASE"), ("options", "PGOPTIONS"))
        host, address, port, name, options = (self._in_effect(*each) for each in (*_HOSTS, *more))
        service = self._in_effect(*_SERVICE)
        name = name or ("" if service else self._in_effect("user", "PGUSER"))
        where = [host, address, port, name, options, *filter(None, [service])]
        return hashlib.sha256("\n".join(where).encode()).hexdigest()[:16]


def store(text: str) -> Path | DatabaseUrl:
    """Parse the place of a store: the path of a file, or the URL of a PostgreSQL database."""
    if _POSTGRESQL.match(text):
        return database_url(text)
    if _URL.search(text) or _BEHEADED.match(text):
        raise FlawError(
            "which is the URL of something else; a file, or postgresql://HOST/DATABASE,"
        )
    return path(text)


def password_in(text: str) -> str:
    """Return the password of a URL; empty if there is none, or the text is no URL."""
    with suppress(FlawError):
        url = store(text.strip())
        if isinstance(url, DatabaseUrl) and url.password is not None:
            return url.password.reveal()
    return ""


def database_url(text: str) -> DatabaseUrl:
    """Parse a URL; raises `FlawError`, whose text has nothing of the URL."""
    with suppress(ValueError):
        url = urlsplit(text)
        user_info, _, hosts = url.netloc.rpartition("@")
        user, _, password = user_info.partition(":")
        parts = [_PART.fullmatch(unquote(part)) for part in hosts.split(",")]
        query = dict(parse_qsl(url.query, strict_parsing=True)) if url.query else {}
        # If the URL lacks its slashes, or the password has one, `urlsplit` takes the password for a
        # name.
        plain = _URL.match(text) and "@" not in (url.path.strip("/") or url.query)
        if plain and all(parts) and text.isprintable() and not url.fragment:
            named = {
                "host": ",".join(part[1].strip("[]") for part in parts if part),
                "port": ",".join(part[2] or "" for part in parts if part),
                "user": unquote(user),
                "dbname": unquote(url.path.removeprefix("/")),
            } | query
            secret = named.pop("password", "") or unquote(password)
            given = {name: value for name, value in named.items() if value.strip(",")}
            more = [f"{name}={text if name in SHOWN else '***'}" for name, text in query.items()]
            address = f"postgresql://{f'{user}@' if user else ''}{hosts}{url.path}"
            address += f"?{'&'.join(sorted(more))}" if more else ""
            return DatabaseUrl(given, Secret(secret) if secret else None, address)
    raise FlawError(
        "which is not the URL of a database; postgresql://USER:PASSWORD@HOST/DATABASE, with `%40` "
        "for `@` and the like in user and password,"
    )
