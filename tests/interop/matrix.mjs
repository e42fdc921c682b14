// Who is run against whom, and what each client does with each server.
import { join } from 'node:path';

const here = import.meta.dirname;
const cache = process.env.INTEROP_CACHE;
const python = major => join(cache, `venv-mcp${major}/bin/python`);

export const npm = join(cache, 'npm');

export const clients = {
  ts1: { command: ['node', join(here, 'client_ts1.mjs')], eras: ['legacy'] },
  ts2: { command: ['node', join(here, 'client_ts2.mjs')], eras: ['legacy', 'modern', 'auto'] },
  // Says nothing when it times out, so the proxy cannot learn from it.
  py1: { command: [python(1), join(here, 'client_py1.py')], eras: ['legacy'], silent: true },
  py2: { command: [python(2), join(here, 'client_py2.py')], eras: ['legacy', 'modern', 'auto'] },
  rmcp: { command: [process.env.CLIENT_RMCP], eras: ['legacy', 'modern', 'auto'] }
};

// A step is one call of a tool. `ends` says how a call through the proxy has to end: `fast` in its own
// answer, `handle` in a handle and polls. `core` steps are enough where only the opening is in question.
const ownSteps = [
  { check: 'fast call', tool: 'add', arguments: { a: 2, b: 3 }, ends: 'fast', core: true },
  { check: 'slow call with outputSchema', tool: 'slow_report', arguments: { seconds: 2.5 }, progress: true,
    ends: 'handle', core: true },
  // Without the proxy the client gives up; through it the result is that of the slow call above. Not the
  // last step: the Python SDK 1.x does not cancel, and fails on an answer that comes while it closes.
  { check: 'longer than the time-out', tool: 'slow_report', arguments: { seconds: 3 }, timeout: 2,
    ends: 'handle', like: 'slow call with outputSchema' },
  { check: 'failure', tool: 'fail', arguments: { seconds: 0 }, ends: 'fast' },
  { check: 'slow failure', tool: 'fail', arguments: { seconds: 1.5 }, ends: 'handle' },
  { check: 'elicitation', tool: 'ask', arguments: { seconds: 0 }, ends: 'fast' },
  // In the modern era the server is not waiting meanwhile: the question was the answer of a first call.
  { check: 'elicitation, slow user', tool: 'ask', arguments: { seconds: 0 }, answer_after: 1.5,
    ends: { legacy: 'handle', modern: 'fast' } },
  { check: 'elicitation from the background', tool: 'ask', arguments: { seconds: 1.5 }, ends: 'handle' },
  { check: 'sampling', tool: 'sample', arguments: { seconds: 0 }, ends: 'fast' },
  { check: 'sampling from the background', tool: 'sample', arguments: { seconds: 1.5 }, ends: 'handle' },
  { check: 'unknown tool', tool: 'nothing', arguments: {}, ends: 'fast' },
  { check: 'bad arguments', tool: 'add', arguments: { a: 'two' }, ends: 'fast' }
];

const everythingSteps = [
  { check: 'fast call', tool: 'echo', arguments: { message: 'Größe 📈' }, ends: 'fast', core: true },
  { check: 'structured content', tool: 'get-structured-content', arguments: { location: 'Chicago' }, ends: 'fast' },
  { check: 'image', tool: 'get-tiny-image', arguments: {}, ends: 'fast' },
  { check: 'resource links', tool: 'get-resource-links', arguments: { count: 3 }, ends: 'fast' },
  { check: 'annotations', tool: 'get-annotated-message',
    arguments: { messageType: 'success', includeImage: true }, ends: 'fast' },
  { check: 'slow call with progress', tool: 'trigger-long-running-operation',
    arguments: { duration: 2.5, steps: 10 }, progress: true, ends: 'handle', core: true },
  { check: 'longer than the time-out', tool: 'trigger-long-running-operation',
    arguments: { duration: 2.5, steps: 10 }, timeout: 2, ends: 'handle', like: 'slow call with progress' },
  { check: 'elicitation', tool: 'trigger-elicitation-request', arguments: {}, ends: 'fast' },
  { check: 'elicitation, slow user', tool: 'trigger-elicitation-request', arguments: {}, answer_after: 1.5,
    ends: 'handle' },
  { check: 'sampling', tool: 'trigger-sampling-request', arguments: { prompt: 'six times seven?' }, ends: 'fast' },
  { check: 'sampling, slow model', tool: 'trigger-sampling-request', arguments: { prompt: 'and now?' },
    answer_after: 1.5, ends: 'handle' },
  { check: 'unknown tool', tool: 'nothing', arguments: {}, ends: 'fast' }
];

// contract §6: a client that times out before the handle, and says so, gets it sooner from its next call on.
const learningSteps = [
  { check: 'call within the budget', tool: 'slow_report', arguments: { seconds: 2 }, ends: 'fast' },
  { check: 'time-out before the handle', tool: 'slow_report', arguments: { seconds: 2.1 }, timeout: 1.5 },
  { check: 'handle before the time-out', tool: 'slow_report', arguments: { seconds: 2.2 }, timeout: 1.5,
    ends: 'handle', like: 'call within the budget' }
];

// What a short budget has no room for.
const patientSteps = [
  // The Python servers send it twice, so it is 5 MB.
  { check: 'big result', tool: 'big', arguments: { characters: 2_500_000 }, ends: 'fast' },
  // contract §9: after 10 s without a word from the server the client's stream is opened, with nothing in it yet.
  { check: 'long silence', tool: 'fail', arguments: { seconds: 11 }, ends: 'fast' }
];

