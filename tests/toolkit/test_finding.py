from pathlib import Path

import pytest

from bridge.mcp.toolset import Toolset, ToolsetError, tool
from bridge.settings.load import load
from bridge.toolkit import finding as toolsets
from bridge.toolkit.finding import BUILT_IN, join_toolsets, known_toolsets, load_toolset


@tool(title="Base", read_only=True)
def base_tool() -> str:
    """Belong to the bridge."""
    return ""


BASE = Toolset("bridge", (base_tool,))
SETTINGS = load({}, cwd=Path("/"), package_root=Path("/"), searching=False)
OFFER = "[xmpp_debug_bridge.toolsets]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where packages are installed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(folder: Path, package: str, entries: str) -> None:
    """Install a package that consists of entry points."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(OFFER + entries)


def test_a_set_of_ours_is_found_without_a_look_at_what_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toolsets, "_offers", lambda: pytest.fail("it looked"))
    assert load_toolset("samples").name == "samples"
    assert load_toolset("bridge.samples:TOOLSET").name == "samples"


def test_the_sets_that_there_are_come_ours_first(folder: Path) -> None:
    install(folder, "zoo", "zebra = a:b\nsamples = a:b\nant = a:b\n")
    assert known_toolsets() == [*BUILT_IN, "ant", "zebra"]
    assert load_toolset("samples").tools  # a package cannot stand in for it


def test_a_set_beside_the_bridge_is_called_as_it_was_asked_for(folder: Path) -> None:
    install(folder, "zoo", "ant = bridge.samples:TOOLSET\n")
    both, _ = join_toolsets(BASE, named=["ant"], settings=[], collaborators=[SETTINGS])
    assert both.name == "bridge+ant"
    assert load_toolset("ant").name == "samples"


def test_sets_come_after_the_base_as_named_each_once() -> None:
    both, problems = join_toolsets(
        BASE, named=["samples", "samples"], settings=["samples"], collaborators=[SETTINGS]
    )
    assert problems == ()
    assert both.name == "bridge+samples"
    assert both.tools[0] is base_tool


def test_a_set_that_has_a_tool_of_the_bridge_clashes_with_the_bridge(folder: Path) -> None:
    (folder / "double.py").write_text(
        "from bridge.toolkit import Toolset, tool\n"
        "@tool(title='Base')\n"
        "def base_tool() -> str:\n"
        "    'Pose as another.'\n"
        "TOOLS = Toolset('double', (base_tool,))\n",
        "utf-8",
    )
    clash = "the toolsets bridge and double:TOOLS both have a tool base_tool"
    with pytest.raises(ToolsetError, match=clash):
        join_toolsets(BASE, named=["double:TOOLS"], settings=[], collaborators=[])
    left, (problem,) = join_toolsets(BASE, named=[], settings=["double:TOOLS"], collaborators=[])
    assert left.tools == BASE.tools
    assert str(problem) == (f"BRIDGE_TOOLSETS names 'double:TOOLS', which is left out: {clash}")


def test_a_foreign_error_is_shown_up_to_a_bound(folder: Path) -> None:
    spare = toolsets.MAX_CAUSE - len("RuntimeError: ")
    for name, length in (("brief", spare), ("wordy", spare + 1)):
        (folder / f"{name}.py").write_text(f"raise RuntimeError('a' * {length})", "utf-8")
    with pytest.raises(ToolsetError, match=r": a+$"):
        load_toolset("brief:TOOLS")
    with pytest.raises(ToolsetError, match=r": a+\.\.\. \(301 characters\)$"):
        load_toolset("wordy:TOOLS")
