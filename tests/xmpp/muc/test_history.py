import pytest

from bridge.xmpp.muc.intake import HISTORY_SECONDS, QUIET_SECONDS, HistoryWindow


def test_it_is_closed_until_our_own_presence_comes() -> None:
    window = HistoryWindow()
    window.hear(5.0)
    assert not window.is_open(5.0)
    window.open(5.0)
    assert window.is_open(5.0)


@pytest.mark.parametrize(
    ("after", "is_open"), [(QUIET_SECONDS - 0.01, True), (QUIET_SECONDS, False)]
)
def test_a_room_that_is_quiet_has_sent_all_of_it(after: float, is_open: bool) -> None:
    window = HistoryWindow()
    window.open(100.0)
    window.hear(101.0)
    assert window.is_open(101.0 + after) is is_open
    assert window.until == 101.0 + QUIET_SECONDS


def test_a_room_that_goes_on_sending_has_a_limited_time() -> None:
    window = HistoryWindow()
    window.open(0.0)
    for second in range(int(HISTORY_SECONDS)):
        window.hear(float(second))
    assert window.is_open(HISTORY_SECONDS - 0.01)
    assert not window.is_open(HISTORY_SECONDS)


def test_what_comes_after_it_closed_does_not_open_it_again() -> None:
    window = HistoryWindow()
    for close in (window.close, lambda: window.hear(QUIET_SECONDS)):
        window.open(0.0)
        close()
        window.hear(QUIET_SECONDS)
        assert not window.is_open(QUIET_SECONDS)


def test_a_room_that_was_quiet_may_send_more_of_it_until_the_subject() -> None:
    window = HistoryWindow()
    window.open(0.0)
    assert not window.is_open(HISTORY_SECONDS)
    assert not window.is_over
    window.close()
    assert window.is_over
