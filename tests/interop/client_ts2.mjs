// The TypeScript SDK 2.x: both eras.
import { capabilities, clientInfo, require, run, transportTo, user } from './run_steps.mjs';

const { Client, ...transports } = require('@modelcontextprotocol/client');
Object.assign(transports, require('@modelcontextprotocol/client/stdio'));

const modes = { legacy: 'legacy', modern: { pin: '2026-07-28' }, auto: 'auto' };

await run(async (era, server, onerror) => {
  const client = new Client(clientInfo, { capabilities, versionNegotiation: { mode: modes[era] } });
  client.onerror = onerror;
  client.callArgs = []; // callTool(params, options)
  client.setRequestHandler('elicitation/create', () => user.elicitation());
  client.setRequestHandler('sampling/createMessage', () => user.sampling());
  await client.connect(transportTo(server, transports));
  return { client, protocol: () => client.getNegotiatedProtocolVersion() };
});
