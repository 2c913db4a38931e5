"""The commands `register` and `unregister`: what they say, and their exit codes."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bridge.escaping import one_line
from bridge.log import complain
from bridge.registration.client import SEND_TOOL, client
from bridge.registration.configfile import FileError
from bridge.registration.launch import (
    Launch,
    LaunchError,
    carries_password,
    doubts,
    find_env_file,
    own_command,
)
from bridge.registration.registration import (
    Place,
    RegistrationError,
    Step,
    carry_out,
    entry_now,
    plan_register,
    plan_unregister,
)
from bridge.registration.trial import TrialError, listed_tools

SUCCESS, FAILURE, USAGE = 0, 1, 2


@dataclass(frozen=True)
class Wish:
    """What the user asked for, with either command."""

    client: str
    name: str
    only_shown: bool

    @property
    def place(self) -> Place:
        """Where the entry stands, or would; raises `LaunchError`."""
        try:
            home = Path.home()
        except RuntimeError as error:
            raise LaunchError("nobody knows where your home is: set HOME") from error
        return Place(client(self.client, os.environ, home), self.name)


def register(
    wish: Wish, *, env_file: Path | None, approve_send: bool, cwd: Path, package_root: Path
) -> int:
    """Register this bridge, start it once, say what came of it; return the exit code."""

    def work() -> int:
        place = wish.place
        if approve_send and place.client.no_approval is not None:
            raise LaunchError(
                f"{place.client.title} cannot be told in advance to approve {SEND_TOOL}: "
                f"{place.client.no_approval}.\nRegister without --approve-send."
            )
        found = find_env_file(os.environ, cwd=cwd, package_root=package_root, named=env_file)
        for doubt in doubts(found, package_root):
            complain(f"WARNING: {one_line(doubt)}")
        launch = Launch(own_command(sys.argv[0], sys.executable), found)
        steps = plan_register(place, launch, approve_send=approve_send)
        if wish.only_shown:
            return _show(place, steps)
        carry_out(place, steps, _say)
        if not steps:
            _say(f"{place.client.title} has it already, as {place.name}; nothing was changed.")
        if approve_send:
            _say(
                f"{SEND_TOOL} is approved: the agent may speak in the room without asking you "
                "first, and what it says there cannot be taken back. No other tool was approved."
            )
        return _try(place, launch)

    return _guarded(work)


def unregister(wish: Wish) -> int:
    """Undo `register`, say what was done; return the exit code."""

    def work() -> int:
        place = wish.place
        steps = plan_unregister(place)
        if wish.only_shown:
            return _show(place, steps)
        carry_out(place, steps, _say)
        if not steps:
            _say(f"{place.client.title} has no {place.name}; nothing was changed.")
        return SUCCESS

    return _guarded(work)


def _guarded(work: Callable[[], int]) -> int:
    try:
        return work()
    except LaunchError as error:
        return _complain(USAGE, str(error))
    except (RegistrationError, FileError) as error:
        return _complain(FAILURE, str(error))


def _try(place: Place, launch: Launch) -> int:
    command, env = entry_now(place)
    for name in carries_password(env):
        complain(
            f"WARNING: {name} stands in {place.client.file}; it belongs into the settings file "
            "and nowhere else"
        )
    try:
        tools = listed_tools(command, env)
    except TrialError as error:
        return _complain(
            FAILURE, f"it is registered, but the registered command does not answer: {error}"
        )
    _say(f"Started it once, with the settings in {one_line(str(launch.env_file))}.")
    _say(f"It lists {len(tools)} tools: {', '.join(tools)}.")
    _say(f"Start {place.client.title} anew to have them there.")
    return SUCCESS


def _show(place: Place, steps: tuple[Step, ...]) -> int:
    shown = [text for step in steps if (text := step.shown(place))]
    _say("\n".join(shown) or "There is nothing to do.")
    return SUCCESS


def _complain(code: int, text: str) -> int:
    complain(f"xmpp-bridge: {text}")
    return code


def _say(text: str) -> None:
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads on; what is begun is finished all the same, and nothing complains at the end.
        sys.stdout = None
