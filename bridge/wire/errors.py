"""The root of the exceptions that `bridge.wire` raises. Pure."""


class WireError(Exception):
    """The other side broke a protocol; the subclass says which one."""
