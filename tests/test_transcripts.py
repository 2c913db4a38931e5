from pathlib import Path

import pytest

from bridge.mcp import revisions
from tests.support.transcript import Replay, read, write

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.jsonl"))

EACH = pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda each: each.stem)


def test_there_is_a_transcript_of_every_revision_and_of_each_other_way_to_speak() -> None:
    dates = {each.date for each in revisions.ALL}
    assert {each.stem for each in TRANSCRIPTS} >= dates | {"bare", "framings", "mixed"}


@EACH
def test_the_conversation_goes_as_it_was_written_down(
    path: Path, request: pytest.FixtureRequest
) -> None:
    said = list(Replay().lines(read(path)))
    if request.config.getoption("--update-transcripts"):
        write(path, said)
    written = read(path)
    assert len(said) == len(written)
    for number, (real, golden) in enumerate(zip(said, written, strict=True), start=1):
        assert real == golden, f"line {number}; --update-transcripts if it is meant to be so"


@EACH
def test_it_goes_the_same_way_when_every_byte_comes_by_itself(path: Path) -> None:
    written = read(path)
    assert list(Replay(byte_by_byte=True).lines(written)) == written
