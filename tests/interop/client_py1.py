"""The Python SDK 1.x: legacy era only."""

from datetime import timedelta

import anyio
from mcp import ClientSession, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from run_steps import CLIENT_INFO, Complaints, User, arguments, dump, run_steps, show


class Client:
    def __init__(self, session):
        self.session = session

    async def list_tools(self, cursor):
        return await self.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))

    async def call_tool(self, name, args, timeout, progress_callback):
        return await self.session.call_tool(name, args, timedelta(seconds=timeout), progress_callback)


def connect(server):
    if not isinstance(server, str):
        return stdio_client(server)
    # Where a server of the HTTP+SSE transport of 2024-11-05 is.
    return sse_client(server) if server.endswith("/sse") else streamable_http_client(server)


async def main():
    _era, steps, server = arguments()
    user, complaints = User(), Complaints()

    async def elicitation(_context, _params):
        return types.ElicitResult.model_validate(await user.elicitation())

    async def sampling(_context, _params):
        return types.CreateMessageResult.model_validate(await user.sampling())

    async with connect(server) as (read, write, *_):
        async with ClientSession(
            read,
            write,
            elicitation_callback=elicitation,
            sampling_callback=sampling,
            message_handler=complaints.message,
            client_info=types.Implementation(**CLIENT_INFO),
        ) as session:
            hello = await session.initialize()
            show(
                {
                    "check": "connect",
                    "protocol": hello.protocolVersion,
                    "server": dump(hello.serverInfo),
                    "instructions": hello.instructions,
                }
            )
            await run_steps(Client(session), user, steps, complaints)


anyio.run(main)
