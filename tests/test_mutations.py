from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutations import Mutant, found, mutants_of

SOURCE = '''
LIMIT = 3

class Room:
    size: int = 4

    def is_full(self, count: int = 5) -> bool:
        """Whether nobody fits in."""
        assert count >= 0
        log.info("%d of %d", count, 6)
        if self.open and not count < self.size:
            self.close()
        return count < self.size
'''
TOLD = Mutant(
    "bridge/rooms.py",
    "Room.is_full",
    "comparison",
    "count < self.size",
    "count <= self.size",
    1,
)


@pytest.mark.parametrize("module", ["rooms.py", "muc/rooms.py", "halls.py"])
def test_a_mutation_is_applied_to_its_function_wherever_that_is(
    tmp_path: Path, module: str
) -> None:
    path = tmp_path / "bridge" / module
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    (tmp_path / "bridge" / "other.py").write_text("def is_full() -> bool:\n    return True\n")
    site = found(TOLD, tmp_path)
    assert site is not None
    assert site[:2] == (f"bridge/{module}", 13)
    assert "return count <= self.size" in site[2]
    assert "not count < self.size" in site[2]
    assert found(replace(TOLD, nth=2), tmp_path) is None
    assert found(replace(TOLD, function="Room.is_closed"), tmp_path) is None


def test_what_no_test_could_tell_is_not_changed() -> None:
    assert {(one.kind, one.before, one.nth) for one, _, _ in mutants_of(SOURCE, "")} == {
        ("negated", "self.open and (not count < self.size)", 0),
        ("and/or", "self.open and (not count < self.size)", 0),
        ("not dropped", "not count < self.size", 0),
        ("comparison", "count < self.size", 0),
        ("comparison", "count < self.size", 1),
        ("call left out", "self.close()", 0),
        ("return", "return count < self.size", 0),
    }
