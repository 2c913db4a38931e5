"""The documents that list the settings, as the table has them.

python -m tests.settings.documents    writes them anew
"""

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bridge.settings import values
from bridge.settings.table import TABLE, Variable
from tests.docs.pages import TOP

WIDTH = 100
HEADINGS = {
    "XMPP_USERNAME": "Needed",
    "XMPP_DOMAIN": "Where the server is",
    "MCP_BOT_NICKNAME": "In the room",
    "XMPP_TLS_CA_FILE": "TLS",
    "BRIDGE_READ_ONLY": "What the agent may do",
    "BRIDGE_TOOLSETS": "Further tools, and the model for tools that use one",
    "LOG_LEVEL": "Logs",
    "BRIDGE_STORE": "What is recorded",
    "TIA_ENV_PATH": "In the process environment only",
}
"""The parts of `.env.example`, each with the variable that begins it."""

FOUND = "in a file that was only found in the current directory"
STRANGERS = {
    "anybody": "",
    "ignored": f"Ignored {FOUND}.",
    "BRIDGE_TOOLSETS": f"MODULE:ATTRIBUTE is ignored {FOUND}.",
    "refused": f"Taken from everywhere, but refused {FOUND}, while a password or key comes from "
    "the environment.",
    "restriction": "The strictest value of the environment and of all files holds; what is looser "
    f"than the default is ignored {FOUND}.",
    "TIA_ENV_PATH": "It says nothing here.",
}
"""What `.env.example` says of where a variable is taken from, by its name, or by who may set it."""

FORMS: dict[Callable[[str], Any], dict[str, object]] = {
    values.path: {"format": "filepath"},
    values.switch: {"choices": ["0", "1"]},
    values.certificate_checks: {"choices": ["0", "1"]},
    values.log_level: {"choices": ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]},
}
"""What the MCP registry says of the values that a parser takes."""

NOT_OFFERED = re.compile("BOT_NICKNAME|LLM_.*|OPEN_METEO_.*")
"""The registry has neither an older spelling, nor what takes the extra `llm`: a start by the
package's name alone does not bring it."""


def example(before: str, table: Iterable[Variable[Any]]) -> str:
    """Return `.env.example` with the introduction that it has `before`."""
    introduction = before.partition("\n\n\n")[0]
    return introduction + "\n" + "".join(_explained(row) for row in table)


def _explained(row: Variable[Any]) -> str:
    heading = HEADINGS.get(row.name)
    default = row.otherwise.replace("`", "") or ("" if row.default else "none")
    sentences = (
        f"{_sentence(row)}.",
        f"Default: {default}." if default and not row.required else "",
        STRANGERS.get("restriction" if row.is_restriction else row.name, STRANGERS[row.who]),
    )
    lines = textwrap.wrap(" ".join(filter(None, sentences)), WIDTH - 2, break_on_hyphens=False)
    value = row.default or row.example
    return (
        ("" if heading is None else f"\n\n# --- {heading} ".ljust(WIDTH - 4, "-") + "\n")
        + "".join(f"\n# {line}" for line in lines)
        + (f"\n{row.name}=" if row.required else f"\n#{row.name}={_quoted(row, value)}")
        + "\n"
    )


def _quoted(row: Variable[Any], value: str) -> str:
    return f"'{value}'" if row.secret else value


def _sentence(row: Variable[Any]) -> str:
    text = row.plain_meaning
    return text if row.meaning.startswith("`") else text[0].upper() + text[1:]


def table_of(page: str, table: Iterable[Variable[Any]]) -> str:
    head = "| variable | meaning | default |\n|---|---|---|\n"
    before, _, rest = page.partition(head)
    after = re.sub(r"\A(\|.*\n)*", "", rest)
    return before + head + "".join(_row(row) for row in table) + after


def _row(row: Variable[Any]) -> str:
    if row.required:
        default = "required"
    else:
        default = row.otherwise or (f"`{row.default}`" if row.default else "none")
    return f"| `{row.name}` | {row.meaning} | {default} |\n"


def offer(server: str, table: Iterable[Variable[Any]]) -> str:
    """Return packaging/server.json with the settings that the registry offers."""
    told = json.loads(server)
    (package,) = told["packages"]
    package["environmentVariables"] = [
        dict(_offered(row)) for row in table if not NOT_OFFERED.fullmatch(row.name)
    ]
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def _offered(row: Variable[Any]) -> Iterator[tuple[str, object]]:
    yield "name", row.name
    yield "description", _sentence(row)
    if row.required:
        yield "isRequired", True
    if row.secret:
        yield "isSecret", True
    yield from FORMS.get(row.parse, {}).items()
    if (row.default or "").isdigit() and row.parse not in FORMS:
        yield "format", "number"
    if row.default:
        yield "default", row.default
    elif row.example and not row.secret and row.parse is not values.path:
        yield "placeholder", row.example


DOCUMENTS: dict[Path, Callable[[str, Iterable[Variable[Any]]], str]] = {
    TOP / ".env.example": example,
    TOP / "docs" / "settings.md": table_of,
    TOP / "packaging" / "server.json": offer,
}

if __name__ == "__main__":
    for path, written in DOCUMENTS.items():
        path.write_text(written(path.read_text("utf-8"), TABLE), "utf-8")
