import pytest

from bridge.console.paint import NICKNAME_COLOURS, Paint, is_wanted

PAINT = Paint(on=True)


@pytest.mark.parametrize(
    ("terminal", "environ", "wanted"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),  # no-color.org: not an empty string
        (True, {"TERM": "xterm", "NO_COLOR": "0"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": ""}, False),
        (True, {}, False),
        (False, {"TERM": "xterm"}, False),
        (False, {"TERM": "xterm", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_a_terminal_that_can_and_for_nobody_who_said_no(
    terminal: bool, environ: dict[str, str], wanted: bool
) -> None:
    assert is_wanted(terminal=terminal, environ=environ) is wanted


def test_each_paint_ends_where_its_text_does() -> None:
    for paint in (PAINT.dim, PAINT.bold, PAINT.red, PAINT.green):
        assert paint("text").startswith("\x1b[")
        assert paint("text").endswith("mtext\x1b[0m")


def test_nothing_is_not_painted() -> None:
    assert PAINT.dim("") == ""


def test_where_paint_is_off_a_text_stays_as_it_is() -> None:
    off = Paint(on=False)
    assert [off.dim("a"), off.bold("b"), off.red("c"), off.green("d"), off.nickname("e", "f")] == [
        *"abcdf"
    ]


def test_a_nickname_has_its_colour_in_every_run() -> None:
    assert PAINT.nickname("Alice", "x") == "\x1b[95mx\x1b[0m"
    assert PAINT.nickname("Bob", "x") == "\x1b[92mx\x1b[0m"


def test_all_colours_are_given_out_and_none_is_the_red_of_what_went_wrong() -> None:
    given = {PAINT.nickname(f"guest {number}", "x") for number in range(200)}
    assert given == {f"\x1b[{colour}mx\x1b[0m" for colour in NICKNAME_COLOURS}
    assert not {31, 91} & set(NICKNAME_COLOURS)


def test_a_lone_surrogate_has_a_colour_too() -> None:
    assert PAINT.nickname("\ud83d", "x").endswith("mx\x1b[0m")
