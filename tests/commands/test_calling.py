"""The command by which a person takes the next step of a result."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from bridge.cli import parser
from bridge.commands.calling import command_of

NAMES = ("", "Robot", "-bot", "--json", "it's me")
STEPS = {
    **{f"xmppWait {who}": ("xmppWait", {"from": who} if who else {}) for who in NAMES},
    **{f"xmppDiagnose {who}": ("xmppDiagnose", {"nickname": who}) for who in NAMES if who},
    **{f"xmppSend {who}": ("xmppSend", {"from": who, "message": "-ping"}) for who in NAMES},
    "xmppOccupants": ("xmppOccupants", {}),
    "xmppCheck": ("xmppCheck", {}),
}


@pytest.mark.parametrize("given", [(), ("--sandbox", "--env-file=-my.env", "--room=-logs")])
@pytest.mark.parametrize("name", STEPS)
def test_the_command_of_a_next_step_is_parsed_as_it_is_meant(
    name: str, given: tuple[str, ...]
) -> None:
    tool, arguments = STEPS[name]
    step: dict[str, Any] = {"tool": tool, "arguments": arguments}
    run = parser().parse_args(["diagnose", *given])
    _, *words = shlex.split(command_of(step, run))
    parsed = vars(parser().parse_args(words))
    wanted = {"xmppCheck": "check", "xmppOccupants": "watch", "xmppWait": "watch"}
    assert parsed["command"] == wanted.get(tool, "diagnose")
    assert parsed["env_file"] == (Path("-my.env") if given else None)
    assert parsed["sandbox"] is bool(given)
    who = str(arguments.get("from") or arguments.get("nickname") or "")
    if parsed["command"] == "watch":
        assert parsed["senders"] == ([who] if who else [])
        assert parsed["rooms"] == (["-logs"] if given else [])
    elif parsed["command"] == "diagnose":
        assert (parsed["nickname"] or "", parsed["say"]) == (who, arguments.get("message"))
        assert parsed["room"] == ("-logs" if given else None)
