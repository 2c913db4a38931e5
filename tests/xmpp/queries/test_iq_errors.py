import pytest

from bridge.xmpp.queries import iq_errors
from bridge.xmpp.queries.iq_errors import Target, TargetKind
from bridge.xmpp.queries.ping import Pong, Verdict
from tests.xmpp.conditions import STANZA_CONDITIONS

CONDITIONS = [*STANZA_CONDITIONS, "x-of-its-own"]
"""Those of the standard, and one that nobody knows."""


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("whom", TargetKind)
def test_every_condition_has_a_sentence_and_a_hint(whom: TargetKind, condition: str) -> None:
    meaning = iq_errors.of_error(condition, None, whom, "a@b.example/c", "pings")
    assert meaning.condition == condition
    assert meaning.message.endswith((".", ")."))
    assert meaning.hint.endswith(".")
    assert len(meaning.message) > 15


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ("service-unavailable", Verdict.IN),
        ("remote-server-not-found", Verdict.UNDECIDED),
        ("remote-server-timeout", Verdict.UNDECIDED),
        ("not-acceptable", Verdict.OUT),
        ("item-not-found", Verdict.OUT),
        ("not-allowed", Verdict.OUT),
        ("forbidden", Verdict.OUT),
    ],
)
def test_the_answer_to_a_self_ping_says_whether_we_are_in(condition: str, verdict: Verdict) -> None:
    meaning = iq_errors.of_error(condition, None, TargetKind.SELF, "r@b/me", "pings")
    assert meaning.reachable is (verdict is Verdict.IN)
    assert Pong(Target(TargetKind.SELF, "r@b/me"), 1.0, meaning).in_room is verdict
    words = {Verdict.IN: "In the room", Verdict.OUT: "Out:", Verdict.UNDECIDED: "Undecided"}
    assert meaning.message.startswith(words[verdict])


def test_with_its_service_everything_in_a_room_is_gone() -> None:
    meaning = iq_errors.of_error("item-not-found", None, TargetKind.GONE, "r@b/x", "pings")
    assert not meaning.reachable
    assert meaning.outcome == Verdict.GONE.value


@pytest.mark.parametrize(
    ("condition", "whom", "reachable"),
    [
        ("service-unavailable", TargetKind.ROOM, True),
        ("service-unavailable", TargetKind.OCCUPANT, True),
        ("service-unavailable", TargetKind.ACCOUNT, False),  # so they answer for nobody, too
        ("feature-not-implemented", TargetKind.ACCOUNT, True),
        ("item-not-found", TargetKind.OCCUPANT, False),
        ("not-acceptable", TargetKind.OCCUPANT, False),
        ("remote-server-not-found", TargetKind.DOMAIN, False),
        ("remote-server-timeout", TargetKind.ACCOUNT, False),
        ("forbidden", TargetKind.SERVER, True),
        # Without federation, our own server says so of a room elsewhere.
        ("forbidden", TargetKind.ROOM, False),
    ],
)
def test_an_error_proves_that_somebody_is_there_only_where_it_does(
    condition: str, whom: TargetKind, reachable: bool
) -> None:
    assert iq_errors.of_error(condition, None, whom, "x.example", "pings").reachable is reachable
