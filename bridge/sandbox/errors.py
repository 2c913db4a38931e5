"""The root of the exceptions that `bridge.sandbox` raises."""


class SandboxError(Exception):
    """A client of the sandbox broke a protocol, or left; the subclass says which."""
