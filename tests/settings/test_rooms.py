import pytest

from bridge.settings.load import MAX_SHOWN
from bridge.settings.table import HISTORIES
from bridge.settings.values import MAX_ROOMS
from tests.settings.folders import ACCOUNT, PASSWORD, Folders, settled

A, B, C = "a@muc.example", "b@muc.example", "c@other.example"
MANY = [f"room{number}@muc.example" for number in range(MAX_ROOMS)]


def problems(folders: Folders, value: str, **further: str) -> list[str]:
    """Return what is wrong with the rooms; with several problems, every one of them in order."""
    configuration = folders.load({**ACCOUNT, **further, "MUC_ROOM": value})
    assert (configuration.settings is None) == bool(configuration.problems)
    assert {problem.variable for problem in configuration.problems} <= {"MUC_ROOM"}
    assert ("MUC_ROOM" in configuration.in_effect) == (not configuration.problems)
    return [problem.message for problem in configuration.problems]


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (A, (A,)),
        (f"  {A} ,\t{B}\n, {C}  ", (A, B, C)),
        (f",, {A} , ,{B},", (A, B)),
        ("a@MUC.example.,B@Other.Example", (A, "B@other.example")),
        ("room@muc.example,room@other.example", ("room@muc.example", "room@other.example")),
        ("a@[::1],b@[::1]", ("a@[::1]", "b@[::1]")),
        (",".join(MANY), tuple(MANY)),
    ],
)
def test_rooms_stand_between_commas(folders: Folders, value: str, meant: tuple[str, ...]) -> None:
    loaded = settled(folders.load({**ACCOUNT, "MUC_ROOM": value}))
    assert (loaded.rooms, loaded.room) == (meant, meant[0])


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("room", [("holds 'room', which", "names no room at a service")]),
        (" , ,\t,", [("which names no room at a service", "room@conference.example.org")]),
        (f"{A},room,{B}", [("'room' (room 2)", "names no room at a service")]),
        (f"{A},{B}/Nick", [(f"'{B}/Nick' (room 2)", "the bare JID before it")]),
        (f"{A} {B}", [(f"'{A} {B}'", "commas between several")]),
        (
            f"ro om@muc.example,{A},b@conf erence, ,{B}",
            [("'ro om@muc.example' (room 1)", "' '"), ("'b@conf erence' (room 3)", "domain")],
        ),
        (f"xmpp:{A},xmpp:{B}", [("(room 1)", "a URI"), ("(room 2)", "a URI")]),
        (f"{A},{B},{A}", [(f"'{A}' (room 3)", "which is room 1 again; each room once")]),
        (f"{B},{A},A@Muc.example.", [("'A@Muc.example.' (room 3)", "which is room 2 again")]),
        (f"{A},{A},{A}", [("(room 2)", "room 1 again"), ("(room 3)", "room 1 again")]),
        ("a@münchen.example,a@xn--mnchen-3ya.example", [("(room 2)", "room 1 again")]),
        ("ﬁß@h,FIss@h", [("(room 2)", "room 1 again")]),
        (f"{A},a@,{A}", [("'a@' (room 2)", "domain is empty"), ("(room 3)", "room 1 again")]),
    ],
)
def test_wrong_rooms_are_named(folders: Folders, value: str, named: list[tuple[str, str]]) -> None:
    words = problems(folders, value)
    assert len(words) == len(named)
    for problem, (item, advice) in zip(words, named, strict=True):
        assert item in problem
        assert advice in problem
        assert problem.startswith("holds ")
        assert problem.endswith(" would be right")


def test_fifty_rooms_are_the_most(folders: Folders) -> None:
    assert len(MANY) == MAX_ROOMS == 50
    assert HISTORIES[0] // MAX_ROOMS == 2
    shown = folders.load({**ACCOUNT, "MUC_ROOM": f" {A}, {B} "}).in_effect["MUC_ROOM"]
    assert shown.value == f"{A}, {B}"
    assert problems(folders, ",".join(MANY)) == []
    (problem,) = problems(folders, ",".join([*MANY, "one-more@muc.example"]))
    assert "which names 51 rooms; at most 50 of them would be right" in problem


def test_what_is_wrong_among_too_many_rooms_is_named_but_not_without_end(folders: Folders) -> None:
    first, *others, last = problems(folders, ",".join(["no room " * 100] * 1_000))
    assert "…' (room 1), which names no room" in first
    assert len(others) == MAX_ROOMS - 1
    assert "which names 1,000 rooms; at most 50" in last
    assert all(len(problem) < MAX_SHOWN + 150 for problem in (first, *others, last))


@pytest.mark.parametrize(
    ("value", "password", "hidden"),
    [
        # A comma in a secret makes two items of it.
        (f"{A},half-a- ,word-one", "half-a- ,word-one", ["half-a-", "word-one"]),
        ("xmpp:a@h?join;password=half,sec ret", PASSWORD, ["half", "sec ret"]),
        ("xmpp:a@h?join;password=half,b@h/word", PASSWORD, ["half", "b@h", "word"]),
        ("user:half,x,sec ret@h", PASSWORD, ["half", "'x'", "sec ret"]),
        (f"user:half@h,{A},sec ret", PASSWORD, ["half", "sec ret"]),
        (f"{A},b#half,sec ret@h", PASSWORD, ["half", "sec ret"]),
    ],
)
def test_no_secret_is_shown(folders: Folders, value: str, password: str, hidden: list[str]) -> None:
    words = " ".join(problems(folders, value, XMPP_PASSWORD=password))
    assert "holds '***'" in words
    assert not [piece for piece in hidden if piece in words]
