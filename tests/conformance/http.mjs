// Both eras on one Streamable HTTP endpoint: the modern one by the SDK's handler, the legacy one by a
// transport for each session, whose streams can be resumed.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { makeServer } from './fixture.mjs';
import {
  WebStandardStreamableHTTPServerTransport, createMcpHandler, hostHeaderValidationResponse, isLegacyRequest,
  localhostAllowedHostnames, localhostAllowedOrigins, originValidationResponse, toNodeHandler
} from './sdk.mjs';

// What a session has sent. The id of an event is its place here.
class EventLog {
  #events = [];

  async storeEvent(streamId, message) {
    return String(this.#events.push({ streamId, message }) - 1);
  }

  async replayEventsAfter(lastEventId, { send }) {
    const last = Number(lastEventId);
    const { streamId } = this.#events[last];
    for (const [at, event] of this.#events.entries()) {
      // The event that opens a stream has no message in it.
      if (at > last && event.streamId === streamId && event.message.jsonrpc) await send(String(at), event.message);
    }
    return streamId;
  }
}

const sessions = new Map();
async function legacy(request) {
  const id = request.headers.get('mcp-session-id');
  if (sessions.has(id)) return sessions.get(id).handleRequest(request);
  if (id !== null) {
    const error = { code: -32001, message: 'Session not found' };
    return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 404 });
  }
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: id => sessions.set(id, transport),
    onsessionclosed: id => sessions.delete(id),
    eventStore: new EventLog(),
    retryInterval: 100
  });
  await makeServer().connect(transport);
  return transport.handleRequest(request);
}

const modern = createMcpHandler(() => makeServer(modern.notify), { legacy: 'reject' });

async function answer(request) {
  // Any website can reach a server on this machine, so Host and Origin have to be this machine's.
  const refusal = hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
    originValidationResponse(request, localhostAllowedOrigins());
  if (refusal) return refusal;
  if (new URL(request.url).pathname !== '/mcp') return new Response(null, { status: 404 });
  return await isLegacyRequest(request) ? legacy(request) : modern.fetch(request);
}

/** Serves at `port` of 127.0.0.1, any free one for 0, and returns the endpoint's URL. */
export async function serveHttp(port) {
  const server = createServer(toNodeHandler({ fetch: answer }));
  await new Promise((listening, failed) => server.once('error', failed).listen(port, '127.0.0.1', listening));
  return `http://127.0.0.1:${server.address().port}/mcp`;
}
