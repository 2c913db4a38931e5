"""Makes the certificate of a command that takes TLS connections; its library is an extra."""

from contextlib import AbstractContextManager

from bridge.commands.exit import UsageError
from bridge.sandbox.stream import TlsIdentity


def certificate(
    domain: str, program: str, what: str, extra: str
) -> AbstractContextManager[TlsIdentity]:
    """Return a self-signed certificate for `program`; the file is deleted at the end.

    Raises `UsageError` if the `extra` that `what` needs is not installed.
    """
    try:
        from bridge.sandbox.certificate import self_signed
    except ImportError as error:
        needed = f"{what} needs the extra: pip install 'xmpp-debug-bridge[{extra}]'"
        raise UsageError(needed) from error
    return self_signed(domain, program)
