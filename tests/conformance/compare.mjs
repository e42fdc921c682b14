// Reads what the suite has found, and compares it with what it found without the proxy.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The checks of a run, by scenario, from the folder where the suite has put them. */
export function readChecks(folder) {
  const scenarios = new Map();
  for (const entry of readdirSync(folder).sort()) {
    const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry)?.[1];
    if (scenario) scenarios.set(scenario, JSON.parse(readFileSync(join(folder, entry, 'checks.json'), 'utf8')));
  }
  return scenarios;
}

// INFO says what was seen and judges nothing.
const judged = checks => checks.filter(check => check.status !== 'INFO');

/** The checks that stand for a requirement, of all scenarios. */
export const allJudged = scenarios => [...scenarios].flatMap(([scenario, checks]) =>
  judged(checks).map(check => ({ scenario, ...check })));

// One id may stand for several checks; they always come in the same order.
function byKey(checks) {
  const seen = new Map();
  return new Map(judged(checks).map(check => {
    const count = (seen.get(check.id) ?? 0) + 1;
    seen.set(check.id, count);
    return [count > 1 ? `${check.id} (${count})` : check.id, check];
  }));
}

// Where the proxy may be unlike the server, and both are right.
const mayDiffer = {
  // Judged if answers come as SSE, INFO if they come as JSON; a server may do either.
  'server-sse-multiple-streams': (check, status, checks) => check === 'server-sse-streams-functional' &&
    status !== 'WARNING' && checks.some(({ id }) => id === check)
};

/** What was found otherwise in `proxied` than in `direct`: `{ scenario, check, direct, proxied, message }` each. */
export function* differences(direct, proxied) {
  for (const scenario of new Set([...direct.keys(), ...proxied.keys()])) {
    const expected = byKey(direct.get(scenario) ?? []);
    const found = byKey(proxied.get(scenario) ?? []);
    for (const check of new Set([...expected.keys(), ...found.keys()])) {
      const [before, after] = [expected.get(check), found.get(check)];
      if (before?.status === after?.status) continue;
      const allowed = mayDiffer[scenario]?.(check, after?.status, proxied.get(scenario) ?? []);
      if (allowed && after?.status !== 'FAILURE') continue;
      yield { scenario, check, direct: before?.status ?? 'nothing', proxied: after?.status ?? 'nothing',
        message: after?.errorMessage ?? '' };
    }
  }
}
