// The steps of the matrix, for both TypeScript clients.
//
//   node client_ts1.mjs ERA STEPS.json (COMMAND ARGS… | URL)
//
// Prints one line of JSON for each check: what a program behind the SDK sees. run.mjs judges.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

// The packages live in a cache folder outside of this tree, where `import` would not look.
export const require = createRequire(`${process.env.INTEROP_NPM}/`);
export const clientInfo = { name: 'unhurry-interop', version: '1.0.0' };
export const capabilities = { elicitation: { form: {} }, sampling: {} };

// The user and the model at the client's side. `delay` is the time they take, in seconds.
export const user = {
  delay: 0,
  async answers(result) {
    await new Promise(done => setTimeout(done, this.delay * 1000));
    return result;
  },
  elicitation() {
    return this.answers({ action: 'accept', content: { name: 'Ada' } });
  },
  sampling() {
    const content = { type: 'text', text: 'forty-two' };
    return this.answers({ role: 'assistant', content, model: 'interop-model', stopReason: 'endTurn' });
  }
};

/** The SDK's transport to a server that is a command or a URL; one at /sse speaks HTTP+SSE of 2024-11-05. */
export function transportTo([command, ...args], sdk) {
  if (!URL.canParse(command)) return new sdk.StdioClientTransport({ command, args });
  const url = new URL(command);
  return url.pathname === '/sse' ? new sdk.SSEClientTransport(url) : new sdk.StreamableHTTPClientTransport(url);
}

export async function run(connect) {
  const [era, stepsFile, ...server] = process.argv.slice(2);
  const steps = JSON.parse(readFileSync(stepsFile, 'utf8'));
  const print = line => console.log(JSON.stringify(line));
  const complaints = [];

  const { client, protocol } = await connect(era, server, error => complaints.push(String(error)));
  print({ check: 'connect', protocol: protocol(), server: client.getServerVersion(),
    instructions: client.getInstructions() });

  const tools = [];
  for (let cursor; ;) {
    const page = await client.listTools(cursor && { cursor });
    tools.push(...page.tools);
    if (!(cursor = page.nextCursor)) break;
  }
  print({ check: 'list', tools });

  for (const step of steps) {
    const line = { check: step.check, polls: [], progress: { before: 0, after: 0 } };
    complaints.length = 0;
    user.delay = step.answer_after ?? 0;
    let answered = false;
    const options = { timeout: (step.timeout ?? 60) * 1000 };
    if (step.progress) options.onprogress = () => line.progress[answered ? 'after' : 'before']++;
    try {
      let result = await client.callTool({ name: step.tool, arguments: step.arguments }, ...client.callArgs, options);
      answered = true;
      // What a program does with a handle: it calls what next_action says until the job is done.
      while (result._meta?.['unhurry/job']?.done === false && line.polls.length < 30) {
        const { tool, args } = result.structuredContent.next_action;
        line.polls.push({ tool, args, status: result._meta['unhurry/job'].status });
        result = await client.callTool({ name: tool, arguments: args }, ...client.callArgs, { timeout: options.timeout });
      }
      line.result = result;
    } catch (error) {
      line.error = { code: error.code, message: error.message };
    }
    if (complaints.length) line.complaints = [...complaints];
    print(line);
  }
  await client.close();
}
