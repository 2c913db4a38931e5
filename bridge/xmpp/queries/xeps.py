"""What a feature's name stands for: the standard that defines it. Pure.

Names and numbers are those of the XSF's own list (https://xmpp.org/extensions/).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple


class Standard(NamedTuple):
    """A document that defines features."""

    number: str
    """`XEP-0313`, or `RFC 6121`."""
    name: str


_TABLE = """
XEP-0004 Data Forms: jabber:x:data
XEP-0009 Jabber-RPC: jabber:iq:rpc
XEP-0012 Last Activity: jabber:iq:last
XEP-0013 Flexible Offline Message Retrieval: http://jabber.org/protocol/offline
XEP-0016 Privacy Lists: jabber:iq:privacy
XEP-0020 Feature Negotiation: http://jabber.org/protocol/feature-neg
XEP-0022 Message Events: jabber:x:event
XEP-0030 Service Discovery: http://jabber.org/protocol/disco
XEP-0033 Extended Stanza Addressing: http://jabber.org/protocol/address
XEP-0045 Multi-User Chat: http://jabber.org/protocol/muc muc_hidden muc_membersonly muc_moderated
    muc_nonanonymous muc_open muc_passwordprotected muc_persistent muc_public muc_rooms
    muc_semianonymous muc_temporary muc_unmoderated muc_unsecured
XEP-0047 In-Band Bytestreams: http://jabber.org/protocol/ibb
XEP-0048 Bookmarks: storage:bookmarks
XEP-0049 Private XML Storage: jabber:iq:private
XEP-0050 Ad-Hoc Commands: http://jabber.org/protocol/commands
XEP-0054 vcard-temp: vcard-temp
XEP-0055 Jabber Search: jabber:iq:search
XEP-0059 Result Set Management: http://jabber.org/protocol/rsm
XEP-0060 Publish-Subscribe: http://jabber.org/protocol/pubsub
XEP-0065 SOCKS5 Bytestreams: http://jabber.org/protocol/bytestreams
XEP-0066 Out of Band Data: jabber:x:oob jabber:iq:oob
XEP-0070 Verifying HTTP Requests via XMPP: http://jabber.org/protocol/http-auth
XEP-0071 XHTML-IM: http://jabber.org/protocol/xhtml-im
XEP-0072 SOAP Over XMPP: http://jabber.org/protocol/soap
XEP-0077 In-Band Registration: jabber:iq:register
XEP-0078 Non-SASL Authentication: jabber:iq:auth
XEP-0079 Advanced Message Processing: http://jabber.org/protocol/amp
XEP-0080 User Location: http://jabber.org/protocol/geoloc
XEP-0083 Nested Roster Groups: roster:delimiter
XEP-0084 User Avatar: urn:xmpp:avatar:data urn:xmpp:avatar:metadata
XEP-0085 Chat State Notifications: http://jabber.org/protocol/chatstates
XEP-0090 Legacy Entity Time: jabber:iq:time
XEP-0091 Legacy Delayed Delivery: jabber:x:delay
XEP-0092 Software Version: jabber:iq:version
XEP-0093 Roster Item Exchange: jabber:x:roster
XEP-0095 Stream Initiation: http://jabber.org/protocol/si
XEP-0096 SI File Transfer: http://jabber.org/protocol/si/profile/file-transfer
XEP-0100 Gateway Interaction: jabber:iq:gateway
XEP-0107 User Mood: http://jabber.org/protocol/mood
XEP-0108 User Activity: http://jabber.org/protocol/activity
XEP-0114 Jabber Component Protocol: jabber:component:accept
XEP-0115 Entity Capabilities: http://jabber.org/protocol/caps
XEP-0118 User Tune: http://jabber.org/protocol/tune
XEP-0122 Data Forms Validation: http://jabber.org/protocol/xdata-validate
XEP-0124 Bidirectional-streams Over Synchronous HTTP (BOSH): http://jabber.org/protocol/httpbind
XEP-0131 Stanza Headers and Internet Metadata: http://jabber.org/protocol/shim
XEP-0133 Service Administration: http://jabber.org/protocol/admin
XEP-0136 Message Archiving: urn:xmpp:archive
XEP-0141 Data Forms Layout: http://jabber.org/protocol/xdata-layout
XEP-0144 Roster Item Exchange: http://jabber.org/protocol/rosterx
XEP-0145 Annotations: storage:rosternotes
XEP-0153 vCard-Based Avatars: vcard-temp:x:update
XEP-0157 Contact Addresses for XMPP Services: http://jabber.org/network/serverinfo
XEP-0158 CAPTCHA Forms: urn:xmpp:captcha
XEP-0160 Best Practices for Handling Offline Messages: msgoffline
XEP-0166 Jingle: urn:xmpp:jingle urn:xmpp:jingle:errors
XEP-0167 Jingle RTP Sessions: urn:xmpp:jingle:apps:rtp urn:xmpp:jingle:apps:rtp:audio
    urn:xmpp:jingle:apps:rtp:video
