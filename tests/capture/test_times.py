"""The times of loggers, containers and servers."""

import pytest

from bridge.capture.times import time_in
from tests.capture.logs import captured

EPOCH = 1795542571  # 2026-11-24 17:49:31 UTC

TIMES = {
    "2026-11-24 17:49:31,250 DEBUG": (EPOCH + 0.25, "2026-11-24 17:49:31,250"),
    "2026-11-24T17:49:31.25Z stdout F ": (EPOCH + 0.25, "2026-11-24T17:49:31.25Z"),
    "2026-11-24T17:49:31.250000000Z ": (EPOCH + 0.25, "2026-11-24T17:49:31.250000000Z"),
    "2026-11-24T19:49:31.25+02:00 x": (EPOCH + 0.25, "2026-11-24T19:49:31.25+02:00"),
    "2026-11-24T19:49:31+02:00 x": (EPOCH, "2026-11-24T19:49:31+02:00"),
    "2026-11-24T12:19:31-0530 x": (EPOCH, "2026-11-24T12:19:31-0530"),
    "2026/11/24 17:49:31 x": (EPOCH, "2026/11/24 17:49:31"),
    "24/11/2026 17:49:31: x": (EPOCH, "24/11/2026 17:49:31"),
    "24.11.2026 17:49:31 x": (EPOCH, "24.11.2026 17:49:31"),
    '1.2.3.4 - - [24/Nov/2026:17:49:31 +0000] "': (EPOCH, "24/Nov/2026:17:49:31 +0000"),
    "Nov 24, 2026 5:49:31 PM": (EPOCH, "Nov 24, 2026 5:49:31 PM"),
    "[1795542571.250] ": (EPOCH + 0.25, "1795542571.250"),
    "1795542571250 ": (EPOCH + 0.25, "1795542571250"),
    "Jan  2 00:00:01 host bot[7]: ": (86_401, "Jan  2 00:00:01"),
    "Jan 02 00:00:01 c2s55\tdebug\t": (86_401, "Jan 02 00:00:01"),
    "00:01:00.5 x": (60.5, "00:01:00.5"),
    "DEBUG:slixmpp:": (None, ""),
    "2026-02-31 10:00:00 x": (None, ""),
    "12:00 x": (None, ""),
    "xmpp.js 1.2.3 ": (None, ""),
}


@pytest.mark.parametrize("prefix", TIMES)
def test_a_time_is_read_and_kept_as_it_is_written(prefix: str) -> None:
    seconds, at = TIMES[prefix]
    assert time_in(prefix) == (seconds and pytest.approx(seconds), at)


def test_a_line_of_a_container_with_nothing_but_xml_has_its_time() -> None:
    prefix = "2026-11-24T17:49:31.25Z stdout F "
    (stanza,) = captured(f"{prefix}<iq type='result' id='1'/>")
    assert stanza.seconds == pytest.approx(EPOCH + 0.25)
