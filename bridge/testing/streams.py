"""Looks at the streams of the bots under test, which the sandbox serves, for the report."""

import time
from collections.abc import Collection

from bridge.capture.capture import Capture
from bridge.capture.elements import elements_of
from bridge.capture.finding import Finding
from bridge.capture.stanza import LogPlace, Stanza
from bridge.capture.verdict import verdict
from bridge.sandbox.stream import Stream
from bridge.text import iso, one_line
from bridge.wire.names import lower_bare

NAMELESS = "a client that did not log in"


class BotStreams:
    """What the rules of `bridge.capture` find on each stream of a sandbox, test by test."""

    def __init__(self) -> None:
        self._capture = Capture()

    def observe(self, stream: Stream, sent: bool, xml: str) -> None:
        """Take what a client has sent or gets: this is the observer of a sandbox."""
        now = time.time()
        place = LogPlace("", 0, iso(now))
        for element in elements_of(xml)[0]:
            self._capture.take(Stanza(sent, element, place, now, str(id(stream))))

    def end_test(self) -> None:
        """Forget what was found; streams that go on are looked at from here on."""
        self._capture = Capture()

    def streams(self, accounts: Collection[str]) -> list[tuple[str, list[Finding]]]:
        """Return the account and the findings of each stream that has findings.

        Leave out streams that logged in to other accounts. Leave out streams without XML from the
        client, if there are streams with some: slixmpp tries direct TLS first.
        """
        theirs = [
            each
            for each in self._capture.streams
            if each.stream.client.account.partition("@")[0] in {"", *accounts}
        ]
        theirs = [each for each in theirs if each.stream.login.has_own_header] or theirs
        return [
            (lower_bare(each.stream.client.account), findings)
            for each in theirs
            if (findings := each.findings())
        ]

    def report(self, accounts: Collection[str]) -> list[tuple[str, str]]:
        """Return a title and a text for each of these streams."""
        sections = []
        for account, findings in self.streams(accounts):
            lines = [verdict(findings)]
            for finding in findings:
                lines += [f"{finding.severity} {finding.sentence}", f"  {finding.advice}"]
            text = "\n".join(one_line(line) for line in lines)
            sections.append((f"XMPP: the stream of {one_line(account) or NAMELESS}", text))
        return sections
