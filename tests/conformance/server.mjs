// The server that the suite is run against, in both eras.
//
//   node server.mjs [--port N]     over HTTP; prints its URL on the first line of stdout
//   node server.mjs --stdio        over stdio
import { parseArgs } from 'node:util';
import { makeServer } from './fixture.mjs';
import { serveHttp } from './http.mjs';
import { serveStdio } from './sdk.mjs';

const { values } = parseArgs({ options: { stdio: { type: 'boolean' }, port: { type: 'string', default: '0' } } });
if (values.stdio) serveStdio(() => makeServer());
else console.log(await serveHttp(Number(values.port)));
