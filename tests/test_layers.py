import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import bridge

PACKAGE = Path(bridge.__file__).parent

LAYERS = (
    ("bridge.__main__",),
    ("bridge.cli",),
    ("bridge.commands",),
    ("bridge.service", "bridge.registration", "bridge.testing"),
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
    ("bridge.store", "bridge.sandbox"),
    ("bridge.wire", "bridge.settings"),
    ("bridge.logs",),
    ("bridge.text",),
)
"""From top to bottom. What stands side by side in one layer does not know of each other."""

TALKS = ("bridge.client.client", "bridge.client.errors", "bridge.client.process")
"""With what a registered command is tried: as a client of it."""
UNKNOWN_TO_TESTS = tuple(
    f"bridge.{name}" for name in ("client", "views", "llm", "mcp", "service", "tools", "toolkit")
)
"""What the tests of bots do without."""
SETS = ("bridge.samples",)
"""Sets of tools that are loaded when they are asked for, by name."""

PURE = frozenset(
    {
        "bridge.text",
        *(f"bridge.client.{name}" for name in ("arguments", "errors", "formatting")),
        "bridge.views.screen",
        *(
            f"bridge.mcp.{name}"
            for name in (
                "framing",
                "asking",
                "content",
                "context",
                "errors",
                "jsonrpc",
                "revisions",
                "schema",
                "subscriptions",
                "toolset",
                "server",
            )
        ),
        "bridge.llm.prompt",
        *(
            f"bridge.xmpp.{name}"
            for name in (
                "errors",
                "model.events",
                "model.room",
                "model.journal",
                "model.filter",
                "model.faults",
                "model.formatting",
                "model.backoff",
                "model.message_body",
                "link.trace",
                "queries.iq_errors",
                "checks.report",
            )
        ),
    }
)
"""Modules that take values and return values."""

IMPURE = frozenset(
    {
        "asyncio",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "random",
        "secrets",
        "select",
        "selectors",
        "shutil",
        "signal",
        "slixmpp",
        "socket",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "uuid",
    }
)
"""What opens files or connections, waits, reads a clock or rolls dice."""

NAMES_OF_FAILURES = frozenset({"socket.gaierror", "ssl.SSLCertVerificationError", "ssl.SSLError"})
"""Exceptions are values, and asyncio has loaded both modules before the first answer anyway."""

VALUES_FROM_OUTSIDE = "bridge.settings.table"
"""Its `Settings` and `Configuration` are values; what reads them from outside is beside it."""

CLOCKS = frozenset({"now", "utcnow", "today"})
"""The methods by which `datetime` reads one."""


@dataclass(frozen=True)
class Import:
    """One import, wherever in the module it stands."""

    importer: str
    imported: str
    """The module, with the name taken from it where there is one."""
    on_loading: bool
    """Whether it happens when the importer is loaded: not in a function, not for types only."""

    def of(self, *packages: str) -> bool:
        """Whether what is imported is, or lies in, one of these."""
        return any(
            self.imported == package or self.imported.startswith(f"{package}.")
            for package in packages
        )

    def by(self, *packages: str) -> bool:
        """Whether the importer is, or lies in, one of these."""
        return any(
            self.importer == package or self.importer.startswith(f"{package}.")
            for package in packages
        )

    def __str__(self) -> str:
        return f"{self.importer} imports {self.imported}"


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {_name(path): ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}


def _imports(module: str, node: ast.AST, *, on_loading: bool = True) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from (Import(module, one.name, on_loading) for one in names)
            case ast.ImportFrom(module=str(source), names=names, level=0):
                yield from (Import(module, f"{source}.{one.name}", on_loading) for one in names)
            case ast.ImportFrom():
                raise AssertionError(f"{module} has a relative import: write it out")
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from _imports(module, child, on_loading=False)
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=otherwise):
                for one in body:
                    yield from _imports(module, ast.Module([one], []), on_loading=False)
                for one in otherwise:
                    yield from _imports(module, ast.Module([one], []), on_loading=on_loading)
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[*_, ast.Constant(value)]):
                yield Import(module, str(value), on_loading)
            case _:
                yield from _imports(module, child, on_loading=on_loading)


