"""The least that asyncio can echo with: a task for each line that comes, and a write for each."""

import asyncio
import json
import os


async def answer(line: bytes) -> None:
    asked = json.loads(line)
    if "id" in asked:
        said = asked["params"].get("arguments", {}).get("message", "")
        content = [{"type": "text", "text": f"Echo: {said}"}]
        reply = {"jsonrpc": "2.0", "id": asked["id"], "result": {"content": content}}
        os.write(1, json.dumps(reply).encode() + b"\n")


async def main() -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    tasks = set[asyncio.Task[None]]()
    rest = b""

    def read() -> None:
        nonlocal rest
        if not (data := os.read(0, 65536)):
            loop.remove_reader(0)
            ended.set()
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            task = loop.create_task(answer(line))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    loop.add_reader(0, read)
    await ended.wait()


asyncio.run(main())
