"""The Python SDK 2.x: both eras."""

import anyio
from mcp import Client as SdkClient
from mcp import types
from run_steps import CLIENT_INFO, Complaints, User, arguments, dump, run_steps, show

MODES = {"legacy": "legacy", "modern": "2026-07-28", "auto": "auto"}


class Client:
    def __init__(self, client):
        self.client = client

    async def list_tools(self, cursor):
        return await self.client.list_tools(cursor=cursor)

    async def call_tool(self, name, args, timeout, progress_callback):
        return await self.client.call_tool(name, args, timeout, progress_callback)


async def main():
    era, steps, server = arguments()
    user, complaints = User(), Complaints()

    async def elicitation(_context, _params):
        return types.ElicitResult.model_validate(await user.elicitation())

    async def sampling(_context, _params):
        return types.CreateMessageResult.model_validate(await user.sampling())

    async with SdkClient(
        server,
        mode=MODES[era],
        elicitation_callback=elicitation,
        sampling_callback=sampling,
        message_handler=complaints.message,
        client_info=types.Implementation(**CLIENT_INFO),
    ) as client:
        show(
            {
                "check": "connect",
                "protocol": client.protocol_version,
                "server": client.server_info and dump(client.server_info),
                "instructions": client.instructions,
            }
        )
        await run_steps(Client(client), user, steps, complaints)


anyio.run(main)
