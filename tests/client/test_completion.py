import pytest
from prompt_toolkit.completion import CompleteEvent, Completion
from prompt_toolkit.document import Document

from bridge.client.arguments import parameters
from bridge.client.client import ServerCatalogue
from bridge.client.completion import LineCompleter, possible_values

HISTORY = {
    "properties": {
        "from": {"type": ["string", "null"]},
        "kinds": {"type": "array", "items": {"enum": ["message", "join"]}},
        "own": {"type": "boolean"},
    }
}
CATALOGUE = ServerCatalogue(
    tools={
        "echo": parameters({"properties": {"message": {"type": "string"}}}),
        "xmppHistory": parameters(HISTORY),
        "xmppPing": parameters({"properties": {"target": {"type": "string"}}}),
    },
    prompts={"greet": parameters({"properties": {"name": {"type": "string"}}})},
    resources=["bridge://status"],
    nicknames=["Ada", "Ada Lovelace", "Bob"],
)


def completions(before: str) -> list[Completion]:
    completer = LineCompleter(CATALOGUE)
    return list(completer.get_completions(Document(before), CompleteEvent()))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", []),
        ("he", ["help"]),
        ("/tr", ["/trace"]),
        ("/call x", ["xmppHistory", "xmppPing"]),
        ("/call xmppHistory ki", ["kinds="]),
        ("/call nosuch ki", []),
        ("/history kinds=m", ["message"]),
        ("/history kinds=message,j", ["join"]),
        ("/history from=ad", ["Ada", "'Ada Lovelace'"]),
        ("/ping s", ["server", "self"]),
        ("/ping Ada L", ["Ada Lovelace"]),
        ("/send A", ["Ada", "Ada Lovelace"]),
        ("/resources b", ["bridge://status"]),
        ("/prompts greet n", ["name="]),
    ],
)
def test_a_line_can_go_on(before: str, after: list[str]) -> None:
    assert [each.text for each in completions(before)] == after


@pytest.mark.parametrize(
    ("before", "replaced"),
    [("/tr", "/tr"), ("/history kinds=message,j", "j"), ("/ping Ada L", "Ada L")],
)
def test_a_completion_stands_for_what_it_continues(before: str, replaced: str) -> None:
    (completion,) = completions(before)
    assert before[completion.start_position :] == replaced


def test_the_values_of_an_argument_that_is_asked_for_are_known() -> None:
    (kinds,) = (each for each in CATALOGUE.tools["xmppHistory"] if each.name == "kinds")
    assert possible_values(kinds, CATALOGUE) == ["message", "join"]
