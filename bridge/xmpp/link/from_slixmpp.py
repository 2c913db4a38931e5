"""What slixmpp does for us: it prepares JIDs and passwords, and looks up SRV records.

No other module imports slixmpp. Importing it takes some 75 ms, longer than everything else that
`serve` does before its first answer. So these functions import it, and `serve` calls `load` in a
thread at its start. If a function is called before `load` has ended, it waits for the import.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from bridge.wire.names import MAX_JID_CHARACTERS
from bridge.xmpp.errors import XmppError

MAX_SRV_RECORDS = 32
"""Most SRV records of each kind that we use. An answer may hold 3,000, and slixmpp sorts them
in quadratic time, which would take seconds. Real domains have up to ten."""


class ForbiddenCharacterError(XmppError):
    """A text has characters that SASLprep forbids (RFC 4013, section 2.3)."""


def load() -> None:
    """Load slixmpp; raises `ImportError` if it, or what it needs, is not installed."""
    import slixmpp.util.sasl.client
    import slixmpp.xmlstream.resolver  # noqa: F401


def prepared(jid: str) -> str | None:
    """Return a JID prepared for comparison (RFC 7622); None if it is invalid.

    A text longer than any JID does not reach slixmpp, since slixmpp caches what it prepares.
    """
    from slixmpp.jid import JID, InvalidJID

    if len(jid) > MAX_JID_CHARACTERS:
        return None
    try:
        return str(JID(jid))
    except (InvalidJID, UnicodeError):  # the latter for half a surrogate pair
        return None


def sasl_prepared(text: str) -> str:
    """Prepare a username or password for SASL (RFC 4013); raises `ForbiddenCharacterError`."""
    from slixmpp.util.sasl.client import saslprep
    from slixmpp.util.stringprep_profiles import StringPrepError

    try:
        return str(saslprep(text))
    except (StringPrepError, UnicodeError) as error:
        raise ForbiddenCharacterError(str(error)) from error


async def srv_records(domain: str, port: int, kinds: list[str]) -> list[tuple[str, str, int]]:
    """Return the SRV records of the domain (RFC 2782): kind, host and port of each, best first.

    The records are not checked, and records beyond `MAX_SRV_RECORDS` are left out. A dot at the end
    of the name turns the resolver's search list off. The result is empty if there are no records,
    and if aiodns is missing, by which slixmpp asks DNS.
    """
    from slixmpp.xmlstream.resolver import default_resolver, get_SRV

    resolver = default_resolver(asyncio.get_running_loop())
    if resolver is None:  # `get_SRV` would pass the domain off as a record
        return []
    for name in ("query_dns", "query"):  # aiodns has the former from version 4 on
        if ask := getattr(resolver, name, None):
            setattr(resolver, name, partial(_first_records, ask))
    try:
        return list(await get_SRV(f"{domain}.", port, kinds, resolver=resolver))
    finally:
        # slixmpp's type of aiodns's resolver has no `close`; unclosed, its sockets stay open until
        # they are garbage-collected.
        close = getattr(resolver, "close", None)
        if close is not None:
            await close()


async def _first_records(ask: Callable[[str, str], Awaitable[Any]], name: str, kind: str) -> object:
    """Return the resolver's answer, without the records beyond `MAX_SRV_RECORDS`."""
    answer = await ask(name, kind)
    del getattr(answer, "answer", answer)[MAX_SRV_RECORDS:]  # before aiodns 4, `answer` is the list
    return answer