HELD = PURE | {name for name, tree in TREES.items() if "Pure" in (ast.get_docstring(tree) or "")}
"""The pure modules by law, and whichever others say of themselves that they are."""

IMPORTS = [one for module, tree in TREES.items() for one in _imports(module, tree)]


def _breaches(*found: Import) -> list[str]:
    return [str(one) for one in found]


def test_the_imports_were_read() -> None:
    told = {(one.importer, one.imported, one.on_loading) for one in IMPORTS}
    assert ("bridge.service", "bridge.mcp.stdio.Stdio", True) in told
    assert ("bridge.xmpp.link.from_slixmpp", "slixmpp.jid.JID", False) in told
    assert set(TREES) >= PURE


def _layer(module: str) -> tuple[int, str]:
    """The number of its layer, and what it belongs to in it."""
    for number, layer in enumerate(LAYERS):
        for part in layer:
            if module == part or module.startswith(f"{part}."):
                return number, part
    raise AssertionError(f"{module} stands in no layer")


def test_a_module_imports_only_what_stands_below_it_or_in_its_own_package() -> None:
    ours = [one for one in IMPORTS if one.imported.startswith("bridge.")]
    ours = [one for one in ours if one.imported != "bridge.__version__"]
    assert len({one.importer for one in ours}) > 100
    breaches = []
    for one in ours:
        (above, importer), (below, imported) = _layer(one.importer), _layer(one.imported)
        if importer != imported and above >= below:
            breaches.append(one)
    assert not _breaches(*breaches)


def test_only_the_composition_root_imports_the_tools() -> None:
    assert not _breaches(
        *(
            one
            for one in IMPORTS
            if one.of("bridge.tools")
            and not one.by("bridge.tools", "bridge.service", "bridge.toolkit", "bridge.llm.tools")
        )
    )


def test_a_set_of_tools_is_written_against_the_toolkit_alone_and_imported_by_nobody() -> None:
    inside = [one for one in IMPORTS if one.by(*SETS)]
    assert [one for one in inside if one.of("bridge.toolkit")]
    assert not _breaches(
        *(one for one in inside if one.of("bridge") and not one.of("bridge.toolkit", *SETS)),
        *(
            one
            for one in IMPORTS
            if one.of("bridge.toolkit")
            and not one.by(*SETS, "bridge.toolkit")
            and not one.of("bridge.toolkit.finding", "bridge.toolkit.serving")
        ),
        *(one for one in IMPORTS if one.of(*SETS) and not one.by(*SETS)),
    )


def test_nodes_know_the_mcp_wing_and_settings_and_only_their_own_tools_the_room() -> None:
    inside = [one for one in IMPORTS if one.by("bridge.llm") and one.of("bridge")]
    below = (
        "bridge.llm",
        "bridge.mcp",
        "bridge.settings",
        "bridge.text",
        "bridge.llm.httpclient",
    )
    assert not _breaches(
        *(
            one
            for one in inside
            if not one.of(*below)
            and (one.importer != "bridge.llm.tools" or not one.of("bridge.tools", "bridge.xmpp"))
        ),
    )


def test_nothing_imports_the_nodes_unless_they_are_asked_for() -> None:
    assert not _breaches(
        *(
            one
            for one in IMPORTS
            if one.of("bridge.llm")
            and not one.by("bridge.llm", "bridge.toolkit", "bridge.client.interpreting")
        )
    )


def test_what_authors_import_loads_neither_the_set_of_nodes_nor_what_asks_the_web() -> None:
    program = "import bridge.toolkit, sys; print(*sys.modules)"
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(child.stdout.split())
    assert "bridge.llm.node" in loaded
    assert not loaded & {"bridge.llm.tools", "httpx", "slixmpp", "dotenv"}


def test_the_http_client_is_imported_in_a_thread_by_its_one_wrapper() -> None:
    users = {
        module
        for module, tree in TREES.items()
        if any(isinstance(node, ast.Constant) and node.value == "httpx" for node in ast.walk(tree))
    }
    assert users - {"bridge.logs"} == {"bridge.llm.httpclient"}  # the log keeps it quiet
    assert not _breaches(*(one for one in IMPORTS if one.of("httpx")))


