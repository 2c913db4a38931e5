"""Everything that lists settings comes from the table, where each is one row."""

import re
from pathlib import Path

import pytest

from bridge.settings.table import TABLE
from tests.docs.pages import TOP
from tests.settings.documents import DOCUMENTS
from tests.settings.folders import ACCOUNT, Folders, settled, write


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_lists_the_settings_as_the_table_has_them(document: Path) -> None:
    text = document.read_text("utf-8")
    assert DOCUMENTS[document](text, TABLE) == text, "run python -m tests.settings.documents"


def test_the_example_has_the_true_default_of_every_variable(folders: Folders) -> None:
    example = (TOP / ".env.example").read_text("utf-8")
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