XEP-0172 User Nickname: http://jabber.org/protocol/nick
XEP-0176 Jingle ICE-UDP Transport Method: urn:xmpp:jingle:transports:ice-udp
XEP-0177 Jingle Raw UDP Transport Method: urn:xmpp:jingle:transports:raw-udp
XEP-0184 Message Delivery Receipts: urn:xmpp:receipts
XEP-0186 Invisible Command: urn:xmpp:invisible
XEP-0191 Blocking Command: urn:xmpp:blocking
XEP-0198 Stream Management: urn:xmpp:sm
XEP-0199 XMPP Ping: urn:xmpp:ping
XEP-0202 Entity Time: urn:xmpp:time
XEP-0203 Delayed Delivery: urn:xmpp:delay
XEP-0206 XMPP Over BOSH: urn:xmpp:xbosh
XEP-0215 External Service Discovery: urn:xmpp:extdisco
XEP-0220 Server Dialback: jabber:server:dialback urn:xmpp:features:dialback
XEP-0221 Data Forms Media Element: urn:xmpp:media-element
XEP-0224 Attention: urn:xmpp:attention
XEP-0227 Portable Import/Export Format for XMPP-IM Servers: urn:xmpp:pie
XEP-0231 Bits of Binary: urn:xmpp:bob
XEP-0234 Jingle File Transfer: urn:xmpp:jingle:apps:file-transfer
XEP-0237 Roster Versioning: urn:xmpp:features:rosterver
XEP-0249 Direct MUC Invitations: jabber:x:conference
XEP-0258 Security Labels in XMPP: urn:xmpp:sec-label
XEP-0260 Jingle SOCKS5 Bytestreams Transport Method: urn:xmpp:jingle:transports:s5b
XEP-0261 Jingle In-Band Bytestreams Transport Method: urn:xmpp:jingle:transports:ibb
XEP-0262 Use of ZRTP in Jingle RTP Sessions: urn:xmpp:jingle:apps:rtp:zrtp
XEP-0264 Jingle Content Thumbnails: urn:xmpp:thumbs
XEP-0277 Microblogging over XMPP: urn:xmpp:micro
XEP-0280 Message Carbons: urn:xmpp:carbons urn:xmpp:carbons:rules
XEP-0283 Moved: urn:xmpp:moved
XEP-0288 Bidirectional Server-to-Server Connections: urn:xmpp:bidi urn:xmpp:features:bidi
XEP-0292 vCard4 Over XMPP: urn:xmpp:vcard4 urn:ietf:params:xml:ns:vcard-4.0
XEP-0293 Jingle RTP Feedback Negotiation: urn:xmpp:jingle:apps:rtp:rtcp-fb
XEP-0294 Jingle RTP Header Extensions Negotiation: urn:xmpp:jingle:apps:rtp:rtp-hdrext
XEP-0297 Stanza Forwarding: urn:xmpp:forward
XEP-0300 Use of Cryptographic Hash Functions in XMPP: urn:xmpp:hashes
    urn:xmpp:hash-function-text-names
