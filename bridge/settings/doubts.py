"""Recognises values that are probably not what was meant. Pure.

A doubt repeats nothing of the value: it may be a password.
"""

import re
import unicodedata

_PLACEHOLDER = re.compile(
    r"\$?\{\{[^{}]+\}\}|\$\{[^{}]+\}|\$\([^()]+\)|%[A-Za-z_]\w*%|\$env:\w+|\$[A-Z_][A-Z0-9_]{2,}"
)
"""A whole value that some program should have replaced: a shell, an agent, a template."""

_PART = re.compile(r"\{\{[^{}]+\}\}|\$\{[^{}]+\}")
"""A placeholder within a value that is no secret. A password may have such characters in it."""


def doubts_about(text: str, *, secret: bool, cut_off: str | None) -> list[str]:
    """Return what is odd about a value; each item continues a sentence that begins with its name.

    `cut_off` is the text behind the value that was read as a comment, if there was any. Behind a
    value that is no secret, `# ` is taken for the beginning of a real comment.
    """
    text, doubts = text.strip(), []
    if _PLACEHOLDER.fullmatch(text) or (not secret and _PART.search(text)):
        doubts.append(
            "looks like a placeholder that no program has replaced by a value, and the bridge "
            "replaces none: write the value itself"
        )
    if text[:1] != '"' and "QUOTATION MARK" in unicodedata.name(text[:1] or " ", ""):
        doubts.append(
            "begins with a typographic quotation mark, which belongs to the value: write ' or \" "
            "in its place, at the end too"
        )
    if cut_off and (secret or not cut_off.startswith("# ")):
        doubts.append(
            "was cut at ' #', where a comment begins: if the rest belongs to the value, put single "
            "quotes around the whole"
        )
    return doubts
