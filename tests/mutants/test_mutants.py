"""The mutants of `selected.json` are changes of the program as it is now."""

import pytest

from tests.mutants.__main__ import ROOT, selection
from tests.mutants.mutations import Mutant, found


@pytest.mark.parametrize("mutant", selection(), ids=lambda mutant: mutant.function)
def test_each_mutant_is_in_the_module_that_it_names(mutant: Mutant) -> None:
    """Whoever moves its function or changes its text carries the mutant to its new place."""
    place = found(mutant, ROOT)
    assert place is not None
    assert place[0] == mutant.module
