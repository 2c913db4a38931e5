from pathlib import Path

from tests.code_lines import code_lines, counted

SOURCE = '''"""A module
with two lines of docstring."""

import os  # counts

LIMIT = 3
"""What it is."""

# A comment.
TEXT = """one
two"""


class Thing:
    """A docstring."""

    name: str
    """Of the thing."""

    def method(
        self,
    ) -> str:
        """Another."""
        return f"{self.name}{os.sep}"
'''


def test_blank_lines_comments_and_docstrings_do_not_count() -> None:
    assert code_lines(SOURCE) == 10


def test_every_package_is_counted_and_templates_and_tables_line_by_line(tmp_path: Path) -> None:
    package = tmp_path / "bridge"
    (package / "inner").mkdir(parents=True)
    (package / "one.py").write_text(SOURCE)
    (package / "inner" / "two.py").write_text("x = 1\n")
    (package / "inner" / "page.html").write_text("<p>\n\n</p>\n")
    (package / "inner" / "table.tsv").write_text("1\tone\n")
    assert counted(package) == {"bridge": 10, "bridge/inner": 5}