XEP-0301 In-Band Real Time Text: urn:xmpp:rtt
XEP-0307 Unique Room Names for Multi-User Chat: http://jabber.org/protocol/muc#unique
XEP-0308 Last Message Correction: urn:xmpp:message-correct
XEP-0313 Message Archive Management: urn:xmpp:mam
XEP-0317 Hats: urn:xmpp:hats
XEP-0319 Last User Interaction in Presence: urn:xmpp:idle
XEP-0320 Use of DTLS-SRTP in Jingle Sessions: urn:xmpp:jingle:apps:dtls
XEP-0323 Internet of Things - Sensor Data: urn:xmpp:iot:sensordata
XEP-0333 Displayed Markers: urn:xmpp:chat-markers
XEP-0334 Message Processing Hints: urn:xmpp:hints
XEP-0338 Jingle Grouping Framework: urn:xmpp:jingle:apps:grouping
XEP-0339 Source-Specific Media Attributes in Jingle: urn:xmpp:jingle:apps:rtp:ssma
XEP-0343 Signaling WebRTC datachannels in Jingle: urn:xmpp:jingle:transports:dtls-sctp
XEP-0352 Client State Indication: urn:xmpp:csi
XEP-0353 Jingle Message Initiation: urn:xmpp:jingle-message
XEP-0355 Namespace Delegation: urn:xmpp:delegation
XEP-0356 Privileged Entity: urn:xmpp:privilege
XEP-0357 Push Notifications: urn:xmpp:push
XEP-0359 Unique and Stable Stanza IDs: urn:xmpp:sid
XEP-0363 HTTP File Upload: urn:xmpp:http:upload urn:xmpp:http:upload:purpose
XEP-0369 Mediated Information eXchange (MIX): urn:xmpp:mix:core urn:xmpp:mix
XEP-0372 References: urn:xmpp:reference
XEP-0374 OpenPGP for XMPP Instant Messaging: urn:xmpp:openpgp
XEP-0377 Blocking Command Reports: urn:xmpp:reporting
XEP-0379 Pre-Authenticated Roster Subscription: urn:xmpp:pars
XEP-0380 Explicit Message Encryption: urn:xmpp:eme
XEP-0382 Spoiler messages: urn:xmpp:spoiler
XEP-0384 OMEMO Encryption: eu.siacs.conversations.axolotl eu.siacs.conversations.axolotl.devicelist
    urn:xmpp:omemo urn:xmpp:omemo:2:devices
