import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import bridge

PACKAGE = Path(bridge.__file__).parent

LAYERS = (
    ("bridge.__main__",),
    ("bridge.cli",),
    ("bridge.arguments",),
    ("bridge.commands",),
    ("bridge.service", "bridge.registration", "bridge.testing", "bridge.tap"),
    ("bridge.page",),
    ("bridge.client",),
    ("bridge.views", "bridge.samples"),
    ("bridge.toolkit",),
    ("bridge.llm",),
    ("bridge.tools",),
    ("bridge.recording",),
    ("bridge.mcp", "bridge.xmpp.checks"),
    ("bridge.xmpp.muc",),
    ("bridge.xmpp.queries",),
    ("bridge.xmpp.link",),
    ("bridge.xmpp.model",),
    ("bridge.xmpp.errors",),
    ("bridge.capture", "bridge.store", "bridge.sandbox"),
    ("bridge.wire", "bridge.settings"),
    ("bridge.logs",),
    ("bridge.files", "bridge.newest", "bridge.text"),
)
"""From top to bottom. What stands side by side in one layer does not know of each other."""

UNKNOWN_TO_TESTS = tuple(
    f"bridge.{name}" for name in ("client", "views", "llm", "mcp", "service", "tools", "toolkit")
)
"""What the tests of bots do without."""
SETS = ("bridge.samples",)
"""Sets of tools that are loaded when they are asked for, by name."""

PURE = frozenset(
    f"bridge.{package}{name}"
    for package, *names in (
        ("", "newest", "text", "views.screen", "llm.prompt"),
        ("wire.", "meaning", "names", "speech"),
        ("client.", "arguments", "errors", "formatting"),
        ("capture.", "capture", "causes", "client", "ending", "examined", "finding", "formats"),
        (
            "capture.",
            "directions",
            "elements",
            "fragments",
            "login",
            "reader",
            "requests",
            "rooms",
            "sorting",
            "stanza",
            "stream",
            "talk",
        ),
        ("capture.", "times", "verdict", "waiting"),
        ("mcp.", "framing", "asking", "content", "context", "errors", "jsonrpc", "revisions"),
        ("mcp.", "schema", "subscriptions", "toolset", "server"),
        ("xmpp.", "errors", "link.trace", "queries.iq_errors", "checks.report"),
        ("xmpp.model.", "events", "room", "journal", "filter", "faults", "formatting"),
        ("xmpp.model.", "backoff", "message_body"),
    )
    for name in names
)
"""Modules that take values and return values."""

IMPURE = (
    *("asyncio", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "select"),
    *("selectors", "shutil", "signal", "slixmpp", "socket", "ssl", "subprocess", "tempfile"),
    *("threading", "time", "uuid"),
)
"""What opens files or connections, waits, reads a clock or rolls dice."""

NAMES_OF_FAILURES = frozenset({"socket.gaierror", "ssl.SSLCertVerificationError", "ssl.SSLError"})
"""Exceptions are values, and asyncio has loaded both modules before the first answer anyway."""

VALUES_FROM_OUTSIDE = "bridge.settings.table"
"""Its `Settings` and `Configuration` are values; what reads them from outside is beside it."""

CLOCKS = frozenset({"now", "utcnow", "today"})
"""The methods by which `datetime` reads one."""


