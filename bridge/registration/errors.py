"""What can go wrong while this bridge is registered with a client. Pure."""


class RegistrationError(Exception):
    """Registering or unregistering failed and nothing is left half done; the text says why."""


class LaunchError(RegistrationError):
    """There is nothing to register yet; the text says what the user can do about it."""


class EditError(RegistrationError):
    """The text of a configuration file is broken, or cannot be edited safely; says which."""
