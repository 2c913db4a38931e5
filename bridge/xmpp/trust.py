"""What certificates are checked with: what the system trusts, and what the settings add.

Reading it takes 25 ms, and Python can do something else meanwhile.
"""

import asyncio
import ssl

from bridge.settings.sources import UnusableError, check_readable
from bridge.settings.table import Settings
from bridge.xmpp import faults
from bridge.xmpp.faults import ConnectionFailedError, Place


def context_in_the_making(settings: Settings, place: Place) -> "asyncio.Future[ssl.SSLContext]":
    """Begin to read it, in a thread; the future ends as `context_for` does."""
    making = asyncio.ensure_future(asyncio.to_thread(context_for, settings, place))
    making.add_done_callback(_heed)
    return making


def context_for(settings: Settings, place: Place) -> ssl.SSLContext:
    """Read it now; raises `ConnectionFailedError`."""
    context = ssl.create_default_context()
    anchors = settings.tls_ca_file
    if anchors is not None:
        try:
            check_readable(anchors)  # at a pipe, OpenSSL would wait for ever
            context.load_verify_locations(anchors)
        except (OSError, UnusableError) as error:  # OpenSSL's are among the former
            why = error if isinstance(error, OSError) else OSError(str(error))
            fault = faults.unusable_anchors(str(anchors), why, place)
            raise ConnectionFailedError(fault) from error
    if not settings.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _heed(context: "asyncio.Future[ssl.SSLContext]") -> None:
    """Take note of how it ended, even where nobody comes to need it."""
    if not context.cancelled():
        context.exception()
