// The tools that need something of the client: its user, its model, its roots.
//
// Each returns `input_required` until it has what it needs. For a legacy client the SDK turns that into
// requests in the middle of the call, so one tool serves both eras.
import { randomBytes } from 'node:crypto';
import { object, text } from './content.mjs';
import {
  CLIENT_CAPABILITIES_META_KEY, acceptedContent, createRequestStateCodec, inputRequired, inputResponse
} from './sdk.mjs';

// Sealed with a key of this process: what a client has changed is refused before a tool is called.
export const sealed = createRequestStateCodec({ key: randomBytes(32) });

const string = { type: 'string' };
const form = (message, requestedSchema) => inputRequired.elicit({ message, requestedSchema });
const question = (message, properties) => form(message, object(properties));
const whatName = question('What is your name?', { name: string });
const confirm = question('Please confirm', { ok: { type: 'boolean' } });
const prompt = (words, maxTokens) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: words } }], maxTokens });

const titled = (...titles) => titles.map((title, at) => ({ const: `value${at + 1}`, title }));
const options = ['option1', 'option2', 'option3'];
const defaults = {
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true }
};
const enums = {
  untitledSingle: { type: 'string', enum: options },
  titledSingle: { type: 'string', oneOf: titled('First Option', 'Second Option', 'Third Option') },
  legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'],
    enumNames: ['Option One', 'Option Two', 'Option Three'] },
  untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
  titledMulti: { type: 'array', items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') } }
};

const answered = (ctx, key) => inputResponse(ctx.mcpReq.inputResponses, key);
const accepted = (ctx, key) => acceptedContent(ctx.mcpReq.inputResponses, key);
const asking = (inputRequests, requestState) => inputRequired({ inputRequests, requestState });

// A tool that asks one thing, under `key`, and makes its result of the answer.
const asksOne = (description, key, request, done, inputSchema) => ({ description, inputSchema,
  call(args, ctx) {
    const answer = answered(ctx, key);
    if (answer.kind === 'missing') return asking({ [key]: typeof request === 'function' ? request(args) : request });
    return text(done(answer));
  } });
const outcome = ({ action, content }) => `action=${action}, content=${JSON.stringify(content ?? {})}`;
const reply = ({ result }) => `LLM response: ${result.content.text}`;

// A tool that asks for a confirmation, and wants its own state back with it.
const confirmed = description => ({ description,
  async call(_, ctx) {
    if (ctx.mcpReq.requestState()?.asked === 'confirm' && accepted(ctx, 'confirm')) return text('state-ok');
    return asking({ confirm }, await sealed.mint({ asked: 'confirm' }));
  } });

async function twoRounds(ctx) {
  const state = ctx.mcpReq.requestState();
  const name = state?.name ?? accepted(ctx, 'step1')?.name;
  if (!state || name === undefined) {
    const step1 = question('Step 1: What is your name?', { name: string });
    return asking({ step1 }, await sealed.mint({ round: 1 }));
  }
  const color = accepted(ctx, 'step2')?.color;
  if (color === undefined) {
    const step2 = question('Step 2: What is your favorite color?', { color: string });
    return asking({ step2 }, await sealed.mint({ round: 2, name }));
  }
  return text(`${name} likes ${color}.`);
}

const everything = { user_name: whatName, greeting: prompt('Generate a greeting', 50),
  client_roots: inputRequired.listRoots() };
async function allAtOnce(ctx) {
  const missing = Object.keys(everything).filter(key => answered(ctx, key).kind === 'missing');
  if (missing.length > 0) return asking(everything, await sealed.mint({ asked: 'everything' }));
  return text(`${answered(ctx, 'greeting').result.content.text} ${accepted(ctx, 'user_name').name}`);
}

// Asks only what the client has declared that it can answer.
function whatItCan(ctx) {
  const can = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
  const needs = { user_name: 'elicitation', greeting: 'sampling', client_roots: 'roots' };
  const questions = Object.entries(everything).filter(([key]) => can[needs[key]]);
  const open = questions.filter(([key]) => answered(ctx, key).kind === 'missing');
  return open.length > 0 ? asking(Object.fromEntries(open)) : text(`${questions.length} answers.`);
}

export const askingTools = {
  // Legacy: a request of the server's in the middle of the call.
  test_sampling: asksOne("Asks the client's model.", 'reply', args => prompt(args.prompt, 100), reply,
    object({ prompt: string })),
  test_elicitation: asksOne('Asks the user.', 'user',
    args => question(args.message, { username: { type: 'string', description: "User's response" },
      email: { type: 'string', description: "User's email address" } }),
    answer => `User response: ${outcome(answer)}`, object({ message: string })),
  test_elicitation_sep1034_defaults: asksOne('Asks with a default for every primitive type.', 'form',
    form('Please check your data', { type: 'object', properties: defaults }),
    answer => `Elicitation completed: ${outcome(answer)}`),
  test_elicitation_sep1330_enums: asksOne('Asks with every kind of enum.', 'form',
    form('Please choose', { type: 'object', properties: enums }),
    answer => `Elicitation completed: ${outcome(answer)}`),

  // Modern: an `input_required` result. The first two are called by clients that declare too little, or just enough.
  test_missing_capability: asksOne("Needs the client's model.", 'reply', prompt('Say pong', 16), reply),
  test_streaming_elicitation: asksOne('Needs the user.', 'user_name', whatName, outcome),
  test_input_required_result_sampling: asksOne("Asks the client's model.", 'capital_question',
    prompt('What is the capital of France?', 100), reply),
  test_input_required_result_list_roots: asksOne("Asks for the client's roots.", 'client_roots', inputRequired.listRoots(),
    ({ roots }) => `Roots: ${roots.map(root => root.uri).join(', ')}`),
  test_input_required_result_elicitation: { description: 'Asks the user for a name, until there is one.',
    call(_, ctx) {
      const name = accepted(ctx, 'user_name')?.name;
      return name === undefined ? asking({ user_name: whatName }) : text(`Hello, ${name}!`);
    } },
  test_input_required_result_request_state: confirmed('Asks for a confirmation, with a state.'),
  test_input_required_result_tampered_state: confirmed('Asks for a confirmation, with a state that must not change.'),
  test_input_required_result_multi_round: { description: 'Asks twice.', call: (_, ctx) => twoRounds(ctx) },
  test_input_required_result_multiple_inputs: { description: 'Asks three things at once.',
    call: (_, ctx) => allAtOnce(ctx) },
  test_input_required_result_capabilities: { description: 'Asks what the client can answer.',
    call: (_, ctx) => whatItCan(ctx) }
};

export function contextPrompt(_, ctx) {
  const context = accepted(ctx, 'user_context')?.context;
  if (context === undefined) {
    return asking({ user_context: question('What context should the prompt use?', { context: string }) });
  }
  return { messages: [{ role: 'user', content: { type: 'text', text: `Context: ${context}` } }] };
}
