"""Builds the wheel of this package with the standard library alone (PEP 517), so offline."""

import tomllib
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """Write the wheel and return its name."""
    del config_settings, metadata_directory
    project = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    groups = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    files = {
        "dice_tools.py": (HERE / "dice_tools.py").read_text("utf-8"),
        f"{stem}.dist-info/METADATA": (
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        ),
        f"{stem}.dist-info/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: backend\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
        f"{stem}.dist-info/entry_points.txt": groups,
    }
    record = f"{stem}.dist-info/RECORD"
    files[record] = "".join(f"{name},,\n" for name in (*files, record))
    name = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
    return name
