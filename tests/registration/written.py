"""Configuration files of clients, as people and programs write them."""

import json

BOM = "\ufeff"
OTHER = {"command": "npx", "args": ["-y", "x"]}
HELD = {"theme": "dark // not a comment", "n": 1.5, "mcpServers": {"other": OTHER}, "z": [{}, []]}

_COMMENTED = """\
// My servers, /* as I like them */
{
  "theme": "dark", // "mcpServers": {
  /* "mcpServers": { "xmpp": 1 }, */
  "mcpServers": {
    // the other one
    "other": {
      "command": "npx",
      "args": ["-y", "x"], /* , } */
    },
    // "gone": {}
  },
  "url": "https://x/*y*/"
}
// the end"""

JSON_FILES = {
    "nothing": "",
    "an empty object": "{}",
    "an empty object and a line end": "{ }\n",
    "no servers": '{\n  "theme": "dark"\n}\n',
    "empty servers": '{\n  "mcpServers": {}\n}\n',
    "servers that are a comment": '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
    "two blanks": json.dumps(HELD, indent=2) + "\n",
    "four blanks": json.dumps(HELD, indent=4),
    "tabs": json.dumps(HELD, indent="\t") + "\n",
    "three blanks": json.dumps(HELD, indent=3) + "\n\n",
    "one line": json.dumps(HELD),
    "no blanks": json.dumps(HELD, separators=(",", ":")),
    "escapes": '{"\\u00e9\\ud800": "\\/", "mcpServers": {"other": {"a\\"b": "\\u0000x"}}}',
    "one-line arrays": '{\n  "mcpServers": {\n    "o": { "args": ["-y", "x"] }\n  }\n}\n',
    "one-line servers": '{\n  "mcpServers": { "o": { "args": ["-y", "x"] } }\n}\n',
    "carriage returns": json.dumps(HELD, indent=2).replace("\n", "\r\n") + "\r\n",
    "a byte order mark": BOM + json.dumps(HELD, indent=2),
    "a byte order mark and nothing": BOM,
    "comments": _COMMENTED,
    "comments and carriage returns": BOM + _COMMENTED.replace("\n", "\r\n"),
    "a trailing comma": '{\n  "mcpServers": {\n    "o": {},\n  },\n}\n',
    "a trailing comma on one line": '{"mcpServers": {"o": {},},}',
    "a key that is there twice": '{"a": 1, "mcpServers": {}, "a": 2}',
    "servers elsewhere too": '{"projects": {"/p": {"mcpServers": {}}}, "mcpServers": {"o": 1}}',
    "brackets at odd places": '{ "a"\n: 1\n\t,"mcpServers" :\n{"o":\n[\n]}}',
}
"""For the key `mcpServers`, by what they are."""

_TABLES = """\
# mine
model = "gpt-5"   # why
raw = '''
# [mcpServers.xmpp]
'''
multi = \"""
[mcpServers.xmpp]
\"""

# about the other
[mcpServers.other]  # other's
command = 'foo'
args = [ 'a',
  "b", # ]
] # ab

[[things]]
x = {y = [1, 2], z = nan, at = 1979-05-27T07:32:00Z}

[projects."/home/me/a b#"]
trust_level = "trusted" """

TOML_FILES = {
    "toml: nothing": "",
    "toml: a comment": "# mine",
    "toml: an empty line": "\n",
    "toml: tables": _TABLES + "\n",
    "toml: no end": _TABLES,
    "toml: empty lines": _TABLES + "\n\n\n",
    "toml: carriage returns": _TABLES.replace("\n", "\r\n") + "\r\n",
    "toml: carriage returns and no end": _TABLES.replace("\n", "\r\n"),
    "toml: a byte order mark": BOM + _TABLES,
    "toml: a byte order mark and nothing": BOM,
    "toml: an empty table": "[mcpServers]\n",
    "toml: dotted keys": "mcpServers.other.command = 'x'\n",
    "toml: tables between": "[mcpServers.a]\nc = 1\n[b]\nd = 1\n[mcpServers.c]\ne = 1\n",
    "toml: a table below": "[mcpServers.other.env]\nA = 'b'\n",
}
"""Codex's files, with the key `mcpServers` as in JSON."""


def gaps(newline: str) -> list[str]:
    """What may stand between two tokens of JSON with comments."""
    return [
        *("", " ", "\t", newline, f"{newline}  ", f"{newline}{newline}\t", "/**/", " /* , } */ "),
        *(f'// "mcpServers": {{{newline}', f"{newline}  // x{newline}  ", f'/* "{newline} */'),
    ]
