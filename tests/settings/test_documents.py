"""Everything that lists settings comes from the table, where each is one row."""

import re
from pathlib import Path

import pytest

from bridge.settings import values
from bridge.settings.table import TABLE, VARIABLES, Variable
from tests.docs.pages import TOP
from tests.settings.documents import DOCUMENTS
from tests.settings.folders import ACCOUNT, REQUIRED, Folders, settled, write

ADDED = Variable(
    "BRIDGE_TEST_LIMIT", values.whole_number(range(1, 10)), "a limit, 1 to 9", "5", who="ignored"
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_lists_the_settings_as_the_table_has_them(document: Path) -> None:
    text = document.read_text("utf-8")
    assert DOCUMENTS[document](text, TABLE) == text, "run python -m tests.settings.documents"


def test_a_row_that_is_added_is_in_effect(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.settings.load.TABLE", (*TABLE, ADDED))
    loaded = folders.load
    assert loaded(ACCOUNT).loaded[ADDED.name] == 5
    configuration = loaded(ACCOUNT | {ADDED.name: "7"})
    assert configuration.loaded[ADDED.name] == 7
    set_ = configuration.in_effect[ADDED.name]
    assert (set_.variable, set_.value, set_.source) == (ADDED.name, "7", "the environment")
    (problem,) = loaded(ACCOUNT | {ADDED.name: "10"}).problems
    assert str(problem).startswith(f"{ADDED.name} holds '10', ")
    path = write(folders.here, ACCOUNT | {ADDED.name: "7"})
    configuration = loaded({})
    assert configuration.loaded[ADDED.name] == 5
    assert f"{ADDED.name} in '{path}' is ignored" in configuration.warnings[0]


def test_the_example_names_every_variable_with_its_true_default(folders: Folders) -> None:
    example = (TOP / ".env.example").read_text("utf-8")
    assert set(re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE)) == set(VARIABLES)

    pristine = folders.load({}, env_file=write(folders.here, example, "pristine"))
    assert {problem.variable for problem in pristine.problems} == REQUIRED | {"XMPP_DOMAIN"}

    blank = re.compile(r"^([A-Z_]+)=$", re.MULTILINE)
    filled = blank.sub(lambda match: f"{match[0]}{ACCOUNT[match[1]]}", example)
    defaults = folders.load({}, env_file=write(folders.here, filled, "filled"))
    settled(defaults)

    write(folders.here, "certificate", "ca.pem")
    uncommented = re.sub(r"^#(?=[A-Z_]+=)", "", filled, flags=re.MULTILINE)
    everything = folders.load({}, env_file=write(folders.here, uncommented, "everything"))
    settled(everything)
    assert everything.warnings == ()
    for name in ("read_only", "send_rate", "history", "log_level"):
        assert getattr(everything, name) == getattr(defaults, name)
    for name in ("nickname", "tls_verify", "allow_plaintext", "domain"):
        assert getattr(everything.settings, name) == getattr(defaults.settings, name)
