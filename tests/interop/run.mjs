// Runs every pair of the matrix without and through the proxy, and compares what the client saw.
//
//   node run.mjs [--direct] [--lines] [WORDS]      (run.sh sets the environment)
//
// --direct runs without the proxy only, --lines prints what the clients printed. Each word narrows the choice of
// pairs: a client (`ts1` or `ts2/modern`), a server, or a way (`http`, `http-sse`).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { bridges, clients, npm, pairs, servers } from './matrix.mjs';

const flags = process.argv.slice(2).filter(word => word.startsWith('--'));
const words = process.argv.slice(2).filter(word => !word.startsWith('--'));
const proxy = flags.includes('--direct') ? undefined : process.env.UNHURRY_BIN;
const jobs = Number(process.env.INTEROP_JOBS ?? 2 * availableParallelism());
const pairTimeout = 120_000; // ms
const startTimeout = 60_000;
const patience = 5_000;
const nothing = 'nothing was printed';

const name = pair => `${pair.client}/${pair.era}`;
const shown = value => JSON.stringify(value)?.slice(0, 1000);
const tools = line => new Map((line?.tools ?? []).map(tool => [tool.name, tool]));
const job = result => result?._meta?.['unhurry/job'];

// ---- running a client -------------------------------------------------------------------------

async function runClient(pair, proxied) {
  // A home of its own, so that no run sees another's jobs; and a mark to find its processes by.
  const home = mkdtempSync(join(tmpdir(), 'unhurry-interop-'));
  const env = { ...process.env, HOME: home, INTEROP_NPM: npm };
  const steps = join(home, 'steps.json');
  writeFileSync(steps, JSON.stringify(pair.steps));
  const beside = [];
  const failures = [];
  let client;
  try {
    const target = await (proxied ? theProxy : theServer)(pair, env, beside);
    client = start([...clients[pair.client].command, pair.era, steps, ...target], env);
    const ending = await ended(client, pairTimeout);
    if (ending !== 0) failures.push(`ended with ${ending}; stderr: ${client.stderr.slice(-600)}`);
  } catch (error) {
    failures.push(error.message);
  }
  for (const running of beside.reverse()) {
    running.child.kill('SIGTERM');
    const ending = await ended(running, patience);
    if (running.isProxy && ending !== 0) failures.push(`the proxy ended with ${ending}`);
  }
  // First this, as a process left behind may hold the pipes open.
  const left = await processesLeft(home);
  await client?.closed;
  rmSync(home, { recursive: true, force: true });
  const stdout = client?.stdout ?? '';
  const lines = stdout.split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line));
  return { lines: new Map(lines.map(line => [line.check, line])), left, stdout, failures,
    said: beside.find(running => running.isProxy)?.stderr };
}

// What the client has to call, as the words of a command, or a URL: the server, without the proxy. Over stdio
// where nothing else is in question.
async function theServer(pair, env, beside) {
  if (pair.way === 'stdio-child') return servers[pair.server].command;
  return bridged(pair, await serverUrl(pair.server, pair.up === 'sse' ? 'sse' : 'http', env, beside));
}

async function theProxy(pair, env, beside) {
  const { budget = '1s', command } = servers[pair.server];
  const upstream = pair.up === 'child' ? ['--', ...command] : [await serverUrl(pair.server, pair.up, env, beside)];
  const options = ['--answer-within', budget, ...upstream];
  if (pair.down === 'stdio') return [proxy, ...options];
  const port = await listening(port => [proxy, 'serve', '--listen', `127.0.0.1:${port}`, ...options], env, beside);
  beside.at(-1).isProxy = true;
  return bridged(pair, `http://127.0.0.1:${port}/mcp`);
}

const bridged = (pair, url) => bridges[pair.down]?.(url) ?? [url];

async function serverUrl(server, transport, env, beside) {
  const port = await listening(servers[server][transport], env, beside);
  return `http://127.0.0.1:${port}/${transport === 'sse' ? 'sse' : 'mcp'}`;
}

// ---- processes --------------------------------------------------------------------------------

function start([command, ...args], env) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  const running = { child, stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', chunk => (running[stream] += chunk));
  }
  running.closed = new Promise(done => child.on('close', done));
  running.ending = new Promise(done => {
    child.on('error', error => done(error.message));
    child.on('exit', (code, signal) => done(signal ?? code));
  });
  return running;
}

