import pytest

from bridge.mcp.toolset import Prompt
from bridge.text import visible
from bridge.tools import prompts
from tests.tools.played import LOGS, ROOM, Played, in_room, in_rooms


@pytest.mark.parametrize(
    "prompt", [prompts.diagnose_room, prompts.summarise_room, prompts.write_scenario]
)
def test_a_room_that_is_named_is_quoted_for_the_tools(prompt: Prompt) -> None:
    assert [each.wire for each in prompt.signature.parameters][-2:] == ["nickname", "room"]
    assert "The room is" not in prompt.function()
    told = prompt.function(room=LOGS, nickname="Wilma")
    assert f' The room is "{LOGS}"; give that as `room` to each tool.' in told
    hidden = prompt.function(room='x"\u202e\n')
    assert visible(hidden) == hidden
    assert '"x\\"\\u{202E}\\n"' in hidden


def test_rooms_and_the_nicknames_in_all_of_them_are_offered() -> None:
    played = in_rooms(ROOM, LOGS)
    played.picture = in_room(ROOM, "Wilma")
    played.further[0].picture = in_room(LOGS, "Fred", "Wilma")
    assert prompts.rooms(played.link) == [ROOM, LOGS]
    assert prompts.nicknames(played.link) == ["Fred", "McpDebug", "Wilma"]
    unconfigured = Played(room_jid="").link
    assert prompts.rooms(unconfigured) == prompts.nicknames(unconfigured) == []
