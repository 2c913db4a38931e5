"""`xmpp-bridge check` and the settings that it reads."""

import json
from pathlib import Path

from tests.e2e.checking import run, stages
from tests.servers.server import XmppServer

WRONG = "XMPP_SERVICE=http://example.org\nXMPP_USERNAME=bot@example.org\nMUC_ROOM=nonsense\n"
PROBLEMS = {"XMPP_SERVICE", "XMPP_PASSWORD", "MUC_ROOM"}


async def test_settings_that_do_not_do_are_all_named_with_where_they_were_looked_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "wrong.env").write_text(WRONG, encoding="utf-8")
    code, checking = await run(tmp_path, {"TIA_ENV_PATH": "wrong.env"})
    assert code == 2
    assert checking.out == ""
    lines = checking.err.splitlines()
    for name in PROBLEMS:
        assert len([one for one in lines if one.startswith(f"xmpp-bridge: {name} ")]) == 1
    assert f"xmpp-bridge: looked at {tmp_path}/.env: missing" in lines
    assert f"xmpp-bridge: looked at {tmp_path}/wrong.env: used" in lines
    assert all(line.startswith("xmpp-bridge: ") for line in lines)


async def test_a_name_of_no_file_is_said_beside_what_came_of_the_check(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    code, checking = await run(tmp_path, sandbox.environment() | {"TIA_ENV_PATH": "nowhere"})
    assert code == 0
    (name, passed, detail), *_ = stages(checking.out.splitlines())
    assert (name, passed) == ("settings", True)
    assert f"warning: TIA_ENV_PATH names '{tmp_path}/nowhere', which cannot be used" in detail


async def test_settings_that_do_not_do_are_an_object_as_any_other_check(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    (tmp_path / "wrong.env").write_text(WRONG, encoding="utf-8")
    code, checking = await run(tmp_path, {}, "--json", "--env-file", "wrong.env")
    assert code == 2
    told = json.loads(checking.out)
    assert (told["ok"], told["condition"]) == (False, "unconfigured")
    assert {one.split()[0] for one in told["problems"]} == PROBLEMS
    (phase,) = told["phases"]
    assert (phase["name"], phase["ok"]) == ("settings", False)
    assert f"{tmp_path}/wrong.env: used" in phase["detail"]
    for name in PROBLEMS:
        assert name in told["diagnosis"]
        assert f"xmpp-bridge: {name} " in checking.err
    _, passed = await run(tmp_path, sandbox.environment(), "--json")
    assert json.loads(passed.out).keys() == told.keys()
    listed = {one["variable"]: one for one in json.loads(passed.out)["settings"]}
    assert listed.keys() == sandbox.environment().keys()
    assert listed["XMPP_PASSWORD"]["value"] == "***"
    assert {one["source"] for one in listed.values()} == {"the environment"}
