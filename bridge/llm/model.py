"""Which model does the work: the client's own where it offers one, else the user's endpoint."""

from bridge.llm.endpoint import Endpoint
from bridge.llm.node import Model
from bridge.llm.sampling import METHOD, Sampling
from bridge.mcp.context import Context
from bridge.mcp.toolset import ToolError
from bridge.settings.table import Configuration


def model_for(configuration: Configuration, context: Context) -> Model:
    """Return the model for one call; raises `ToolError` where there is none."""
    if context.can_ask(METHOD):
        return Sampling(context)
    flaws = [str(one) for one in configuration.problems if one.variable.startswith("LLM_")]
    if flaws:
        raise ToolError(
            f"The settings for a model do not do: {'; '.join(flaws)}",
            condition="unconfigured",
            hint="Mend them and start the bridge again.",
        )
    base_url, model = configuration.llm_base_url, configuration.llm_model
    if base_url is None or model is None:
        wanted = {"LLM_BASE_URL": base_url, "LLM_MODEL": model}
        missing = " and ".join(name for name, value in wanted.items() if value is None)
        raise ToolError(
            "There is no model to do this: the client offers none for this call (sampling), and "
            f"{missing} {'is' if missing in wanted else 'are'} not set.",
            condition="unconfigured",
            hint="Set LLM_BASE_URL and LLM_MODEL (and LLM_API_KEY where one is needed), or use a "
            "client with sampling, over a revision of MCP before 2026-07-28.",
        )
    return Endpoint(base_url, model, configuration.llm_api_key)
