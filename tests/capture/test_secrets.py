"""No password, token or payload of a login comes out, whatever the log is like."""

import random
from base64 import b64encode

import pytest

from bridge.capture.verdict import verdict
from bridge.views.explain import as_json, lines_of
from bridge.views.screen import Display
from tests.capture.healthy import Passed
from tests.capture.logs import HEADER, JOIN, LOGIN, SASL, bounce, examined, stream_error
from tests.capture.writers import WRITERS, written

SASL2 = "urn:xmpp:sasl:2"
MUC = "http://jabber.org/protocol/muc"


def spoken(secret: str) -> list[Passed]:
    """A stream that has a secret in each place where protocols have them, and many errors."""
    coded = b64encode(f"\0bot\0{secret}".encode()).decode()
    bearer = f"<header name='Authorization'>Bearer {secret}</header>"
    url = f"https://up.example.org/{secret}/a.png?token={secret}"
    field = f"<field var='password'><value>{secret}</value></field>"
    texts = [
        *LOGIN[:3],
        f">>> <auth xmlns='{SASL}' mechanism='PLAIN'>{coded}</auth>",
        f">>> <auth xmlns='{SASL}' mechanism='PLAIN'>\n{coded[:9]}\n{coded[9:]}\n</auth>",
        f"<<< <challenge xmlns='{SASL}'>{coded}</challenge>",
        f">>> <response xmlns='{SASL}'>{coded}</response>",
        f"<<< <success xmlns='{SASL}'>{coded}</success>",
        (
            f">>> <authenticate xmlns='{SASL2}' mechanism='HT-SHA-256-NONE'>"
            f"<initial-response>{coded}"
            f"</initial-response><fast xmlns='urn:xmpp:fast:0' count='1'/></authenticate>"
        ),
        f"<<< <success xmlns='{SASL2}'><token xmlns='urn:xmpp:fast:0' token='{secret}'/></success>",
        f"<<< <failure xmlns='{SASL}'><not-authorized/></failure>",
        LOGIN[-1],
        (
            f">>> <iq type='set' id='1'><query xmlns='jabber:iq:auth'><username>bot</username>"
            f"<password>{secret}</password><digest>{secret}</digest></query></iq>"
        ),
        (
            f">>> <iq type='set' id='2'><query xmlns='jabber:iq:register'>"
            f"<password>{secret}</password>"
            f"<x xmlns='jabber:x:data'>{field}</x></query></iq>"
        ),
        f">>> <presence to='r@muc/b'><x xmlns='{MUC}'><password>{secret}</password></x></presence>",
        *JOIN,
        (
            "<<< <presence from='r@muc/b' type='error'><error type='auth'><not-authorized "
            "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></presence>"
        ),
        (
            f"<<< <iq type='result' id='3'><slot xmlns='urn:xmpp:http:upload:0'><put url='{url}'>"
            f"{bearer}</put><get url='{url}'/></slot></iq>"
        ),
        f">>> <handshake xmlns='jabber:component:accept'>{secret}</handshake>",
        (
            f"<<< <message from='ann@x'><x "
            f"xmlns='jabber:x:conference' jid='r@m' password='{secret}'/>"
            "</message>"
        ),
        f">>> <message to='r@muc' type='groupchat' id='m1'><x a='{secret}\x0b'/></message>",
        bounce("forbidden"),
        f"<<< <iq type='get' id='4' from='a@b'><x xmlns='urn:x' token='{secret}'>{secret}</x></iq>",
        *["<<< <presence from='a@b'/>"] * 6,
        stream_error("not-well-formed"),
        f">>> {HEADER}",
    ]
    return [Passed(3, text.startswith(">>>"), text[4:]) for text in texts]


def outputs(log: str) -> str:
    """Everything that can be printed of a log."""
    streams = examined(*log.split("\n"))
    findings = [finding for stream in streams for finding in stream.findings()]
    lines = lines_of(streams, Display(False), everything=True)
    return "\n".join([*lines, "".join(as_json(streams, verdict(findings, 1), 1))])


@pytest.mark.parametrize("format_", WRITERS)
def test_no_secret_of_a_log_comes_out(format_: str) -> None:
    chance = random.Random(format_)  # noqa: S311 - these are no real secrets
    for _ in range(3):
        secret = "".join(chance.choices("abcdefghijkmnpqrstuvwxyz23456789", k=24))
        log = written(format_, spoken(secret))
        told = [outputs(log)]
        assert "error" in told[0]
        for _ in range(8):
            begin = chance.randrange(len(log))
            told.append(outputs(log[:begin] + log[begin + chance.choice((1, 20, 200)) :]))
        coded = b64encode(secret.encode()).decode()
        for text in told:
            for part in (secret[:12], secret[12:], coded[4:16], coded[16:28]):
                assert part not in text
