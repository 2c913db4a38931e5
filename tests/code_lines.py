"""Counts the lines of code by package: without blank lines, comments and docstrings.

python tests/code_lines.py [FOLDER]
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

NO_PYTHON = {".html", ".css", ".js", ".svg", ".sql", ".tsv", ".csv", ".json", ".toml", ".txt"}
"""The suffixes of templates and tables of data."""


def code_lines(source: str) -> int:
    """Return how many lines of `source` hold code.

    A string that stands alone is a docstring, of a module, class, function, constant or field.
    """
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), end_lineno=int(end)):
                lines.difference_update(range(node.lineno, end + 1))
    return len(lines)


def counted(package: Path) -> dict[str, int]:
    """Return the lines of code of each folder in `package`.

    Every line of a template and of a table of data counts.
    """
    counts = Counter[str]()
    for path in package.rglob("*"):
        folder = str(path.parent.relative_to(package.parent))
        if path.suffix == ".py":
            counts[folder] += code_lines(path.read_text("utf-8"))
        elif path.is_file() and path.suffix in NO_PYTHON:
            counts[folder] += len(path.read_text("utf-8").splitlines())
    return dict(sorted(counts.items()))


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "bridge"
    by_package = counted(folder)
    for name, lines in by_package.items():
        print(f"{lines:7,}  {name}")  # noqa: T201 - what it is for
    print(f"{sum(by_package.values()):7,}  in all")  # noqa: T201