// mcp-remote, a stdio program for clients that know no HTTP. The second turns legacy into modern.
const mcpRemote = url => ['node', join(npm, 'node_modules/mcp-remote/dist/proxy.js'), url, '--silent'];
export const bridges = {
  'mcp-remote': mcpRemote,
  'mcp-remote-auto': url => [...mcpRemote(url), '--protocol', 'auto']
};

const pySlow = [python(1), join(here, 'slow_server.py')];
const pyModern = [python(2), join(here, 'modern_server.py')];
const tsModern = ['node', join(here, 'modern_server.mjs'), npm];
const everything = join(npm, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');

// `command` is the server over stdio, `http` and `sse` over these. `budget` is the proxy's --answer-within,
// 1 s by default.
const slow = { modern: false, command: pySlow,
  http: port => [...pySlow, 'streamable-http', port], sse: port => [...pySlow, 'sse', port] };
const modernPy = { modern: true, command: pyModern, http: port => [...pyModern, port] };

export const servers = {
  everything: { modern: false, steps: everythingSteps, command: ['node', everything, 'stdio'],
    http: port => ['env', `PORT=${port}`, 'node', '--import', join(here, 'loopback.mjs'), everything,
      'streamableHttp'] },
  slow: { ...slow, steps: ownSteps },
  'modern-py': { ...modernPy, steps: ownSteps },
  'modern-ts': { modern: true, steps: ownSteps, command: tsModern, http: port => [...tsModern, port] },
  'slow-5s': { ...slow, steps: learningSteps, budget: '5s' },
  'modern-5s': { ...modernPy, steps: learningSteps, budget: '5s' },
  'modern-20s': { ...modernPy, steps: patientSteps, budget: '20s' }
};

// Every client with every server over stdio.
const overStdio = Object.keys(clients).flatMap(client => clients[client].eras.flatMap(era =>
  Object.entries(servers)
    .filter(([, server]) => server.steps !== patientSteps)
    .filter(([, server]) => server.steps !== learningSteps ? era !== 'modern' || server.modern
      : !clients[client].silent && era === (server.modern ? 'modern' : 'legacy'))
    .map(([server]) => [client, era, 'stdio', 'child', server])));

// A sample over HTTP, with every client and every server in each of its eras: how the client reaches the proxy
// (`http` is Streamable HTTP to `unhurry serve`), and how the proxy reaches the server.
const overHttp = [
  ['ts1', 'legacy', 'http', 'child', 'slow'],
  ['ts2', 'legacy', 'http', 'child', 'modern-py'],
  ['ts2', 'modern', 'http', 'child', 'modern-py'],
  ['py1', 'legacy', 'http', 'child', 'modern-py'],
  ['py2', 'legacy', 'http', 'child', 'slow'],
  ['py2', 'modern', 'http', 'child', 'modern-ts'],
  ['ts1', 'legacy', 'http', 'child', 'slow-5s'],

  ['ts1', 'legacy', 'stdio', 'http', 'everything'],
  ['ts2', 'modern', 'stdio', 'http', 'modern-ts'],
  ['py1', 'legacy', 'stdio', 'http', 'slow'],
  ['py2', 'modern', 'stdio', 'http', 'modern-py'],
  ['py2', 'legacy', 'stdio', 'http', 'modern-ts'],
  ['ts1', 'legacy', 'stdio', 'sse', 'slow'],

  ['ts2', 'legacy', 'http', 'http', 'slow'],
  ['ts2', 'modern', 'http', 'http', 'modern-py'],
  ['py2', 'legacy', 'http', 'http', 'everything'],
  ['py2', 'modern', 'http', 'http', 'modern-ts'],
  ['ts2', 'auto', 'http', 'http', 'modern-ts'],
  ['py2', 'auto', 'http', 'http', 'slow'],
  ['py1', 'legacy', 'http', 'sse', 'slow'],

  ['ts1', 'legacy', 'http', 'child', 'modern-20s'],
  ['ts2', 'modern', 'http', 'child', 'modern-20s'],
  ['py1', 'legacy', 'http', 'http', 'modern-20s'],
  ['py2', 'modern', 'http', 'http', 'modern-20s'],

  ['ts1', 'legacy', 'mcp-remote', 'child', 'slow'],
  ['py1', 'legacy', 'mcp-remote', 'http', 'everything'],
  ['ts2', 'legacy', 'mcp-remote-auto', 'http', 'modern-py']
];

// The steps that a pair cannot do without the proxy either, or for which it has no use.
function canDo(step, { client, era, up, server }) {
  if (era === 'auto' && !step.core) return false;
  // The TypeScript SDK 2.x keeps no legacy sessions over HTTP, so it cannot ask in the middle of a call.
  const stateless = server === 'modern-ts' && up === 'http' && era === 'legacy';
  if (stateless && ['ask', 'sample'].includes(step.tool)) return false;
  // The Python SDK 2.x takes no event of more than 1 MiB over HTTP.
  return !(step.tool === 'big' && client === 'py2');
}

export const pairs = [...overStdio, ...overHttp].map(([client, era, down, up, server]) => {
  const pair = { client, era, down, up, way: `${down}-${up}`, server };
  return { ...pair, steps: servers[server].steps.filter(step => canDo(step, pair)) };
});
