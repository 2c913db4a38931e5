from bridge.xmpp.model.faults import Place

PLACE = Place(
    service="xmpp://chat.example:5222",
    domain="chat.example",
    account="bot@chat.example",
    room="lobby@conference.chat.example",
    nickname="Me",
)
