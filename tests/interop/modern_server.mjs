// The same slow server on the 2.x TypeScript SDK: it speaks both eras, 2026-07-28 and legacy.
//
//   node modern_server.mjs FOLDER_OF_THE_PACKAGES [PORT]      over Streamable HTTP with a port, else over stdio
//
// A tool asks by an `input_required` result, here without a requestState (modern_server.py has one); for
// a legacy client the SDK turns that into a request in the middle of the call, where it keeps a session: over
// HTTP it answers each legacy request by itself.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

const require = createRequire(`${process.argv[2]}/`);
const { McpServer, createMcpHandler, inputRequired, inputResponse } = require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const { toNodeHandler } = require('@modelcontextprotocol/node');
const { z } = require('zod');

const seconds = z.object({ seconds: z.number() });
const answer = z.object({ name: z.string() });
const report = z.object({ title: z.string(), pages: z.number().int().min(1), chapters: z.array(z.string()) });
const sum = z.object({ result: z.number() });
const text = text => ({ content: [{ type: 'text', text }] });
const structured = value => ({ ...text(JSON.stringify(value)), structuredContent: value });

function makeServer() {
  const server = new McpServer({ name: 'interop-modern-ts', version: '1.0.0' }, { instructions: 'Slow on purpose.' });

  server.registerTool('add', { description: 'Adds two numbers at once.',
    inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: sum },
  async ({ a, b }) => structured({ result: a + b }));

  server.registerTool('big', { description: 'Returns that many characters at once.',
    inputSchema: z.object({ characters: z.number() }) },
  ({ characters }) => text('x'.repeat(characters)));

  server.registerTool('slow_report', { description: 'Writes a report, with a progress note four times a second.',
    inputSchema: seconds, outputSchema: report },
  async ({ seconds }, ctx) => {
    const total = Math.max(1, Math.round(seconds * 4));
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= total; progress++) {
      await sleep(seconds / total * 1000);
      if (progressToken === undefined) continue;
      const params = { progressToken, progress, total, message: `step ${progress} of ${total}` };
      await ctx.mcpReq.notify({ method: 'notifications/progress', params });
    }
    return structured({ title: 'Größe 📈', pages: 40, chapters: ['one', 'two'] });
  });

  server.registerTool('fail', { description: 'Fails after some seconds.', inputSchema: seconds },
    async ({ seconds }) => {
      await sleep(seconds * 1000);
      throw new Error('this tool always fails');
    });

  server.registerTool('ask', { description: 'Asks the user for a name after some seconds.', inputSchema: seconds },
    async ({ seconds }, ctx) => {
      await sleep(seconds * 1000);
      const reply = inputResponse(ctx.mcpReq.inputResponses, 'name');
      if (reply.kind === 'elicit') return text(`${reply.action}: ${reply.content?.name ?? 'nobody'}`);
      return inputRequired({ inputRequests: {
        name: inputRequired.elicit({ message: 'What is your name?', requestedSchema: answer })
      } });
    });

  server.registerTool('sample', { description: "Asks the client's model after some seconds.", inputSchema: seconds },
    async ({ seconds }, ctx) => {
      await sleep(seconds * 1000);
      const reply = inputResponse(ctx.mcpReq.inputResponses, 'reply');
      if (reply.kind === 'sampling') return text(`${reply.result.model}: ${reply.result.content.text}`);
      const messages = [{ role: 'user', content: { type: 'text', text: 'six times seven?' } }];
      return inputRequired({ inputRequests: { reply: inputRequired.createMessage({ messages, maxTokens: 10 }) } });
    });

  return server;
}

const port = process.argv[3];
if (port === undefined) serveStdio(makeServer);
else createServer(toNodeHandler(createMcpHandler(makeServer))).listen(Number(port), '127.0.0.1');
