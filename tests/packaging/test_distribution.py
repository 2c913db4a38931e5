"""What is published: built as for an index, installed far from the source, and run."""

import json
import os
import re
import shutil
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest

import bridge
from tests.e2e.bridge_process import run_in
from tests.support.environments import without_us
from tests.support.prerequisites import do_without
from tests.test_layers import imports

TOP = Path(bridge.__file__).parent.parent
STEM = f"xmpp_debug_bridge-{bridge.__version__}"
INFO = f"{STEM}.dist-info"
ECHO = '{"jsonrpc":"2.0","id":1,"method":"echo","params":{"message":"hello"}}\n'


@dataclass(frozen=True)
class Built:
    wheel: Path
    sdist: Path


def _run(
    *command: str | Path, cwd: Path, said: str = "", environ: Mapping[str, str] | None = None
) -> str:
    ran = run_in(cwd, *command, said=said, **(os.environ if environ is None else environ))
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _build(source: Path, target: Path) -> Built:
    command = (sys.executable, "-m", "hatchling", "build", "-d", target)
    _run(*command, cwd=source)
    return Built(target / f"{STEM}-py3-none-any.whl", target / f"{STEM}.tar.gz")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return _build(TOP, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def unpacked(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built.sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / STEM


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment that has the wheel."""
    environment = without_us(tmp_path_factory.mktemp("venv"))
    pip = (sys.executable, "-m", "pip", "--python", environment / "python", "install", "--quiet")
    options = ("--no-compile", "--no-deps", "--no-index", "--ignore-installed")
    _run(*pip, *options, built.wheel, cwd=environment)
    return environment


def _contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_the_package_and_nothing_else(built: Built) -> None:
    package = {
        str(path.relative_to(TOP))
        for path in (TOP / "bridge").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "bridge/py.typed" in package
    told = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert set(_contents(built.wheel)) == package | {f"{INFO}/{name}" for name in told}


def test_the_wheel_tells_what_an_index_shows(built: Built) -> None:
    told = Parser().parsestr(_contents(built.wheel)[f"{INFO}/METADATA"].decode())
    assert (told["Name"], told["Version"]) == ("xmpp-debug-bridge", bridge.__version__)
    assert told["License-Expression"] == "MIT"
    assert told["Requires-Python"] == ">=3.11"
    assert {"Typing :: Typed", "Framework :: Pytest"} <= {*told.get_all("Classifier", [])}
    assert {"xmpp", "jabber", "mcp", "muc", "chatbot"} <= {*told["Keywords"].split(",")}
    assert "mcp-name: " in str(told.get_payload())


def test_an_index_takes_both(built: Built, tmp_path: Path) -> None:
    _run(sys.executable, "-m", "twine", "check", "--strict", built.wheel, built.sdist, cwd=tmp_path)


def test_the_sdist_holds_the_source_with_its_tests(unpacked: Path) -> None:
    assert {path.name for path in unpacked.iterdir()} == {
        *(".ci", "bridge", "docs", "packaging", "tests"),
        *(".agents", ".claude-plugin"),
        *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"),
        *(".env.example", ".gitignore"),
        *("pyproject.toml", "PKG-INFO"),
    }
    assert not [*unpacked.rglob("*.pyc"), *unpacked.rglob(".env")]


def test_the_sdist_builds_the_same_wheel(built: Built, unpacked: Path, tmp_path: Path) -> None:
    assert _contents(_build(unpacked, tmp_path).wheel) == _contents(built.wheel)


def test_it_runs_where_nothing_of_the_source_lies_around(installed: Path, tmp_path: Path) -> None:
    where = "import bridge; print(bridge.__file__)"
    (environment,) = _run(installed / "python", "-c", where, cwd=tmp_path, environ={}).splitlines()
    assert Path(environment).is_relative_to(installed.parent)
    version = _run(installed / "xmpp-bridge", "--version", cwd=tmp_path, environ={})
    assert version == f"xmpp-bridge {bridge.__version__}\n"
    module = _run(installed / "python", "-m", "bridge", "--help", cwd=tmp_path, environ={})
    assert module.startswith("usage: ")
    # What `uvx xmpp-debug-bridge` runs.
    told = _run(installed / "xmpp-debug-bridge", cwd=tmp_path, environ={}, said=ECHO)
    assert json.loads(told)["result"]["content"] == [{"type": "text", "text": "Echo: hello"}]


def test_whatever_the_package_imports_it_asks_for(built: Built) -> None:
    imported = {each.imported.partition(".")[0] for each in imports()}
    foreign = imported - sys.stdlib_module_names - {"bridge"}
    providers = packages_distributions()
    needed = {providers[name][0].replace("_", "-").lower() for name in foreign}
    told = Parser().parsestr(_contents(built.wheel)[f"{INFO}/METADATA"].decode())
    extras = re.compile("llm|expect|postgresql|completion")
    asked = {
        re.split("[<>=!~;\\[ ]", each, maxsplit=1)[0].replace("_", "-").lower()
        for each in told.get_all("Requires-Dist", [])
        if "extra ==" not in each or extras.search(each.partition("extra ==")[2])
    }
    assert needed <= asked


@pytest.fixture
def fetching(tmp_path: Path) -> dict[str, str]:
    """The environment of the `uvx` beside us, which fetches dependencies from an index."""
    environ = {
        **os.environ,
        "PATH": os.pathsep.join((f"{sys.prefix}/bin", os.environ["PATH"])),
        "HOME": str(tmp_path),
        "UV_PYTHON": sys.executable,
    }
    if shutil.which("uv", path=environ["PATH"]) is None:
        do_without("uv is not installed: pip install -e '.[test]'")
    asking = ("uv", "pip", "install", "--dry-run", "--target", tmp_path / "none", "python-dotenv")
    if run_in(tmp_path, *asking, **environ).returncode:
        do_without("no package index is within reach")
    return environ


def test_it_runs_without_being_installed(
    built: Built, fetching: dict[str, str], tmp_path: Path
) -> None:
    command = ("uvx", "--from", built.wheel, "xmpp-bridge", "--version")
    said = _run(*command, cwd=tmp_path, environ=fetching)
    assert said == f"xmpp-bridge {bridge.__version__}\n"


def test_a_clone_that_is_installed_as_the_readme_does_it_has_its_settings_beside_it(
    unpacked: Path, fetching: dict[str, str], tmp_path: Path
) -> None:
    option, *_ = re.findall(r"pip install (\S+) \.", (unpacked / "README.md").read_text("utf-8"))
    clone, elsewhere = tmp_path / "clone", tmp_path / "elsewhere"
    shutil.copytree(unpacked, clone)
    elsewhere.mkdir()
    commands = without_us(tmp_path / "venv")
    install = ("uv", "pip", "install", "--python", commands / "python", "--no-deps", option, clone)
    _run(*install, cwd=elsewhere, environ=fetching)
    (clone / ".env").write_text("XMPP_DOMAIN=localhost\nLLM_MODEL=m\n", "utf-8")
    for cwd in (clone, elsewhere):
        checked = run_in(cwd, commands / "xmpp-bridge", "check", "--json", HOME=str(tmp_path))
        # It is trusted with a model, in the current directory too.
        in_effect = {each["variable"]: each for each in json.loads(checked.stdout)["settings"]}
        assert in_effect["LLM_MODEL"]["source"] == f"'{clone / '.env'}'"
