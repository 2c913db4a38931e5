"""Tools whose work is done by a model.

A node is an input, a prompt made of it, and an output that is checked::

    @dataclass(frozen=True)
    class Report:
        text: str


    @dataclass(frozen=True)
    class Verdict:
        severity: Literal["low", "high"]
        reason: Annotated[str, Bounds(max_length=500), "in one sentence"]


    TRIAGE = LlmNode(
        instruction="You judge how severe a bug report is.",
        input=Report,
        output=Verdict,
        write=lambda report: Material("Judge the report below.", [report]),
    )


    TOOLS = Toolset("triage", (TRIAGE.as_tool(name="triage", title="Judge a bug report"),))

`instruction` and the first part of `Material` are the author's words. The words of other people go
into its `data`: they reach the model as JSON between markers that a writer cannot forge. Within a
tool of another kind, `await TRIAGE.run(model_for(configuration, context), Report(text))` runs the
node; a tool that runs one node takes `DEADLINE_SECONDS` as its deadline. All these names are
imported from `bridge.toolkit`. A model at an HTTP address needs `pip install
'xmpp-debug-bridge[llm]'`; the client's own model does not.
"""
