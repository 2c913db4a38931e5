import pytest

from bridge.xmpp import answers
from bridge.xmpp.answers import Whom
from bridge.xmpp.keepalive import Verdict, verdict
from tests.xmpp.conditions import STANZA_CONDITIONS

CONDITIONS = [*STANZA_CONDITIONS, "x-of-its-own"]
"""Those of the standard, and one that nobody knows."""


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("whom", Whom)
def test_every_condition_of_everybody_has_a_sentence_and_a_hint(whom: Whom, condition: str) -> None:
    meaning = answers.of_error(condition, None, whom, "a@b.example/c", "pings")
    assert meaning.condition == condition
    assert meaning.message.endswith((".", ")."))
    assert meaning.hint.endswith(".")
    assert len(meaning.message) > 15


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_self_ping_reads_as_the_watch_reads_it(condition: str) -> None:
    meaning = answers.of_error(condition, None, Whom.SELF, "r@b/me", "pings")
    found = verdict(condition)
    assert meaning.reachable is (found is Verdict.IN)
    words = {Verdict.IN: "In the room", Verdict.OUT: "Out:", Verdict.UNDECIDED: "Undecided"}
    assert meaning.message.startswith(words[found])


@pytest.mark.parametrize(
    ("condition", "whom", "reachable"),
    [
        ("service-unavailable", Whom.ROOM, True),
        ("service-unavailable", Whom.SERVER, True),
        ("service-unavailable", Whom.DOMAIN, True),
        ("service-unavailable", Whom.OCCUPANT, True),
        ("service-unavailable", Whom.ACCOUNT, False),  # so they answer for nobody, too
        ("feature-not-implemented", Whom.ACCOUNT, True),
        ("item-not-found", Whom.OCCUPANT, False),
        ("not-acceptable", Whom.OCCUPANT, False),
        ("remote-server-not-found", Whom.DOMAIN, False),
        ("remote-server-timeout", Whom.ACCOUNT, False),
        ("not-allowed", Whom.DOMAIN, False),
        ("forbidden", Whom.ROOM, True),
        ("gone", Whom.ACCOUNT, False),
    ],
)
def test_an_error_proves_that_somebody_is_there_only_where_it_does(
    condition: str, whom: Whom, reachable: bool
) -> None:
    assert answers.of_error(condition, None, whom, "x.example", "pings").reachable is reachable


@pytest.mark.parametrize("whom", Whom)
def test_a_silence_proves_nothing_and_names_its_length(whom: Whom) -> None:
    meaning = answers.of_silence(whom, "x.example", 15.0)
    assert meaning.message == '"x.example" did not answer within 15 s.'
    assert meaning.hint
    assert not meaning.reachable
