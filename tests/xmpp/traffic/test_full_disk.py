import logging
from pathlib import Path

import pytest

from bridge.xmpp.traffic import RETRY_SECONDS, TrafficLog, TrafficLogError
from tests.xmpp.traffic.logs import HEADER, Clock, lines, no_file_beyond


def test_a_full_disk_is_told_once_survived_and_owned_up_to(
    traffic: TrafficLog, path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    traffic.write({"n": 0})
    complete = path.read_bytes()
    with no_file_beyond(len(complete) + 50):
        for number in range(1, 4):
            clock.now = float(number)
            traffic.write({"n": number, "body": "x" * 100})
            assert path.read_bytes() == complete
    assert traffic.problem is not None
    assert "cannot be written (File too large)" in traffic.problem
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert traffic.problem in caplog.text

    clock.now = 1.0 + RETRY_SECONDS - 0.001
    traffic.write({"n": 4})
    assert path.read_bytes() == complete, "tried again too soon"
    clock.now = 1.0 + RETRY_SECONDS
    traffic.write({"n": 5})
    assert traffic.problem is None
    zero, lost, five = lines(path)
    assert (zero["n"], five["n"]) == (0, 5)
    assert lost.pop("reason").startswith("BRIDGE_TRAFFIC_LOG leads to ")
    assert lost == {
        "kind": "lost",
        "at": "1970-01-01T00:00:11.000Z",
        "events": 4,
        "from": "1970-01-01T00:00:01.000Z",
        "to": "1970-01-01T00:00:11.000Z",
    }
    assert len(caplog.records) == 2
    assert "is written again; 4 events were lost" in caplog.text

    traffic.write({"n": 6})
    assert lines(path)[3:] == [{"n": 6}]


def test_a_disk_that_stays_full_is_tried_seldom_and_told_no_further_time(
    traffic: TrafficLog, path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    traffic.open()
    with no_file_beyond(len(HEADER)):
        for number in range(100):
            clock.now = number * RETRY_SECONDS / 2
            traffic.write({"n": number})
    assert len(caplog.records) == 1
    clock.now += RETRY_SECONDS
    traffic.write({"n": 100})
    assert [line.get("events") for line in lines(path)] == [100, None]


def test_a_clock_that_is_set_back_does_not_put_off_the_next_try(
    traffic: TrafficLog, path: Path, clock: Clock
) -> None:
    traffic.open()
    clock.now = 1_000_000.0
    with no_file_beyond(len(HEADER)):
        traffic.write({"n": 1})
    clock.now = 500_000.0
    traffic.write({"n": 2})
    assert [line.get("n") for line in lines(path)] == [None, 2]


def test_what_was_lost_is_owned_up_to_at_the_end_at_the_latest(
    traffic: TrafficLog, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    traffic.open()
    with no_file_beyond(len(HEADER)):
        traffic.write({"n": 1})
    traffic.close()
    assert [line["events"] for line in lines(path)] == [1]
    assert "1 events were lost" in caplog.text


def test_where_the_disk_is_still_full_at_the_end_the_loss_is_told_to_people(
    traffic: TrafficLog, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    traffic.open()
    with no_file_beyond(len(HEADER)):
        traffic.write({"n": 1})
        traffic.close()
    assert path.read_bytes() == HEADER
    assert "1 events were lost" in caplog.text


@pytest.mark.parametrize("size", [0, 10, len(HEADER) - 1])
def test_a_disk_that_is_full_from_the_start_gets_its_log_when_there_is_room(
    size: int, traffic: TrafficLog, path: Path, clock: Clock
) -> None:
    with no_file_beyond(size):
        with pytest.raises(TrafficLogError, match="more room there"):
            traffic.open()
        traffic.write({"n": 1})
        assert path.read_bytes() == b""
    clock.now = RETRY_SECONDS
    traffic.write({"n": 2})
    assert [line.get("events", line.get("n")) for line in lines(path)] == [1, 2]


def test_of_what_is_written_together_each_is_counted_where_it_is_lost(
    traffic: TrafficLog, path: Path, clock: Clock
) -> None:
    traffic.open()
    with no_file_beyond(len(HEADER) + 10):
        traffic.write({"n": 1}, {"n": 2})
        traffic.write({"n": 3}, {"n": 4}, {"n": 5})
        assert path.read_bytes() == HEADER
    clock.now = RETRY_SECONDS
    traffic.write({"n": 6}, {"n": 7})
    assert [line.get("events", line.get("n")) for line in lines(path)] == [5, 6, 7]
