"""Cut excerpts, by generation: no log that shows a refusal, or its beginning, clears the client."""

from collections.abc import Callable
from itertools import product

import pytest

from bridge.capture.finding import Severity
from bridge.capture.verdict import NO_ERROR, verdict
from tests.capture.logs import ACCOUNT, ROOM, SASL, STANZAS, bounce, error, examined, refusal

IQ = f"<iq type='error' id='q' from='files.example.org' to='{ACCOUNT}'>{{}}</iq>"
REFUSALS = {
    "a request": IQ.format(f"<slot xmlns='urn:xmpp:http:upload:0'/>{error('forbidden')}"),
    "a request to the server": f"<iq type='error' id='q' to='{ACCOUNT}'>{error('gone')}</iq>",
    "a message": bounce("not-acceptable").removeprefix("<<< "),
    "a join": refusal("registration-required").removeprefix("<<< "),
    "a login": f"<failure xmlns='{SASL}'><not-authorized/></failure>",
    "a login by SASL2": (
        f"<failure xmlns='urn:xmpp:sasl:2'><aborted xmlns='{SASL}'/><text>late</text></failure>"
    ),
    "a resumption": (f"<failed xmlns='urn:xmpp:sm:3'><item-not-found xmlns='{STANZAS}'/></failed>"),
    "the stream": "<stream:error><conflict/><text>replaced</text></stream:error>",
}
HEALTHY = {
    "a presence": f"<presence from='ann@x.example/y' to='{ACCOUNT}'><show>away</show></presence>",
    "a message of somebody": (
        f"<message from='{ROOM}/Ann' to='{ACCOUNT}' type='groupchat'>"
        "<body>the error: conflict, not-authorized</body></message>"
    ),
    "an answer": f"<iq type='result' id='q' to='{ACCOUNT}'><query xmlns='jabber:iq:roster'/></iq>",
    "a success": f"<success xmlns='{SASL}'>dj0x</success>",
}
CUTS: dict[str, Callable[[str], str]] = {
    "whole": lambda xml: xml,
    "in lines": lambda xml: xml.replace("><", ">\n<"),
    "behind its first tag": lambda xml: xml[: xml.index(">") + 1],
    "behind four fifths": lambda xml: xml[: len(xml) * 4 // 5],
    "with dots": lambda xml: f"{xml[: len(xml) * 4 // 5]}...",
    "before its end tag": lambda xml: xml[: xml.rindex("</")],
}
FORMATS = (
    "RECV: {}",
    "<<< {}",
    "{}",
    "10:00:01 DEBUG net: <- {}",
    "--- IN ---\n{}",
    "10:00:01 c2s7\tdebug\tSending[c2s]: {}",
    "> got {}",
    "The server says:\n\n```xml\n{}\n```\n",
)
SENT_FORMATS = {
    "RECV: {}": "SEND: {}",
    "<<< {}": ">>> {}",
    "10:00:01 DEBUG net: <- {}": "10:00:01 DEBUG net: -> {}",
}
PING = f"<iq type='get' id='p' to='{ROOM}'><ping xmlns='urn:xmpp:ping'/></iq>"
OTHER = f"<presence from='ben@x.example/{{}}' to='{ACCOUNT}'><priority>1</priority></presence>"


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("stanza", [*REFUSALS, *HEALTHY])
def test_a_cut_refusal_clears_nobody_and_a_cut_stanza_accuses_nobody(stanza: str, cut: str) -> None:
    for format_, before, behind in product(FORMATS, (0, 3), (0, 3)):
        xml = CUTS[cut](REFUSALS.get(stanza) or HEALTHY[stanza])
        others = [OTHER.format(number) for number in range(before + behind)]
        log = "\n".join(map(format_.format, [*others[:before], xml, *others[before:]]))
        streams = examined(*log.split("\n"))
        findings = [each for stream in streams for each in stream.findings()]
        words = verdict(findings)
        if stanza not in REFUSALS:
            assert Severity.ERROR not in [each.severity for each in findings], log
        elif streams and (words.startswith(NO_ERROR) and "refused" not in words):
            pytest.fail(f"{words}\n{log}")


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("stanza", REFUSALS)
def test_nor_does_it_beside_a_whole_stanza_of_the_other_direction(stanza: str, cut: str) -> None:
    for received, sent in SENT_FORMATS.items():
        for behind in ([], [sent.format(PING)]):
            lines = [sent.format(PING), received.format(CUTS[cut](REFUSALS[stanza])), *behind]
            streams = examined(*"\n".join(lines).split("\n"))
            words = verdict([each for stream in streams for each in stream.findings()])
            assert not words.startswith(NO_ERROR) or "refused" in words, "\n".join(lines)
