"""`xmpp-bridge register` and `unregister`: edit this bridge's entry in a client's configuration."""

import argparse
import os

from bridge.commands.configuration import PACKAGE_ROOT, current_directory
from bridge.commands.exit import FAILURE, SUCCESS, USAGE
from bridge.logs import can_print, complain, write_out
from bridge.registration.errors import LaunchError, RegistrationError
from bridge.registration.launch import find_env_file
from bridge.registration.register import location_of, register, unregister


def run(parsed: argparse.Namespace) -> int:
    """Register or unregister this bridge, as the command line says."""
    try:
        location = location_of(parsed.client, parsed.name)
        if parsed.command == "unregister":
            unregister(location, only_shown=parsed.print)
        else:
            env_file = find_env_file(
                os.environ,
                cwd=current_directory(),
                package_root=PACKAGE_ROOT,
                named=parsed.env_file,
            )
            approve_send, only_shown = parsed.approve_send, parsed.print
            register(location, env_file, approve_send=approve_send, only_shown=only_shown)
    except RegistrationError as error:
        if error.by_hand:
            write_out(error.by_hand)
        complain(f"xmpp-bridge: {error}")
        return USAGE if isinstance(error, LaunchError) else FAILURE
    return SUCCESS if not parsed.print or can_print() else FAILURE
