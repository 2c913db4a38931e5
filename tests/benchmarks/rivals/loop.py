"""The least that can echo: read a line, `json.loads`, `json.dumps`, write."""

import json
import sys

for line in sys.stdin.buffer:
    asked = json.loads(line)
    if "id" in asked:
        said = asked["params"].get("arguments", {}).get("message", "")
        content = [{"type": "text", "text": f"Echo: {said}"}]
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"content": content}}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
