"""The same slow server on the 2.x Python SDK: it speaks both eras, 2026-07-28 and legacy.

    python modern_server.py [PORT]      over Streamable HTTP if there is a port, else over stdio

In the modern era a tool cannot call the client. It asks by an `input_required` result, which the SDK
builds from the `Resolve` parameters below; a legacy client gets a request in the middle of the call.
"""

import sys
from typing import Annotated

import anyio
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve, Sample
from mcp.types import CreateMessageResult, SamplingMessage, TextContent
from pydantic import BaseModel, Field

server = MCPServer("interop-modern", version="1.0.0", instructions="Slow on purpose.", log_level="WARNING")


class Report(BaseModel):
    """What `slow_report` returns; the SDK derives an outputSchema from it."""

    title: str
    pages: int = Field(ge=1, description="Larger than a double can hold exactly")
    chapters: list[str]


class Answer(BaseModel):
    name: str


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers at once."""
    return a + b


@server.tool()
def big(characters: int) -> str:
    """Returns that many characters at once."""
    return "x" * characters


@server.tool()
async def slow_report(seconds: float, ctx: Context) -> Report:
    """Writes a report for some seconds, with a progress note four times a second."""
    steps = max(1, round(seconds * 4))
    for step in range(1, steps + 1):
        await anyio.sleep(seconds / steps)
        await ctx.report_progress(step, steps, f"step {step} of {steps}")
    return Report(title="Größe 📈", pages=9007199254740993, chapters=["one", "two"])


@server.tool()
async def fail(seconds: float) -> str:
    """Fails after some seconds."""
    await anyio.sleep(seconds)
    raise ValueError("this tool always fails")


async def their_name(seconds: float) -> Elicit[Answer]:
    # Runs again in the round that brings the answer, so the call is slow twice.
    await anyio.sleep(seconds)
    return Elicit("What is your name?", Answer)


@server.tool()
async def ask(seconds: float, answer: Annotated[ElicitationResult[Answer], Resolve(their_name)]) -> str:
    """Asks the user for a name after some seconds."""
    return f"{answer.action}: {answer.data.name if answer.action == 'accept' else 'nobody'}"


async def their_model(seconds: float) -> Sample:
    await anyio.sleep(seconds)
    question = SamplingMessage(role="user", content=TextContent(type="text", text="six times seven?"))
    return Sample([question], max_tokens=10)


@server.tool()
async def sample(seconds: float, reply: Annotated[CreateMessageResult, Resolve(their_model)]) -> str:
    """Asks the client's model after some seconds."""
    return f"{reply.model}: {reply.content.text}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
