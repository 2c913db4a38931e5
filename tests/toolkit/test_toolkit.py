import re
import tomllib
from pathlib import Path

import pytest

from bridge import toolkit
from bridge.mcp.schema import object_of
from bridge.toolkit import finding as toolsets
from tests.docs.pages import PAGES
from tests.test_layers import imports

PAGE = PAGES["docs/toolsets.md"]


EXAMPLES = re.findall(r"<!-- ten lines -->\n```python\n(.*?)```", PAGE, re.DOTALL)
"""The tools on the page about toolsets."""


def test_the_tool_on_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mirror_of_the_page.py").write_text(EXAMPLES[0], "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    (mirror,) = toolsets.load_toolset("mirror_of_the_page:TOOLS").tools
    assert object_of(mirror.signature.parameters)["properties"] == {
        "text": {"type": "string"},
        "times": {"type": "integer", "default": 1},
    }
    assert mirror(text="ab", times=2) == "baba"


def test_the_entry_point_on_the_page_is_in_the_group_that_is_looked_at() -> None:
    (block,) = re.findall(r"```toml\n(\[project\.entry-points.*?)```", PAGE, re.DOTALL)
    assert list(tomllib.loads(block)["project"]["entry-points"]) == [toolsets.GROUP]


def test_the_page_names_every_set_of_ours_with_its_tools() -> None:
    for name in toolsets.BUILT_IN:
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
        assert [
            each.name for each in toolsets.load_toolset(name).tools if f"`{each.name}`" not in row
        ] == []


def test_our_tools_use_nothing_of_the_mcp_wing_that_others_cannot() -> None:
    taken = {
        each.imported.rpartition(".")[2]
        for each in imports()
        if each.by("bridge.tools") and each.of("bridge.mcp")
    }
    assert {"tool", "ToolError", "Bounds"} <= taken
    assert taken <= set(vars(toolkit))
