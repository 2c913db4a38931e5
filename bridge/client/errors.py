"""The errors of the client: what the server did wrong, and what the person typed wrong. Pure."""

import json

from bridge.mcp.jsonrpc import Json


class ClientError(Exception):
    """The root of the client's errors; the text of each says in plain words what happened."""


class ServerError(ClientError):
    """The server did not start, ended, or does not speak MCP."""


class RequestError(ClientError):
    """The server answered a request with an error object (JSON-RPC 2.0, section 5.1)."""

    def __init__(self, error: Json) -> None:
        self.error: dict[str, Json] = error if isinstance(error, dict) else {"message": error}
        data = self.error.get("data")
        message, detail = str(self.error.get("message")), ""
        if data and not (isinstance(data, str) and data in message):
            detail = f": {data if isinstance(data, str) else json.dumps(data)}"
        super().__init__(message + detail)


class InvalidInputError(ClientError):
    """The person typed what cannot be the value of an argument; the text says what would be."""


class InputCancelledError(ClientError):
    """The person pressed Ctrl-C while typing."""


class OutputError(ClientError):
    """The answers cannot be written any more."""
