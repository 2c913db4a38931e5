from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.settings.table import VARIABLES
from tests.settings.folders import ACCOUNT, Folders, write, written
from tests.settings.wrong import NO_MATTER_OF_THE_PARTICIPANT, WRONG

anything = st.one_of(
    st.sampled_from([value for _, value, _ in WRONG] + list(ACCOUNT.values())),
    st.text(max_size=30),
    st.sampled_from(["u:x@h", "xmpp://u:x@h", "https://u:x@h/p", "h?x"]),
)
environments = st.dictionaries(st.sampled_from([*VARIABLES, "HOME"]), anything)
contents = st.one_of(
    st.binary(max_size=200),
    environments.map(lambda values: written(values).encode(errors="replace")),
    st.lists(
        st.sampled_from([*VARIABLES, "=", "'", '"', "#", "\\", "\n", "\r", " ", "export "])
    ).map(lambda pieces: "".join(pieces).encode()),
)


@given(environ=environments, here=contents, package=contents, outright=st.booleans())
@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_load_never_raises_and_settings_are_missing_only_with_a_reason(
    folders: Folders, environ: dict[str, str], here: bytes, package: bytes, outright: bool
) -> None:
    write(folders.here, here)
    write(folders.package, package)
    configuration = folders.load(environ, env_file=Path(".env") if outright else None)
    participates = [
        problem
        for problem in configuration.problems
        if not NO_MATTER_OF_THE_PARTICIPANT.match(problem.variable)
    ]
    assert (configuration.settings is None) == bool(participates)
    assert all(str(problem).isprintable() for problem in configuration.problems)
    assert all(warning.isprintable() for warning in configuration.warnings)