def _lies_in(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@dataclass(frozen=True)
class Import:
    """One import, wherever in the module it stands."""

    importer: str
    imported: str
    """The module, with the name taken from it where there is one."""
    on_loading: bool
    """Whether it happens when the importer is loaded: not in a function."""

    def of(self, *packages: str) -> bool:
        return _lies_in(self.imported, packages)

    def by(self, *packages: str) -> bool:
        return _lies_in(self.importer, packages)

    def __str__(self) -> str:
        return f"{self.importer} imports {self.imported}"


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {_name(path): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


# Every worker of pytest loads this module; one of them needs the trees.
@cache
def trees() -> Mapping[str, ast.Module]:
    return {module: ast.parse(source) for module, source in SOURCES.items()}


def _imports(module: str, node: ast.AST, *, on_loading: bool = True) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from (Import(module, each.name, on_loading) for each in names)
            case ast.ImportFrom(module=str(source), names=names, level=0):
                yield from (Import(module, f"{source}.{each.name}", on_loading) for each in names)
            case ast.ImportFrom():
                raise AssertionError(f"{module} has a relative import: write it out")
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from _imports(module, child, on_loading=False)
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[*_, ast.Constant(value)]):
                yield Import(module, str(value), on_loading)
            case _:
                yield from _imports(module, child, on_loading=on_loading)


HELD = PURE | {
    name
    for name, source in SOURCES.items()
    if "Pure" in source.partition('"""')[2].partition('"""')[0]
}
"""The pure modules by law, and whichever others say of themselves that they are."""


@cache
def imports() -> Sequence[Import]:
    return [each for module, tree in trees().items() for each in _imports(module, tree)]


def _layer(module: str) -> tuple[int, str]:
    """The number of its layer, and what it belongs to in it."""
    for number, layer in enumerate(LAYERS):
        for part in layer:
            if _lies_in(module, [part]):
                return number, part
    raise AssertionError(f"{module} stands in no layer")


def test_a_module_imports_only_what_stands_below_it_or_in_its_own_package() -> None:
    ours = [each for each in imports() if each.imported.startswith("bridge.")]
    ours = [each for each in ours if each.imported != "bridge.__version__"]
    assert len({each.importer for each in ours}) > 100
    breaches = []
    for each in ours:
        (above, importer), (below, imported) = _layer(each.importer), _layer(each.imported)
        if importer != imported and above >= below:
            breaches.append(each)
    assert not [str(each) for each in breaches]


@dataclass(frozen=True)
class Law:
    """What must not be imported, or must not on loading."""

    what: tuple[str, ...]
    but: tuple[str, ...] = ()
    """Parts of it that may be."""
    by: tuple[str, ...] = ("bridge",)
    """Who must not import it."""
    except_by: tuple[str, ...] = ()
    """Parts of those who may."""
    on_loading: bool = False

    def is_broken_by(self, link: Import) -> bool:
        concerns = link.by(*self.by) and not link.by(*self.except_by)
        concerns = concerns and (link.on_loading or not self.on_loading)
        return concerns and link.of(*self.what) and not link.of(*self.but)


TERMINAL = tuple(f"bridge.client.{name}" for name in ("completion", "history", "terminal"))
PLUGIN = tuple(f"bridge.testing.{name}" for name in ("plugin", "collector", "report", "server"))
UNDER_NODES = ("bridge.llm", "bridge.mcp", "bridge.settings", "bridge.text")
LAWS = {
    "only the composition root and commands that call tools import them": Law(
        ("bridge.tools",),
        except_by=(
            *("bridge.tools", "bridge.service", "bridge.toolkit", "bridge.llm.tools"),
            *(f"bridge.commands.{name}" for name in ("calling", "send", "send_rate", "diagnose")),
        ),
    ),
    "a set of tools is written against the toolkit alone": Law(
        ("bridge",), ("bridge.toolkit", *SETS), by=SETS
    ),
    "only sets of tools are written against the toolkit": Law(
        ("bridge.toolkit",),
        ("bridge.toolkit.finding", "bridge.toolkit.serving"),
        except_by=(*SETS, "bridge.toolkit"),
    ),
    "nobody imports a set of tools": Law(SETS, except_by=SETS),
    "nodes know the MCP wing and settings": Law(
        ("bridge",), UNDER_NODES, by=("bridge.llm",), except_by=("bridge.llm.tools",)
    ),
    "the tools of nodes know the room besides": Law(
        ("bridge",), (*UNDER_NODES, "bridge.tools", "bridge.xmpp"), by=("bridge.llm.tools",)
    ),
    "a page is drawn without pytest": Law(("pytest", "bridge.testing"), by=("bridge.page",)),
    "nobody imports the nodes unless they are asked for": Law(
        ("bridge.llm",), except_by=("bridge.llm", "bridge.toolkit")
    ),
    "registration knows neither wing": Law(
        ("bridge.mcp", "bridge.xmpp", "bridge.tools"), by=("bridge.registration",)
    ),
    "registration is for the command line": Law(
        ("bridge.registration",),
        except_by=("bridge.registration", "bridge.commands", "bridge.arguments"),
    ),
    "tests of bots know neither agents nor tools": Law(UNKNOWN_TO_TESTS, by=("bridge.testing",)),
    "tests of bots are known to commands alone": Law(
        ("bridge.testing",), except_by=("bridge.testing", "bridge.commands")
    ),
    "the HTTP client is imported in a thread by its name": Law(("httpx",)),
    "widths are for the screen": Law(("wcwidth",), except_by=("bridge.views.screen",)),
    "slixmpp is known to one module": Law(
        ("slixmpp",), except_by=("bridge.xmpp.link.from_slixmpp",)
    ),
    "which loads it when it is asked for": Law(("slixmpp",), on_loading=True),
    "a prompt is for the terminal": Law(("prompt_toolkit",), except_by=TERMINAL),
    "which is loaded when it is asked for": Law(TERMINAL, except_by=TERMINAL, on_loading=True),
    "pytest is for its plugin": Law(("pytest",), except_by=PLUGIN),
    "which pytest loads in every run, so that it loads nothing": Law(
        ("bridge",), by=PLUGIN[:1], on_loading=True
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_each_law_on_imports_holds(law: str) -> None:
    assert not [str(each) for each in imports() if LAWS[law].is_broken_by(each)]


@pytest.mark.parametrize("module", sorted(HELD))
def test_a_pure_module_touches_nothing_outside(module: str) -> None:
    links = [each for each in imports() if each.importer == module]
    touching = [each for each in links if each.imported not in NAMES_OF_FAILURES]
    assert not [str(each) for each in touching if each.of(*IMPURE)]
    ours = [each for each in links if each.of("bridge") and each.on_loading]
    assert not [str(each) for each in ours if not each.of(*HELD, VALUES_FROM_OUTSIDE)]
    called = [node.func for node in ast.walk(trees()[module]) if isinstance(node, ast.Call)]
    assert not [each for each in called if isinstance(each, ast.Name) and each.id == "open"]
    assert not [each for each in called if isinstance(each, ast.Attribute) and each.attr in CLOCKS]


@pytest.mark.parametrize("package", ["bridge.wire", "bridge.sandbox"])
def test_what_stands_on_the_standard_library_stands_on_nothing_else(package: str) -> None:
    assert not [
        str(each)
        for each in imports()
        if each.by(package) and not each.of(package, "bridge.wire", *sys.stdlib_module_names)
        if each.importer != "bridge.sandbox.certificate"  # which is imported for TLS alone
    ]


HEAVY = (
    *("importlib.metadata", "httpx", "slixmpp", "aiodns", "dotenv", "prompt_toolkit", "psycopg"),
    *("argcomplete", "importlib.resources", "pkgutil", "statistics", "platform", "shutil"),
    *("re2", "wcwidth", "bridge.llm.tools", "bridge.registration.", "bridge.client"),
    *("bridge.views", *SETS),
)


@pytest.mark.parametrize(
    ("modules", "needed", "heavy"),
    [
        ("bridge.cli, bridge.commands.serve, bridge.service", "bridge.mcp.stdio", HEAVY),
        ("bridge.toolkit", "bridge.llm.node", ("bridge.llm.tools", "httpx", "slixmpp", "dotenv")),
    ],
    ids=["serve", "what authors of tools import"],
)
def test_it_starts_without_what_is_heavy(modules: str, needed: str, heavy: tuple[str, ...]) -> None:
    program = f"import {modules}, sys; print(*sys.modules)"
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = child.stdout.split()
    assert needed in loaded
    assert not [each for each in loaded if each.startswith(heavy)]
