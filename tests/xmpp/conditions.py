"""The conditions of RFC 6120."""

_SASL_CONDITIONS = """
    aborted account-disabled credentials-expired encryption-required incorrect-encoding
    invalid-authzid invalid-mechanism malformed-request mechanism-too-weak not-authorized
    temporary-auth-failure
"""
SASL_CONDITIONS = tuple(_SASL_CONDITIONS.split())
_STREAM_CONDITIONS = """
    bad-format bad-namespace-prefix conflict connection-timeout host-gone host-unknown
    improper-addressing internal-server-error invalid-from invalid-namespace invalid-xml
    not-authorized not-well-formed policy-violation remote-connection-failed reset
    resource-constraint restricted-xml see-other-host system-shutdown undefined-condition
    unsupported-encoding unsupported-feature unsupported-stanza-type unsupported-version
"""
STREAM_CONDITIONS = tuple(_STREAM_CONDITIONS.split())
_STANZA_CONDITIONS = """
    bad-request conflict feature-not-implemented forbidden gone internal-server-error
    item-not-found jid-malformed not-acceptable not-allowed not-authorized policy-violation
    recipient-unavailable redirect registration-required remote-server-not-found
    remote-server-timeout resource-constraint service-unavailable subscription-required
    undefined-condition unexpected-request
"""
STANZA_CONDITIONS = tuple(_STANZA_CONDITIONS.split())
