'''Tools whose work is done by a model.

A node is an input, a prompt made of it, and an output that is checked::

    @dataclass(frozen=True)
    class Report:
        text: str


    @dataclass(frozen=True)
    class Verdict:
        severity: Literal["low", "high"]
        reason: Annotated[str, Bounds(max_length=500), "in one sentence"]


    TRIAGE = LlmNode[Report, Verdict](
        instruction="You judge how severe a bug report is.",
        output=Verdict,
        write=lambda report: Material("Judge the report below.", [report]),
    )


    @tool(title="Judge a bug report", read_only=True, deadline=DEADLINE_SECONDS)
    async def triage(configuration: Configuration, context: Context, /, text: str) -> Verdict:
        """Judge how severe a bug report is."""
        return await TRIAGE.run(model_for(configuration, context), Report(text))

`instruction` and the first part of `Material` are the author's words; whatever others wrote goes
into its `data`, which reaches the model as JSON between markers that nobody can forge.
`bridge.llm.node`, `bridge.llm.prompt` and `bridge.llm.model` have the names. What it all needs
beyond the client's own model is the extra: `pip install 'xmpp-debug-bridge[llm]'`.
'''