// Its exit code or signal.
async function ended(running, timeout) {
  const timer = setTimeout(() => running.child.kill('SIGKILL'), timeout);
  const ending = await running.ending;
  clearTimeout(timer);
  return ending;
}

// Starts a server, and returns its port once it listens.
async function listening(command, env, beside) {
  const port = await freePort();
  const running = start(command(String(port)), env);
  beside.push(running);
  let over = false;
  running.ending.then(() => (over = true));
  for (const since = Date.now(); !over && Date.now() - since < startTimeout; await sleep(50)) {
    if (await connects(port)) return port;
  }
  throw new Error(`${command(port).join(' ')} does not listen; stderr: ${running.stderr.slice(-600)}`);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  await new Promise(closed => server.close(closed));
  return port;
}

async function connects(port) {
  const socket = connect(port, '127.0.0.1');
  const connected = await once(socket, 'connect').then(() => true, () => false);
  socket.destroy();
  return connected;
}

// What still runs four seconds after the client has ended: a killed SDK client gives its server as long.
async function processesLeft(home) {
  const find = () => readdirSync('/proc').filter(pid => /^\d+$/.test(pid)).filter(pid => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`HOME=${home}`);
    } catch {
      return false; // it has just ended
    }
  });
  if (process.platform !== 'linux') return [];
  for (let wait = 0; wait < 40 && find().length > 0; wait++) await sleep(100);
  return find().map(pid => {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    process.kill(Number(pid), 'SIGKILL');
    return command;
  });
}

// ---- judging what it saw ----------------------------------------------------------------------

// The list without what contract §1.1.2 and §4.5 allow the proxy to change in a tool of the server's.
function asTheServerHasIt(tool, direct) {
  const { _meta = {}, ...rest } = structuredClone(tool);
  const { 'unhurry/outputSchema': outputSchema, ...meta } = _meta;
  if (outputSchema) rest.outputSchema = outputSchema;
  if (Object.keys(meta).length > 0) rest._meta = meta;
  const support = direct.execution?.taskSupport ?? 'forbidden';
  if (rest.execution?.taskSupport === 'optional' && support === 'forbidden') {
    delete rest.execution;
    if (direct.execution) rest.execution = direct.execution;
  }
  return rest;
}

// contract §5.1: verbatim, only `unhurry/job` is added to `_meta`.
function asTheServerSaidIt(result) {
  const { _meta = {}, ...rest } = structuredClone(result ?? {});
  delete _meta['unhurry/job'];
  return Object.keys(_meta).length > 0 ? { ...rest, _meta } : rest;
}

function* judgeConnect(direct, seen) {
  if (seen.protocol !== direct.protocol) yield `protocol ${seen.protocol}, directly ${direct.protocol}`;
  if (!isDeepStrictEqual(seen.server, direct.server)) yield `server ${JSON.stringify(seen.server)}`;
  if (!(seen.instructions ?? '').startsWith(direct.instructions ?? '')) yield 'the instructions were replaced';
}

function* judgeList(direct, seen) {
  const names = seen.tools.map(tool => tool.name);
  const expected = [...tools(direct).keys(), 'job_get', 'job_cancel'];
  if (!isDeepStrictEqual(names, expected)) yield `tools ${names}`;
  for (const tool of direct.tools) {
    const changed = tools(seen).get(tool.name);
    if (!changed) continue;
    if (changed.outputSchema) yield `${tool.name} kept its outputSchema`;
    if (!isDeepStrictEqual(asTheServerHasIt(changed, tool), asTheServerHasIt(tool, tool))) {
      yield `${tool.name} was changed: ${JSON.stringify(changed)}`;
    }
  }
}

function* judgeCall(step, era, direct, seen) {
  const error = direct.error && `${direct.error.code}: ${direct.error.message}`;
  if (seen.error && `${seen.error.code}: ${seen.error.message}` !== error) {
    yield `error ${shown(seen.error)}`;
  } else if (!isDeepStrictEqual(asTheServerSaidIt(seen.result), asTheServerSaidIt(direct.result))) {
    yield `result ${shown(seen.result)}, directly ${error ?? shown(direct.result)}`;
  }
  const ends = step.ends?.[era] ?? step.ends;
  if (ends === 'fast' && (seen.polls.length > 0 || job(seen.result))) yield 'a handle for a fast call';
  if (ends === 'handle') {
    if (seen.polls.length === 0) yield 'no handle';
    else if (seen.result && job(seen.result)?.done !== true) yield 'the last answer is not marked as done';
  }
  // contract §4.2: no two polls are the same call.
  const calls = seen.polls.map(poll => JSON.stringify([poll.tool, poll.args]));
  if (new Set(calls).size < calls.length) yield `polls repeat: ${calls}`;
  if (step.progress && seen.progress.before === 0) yield 'no progress before the handle';
  // contract §4.3: nothing more for that token.
  if (seen.progress.after > 0) yield `${seen.progress.after} progress notes after the handle`;
  const complaints = (seen.complaints ?? []).filter(it => !(direct.complaints ?? []).includes(it));
  if (complaints.length > 0) yield `the SDK complains: ${complaints.join('; ')}`;
}

