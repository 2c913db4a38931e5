from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.settings.table import VARIABLES
from tests.settings.folders import ACCOUNT, Folders, write, written
from tests.settings.wrong import NO_MATTER_OF_THE_PARTICIPANT, SECRET_VARIABLES, WRONG

HIDDEN = "7h1s-1s-h1dd3n"
anything = st.one_of(
    st.sampled_from([value for _, value, _ in WRONG] + list(ACCOUNT.values())),
    st.text(max_size=30),
    st.sampled_from(["{}", "u:{}@h", "xmpp://u:{}@h", "https://u:{}@h/p", "h?{}", " {} "]).map(
        lambda form: form.format(HIDDEN)
    ),
)
environments = st.dictionaries(st.sampled_from([*VARIABLES, "HOME"]), anything)
contents = st.one_of(
    st.binary(max_size=200),
    environments.map(lambda values: written(values).encode(errors="replace")),
    st.lists(
        st.sampled_from([*VARIABLES, "=", "'", '"', "#", "\\", "\n", "\r", " ", HIDDEN, "export "])
    ).map(lambda pieces: "".join(pieces).encode()),
)


@pytest.fixture(scope="module")
def shared_folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders(tmp_path_factory.mktemp("any"))


@given(environ=environments, here=contents, package=contents, outright=st.booleans())
@settings(max_examples=80, deadline=None)
def test_load_never_raises_and_settings_are_missing_only_with_a_reason(
    shared_folders: Folders, environ: dict[str, str], here: bytes, package: bytes, outright: bool
) -> None:
    write(shared_folders.here, here)
    write(shared_folders.package, package)
    configuration = shared_folders.load(environ, env_file=Path(".env") if outright else None)
    participates = [
        problem
        for problem in configuration.problems
        if not NO_MATTER_OF_THE_PARTICIPANT.match(problem.variable)
    ]
    assert (configuration.settings is None) == bool(participates)
    assert all(str(problem).isprintable() for problem in configuration.problems)
    assert all(warning.isprintable() for warning in configuration.warnings)


@given(
    secrets=st.dictionaries(
        st.sampled_from(SECRET_VARIABLES),
        st.sampled_from(["{}", " {} ", "{}\n", "\t{}"]),
        min_size=1,
    ),
    others=environments,
    astray=st.fixed_dictionaries(
        {},
        optional={
            "XMPP_SERVICE": st.sampled_from(["{}:", "xmpp://u:{}@h", "h?{}", "u:{}@h", "{0}/{0}"]),
            "XMPP_USERNAME": st.sampled_from(["u:{}", "u:{}@h", "u:{}@h/r"]),
            "MUC_ROOM": st.sampled_from(["{}", "xmpp:r@h?join;password={}"]),
            "BRIDGE_TOOLSETS": st.sampled_from(["{}", "llm,{}", "a:{}"]),
            "LLM_BASE_URL": st.sampled_from(["{}", "https://u:{}@h", "https://h/?key={}"]),
            "LOG_LEVEL": st.just("{}"),
        },
    ),
    in_file=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_no_secret_is_ever_shown(
    shared_folders: Folders,
    secrets: dict[str, str],
    others: dict[str, str],
    astray: dict[str, str],
    in_file: bool,
) -> None:
    hidden = {name: form.format(HIDDEN) for name, form in secrets.items()}
    # Only where a value does not do: a nickname that *is* the password is shown to the whole room.
    others = {
        name: value for name, value in others.items() if name not in secrets and HIDDEN not in value
    }
    others |= {name: form.format(HIDDEN) for name, form in astray.items()}
    # The room's domain makes it a file that is used; what other files hold is not known to us.
    write(shared_folders.here, written({"XMPP_DOMAIN": "h"} | hidden) if in_file else "")
    write(shared_folders.package, "")
    configuration = shared_folders.load(others if in_file else others | hidden)
    texts = [repr(configuration), *map(str, configuration.problems), *configuration.warnings]
    assert not any(HIDDEN in text for text in texts)
