import re
import tomllib
from pathlib import Path

import pytest

import bridge
from bridge import toolkit, toolsets
from bridge.mcp.toolset import Toolset
from tests.test_layers import IMPORTS

README = (Path(bridge.__file__).parent.parent / "README.md").read_text("utf-8")


def example() -> str:
    """The README's own tool."""
    (found,) = re.findall(r"<!-- ten lines -->\n```python\n(.*?)```", README, re.DOTALL)
    return str(found)


def test_a_tool_in_the_readme_takes_ten_lines() -> None:
    assert len(example().splitlines()) == 10


def test_the_tool_in_the_readme_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mirror_of_the_readme.py").write_text(example(), "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    (mirror,) = toolsets.load_toolset("mirror_of_the_readme:TOOLS").tools
    assert mirror.signature.input_schema()["properties"] == {
        "text": {"type": "string"},
        "times": {"type": "integer", "default": 1},
    }
    assert mirror(text="ab", times=2) == "baba"


def test_the_entry_point_in_the_readme_is_in_the_group_that_is_looked_at() -> None:
    (found,) = re.findall(r"```toml\n(\[project\.entry-points.*?)```", README, re.DOTALL)
    assert list(tomllib.loads(found)["project"]["entry-points"]) == [toolsets.GROUP]


def test_the_readme_names_every_set_of_ours_with_its_tools() -> None:
    for name in toolsets.BUILT_IN:
        (row,) = [line for line in README.splitlines() if line.startswith(f"| `{name}` |")]
        assert [
            one.name for one in toolsets.load_toolset(name).tools if f"`{one.name}`" not in row
        ] == []


def test_the_toolkit_gives_what_it_promises() -> None:
    assert sorted(toolkit.__all__) == toolkit.__all__
    assert all(hasattr(toolkit, name) for name in toolkit.__all__)
    assert toolkit.Toolset is Toolset


def test_our_tools_use_nothing_of_the_mcp_wing_that_others_cannot() -> None:
    taken = {
        one.imported.rpartition(".")[2]
        for one in IMPORTS
        if one.by("bridge.tools") and one.of("bridge.mcp")
    }
    assert {"tool", "ToolError", "Bounds"} <= taken
    assert taken <= set(toolkit.__all__)
