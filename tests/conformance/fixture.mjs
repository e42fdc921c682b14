// The MCP server that the suite is run against, apart from its transports.
import { askingTools, contextPrompt, sealed } from './asking_tools.mjs';
import { block, embedded, image, object, png } from './content.mjs';
import { McpServer, ResourceTemplate, fromJsonSchema } from './sdk.mjs';
import { tools } from './tools.mjs';

const capabilities = {
  tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true, listChanged: true },
  logging: {}, completions: {}
};
const string = { type: 'string' };
const user = (...contents) => ({ messages: contents.map(content => ({ role: 'user', content })) });

const prompts = {
  test_simple_prompt: { description: 'A text.', get: () => user(block('This is a simple prompt for testing.')) },
  test_prompt_with_arguments: { description: 'A text with two arguments.',
    argsSchema: object({ arg1: string, arg2: string }),
    get: ({ arg1, arg2 }) => user(block(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)) },
  test_prompt_with_embedded_resource: { description: 'A resource of your choice.',
    argsSchema: object({ resourceUri: string }),
    get: ({ resourceUri }) => user(embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
      block('Please process the embedded resource above.')) },
  test_prompt_with_image: { description: 'An image.',
    get: () => user(image, block('Please analyze the image above.')) },
  test_input_required_result_prompt: { description: 'A text that the user is asked for.', get: contextPrompt }
};

const resources = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: png },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Can be subscribed to, and never changes.' }
};

// The SDK calls what takes no arguments with the context alone; here all take both.
const withArguments = (schema, call) => (schema ? call : ctx => call({}, ctx));

/**
 * A new server. Over HTTP the modern era has one for each request, so `announce`, which tells the
 * listeners that a list has changed, is then the HTTP handler's own.
 */
export function makeServer(announce) {
  const server = new McpServer({ name: 'unhurry-conformance-fixture', version: '1.0.0' },
    { capabilities, requestState: { verify: sealed.verify } });
  announce ??= {
    toolsChanged: () => server.sendToolListChanged(),
    promptsChanged: () => server.sendPromptListChanged()
  };

  for (const [name, { description, inputSchema, call }] of Object.entries({ ...tools(announce), ...askingTools })) {
    server.registerTool(name, { description, inputSchema: inputSchema && fromJsonSchema(inputSchema) },
      withArguments(inputSchema, call));
  }
  for (const [name, { description, argsSchema, get }] of Object.entries(prompts)) {
    server.registerPrompt(name, { description, argsSchema: argsSchema && fromJsonSchema(argsSchema) },
      withArguments(argsSchema, get));
  }
  for (const [uri, { mimeType, ...content }] of Object.entries(resources)) {
    server.registerResource(uri.slice('test://'.length), uri, { description: `The resource ${uri}.`, mimeType },
      () => ({ contents: [{ uri, mimeType, ...content }] }));
  }
  server.registerResource('template', new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'Data for any id.', mimeType: 'application/json' },
    (uri, { id }) => ({ contents: [{ uri: uri.href, mimeType: 'application/json',
      text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }] }));

  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
  server.server.setRequestHandler('completion/complete', ({ params }) => {
    const values = ['test', 'testing', 'text'].filter(word => word.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  return server;
}
