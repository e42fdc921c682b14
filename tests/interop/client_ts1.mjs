// The TypeScript SDK 1.x: legacy era only.
import { capabilities, clientInfo, require, run, transportTo, user } from './run_steps.mjs';

const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const transports = {
  ...require('@modelcontextprotocol/sdk/client/sse.js'),
  ...require('@modelcontextprotocol/sdk/client/stdio.js'),
  ...require('@modelcontextprotocol/sdk/client/streamableHttp.js')
};
const { CreateMessageRequestSchema, ElicitRequestSchema } = require('@modelcontextprotocol/sdk/types.js');

await run(async (_era, server, onerror) => {
  const client = new Client(clientInfo, { capabilities });
  client.onerror = onerror;
  client.callArgs = [undefined]; // callTool(params, resultSchema, options)
  client.setRequestHandler(ElicitRequestSchema, () => user.elicitation());
  client.setRequestHandler(CreateMessageRequestSchema, () => user.sampling());
  const transport = transportTo(server, transports);
  // The client tells the negotiated version to the transport only.
  let version;
  const told = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = it => {
    version = it;
    told?.(it);
  };
  await client.connect(transport);
  return { client, protocol: () => version };
});
