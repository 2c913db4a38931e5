"""What a feature's name stands for: the standard that defines it. Pure.

Names and numbers are those of the XSF's own list (https://xmpp.org/extensions/).
"""

import re
from typing import NamedTuple


class Standard(NamedTuple):
    """A document that defines features."""

    number: str
    """`XEP-0313`, or `RFC 6121`."""
    name: str


_XEPS = (
    (4, "Data Forms", "jabber:x:data"),
    (9, "Jabber-RPC", "jabber:iq:rpc"),
    (12, "Last Activity", "jabber:iq:last"),
    (13, "Flexible Offline Message Retrieval", "http://jabber.org/protocol/offline"),
    (16, "Privacy Lists", "jabber:iq:privacy"),
    (20, "Feature Negotiation", "http://jabber.org/protocol/feature-neg"),
    (22, "Message Events", "jabber:x:event"),
    (30, "Service Discovery", "http://jabber.org/protocol/disco"),
    (33, "Extended Stanza Addressing", "http://jabber.org/protocol/address"),
    (
        45,
        "Multi-User Chat",
        (
            "http://jabber.org/protocol/muc muc_hidden muc_membersonly muc_moderated "
            "muc_nonanonymous muc_open muc_passwordprotected muc_persistent muc_public "
            "muc_rooms muc_semianonymous muc_temporary muc_unmoderated muc_unsecured"
        ),
    ),
    (47, "In-Band Bytestreams", "http://jabber.org/protocol/ibb"),
    (48, "Bookmarks", "storage:bookmarks"),
    (49, "Private XML Storage", "jabber:iq:private"),
    (50, "Ad-Hoc Commands", "http://jabber.org/protocol/commands"),
    (54, "vcard-temp", "vcard-temp"),
    (55, "Jabber Search", "jabber:iq:search"),
    (59, "Result Set Management", "http://jabber.org/protocol/rsm"),
    (60, "Publish-Subscribe", "http://jabber.org/protocol/pubsub"),
    (65, "SOCKS5 Bytestreams", "http://jabber.org/protocol/bytestreams"),
    (66, "Out of Band Data", "jabber:x:oob jabber:iq:oob"),
    (70, "Verifying HTTP Requests via XMPP", "http://jabber.org/protocol/http-auth"),
    (71, "XHTML-IM", "http://jabber.org/protocol/xhtml-im"),
    (72, "SOAP Over XMPP", "http://jabber.org/protocol/soap"),
    (77, "In-Band Registration", "jabber:iq:register"),
    (78, "Non-SASL Authentication", "jabber:iq:auth"),
    (79, "Advanced Message Processing", "http://jabber.org/protocol/amp"),
    (80, "User Location", "http://jabber.org/protocol/geoloc"),
    (83, "Nested Roster Groups", "roster:delimiter"),
    (84, "User Avatar", "urn:xmpp:avatar:data urn:xmpp:avatar:metadata"),
    (85, "Chat State Notifications", "http://jabber.org/protocol/chatstates"),
    (90, "Legacy Entity Time", "jabber:iq:time"),
    (91, "Legacy Delayed Delivery", "jabber:x:delay"),
    (92, "Software Version", "jabber:iq:version"),
    (93, "Roster Item Exchange", "jabber:x:roster"),
    (95, "Stream Initiation", "http://jabber.org/protocol/si"),
    (96, "SI File Transfer", "http://jabber.org/protocol/si/profile/file-transfer"),
    (100, "Gateway Interaction", "jabber:iq:gateway"),
    (107, "User Mood", "http://jabber.org/protocol/mood"),
    (108, "User Activity", "http://jabber.org/protocol/activity"),
    (114, "Jabber Component Protocol", "jabber:component:accept"),
    (115, "Entity Capabilities", "http://jabber.org/protocol/caps"),
    (118, "User Tune", "http://jabber.org/protocol/tune"),
    (122, "Data Forms Validation", "http://jabber.org/protocol/xdata-validate"),
    (
        124,
        "Bidirectional-streams Over Synchronous HTTP (BOSH)",
        "http://jabber.org/protocol/httpbind",
    ),
    (131, "Stanza Headers and Internet Metadata", "http://jabber.org/protocol/shim"),
    (133, "Service Administration", "http://jabber.org/protocol/admin"),
    (136, "Message Archiving", "urn:xmpp:archive"),
    (141, "Data Forms Layout", "http://jabber.org/protocol/xdata-layout"),
    (144, "Roster Item Exchange", "http://jabber.org/protocol/rosterx"),
    (145, "Annotations", "storage:rosternotes"),
    (153, "vCard-Based Avatars", "vcard-temp:x:update"),
    (157, "Contact Addresses for XMPP Services", "http://jabber.org/network/serverinfo"),
    (158, "CAPTCHA Forms", "urn:xmpp:captcha"),
    (160, "Best Practices for Handling Offline Messages", "msgoffline"),
    (166, "Jingle", "urn:xmpp:jingle urn:xmpp:jingle:errors"),
    (
        167,
        "Jingle RTP Sessions",
        "urn:xmpp:jingle:apps:rtp urn:xmpp:jingle:apps:rtp:audio urn:xmpp:jingle:apps:rtp:video",
    ),
    (172, "User Nickname", "http://jabber.org/protocol/nick"),
    (176, "Jingle ICE-UDP Transport Method", "urn:xmpp:jingle:transports:ice-udp"),
    (177, "Jingle Raw UDP Transport Method", "urn:xmpp:jingle:transports:raw-udp"),
    (184, "Message Delivery Receipts", "urn:xmpp:receipts"),
    (186, "Invisible Command", "urn:xmpp:invisible"),
    (191, "Blocking Command", "urn:xmpp:blocking"),
    (198, "Stream Management", "urn:xmpp:sm"),
    (199, "XMPP Ping", "urn:xmpp:ping"),
    (202, "Entity Time", "urn:xmpp:time"),
    (203, "Delayed Delivery", "urn:xmpp:delay"),
    (206, "XMPP Over BOSH", "urn:xmpp:xbosh"),
    (215, "External Service Discovery", "urn:xmpp:extdisco"),
    (220, "Server Dialback", "jabber:server:dialback urn:xmpp:features:dialback"),
    (221, "Data Forms Media Element", "urn:xmpp:media-element"),
    (224, "Attention", "urn:xmpp:attention"),
    (227, "Portable Import/Export Format for XMPP-IM Servers", "urn:xmpp:pie"),
    (231, "Bits of Binary", "urn:xmpp:bob"),
    (234, "Jingle File Transfer", "urn:xmpp:jingle:apps:file-transfer"),
    (237, "Roster Versioning", "urn:xmpp:features:rosterver"),
    (249, "Direct MUC Invitations", "jabber:x:conference"),
    (258, "Security Labels in XMPP", "urn:xmpp:sec-label"),
    (260, "Jingle SOCKS5 Bytestreams Transport Method", "urn:xmpp:jingle:transports:s5b"),
    (261, "Jingle In-Band Bytestreams Transport Method", "urn:xmpp:jingle:transports:ibb"),
    (262, "Use of ZRTP in Jingle RTP Sessions", "urn:xmpp:jingle:apps:rtp:zrtp"),
    (264, "Jingle Content Thumbnails", "urn:xmpp:thumbs"),
    (277, "Microblogging over XMPP", "urn:xmpp:micro"),
    (280, "Message Carbons", "urn:xmpp:carbons urn:xmpp:carbons:rules"),
    (283, "Moved", "urn:xmpp:moved"),
    (288, "Bidirectional Server-to-Server Connections", "urn:xmpp:bidi urn:xmpp:features:bidi"),
    (292, "vCard4 Over XMPP", "urn:xmpp:vcard4 urn:ietf:params:xml:ns:vcard-4.0"),
    (293, "Jingle RTP Feedback Negotiation", "urn:xmpp:jingle:apps:rtp:rtcp-fb"),
    (294, "Jingle RTP Header Extensions Negotiation", "urn:xmpp:jingle:apps:rtp:rtp-hdrext"),
    (297, "Stanza Forwarding", "urn:xmpp:forward"),
    (
        300,
        "Use of Cryptographic Hash Functions in XMPP",
        "urn:xmpp:hashes urn:xmpp:hash-function-text-names",
    ),
    (301, "In-Band Real Time Text", "urn:xmpp:rtt"),
    (307, "Unique Room Names for Multi-User Chat", "http://jabber.org/protocol/muc#unique"),
    (308, "Last Message Correction", "urn:xmpp:message-correct"),
    (313, "Message Archive Management", "urn:xmpp:mam"),
    (317, "Hats", "urn:xmpp:hats"),
    (319, "Last User Interaction in Presence", "urn:xmpp:idle"),
    (320, "Use of DTLS-SRTP in Jingle Sessions", "urn:xmpp:jingle:apps:dtls"),
    (323, "Internet of Things - Sensor Data", "urn:xmpp:iot:sensordata"),
    (333, "Displayed Markers", "urn:xmpp:chat-markers"),
    (334, "Message Processing Hints", "urn:xmpp:hints"),
    (338, "Jingle Grouping Framework", "urn:xmpp:jingle:apps:grouping"),
    (339, "Source-Specific Media Attributes in Jingle", "urn:xmpp:jingle:apps:rtp:ssma"),
    (343, "Signaling WebRTC datachannels in Jingle", "urn:xmpp:jingle:transports:dtls-sctp"),
    (352, "Client State Indication", "urn:xmpp:csi"),
    (353, "Jingle Message Initiation", "urn:xmpp:jingle-message"),
    (355, "Namespace Delegation", "urn:xmpp:delegation"),
    (356, "Privileged Entity", "urn:xmpp:privilege"),
    (357, "Push Notifications", "urn:xmpp:push"),
    (359, "Unique and Stable Stanza IDs", "urn:xmpp:sid"),
    (363, "HTTP File Upload", "urn:xmpp:http:upload urn:xmpp:http:upload:purpose"),
    (369, "Mediated Information eXchange (MIX)", "urn:xmpp:mix:core urn:xmpp:mix"),
    (372, "References", "urn:xmpp:reference"),
    (374, "OpenPGP for XMPP Instant Messaging", "urn:xmpp:openpgp"),
    (377, "Blocking Command Reports", "urn:xmpp:reporting"),
    (379, "Pre-Authenticated Roster Subscription", "urn:xmpp:pars"),
    (380, "Explicit Message Encryption", "urn:xmpp:eme"),
    (382, "Spoiler messages", "urn:xmpp:spoiler"),
    (
        384,
        "OMEMO Encryption",
        (
            "eu.siacs.conversations.axolotl eu.siacs.conversations.axolotl.devicelist "
            "urn:xmpp:omemo urn:xmpp:omemo:2:devices"
        ),
    ),
    (385, "Stateless Inline Media Sharing (SIMS)", "urn:xmpp:sims"),
    (386, "Bind 2", "urn:xmpp:bind"),
    (388, "Extensible SASL Profile", "urn:xmpp:sasl"),
    (389, "Extensible In-Band Registration", "urn:xmpp:register"),
    (393, "Message Styling", "urn:xmpp:styling"),
    (394, "Message Markup", "urn:xmpp:markup"),
    (395, "Atomically Compare-And-Publish PubSub Items", "urn:xmpp:pubsub:cap"),
    (398, "User Avatar to vCard-Based Avatars Conversion", "urn:xmpp:pep-vcard-conversion"),
    (400, "Multi-Factor Authentication with TOTP", "urn:xmpp:mfa"),
    (401, "Ad-hoc Account Invitation Generation", "urn:xmpp:invite"),
    (402, "PEP Native Bookmarks", "urn:xmpp:bookmarks"),
    (403, "Mediated Information eXchange (MIX): Presence Support", "urn:xmpp:mix:presence"),
    (404, "Mediated Information eXchange (MIX): JID Hidden Channels", "urn:xmpp:mix:anon"),
    (
        405,
        "Mediated Information eXchange (MIX): Participant Server Requirements",
        "urn:xmpp:mix:pam",
    ),
    (406, "Mediated Information eXchange (MIX): MIX Administration", "urn:xmpp:mix:admin"),
    (407, "Mediated Information eXchange (MIX): Miscellaneous Capabilities", "urn:xmpp:mix:misc"),
    (408, "Mediated Information eXchange (MIX): Co-existence with MUC", "urn:xmpp:mix:muc"),
    (
        410,
        "MUC Self-Ping (Schrödinger's Chat)",
        "http://jabber.org/protocol/muc#self-ping-optimization",
    ),
    (411, "Bookmarks Conversion", "urn:xmpp:bookmarks-conversion"),
    (413, "Order-By", "urn:xmpp:order-by"),
    (421, "Occupant identifiers for semi-anonymous MUCs", "urn:xmpp:occupant-id"),
    (422, "Message Fastening", "urn:xmpp:fasten"),
    (424, "Message Retraction", "urn:xmpp:message-retract"),
    (425, "Moderated Message Retraction", "urn:xmpp:message-moderate"),
    (428, "Fallback Indication", "urn:xmpp:fallback"),
    (430, "Inbox", "urn:xmpp:inbox"),
    (431, "Full Text Search in MAM", "urn:xmpp:fulltext"),
    (432, "Simple JSON Messaging", "urn:xmpp:json"),
    (433, "Extended Channel Search", "urn:xmpp:channel-search"),
    (434, "Trust Messages (TM)", "urn:xmpp:tm"),
    (436, "MUC presence versioning", "urn:xmpp:muc-presence-versioning"),
    (437, "Room Activity Indicators", "urn:xmpp:rai"),
    (440, "SASL Channel-Binding Type Capability", "urn:xmpp:sasl-cb"),
    (441, "Message Archive Management Preferences", "urn:xmpp:mam#configure"),
    (444, "Message Reactions", "urn:xmpp:reactions"),
    (445, "Pre-Authenticated In-Band Registration", "urn:xmpp:ibr-token"),
    (446, "File metadata element", "urn:xmpp:file:metadata"),
    (447, "Stateless file sharing", "urn:xmpp:sfs"),
    (448, "Encryption for stateless file sharing", "urn:xmpp:esfs"),
    (449, "Stickers", "urn:xmpp:stickers"),
    (452, "MUC Mention Notifications", "urn:xmpp:mmn"),
    (455, "Service Outage Status", "urn:xmpp:sos"),
    (461, "Message Replies", "urn:xmpp:reply"),
    (462, "PubSub Type Filtering", "urn:xmpp:pubsub-filter"),
    (463, "MUC Affiliations Versioning", "urn:xmpp:muc:affiliations"),
    (465, "Pubsub Public Subscriptions", "urn:xmpp:pubsub:subscription"),
    (466, "Ephemeral Messages", "urn:xmpp:ephemeral"),
    (470, "Pubsub Attachments", "urn:xmpp:pubsub-attachments"),
    (472, "Pubsub Social Feed", "urn:xmpp:pubsub-social-feed"),
    (480, "SASL Upgrade Tasks", "urn:xmpp:scram-upgrade"),
    (483, "HTTP Online Meetings", "urn:xmpp:http:online-meetings"),
    (484, "Fast Authentication Streamlining Tokens", "urn:xmpp:fast"),
    (488, "MUC Token Invite", "urn:xmpp:muc-token-invite"),
    (489, "Reporting Account Affiliations", "urn:xmpp:raa"),
    (490, "Message Displayed Synchronization", "urn:xmpp:mds"),
    (492, "Chat notification settings", "urn:xmpp:notification-settings"),
)
"""Number, title, and the features each defines, without version, in the order of the numbers."""

