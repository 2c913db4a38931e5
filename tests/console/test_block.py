from bridge.console.block import Block
from tests.console.screen import Screen

SIZE = (40, 10)


def _screen(*pieces: str) -> list[str]:
    screen = Screen(SIZE[0])
    for piece in pieces:
        screen.feed(f"{piece}\n".replace("\n", "\r\n"))
    return screen.lines[:-1]


def test_a_block_gives_way_to_what_stays_and_to_the_next() -> None:
    block = Block()
    assert _screen(
        block.drawn(["title"], ["one", "1"], SIZE),
        block.drawn(["found one"], ["two", "22", "222"], SIZE),
        block.drawn(["found two"], [], SIZE),
        block.drawn(["the end"], [], SIZE),
    ) == ["title", "found one", "found two", "the end"]


def test_a_smaller_block_leaves_nothing_of_a_larger() -> None:
    block = Block()
    shown = _screen(block.drawn([], ["long", "longer", "last"], SIZE), block.drawn([], ["x"], SIZE))
    assert shown == ["x"]


def test_without_a_block_there_is_nothing_but_the_lines() -> None:
    block = Block()
    assert block.drawn(["a", "b"], [], (0, 0)) == "a\nb"
    assert block.drawn(["c"], [], (0, 0)) == "c"


def test_of_a_block_that_is_too_high_the_end_is_drawn() -> None:
    rows = [str(number) for number in range(20)]
    assert _screen(Block().drawn([], rows[:9], SIZE)) == rows[:9]
    assert _screen(Block().drawn([], rows[:10], SIZE)) == rows[1:10]
    assert _screen(Block().drawn(["found"], rows, (40, 1))) == ["found"]


def test_the_cursor_never_has_to_go_up_out_of_sight() -> None:
    block = Block()
    block.drawn([], [str(number) for number in range(20)], SIZE)
    assert "\x1b[9A" in block.drawn([], [], SIZE)


def test_after_a_change_of_size_the_old_block_stays() -> None:
    block = Block()
    block.drawn([], ["one"], SIZE)
    assert block.drawn(["found"], ["two"], (50, 10)) == "found\ntwo"
    assert block.drawn(["more"], [], (50, 10)) == "\x1b[1A\x1b[Jmore"
