"""What can go wrong while this bridge is registered with a client. Pure."""


class RegistrationError(Exception):
    """Registering or unregistering failed and nothing is left half done; the text says why."""

    def __init__(self, text: str, by_hand: str = "") -> None:
        super().__init__(text)
        self.by_hand = by_hand
        """What the user can do instead, where a file was left alone; else empty."""


class LaunchError(RegistrationError):
    """There is nothing to register yet; the text says what the user can do about it."""


class EditError(RegistrationError):
    """The text of a configuration file cannot be changed without losing something; says why."""