_RFCS = (
    (3921, "XMPP: Instant Messaging and Presence (2004)", "urn:ietf:params:xml:ns:xmpp-session"),
    (6120, "XMPP: Core", "urn:ietf:params:xml:ns:xmpp-bind"),
    (
        6121,
        "XMPP: Instant Messaging and Presence",
        "jabber:iq:roster urn:xmpp:features:pre-approval",
    ),
)
"""The same of what the core of XMPP defines."""

_STANDARDS = {
    feature: Standard(f"{series}{number:0{digits}}", name)
    for series, digits, table in (("XEP-", 4, _XEPS), ("RFC ", 4, _RFCS))
    for number, name, features in table
    for feature in features.split()
}

_VERSION = re.compile(":(?:[0-9]{1,4}|tmp)$")
"""What protocols count their versions with (XEP-0053, section 4); `tmp` stands before the first."""


def standard_of(feature: str) -> Standard | None:
    """Return what defines `feature`; None if it is in nobody's list but its maker's.

    `urn:xmpp:mam:2#extended` belongs to whatever defines `urn:xmpp:mam`, and the interest
    `...+notify` (XEP-0163, section 4) to what it asks for.
    """
    name = feature.removesuffix("+notify")
    base, _, fragment = name.partition("#")
    bare = _VERSION.sub("", base)
    candidates = [name, _VERSION.sub("", name), base, bare]
    if fragment:
        candidates.insert(2, f"{bare}#{fragment}")
    return next((_STANDARDS[one] for one in candidates if one in _STANDARDS), None)
