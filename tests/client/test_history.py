from pathlib import Path

import pytest

from bridge.client.terminal import MAX_HISTORY_BYTES, TypedLines, history_of
from bridge.settings.load import load
from tests.support.racing import put


def _kept(path: Path) -> list[str]:
    return [*TypedLines(path, []).load_history_strings()]


@pytest.mark.parametrize(
    "line",
    ["send hunter2 is it", '/call login {"Secret": "x"}', "/call f api_key = x", "TOKEN: x"],
)
def test_a_line_with_a_secret_is_not_kept(tmp_path: Path, line: str) -> None:
    history = TypedLines(tmp_path / "history", ["hunter2"])
    for typed in ("before", line, "the password is not here"):
        history.store_string(typed)
    assert _kept(tmp_path / "history") == ["the password is not here", "before"]


def test_what_two_clients_add_is_kept_and_lines_that_were_one_command_stay_together(
    tmp_path: Path,
) -> None:
    ours, theirs = (TypedLines(tmp_path / "history", []) for _ in range(2))
    ours.store_string("send one\ntwo")
    theirs.store_string("theirs")
    ours.store_string("mine")
    assert _kept(tmp_path / "history") == ["mine", "theirs", "send one\ntwo"]


@pytest.mark.parametrize("kind", ["FIFO", "directory", "link to nothing"])
def test_what_lies_in_the_place_of_the_file_is_left_alone(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = tmp_path / "xmpp-bridge" / "history"
    path.parent.mkdir()
    put(path, kind, tmp_path / "victim")
    configuration = load({}, cwd=tmp_path, package_root=tmp_path, searching=False)
    history = history_of(configuration)
    history.append_string("hello")
    assert history.get_strings() == ["hello"]
    assert not (tmp_path / "victim").exists()
    assert "what was typed is not kept" in caplog.text


@pytest.mark.parametrize(("more", "kept"), [(0, 2), (1, 1)])
def test_a_file_that_is_too_long_begins_anew(tmp_path: Path, more: int, kept: int) -> None:
    history = TypedLines(tmp_path / "history", [])
    history.store_string("x" * 100)
    before = (tmp_path / "history").stat().st_size
    history = TypedLines(tmp_path / "other", [])
    history.store_string("x" * (MAX_HISTORY_BYTES - before + 100 + more))
    history.store_string("newest")
    assert _kept(tmp_path / "other")[0] == "newest"
    assert len(_kept(tmp_path / "other")) == kept
