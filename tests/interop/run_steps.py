"""The steps of the matrix, for both Python clients.

    python client_py1.py ERA STEPS.json (COMMAND ARGS… | URL)

Prints one line of JSON for each check: what a program behind the SDK sees. run.mjs judges.
"""

import json
import logging
import sys
from pathlib import Path

import anyio
from mcp import StdioServerParameters

CLIENT_INFO = {"name": "unhurry-interop", "version": "1.0.0"}


class User:
    """The user and the model at the client's side. `delay` is the time they take, in seconds."""

    delay = 0.0

    async def elicitation(self):
        await anyio.sleep(self.delay)
        return {"action": "accept", "content": {"name": "Ada"}}

    async def sampling(self):
        await anyio.sleep(self.delay)
        content = {"type": "text", "text": "forty-two"}
        return {"role": "assistant", "content": content, "model": "interop-model", "stopReason": "endTurn"}


class Complaints(logging.Handler):
    """What the SDK warns of: these SDKs log where others raise, for example at a late message."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []
        logging.getLogger().addHandler(self)

    def emit(self, record):
        self.lines.append(record.getMessage())

    async def message(self, message):
        if isinstance(message, Exception):
            self.lines.append(str(message))


def arguments():
    """The era, the steps, and the server: parameters for stdio, or a URL."""
    era, steps_file, command, *args = sys.argv[1:]
    server = command if command.startswith("http:") else StdioServerParameters(command=command, args=args)
    return era, json.loads(Path(steps_file).read_text()), server


def show(line):
    print(json.dumps(line), flush=True)


def dump(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def run_steps(client, user, steps, complaints):
    """`client` has `list_tools(cursor)` and `call_tool(name, arguments, timeout, progress_callback)`."""
    tools, cursor = [], None
    while True:
        page = dump(await client.list_tools(cursor))
        tools += page["tools"]
        if not (cursor := page.get("nextCursor")):
            break
    show({"check": "list", "tools": tools})

    for step in steps:
        line = {"check": step["check"], "polls": [], "progress": {"before": 0, "after": 0}}
        complaints.lines.clear()
        user.delay = step.get("answer_after", 0)
        timeout = step.get("timeout", 60)
        answered = False

        async def progress(*_):
            line["progress"]["after" if answered else "before"] += 1

        try:
            callback = progress if step.get("progress") else None
            result = dump(await client.call_tool(step["tool"], step["arguments"], timeout, callback))
            answered = True
            # What a program does with a handle: it calls what next_action says until the job is done.
            while job(result).get("done") is False and len(line["polls"]) < 30:
                following = result["structuredContent"]["next_action"]
                line["polls"].append(
                    {"tool": following["tool"], "args": following["args"], "status": job(result)["status"]}
                )
                result = dump(await client.call_tool(following["tool"], following["args"], timeout, None))
            line["result"] = result
        except Exception as error:  # noqa: BLE001, whatever the SDK throws at its user is a finding
            code = getattr(getattr(error, "error", None), "code", type(error).__name__)
            line["error"] = {"code": code, "message": str(error)}
        if complaints.lines:
            line["complaints"] = [*complaints.lines]
        show(line)


def job(result):
    return result.get("_meta", {}).get("unhurry/job", {})
