// Runs the official suite against the fixture, and against the proxy in front of it, and compares.
//
//   node run.mjs [direct] [http] [stdio]      (run.sh sets the environment)
//
// `http` is the proxy in front of the fixture by its URL, `stdio` the proxy with the fixture as its child.
// `direct` is always run: it is what the others are compared with.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { allJudged, differences, readChecks } from './compare.mjs';
import { cache } from './sdk.mjs';

// How many checks there are, apart from those left out. A number that changes says that the suite has.
const requirements = { '2025-11-25': 84, '2026-07-28': 152 };
const leftOut = {
  direct: /^tasks-/, // the fixture has no tasks
  http: /^tasks-/,
  stdio: /^tasks-|^server-sse-polling$/ // over stdio there is no stream to lose
};
const wanted = process.argv.slice(2);
const unknown = wanted.filter(leg => !(leg in leftOut));
if (unknown.length > 0) {
  console.error(`conformance: ${unknown} is none of ${Object.keys(leftOut).join(', ')}`);
  process.exit(64);
}
const legs = ['http', 'stdio'].filter(leg => wanted.length === 0 || wanted.includes(leg));

const fixture = fileURLToPath(new URL('server.mjs', import.meta.url));
const packages = join(cache, 'node_modules');
const node22 = join(packages, `node-${process.platform}-${process.arch}`, 'bin', 'node');
const suite = join(packages, '@modelcontextprotocol', 'conformance', 'dist', 'index.js');
const home = mkdtempSync(join(tmpdir(), 'unhurry-conformance-'));
const patience = 10_000; // ms
const suiteTimeout = 180_000;

// ---- processes --------------------------------------------------------------------------------

function start(command, ...args) {
  // A home of its own, so that the proxy sees no one else's configuration or jobs.
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, HOME: home } });
  const running = { child, stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', chunk => (running[stream] += chunk));
  }
  running.ended = new Promise(done => {
    child.on('error', error => done(error.message));
    child.on('close', (code, signal) => done(signal ?? code));
  });
  running.ended.then(ending => (running.ending = ending));
  return running;
}

async function ended(running, timeout) {
  const killer = setTimeout(() => running.child.kill('SIGKILL'), timeout);
  const ending = await running.ended;
  clearTimeout(killer);
  return ending;
}

async function stop(running) {
  running.child.kill('SIGTERM');
  await ended(running, patience);
}

async function until(what, running, attempt) {
  for (const since = Date.now(); running.ending === undefined && Date.now() - since < patience; await sleep(50)) {
    const found = await attempt();
    if (found) return found;
  }
  const fate = running.ending === undefined ? 'was not ready in time' : `ended with ${running.ending}`;
  await stop(running);
  throw new Error(`${what} ${fate}. ${running.stderr.slice(-2000)}`);
}

async function freePort() {
  const server = createServer();
  await new Promise(listening => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address();
  await new Promise(closed => server.close(closed));
  return port;
}

async function startFixture() {
  const running = start(process.execPath, fixture);
  running.url = await until('the fixture', running, () => /^http.*(?=\n)/.exec(running.stdout)?.[0]);
  return running;
}

async function startProxy(...upstream) {
  const address = `127.0.0.1:${await freePort()}`;
  const running = start(process.env.UNHURRY_BIN, 'serve', '--listen', address, ...upstream);
  await until('the proxy', running, () => fetch(`http://${address}/healthz`).then(answer => answer.ok, () => false));
  running.url = `http://${address}/mcp`;
  return running;
}

// ---- the suite --------------------------------------------------------------------------------

/** Runs the suite against `url`. `passed` is its own verdict on the required scenarios. */
async function runSuite(revision, leg, url) {
  const results = join(home, `${revision}-${leg}`);
  mkdirSync(results);
  const running = start(node22, suite, 'server', '--url', url, '--requirements', revision, '--output-dir', results);
  const passed = await ended(running, suiteTimeout) === 0;
  const scenarios = readChecks(results);
  for (const scenario of scenarios.keys()) if (leftOut[leg].test(scenario)) scenarios.delete(scenario);
  return { passed, scenarios, output: running.stdout + running.stderr };
}

/** Prints the faults of a run, and returns how many checks passed and failed. */
function report(revision, leg, count, faults) {
  const label = `${revision} ${leg}`;
  console.log(`${faults.length === 0 ? 'ok  ' : 'FAIL'} ${label}: ${count} checks`);
  for (const fault of faults) console.log(`     ${fault}`);
  return { passed: Math.max(0, count - faults.length), failed: faults.length };
}

function judgeDirect(revision, { passed, scenarios, output }) {
  const checks = allJudged(scenarios);
  const faults = checks.filter(({ status }) => status !== 'SUCCESS')
    .map(({ scenario, id, status, errorMessage }) => `${scenario} ${id}: ${status} ${errorMessage ?? ''}`);
  if (!passed && faults.length === 0) faults.push(`the suite failed: ${output.slice(-2000)}`);
  if (checks.length !== requirements[revision]) faults.push(`${requirements[revision]} checks were expected`);
  return report(revision, 'direct', checks.length, faults);
}

function judgeProxied(revision, leg, direct, { scenarios }) {
  const expected = new Map([...direct.scenarios].filter(([scenario]) => !leftOut[leg].test(scenario)));
  const faults = [...differences(expected, scenarios)].map(({ scenario, check, direct, proxied, message }) =>
    `${scenario} ${check}: ${direct} directly, ${proxied} through the proxy. ${message}`);
  return report(revision, leg, allJudged(expected).length, faults);
}

async function runLeg(revision, leg, direct, server) {
  const upstream = leg === 'http' ? [server.url] : ['--', process.execPath, fixture, '--stdio'];
  const proxy = await startProxy(...upstream);
  try {
    const counts = judgeProxied(revision, leg, direct, await runSuite(revision, leg, proxy.url));
    if (counts.failed > 0 && proxy.stderr) console.log(`     the proxy said: ${proxy.stderr.slice(-2000)}`);
    return counts;
  } finally {
    await stop(proxy);
  }
}

const totals = { passed: 0, failed: 0 };
const add = ({ passed, failed }) => { totals.passed += passed; totals.failed += failed; };
const server = await startFixture();
try {
  for (const revision of Object.keys(requirements)) {
    const direct = await runSuite(revision, 'direct', server.url);
    add(judgeDirect(revision, direct));
    for (const leg of legs) {
      add(await runLeg(revision, leg, direct, server).catch(error => report(revision, leg, 0, [error.message])));
    }
  }
} finally {
  await stop(server);
  rmSync(home, { recursive: true, force: true });
}
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed > 0 ? 1 : 0;
