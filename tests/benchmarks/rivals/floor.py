"""The least that can answer: imports what any asyncio server needs, and answers one line."""

import asyncio
import json
import sys

assert asyncio
question = json.loads(sys.stdin.buffer.readline())
answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"tools": []}}
sys.stdout.write(json.dumps(answer) + "\n")
sys.stdout.flush()
