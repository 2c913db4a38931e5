"""What a server or a room says when it does not want us, or no longer has us. Pure.

The other half of the table begun in `faults`: SASL failures, stream errors, refused joins, being
put out. Conditions are those of RFC 6120 and XEP-0045.
"""

from bridge.escaping import quoted
from bridge.xmpp.faults import Fault, Place, Retry

_LOGIN_HINT = "Check XMPP_USERNAME and XMPP_PASSWORD."


def said(text: str | None) -> str:
    """Return a sentence of what came with an error, if anything did."""
    return f" It says: {quoted(text)}." if text else ""


def _in_brackets(text: str | None) -> str:
    return f" ({quoted(text)})" if text else ""


def no_mechanism(offered: list[str], place: Place) -> Fault:
    """None of the server's SASL mechanisms may be used here."""
    listed = quoted(", ".join(offered)) if offered else "none"
    return Fault(
        "invalid-mechanism",
        f"{place.domain} offers no login that is safe here (it offers {listed}).",
        "Turn SCRAM-SHA-256 or SCRAM-SHA-1 on in the server. PLAIN is used over TLS with a "
        "verified certificate only.",
        Retry.LATER,
        quotes=bool(offered),
    )


def untrusted_server(reason: str, place: Place) -> Fault:
    """The server did not prove that it knows the account (RFC 5802, section 9)."""
    return Fault(
        "bad-server-signature",
        f"{place.service} could not prove that it is the server of {place.account}: {reason}.",
        "Something may be listening in between. Check XMPP_SERVICE and the certificate.",
        Retry.LATER,
    )


def of_sasl(condition: str, text: str | None, place: Place) -> Fault:
    """Classify a SASL failure (RFC 6120, section 6.5)."""
    why, quotes = _in_brackets(text), bool(text)
    match condition:
        case "not-authorized" | "credentials-expired" | "account-disabled" | "invalid-authzid":
            return Fault(
                condition,
                f"{place.domain} refused the login of {place.account}{why}.",
                _LOGIN_HINT,
                Retry.NEVER,
                quotes,
            )
        case "temporary-auth-failure":
            return Fault(
                condition,
                f"{place.domain} cannot check logins just now{why}.",
                "The server's account store has a problem; the bridge tries again by itself.",
                quotes=quotes,
            )
        case _:
            return Fault(
                condition,
                f"The login of {place.account} failed{why}.",
                f"{_LOGIN_HINT} The server's log says more.",
                Retry.LATER,
                quotes,
            )


_STREAM_FAULTS: dict[str, tuple[str, str, Retry]] = {
    "host-unknown": (
        "{service} does not serve the domain {domain}.",
        "Check XMPP_DOMAIN (or the domain in XMPP_USERNAME).",
        Retry.LATER,
    ),
    "host-gone": (
        "{service} no longer serves the domain {domain}.",
        "Check XMPP_SERVICE and XMPP_DOMAIN: the domain may have moved.",
        Retry.LATER,
    ),
    "conflict": (
        "Another session took over this one.",
        "Another program logs in with the same account and resource; the bridge tries again.",
        Retry.SOON,
    ),
    "system-shutdown": (
        "{domain} is shutting down.",
        "The bridge comes back by itself when the server does.",
        Retry.SOON,
    ),
    "policy-violation": (
        "{domain} ended the connection for breaking one of its rules.",
        "Too much or too fast, or TLS is required; the server's log names the rule.",
        Retry.SOON,
    ),
    "not-authorized": (
        "{domain} ended the connection: not authorized.",
        "Check XMPP_USERNAME and XMPP_PASSWORD.",
        Retry.SOON,
    ),
    "see-other-host": (
        "{service} sends its clients to another server.",
        "It is not followed; if you trust the server that it names, set XMPP_SERVICE to that.",
        Retry.LATER,
    ),
    "resource-constraint": (
        "{domain} has no room for another connection just now.",
        "The bridge tries again by itself.",
        Retry.SOON,
    ),
}


def of_stream_error(condition: str, text: str | None, place: Place) -> Fault:
    """Classify a stream error (RFC 6120, section 4.9.3)."""
    message, hint, retry = _STREAM_FAULTS.get(
        condition,
        (
            "{domain} ended the connection ({condition}).",
            "The server's log says more; the bridge tries again by itself.",
            Retry.SOON,
        ),
    )
    message = message.format(service=place.service, domain=place.domain, condition=condition)
    return Fault(condition, message + said(text), hint, retry, bool(text))


_JOIN_FAULTS: dict[str, tuple[str, str, Retry]] = {
    "not-authorized": (
        "The room {room} wants a password, and ours does not fit.",
        "Set MUC_PASSWORD to the room's password.",
        Retry.LATER,
    ),
    "forbidden": (
        "{account} is banned from the room {room}, or may not reach {room_service} at all.",
        "Check the domain in MUC_ROOM; if it is right, ask an admin of the room to lift the ban.",
        Retry.LATER,
    ),
    "registration-required": (
        "The room {room} is for members only, and {account} is none.",
        "Ask an admin of the room to make the account a member.",
        Retry.LATER,
    ),
    "item-not-found": (
        "The room {room} does not exist, or is locked while its owner sets it up.",
        "Check MUC_ROOM; if it is right, let the owner finish its configuration.",
        Retry.SOON,
    ),
    "not-allowed": (
        "The room {room} does not exist, and {account} may not create it.",
        "Check MUC_ROOM, or create the room first.",
        Retry.LATER,
    ),
    "not-acceptable": (
        "The room {room} does not accept the nickname {nickname}.",
        "Set MCP_BOT_NICKNAME to the nickname that is registered for the account, or another.",
        Retry.LATER,
    ),
    "conflict": (
        "The nickname {nickname} is taken in the room {room}.",
        "Set MCP_BOT_NICKNAME to a free one.",
        Retry.SOON,
    ),
    "service-unavailable": (
        "The room {room} is full, or {room_service} is no room service.",
        "Check the domain in MUC_ROOM; if it is right, wait for somebody to leave.",
        Retry.SOON,
    ),
    "remote-server-not-found": (
        "{domain} knows no server {room_service}.",
        "Check the domain in MUC_ROOM: usually conference.DOMAIN.",
        Retry.LATER,
    ),
    "remote-server-timeout": (
        "{domain} cannot reach {room_service}.",
        "Check the domain in MUC_ROOM, and the connection between the two servers.",
        Retry.SOON,
    ),
    "jid-malformed": (
        "The room {room} or the nickname {nickname} has characters that the server refuses.",
        "Check MUC_ROOM and MCP_BOT_NICKNAME.",
        Retry.LATER,
    ),
    "resource-constraint": (
        "The room service {room_service} has no room for more just now.",
        "The bridge tries again by itself.",
        Retry.SOON,
    ),
}


