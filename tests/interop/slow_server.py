"""A slow server on the 1.x Python SDK: it speaks only the legacy era (`initialize`).

    python slow_server.py [streamable-http PORT | sse PORT]
"""

import sys

import anyio
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel, Field

server = FastMCP("interop-slow", instructions="Slow on purpose.", log_level="WARNING")


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


@server.tool()
async def ask(seconds: float, ctx: Context) -> str:
    """Asks the user for a name after some seconds."""
    await anyio.sleep(seconds)
    answer = await ctx.elicit("What is your name?", Answer)
    return f"{answer.action}: {answer.data.name if answer.action == 'accept' else 'nobody'}"


@server.tool()
async def sample(seconds: float, ctx: Context) -> str:
    """Asks the client's model after some seconds."""
    await anyio.sleep(seconds)
    question = SamplingMessage(role="user", content=TextContent(type="text", text="six times seven?"))
    reply = await ctx.session.create_message([question], max_tokens=10)
    return f"{reply.model}: {reply.content.text}"


if __name__ == "__main__":
    transport, port = sys.argv[1:] or ("stdio", 0)
    server.settings.port = int(port)
    server.run(transport)
