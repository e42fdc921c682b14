// The fixture's packages, from the folder where setup.sh puts them.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

export const cache = process.env.CONFORMANCE_CACHE ??
  fileURLToPath(new URL('../../.ci/cache/conformance', import.meta.url));
const require = createRequire(`${cache}/`);

export const {
  CLIENT_CAPABILITIES_META_KEY, McpServer, ResourceTemplate, WebStandardStreamableHTTPServerTransport,
  acceptedContent, createMcpHandler, createRequestStateCodec, fromJsonSchema, hostHeaderValidationResponse,
  inputRequired, inputResponse, isLegacyRequest, localhostAllowedHostnames, localhostAllowedOrigins,
  originValidationResponse
} = require('@modelcontextprotocol/server');
export const { serveStdio } = require('@modelcontextprotocol/server/stdio');
export const { toNodeHandler } = require('@modelcontextprotocol/node');
