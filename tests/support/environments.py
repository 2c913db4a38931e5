"""Virtual environments that have our dependencies, and of ours nothing but what they are given."""

import sys
import venv
from pathlib import Path

SCRIPT = """\
#!{python}
import sys
from bridge.__main__ import main
sys.exit(main())
"""


def without_us(home: Path) -> Path:
    """Return the `bin` of a new environment that has our dependencies, and nothing else of ours."""
    venv.create(home, with_pip=False)
    ours = {path for path in map(Path, sys.path) if path.name == "site-packages"}
    # A path alone: the `.pth` files in it, of which one leads to the source, have no effect.
    _lead(home, "dependencies", *ours)
    return home / "bin"


def with_source(home: Path, source: Path) -> Path:
    """Return the `bin` of a new environment in which the package is what lies in `source`."""
    environment = without_us(home)
    _lead(home, "source", source)
    script = environment / "xmpp-bridge"
    script.write_text(SCRIPT.format(python=environment / "python"), "utf-8")
    script.chmod(0o755)
    return environment


def _lead(home: Path, name: str, *paths: Path) -> None:
    (site,) = home.glob("lib/python*/site-packages")
    (site / f"{name}.pth").write_text("".join(f"{path}\n" for path in paths), "utf-8")