def of_join_error(condition: str, text: str | None, place: Place, venue: str | None) -> Fault:
    """Classify a refused join (XEP-0045, section 7.2)."""
    if condition == "gone":
        return destroyed(text, venue, place)
    message, hint, retry = _JOIN_FAULTS.get(
        condition,
        (
            "The room {room} refused us ({condition}).",
            "Check MUC_ROOM; the server's log says more.",
            Retry.SOON,
        ),
    )
    if condition == "not-authorized" and not place.default:
        message = "The room {room} wants a password, and MUC_PASSWORD is for the default room only."
        hint = "Put the room first in MUC_ROOM, and its password into MUC_PASSWORD."
    message = message.format(
        room=place.room,
        account=place.account,
        nickname=place.nickname,
        domain=place.domain,
        room_service=place.room_service,
        condition=condition,
    )
    return Fault(condition, message + said(text), hint, retry, bool(text))


def no_room_service(place: Place) -> Fault:
    """What should be the room service says of itself that it is none (XEP-0045, section 6.1)."""
    return Fault(
        "service-unavailable",
        f"{place.room_service} answers, but is no room service.",
        "Check the domain in MUC_ROOM: usually it is not the one of the account, but "
        "conference.DOMAIN.",
        Retry.LATER,
    )


def bounced(condition: str, text: str | None, place: Place) -> Fault:
    """The room returned a message instead of passing it on (XEP-0045, section 7.4)."""
    return Fault(
        condition,
        f"The room {place.room} refused the message{_in_brackets(text)}.",
        "In a moderated room the account needs voice: ask a moderator of it.",
        quotes=bool(text),
    )


def no_goodbye(seconds: float, place: Place) -> Fault:
    """The room did not confirm that we left (XEP-0045, section 7.14)."""
    return Fault(
        "remote-server-timeout",
        f"The room {place.room} did not confirm within {seconds:g} s that we left.",
        "The room service may be overloaded; our occupant goes with its connection all the same.",
    )


def destroyed(reason: str | None, venue: str | None, place: Place) -> Fault:
    """The room was destroyed (XEP-0045, section 10.9)."""
    message = f"The room {place.room} was destroyed{_in_brackets(reason)}."
    hint = "Set MUC_ROOM to a room that exists."
    if venue:
        message += f" Its owner names a new place: {quoted(venue)}."
        hint = "Set MUC_ROOM to the new place if you trust whoever named it, or to another room."
    return Fault("gone", message, hint, Retry.LATER, bool(reason or venue))


def put_out(codes: frozenset[int], reason: str | None, actor: str | None, place: Place) -> Fault:
    """Classify our being put out of the room (XEP-0045, section 15.6)."""
    by = f" by {quoted(actor)}" if actor else ""
    why = _in_brackets(reason)
    if 301 in codes:
        return Fault(
            "forbidden",
            f"We were banned from the room {place.room}{by}{why}.",
            "Ask an admin of the room to lift the ban.",
            Retry.LATER,
            bool(by or why),
        )
    if codes & {321, 322}:
        return Fault(
            "registration-required",
            f"The room {place.room} is for members only now, and {place.account} is none.",
            "Ask an admin of the room to make the account a member.",
            Retry.LATER,
        )
    if 307 in codes and not codes & {330, 332, 333}:
        return Fault(
            "not-allowed",
            f"We were kicked from the room {place.room}{by}{why}.",
            "The bridge goes back by itself after a minute; talk to the moderator.",
            Retry.MINUTE,
            bool(by or why),
        )
    return Fault(
        "recipient-unavailable",
        f"The room {place.room} dropped us{why}.",
        "The bridge goes back by itself.",
        Retry.AT_ONCE,
        bool(why),
    )


def ghost(place: Place) -> Fault:
    """The room does not know us any more, and never said so (XEP-0410)."""
    return Fault(
        "not-acceptable",
        f"The room {place.room} had lost us without a word.",
        "The bridge goes back by itself; the room service may have been restarted.",
        Retry.AT_ONCE,
    )


def of_silent_room(seconds: float, place: Place) -> Fault:
    """The room has said nothing for so long, asked or not."""
    return Fault(
        "remote-server-timeout",
        f"The room {place.room} has been silent for {seconds:.0f} s, even to pings.",
        f"{place.room_service} may be down, or cut off from {place.domain}.",
    )


def no_reflection(seconds: float, place: Place) -> Fault:
    """The room did not send a message back within the `seconds` its sender would wait."""
    return Fault(
        "remote-server-timeout",
        f"The room {place.room} sent nothing back within {seconds:g} s.",
        "The server may be slow or hold the message back; allow more timeoutSeconds.",
    )