XEP-0385 Stateless Inline Media Sharing (SIMS): urn:xmpp:sims
XEP-0386 Bind 2: urn:xmpp:bind
XEP-0388 Extensible SASL Profile: urn:xmpp:sasl
XEP-0389 Extensible In-Band Registration: urn:xmpp:register
XEP-0393 Message Styling: urn:xmpp:styling
XEP-0394 Message Markup: urn:xmpp:markup
XEP-0395 Atomically Compare-And-Publish PubSub Items: urn:xmpp:pubsub:cap
XEP-0398 User Avatar to vCard-Based Avatars Conversion: urn:xmpp:pep-vcard-conversion
XEP-0400 Multi-Factor Authentication with TOTP: urn:xmpp:mfa
XEP-0401 Ad-hoc Account Invitation Generation: urn:xmpp:invite
XEP-0402 PEP Native Bookmarks: urn:xmpp:bookmarks
XEP-0403 Mediated Information eXchange (MIX): Presence Support: urn:xmpp:mix:presence
XEP-0404 Mediated Information eXchange (MIX): JID Hidden Channels: urn:xmpp:mix:anon
XEP-0405 Mediated Information eXchange (MIX): Participant Server Requirements: urn:xmpp:mix:pam
XEP-0406 Mediated Information eXchange (MIX): MIX Administration: urn:xmpp:mix:admin
XEP-0407 Mediated Information eXchange (MIX): Miscellaneous Capabilities: urn:xmpp:mix:misc
XEP-0408 Mediated Information eXchange (MIX): Co-existence with MUC: urn:xmpp:mix:muc
XEP-0410 MUC Self-Ping (Schrödinger's Chat): http://jabber.org/protocol/muc#self-ping-optimization
XEP-0411 Bookmarks Conversion: urn:xmpp:bookmarks-conversion
XEP-0413 Order-By: urn:xmpp:order-by
XEP-0421 Occupant identifiers for semi-anonymous MUCs: urn:xmpp:occupant-id
XEP-0422 Message Fastening: urn:xmpp:fasten
XEP-0424 Message Retraction: urn:xmpp:message-retract
XEP-0425 Moderated Message Retraction: urn:xmpp:message-moderate
XEP-0428 Fallback Indication: urn:xmpp:fallback
XEP-0430 Inbox: urn:xmpp:inbox
XEP-0431 Full Text Search in MAM: urn:xmpp:fulltext
XEP-0432 Simple JSON Messaging: urn:xmpp:json
XEP-0433 Extended Channel Search: urn:xmpp:channel-search
XEP-0434 Trust Messages (TM): urn:xmpp:tm
XEP-0436 MUC presence versioning: urn:xmpp:muc-presence-versioning
XEP-0437 Room Activity Indicators: urn:xmpp:rai
XEP-0440 SASL Channel-Binding Type Capability: urn:xmpp:sasl-cb
XEP-0441 Message Archive Management Preferences: urn:xmpp:mam#configure
XEP-0444 Message Reactions: urn:xmpp:reactions
XEP-0445 Pre-Authenticated In-Band Registration: urn:xmpp:ibr-token
XEP-0446 File metadata element: urn:xmpp:file:metadata
XEP-0447 Stateless file sharing: urn:xmpp:sfs
XEP-0448 Encryption for stateless file sharing: urn:xmpp:esfs
XEP-0449 Stickers: urn:xmpp:stickers
XEP-0452 MUC Mention Notifications: urn:xmpp:mmn
XEP-0455 Service Outage Status: urn:xmpp:sos
XEP-0461 Message Replies: urn:xmpp:reply
XEP-0462 PubSub Type Filtering: urn:xmpp:pubsub-filter
XEP-0463 MUC Affiliations Versioning: urn:xmpp:muc:affiliations
XEP-0465 Pubsub Public Subscriptions: urn:xmpp:pubsub:subscription
XEP-0466 Ephemeral Messages: urn:xmpp:ephemeral
XEP-0470 Pubsub Attachments: urn:xmpp:pubsub-attachments
XEP-0472 Pubsub Social Feed: urn:xmpp:pubsub-social-feed
XEP-0480 SASL Upgrade Tasks: urn:xmpp:scram-upgrade
XEP-0483 HTTP Online Meetings: urn:xmpp:http:online-meetings
XEP-0484 Fast Authentication Streamlining Tokens: urn:xmpp:fast
XEP-0488 MUC Token Invite: urn:xmpp:muc-token-invite
XEP-0489 Reporting Account Affiliations: urn:xmpp:raa
XEP-0490 Message Displayed Synchronization: urn:xmpp:mds
XEP-0492 Chat notification settings: urn:xmpp:notification-settings
RFC 3921 XMPP: Instant Messaging and Presence (2004): urn:ietf:params:xml:ns:xmpp-session
RFC 6120 XMPP: Core: urn:ietf:params:xml:ns:xmpp-bind
RFC 6121 XMPP: Instant Messaging and Presence: jabber:iq:roster urn:xmpp:features:pre-approval
"""
"""One standard a line, in the order of the numbers: the number, the title, and after the last `: `
the features that it defines, without version. An indented line goes on with the features."""


def _standards() -> Iterator[tuple[str, Standard]]:
    """Yield each feature in the table with its standard."""
    for row in _TABLE.replace("\n    ", " ").strip().splitlines():
        title, _, features = row.rpartition(": ")
        for feature in features.split():
            yield feature, Standard(number=title[:8], name=title[9:])


_STANDARDS = dict(_standards())

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
    candidates = (name, _VERSION.sub("", name), f"{bare}#{fragment}", base, bare)
    return next((_STANDARDS[one] for one in candidates if one in _STANDARDS), None)
