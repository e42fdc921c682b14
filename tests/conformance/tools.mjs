// The tools that answer without asking the client anything. Their names and results are the suite's.
import { setTimeout as sleep } from 'node:timers/promises';
import { block, embedded, image, object, result, text, wav } from './content.mjs';

const pause = 50; // ms; long enough that two messages are two events

// Every keyword here has to reach the client as it is.
const dialect2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: { $anchor: 'addressDef', type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } } }
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' }
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false
};

async function reportProgress(ctx) {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progress > 0) await sleep(pause);
    if (progressToken === undefined) continue;
    await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
  }
  return text('Progress was reported three times.');
}

async function log(ctx) {
  const lines = ['Tool execution started', 'Tool processing data', 'Tool execution completed'];
  for (const [at, line] of lines.entries()) {
    if (at > 0) await sleep(pause);
    // Sent only at a level the client has asked for: by logging/setLevel, or in the request's _meta.
    await ctx.mcpReq.log('info', line);
  }
  return text('Three lines were logged.');
}

// The answer comes after its stream has ended; the client has to come back for it. Not over stdio.
async function loseTheStream(ctx) {
  ctx.http?.closeSSE?.();
  await sleep(2 * pause);
  return text('The answer came after the stream had ended.');
}

// `announce` tells whoever listens that a list has changed. No list really does.
export const tools = announce => ({
  test_simple_text: { description: 'Returns a text.',
    call: () => text('This is a simple text response for testing.') },
  test_image_content: { description: 'Returns an image.', call: () => result(image) },
  test_audio_content: { description: 'Returns a sound.',
    call: () => result({ type: 'audio', data: wav, mimeType: 'audio/wav' }) },
  test_embedded_resource: { description: 'Returns a resource.',
    call: () => result(embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')) },
  test_multiple_content_types: { description: 'Returns a text, an image and a resource.',
    call: () => result(block('Multiple content types test:'), image,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}')) },
  test_error_handling: { description: 'Fails.',
    call() { throw new Error('This tool intentionally returns an error for testing'); } },

  test_tool_with_progress: { description: 'Reports its progress.', call: (_, ctx) => reportProgress(ctx) },
  test_tool_with_logging: { description: 'Logs.', call: (_, ctx) => log(ctx) },
  test_logging_tool: { description: 'Logs, for the check that nothing is sent unasked.', call: (_, ctx) => log(ctx) },
  test_reconnection: { description: 'Ends its stream before its answer.', call: (_, ctx) => loseTheStream(ctx) },

  test_trigger_tool_change: { description: 'Says that the list of tools has changed.',
    call() { announce.toolsChanged(); return text('Announced.'); } },
  test_trigger_prompt_change: { description: 'Says that the list of prompts has changed.',
    call() { announce.promptsChanged(); return text('Announced.'); } },

  test_header_parameter: { description: 'Has an argument that is a header as well.',
    inputSchema: object({ region: { type: 'string', 'x-mcp-header': 'Region' } }),
    call: ({ region }) => text(`Region: ${region}`) },
  json_schema_2020_12_tool: { description: 'Has a schema with many keywords of JSON Schema 2020-12.',
    inputSchema: dialect2020, call: ({ name }) => text(`Name: ${name}`) }
});
