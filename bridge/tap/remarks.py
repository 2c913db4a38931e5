"""What tap itself finds on the way between a client and its server: one row each. Pure."""

from bridge.capture.causes import finding_of
from bridge.capture.finding import Finding
from bridge.capture.stanza import LogPlace
from bridge.wire.meaning import rows_of

_REMARKS = {
    row.situations[0]: row
    for row in rows_of("""
binds: login; error, RFC 5802, 6
    The client wants to bind its login to the TLS connection ({mechanism}, flag p). Behind tap that
    is another connection than the server's, so tap refused it.
    -> Start tap with --login and the account's password in the settings, or let the client choose a
    mechanism without -PLUS.
own-login: login; note, RFC 6120, 6
    The client logged in to tap by {mechanism}{flag}, and tap to the server by {own}. What the
    server would have answered to the client's own login is not known.
    -> Run tap without --login to see that answer.
own-refusal: login; error, RFC 6120, 6.5
    Tap refused the client's login, and the server was not asked: the client's user name or password
    is not the one of tap's settings.
    -> Compare both with XMPP_USERNAME and XMPP_PASSWORD: either side may be wrong.
server-login: login; error, RFC 6120, 6.5
    The client knows the password, and the server refused tap's login. {message}
    -> {hint}
unreachable: ended; error, RFC 6120, 3.2
    The client came, and tap did not reach its server. {message}
    -> {hint} With --to, XMPP_SERVICE does not count.
certificate: tls; error, RFC 6120, 13.7.2
    The client came, and tap did not trust its server. {message}
    -> {hint}
distrusted: tls; error, RFC 6120, 13.7.2
    The client ended the TLS handshake with tap ({reason}). Most often it does not trust tap's
    certificate.
    -> Let it trust the file {anchor} (XMPP_TLS_CA_FILE, SSL_CERT_FILE or NODE_EXTRA_CA_CERTS), for
    the domain {domain}.
mismatch: tls; note, RFC 6120, 5.4.1
    The client and its server do not fit: one begins with TLS, the other does not. So tap did not
    connect the client to {server}.
    -> It does no harm if the client then tries the other way. Otherwise use xmpp:// for STARTTLS
    (usually port 5222), and xmpps:// for TLS from the first byte (5223).
taken-out: session; note, RFC 6120, 4.3
    Tap took out {what}.
    -> The client goes on without it.
unoffered: login; error, RFC 6120, 6.3.3
    Tap refused {what}.
    -> Let the client choose among the mechanisms that it is offered. Behind tap these are of SASL.
unfinished: refused; warning, RFC 6120, 11.3
    The client began a stanza and has not finished it for {seconds:g} s ({size} bytes): the server
    has got none of it, and takes what follows for a part of it.
    -> Let the client close each element that it opens, best by a library that writes the XML.
unreadable: ended; error, RFC 6120, 4.9.3
    The server sent something before the login that cannot be read ({reason}), so tap ended the
    stream.
    -> Look whether an XMPP server listens there.
""")
}


def remark(name: str, place: LogPlace, **words: object) -> Finding:
    """Return the finding of a row; a stranger's words among `words` are `quoted`."""
    return finding_of(_REMARKS[name], place, words)
