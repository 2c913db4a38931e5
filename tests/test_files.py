from pathlib import Path

from bridge.files import state_folder


def test_what_we_keep_is_where_programs_keep_their_state(tmp_path: Path) -> None:
    usual = tmp_path / "home" / ".local" / "state" / "xmpp-bridge"
    home = {"HOME": f"{tmp_path}/home"}
    assert state_folder(home) == usual
    assert state_folder(home | {"XDG_STATE_HOME": "relative"}) == usual
    assert state_folder(home | {"XDG_STATE_HOME": "/srv"}) == Path("/srv/xmpp-bridge")
    (tmp_path / "link").symlink_to(tmp_path)  # such as /home on some systems
    assert state_folder({"HOME": f"{tmp_path}/link/home"}) == usual
