"""The list of attacks in README.md names tests that there are."""

from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
VERDICTS = ("Held", "Mended", "Not defended", "As meant")


def rows() -> list[list[str]]:
    lines = (HERE / "README.md").read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row for row in cells if len(row) == 3 and not row[0].startswith(("tried", "---"))]


def test_every_attack_has_its_test_and_its_verdict() -> None:
    assert len(rows()) > 40
    for tried, tests, verdict in rows():
        assert tried
        assert verdict.startswith(VERDICTS), tried
        named = [one for one in tests.split(", ") if one]
        assert named or verdict.startswith("Not defended"), tried
        assert all((ROOT / one).is_file() for one in named), tests