function judge(pair, direct, seen) {
  const problems = new Map();
  const put = (check, found) => problems.set(check, [...found]);
  const judgeLine = (check, judgeIt, like = check) => {
    const [without, through] = [direct.lines.get(like), seen.lines.get(check)];
    put(check, !through ? [nothing] : !without ? ['nothing to compare with'] : judgeIt(without, through));
  };
  judgeLine('connect', judgeConnect);
  judgeLine('list', judgeList);
  const protocol = seen.lines.get('connect')?.protocol ?? '';
  // The proxy's client is mcp-remote, which may be of another era than the client behind it.
  const era = protocol >= '2026' || pair.down === 'mcp-remote-auto' ? 'modern' : 'legacy';
  for (const step of pair.steps) {
    judgeLine(step.check, (...lines) => judgeCall(step, era, ...lines), step.like);
    // A check of the check: the client would have given up.
    if (step.timeout && !direct.lines.get(step.check)?.error) put(step.check, ['no time-out without the proxy']);
  }
  put('end of the client', seen.failures);
  put('without the proxy', direct.failures);
  put('no process left', seen.left);
  return problems;
}

// Without the proxy: every call has to be answered, but those that are to time out.
function judgeDirect(pair, direct) {
  const problems = new Map([['end of the client', direct.failures]]);
  for (const check of ['connect', 'list', ...pair.steps.map(step => step.check)]) {
    problems.set(check, direct.lines.has(check) ? [] : [nothing]);
  }
  return problems;
}

// ---- the table --------------------------------------------------------------------------------

const chosen = pairs.filter(pair =>
  words.every(word => [pair.client, name(pair), pair.server, pair.down, pair.up, pair.way].includes(word)));
const totals = { passed: 0, failed: 0 };

async function runPair(pair) {
  const start = Date.now();
  const [direct, seen] = await Promise.all([
    runClient(pair, false),
    proxy && runClient(pair, true)
  ]);
  const problems = proxy ? judge(pair, direct, seen) : judgeDirect(pair, direct);
  const failed = [...problems].filter(([, found]) => found.length > 0);
  totals.failed += failed.length;
  totals.passed += problems.size - failed.length;

  const protocol = (seen ?? direct).lines.get('connect')?.protocol ?? '-';
  console.log([name(pair).padEnd(12), pair.way.padEnd(20), pair.server.padEnd(11), protocol.padEnd(11),
    `${problems.size - failed.length}/${problems.size}`.padStart(6),
    `${((Date.now() - start) / 1000).toFixed(1)} s`.padStart(7)].join(' '));
  const missing = failed.filter(([, found]) => found[0] === nothing).map(([check]) => check);
  if (missing.length > 0) console.log(`  FAILED, as ${nothing}: ${missing.join(', ')}`);
  for (const [check, found] of failed) {
    for (const problem of found) if (problem !== nothing) console.log(`  FAILED ${check}: ${problem}`);
  }
  if (failed.length > 0 && seen?.said) console.log(`  the proxy said: ${seen.said.slice(-1000)}`);
  if (flags.includes('--lines')) console.log((seen ?? direct).stdout);
}

console.log(`${'client'.padEnd(12)} ${'way'.padEnd(20)} ${'server'.padEnd(11)} ${'protocol'.padEnd(11)} passed    time`);
const waiting = [...chosen];
await Promise.all(Array.from({ length: jobs }, async () => {
  for (let pair; (pair = waiting.shift());) await runPair(pair);
}));
if (chosen.length === 0) {
  console.log(`no such pair; clients: ${[...new Set(pairs.map(name))]}; servers: ${Object.keys(servers)};
    ways: ${[...new Set(pairs.map(pair => pair.way))]}`);
}
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed > 0 || chosen.length === 0 ? 1 : 0;