def test_registration_is_for_the_command_line_alone_and_knows_neither_wing() -> None:
    inside = [one for one in IMPORTS if one.by("bridge.registration")]
    assert {one for one in TALKS if any(each.of(one) for each in inside)} == set(TALKS)
    assert not _breaches(
        *(one for one in inside if one.of("bridge.mcp", "bridge.xmpp", "bridge.tools")),
        *(
            one
            for one in IMPORTS
            if one.of("bridge.registration")
            and not one.by("bridge.registration", "bridge.commands", "bridge.cli")
        ),
    )


def test_slixmpp_is_imported_by_one_module_and_not_while_that_is_loaded() -> None:
    users = {(one.importer, one.on_loading) for one in IMPORTS if one.of("slixmpp")}
    assert users == {("bridge.xmpp.link.from_slixmpp", False)}


def test_only_the_terminal_imports_what_edits_lines() -> None:
    parts = [f"bridge.client.{name}" for name in ("terminal", "completion")]
    assert {one.importer for one in IMPORTS if one.of("prompt_toolkit")} == set(parts)
    assert not _breaches(
        *(one for one in IMPORTS if one.of(*parts) and one.on_loading and one.importer != parts[0])
    )


def test_tests_of_bots_know_neither_agents_nor_tools_and_are_known_to_commands_alone() -> None:
    assert {one.importer for one in IMPORTS if one.of("pytest")} == {
        "bridge.testing.collector",
        "bridge.testing.plugin",
        "bridge.testing.server",
    }
    assert not _breaches(
        *(one for one in IMPORTS if one.by("bridge.testing") and one.of(*UNKNOWN_TO_TESTS)),
        *(
            one
            for one in IMPORTS
            if one.of("bridge.testing") and not one.by("bridge.testing", "bridge.commands")
        ),
        *(
            one
            for one in IMPORTS
            if one.by("bridge.testing.plugin") and one.of("bridge") and one.on_loading
        ),
    )


@pytest.mark.parametrize(
    ("library", "importer"),
    [("tomlkit", "bridge.registration.formats"), ("wcwidth", "bridge.views.screen")],
)
def test_a_library_for_one_purpose_is_imported_by_one_module(library: str, importer: str) -> None:
    assert {one.importer for one in IMPORTS if one.of(library)} == {importer}


@pytest.mark.parametrize("module", sorted(HELD))
def test_a_pure_module_touches_nothing_outside(module: str) -> None:
    found = [one for one in IMPORTS if one.importer == module]
    touching = [one for one in found if one.imported not in NAMES_OF_FAILURES]
    assert not _breaches(*(one for one in touching if one.of(*IMPURE)))
    ours = [one for one in found if one.of("bridge") and one.on_loading]
    assert not [str(one) for one in ours if not one.of(*HELD, VALUES_FROM_OUTSIDE)]
    called = [node.func for node in ast.walk(TREES[module]) if isinstance(node, ast.Call)]
    assert not [one for one in called if isinstance(one, ast.Name) and one.id == "open"]
    assert not [one for one in called if isinstance(one, ast.Attribute) and one.attr in CLOCKS]


@pytest.mark.parametrize(
    ("package", "below"), [("bridge.wire", ()), ("bridge.sandbox", ("bridge.wire",))]
)
def test_what_stands_on_the_standard_library_stands_on_nothing_else(
    package: str, below: tuple[str, ...]
) -> None:
    assert not _breaches(
        *(
            one
            for one in IMPORTS
            if one.by(package)
            and not one.of(package, *below)
            and one.imported.partition(".")[0] not in sys.stdlib_module_names
        )
    )


def test_serve_starts_without_what_is_heavy() -> None:
    program = "import bridge.cli, bridge.commands.serve, bridge.service, sys; print(*sys.modules)"
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(child.stdout.split())
    assert "bridge.mcp.stdio" in loaded
    heavy = {
        "importlib.metadata",
        "httpx",
        "bridge.llm.tools",
        "bridge.samples",
        "slixmpp",
        "aiodns",
        "dotenv",
        "prompt_toolkit",
        "re2",
        "tomlkit",
        "wcwidth",
    }
    assert not loaded & heavy
    later = ("bridge.registration.", "bridge.client", "bridge.views", *SETS)
    assert not {one for one in loaded if one.startswith(later)}
