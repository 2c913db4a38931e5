"""Forms by which a server asks the person at the client (MCP, "Elicitation")."""

from collections.abc import Mapping

from bridge.client.arguments import Parameter, parameters
from bridge.client.errors import InputCancelledError, InvalidInputError
from bridge.client.frontend import Frontend
from bridge.mcp.jsonrpc import Json
from bridge.text import one_line

ANSWER = Parameter("answer", ("string",), required=True, choices=("accept", "decline", "cancel"))
"""The first question. Only a person who accepts is asked for the fields."""

MAX_LINES = 50
"""After so many lines of the server's message, the rest of it is one more line."""


async def fill_in(params: Mapping[str, Json], frontend: Frontend) -> dict[str, Json]:
    """Show a form, and return the person's answers as the result of `elicitation/create`.

    A field that the person leaves out has its default. Ctrl-C and the end of input cancel the form;
    in a script a wrong value does, too.
    """
    frontend.tell("[Client] the server asks you:")
    for line in str(params.get("message")).split("\n", MAX_LINES):
        frontend.tell(f"  {one_line(line)}")
    content: dict[str, Json] = {}
    try:
        action = (await frontend.ask(ANSWER))[ANSWER.name]
        if action != "accept":
            return {"action": action}
        for field in parameters(params.get("requestedSchema")):
            if field.default is not None:
                content[field.name] = field.default
            content |= await frontend.ask(field)
    except (InputCancelledError, EOFError):
        return {"action": "cancel"}
    except InvalidInputError as error:
        frontend.tell(f"  {error}; cancelled")
        return {"action": "cancel"}
    return {"action": action, "content": content}
