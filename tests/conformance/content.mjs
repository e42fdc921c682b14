// Bytes and small builders that tools, prompts and resources share.

// A picture of one pixel, and a sound of no samples.
export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==';
export const wav = Buffer.concat([
  Buffer.from('RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0', 'latin1'),
  Buffer.from([0x40, 0x1f, 0, 0, 0x80, 0x3e, 0, 0, 2, 0, 16, 0]), // 8 kHz, 16 bits, one channel
  Buffer.from('data\0\0\0\0', 'latin1')
]).toString('base64');

export const image = { type: 'image', data: png, mimeType: 'image/png' };
export const block = text => ({ type: 'text', text });
export const result = (...content) => ({ content });
export const text = words => result(block(words));
export const embedded = (uri, mimeType, text) => ({ type: 'resource', resource: { uri, mimeType, text } });

// The schema of an object whose members are all required.
export const object = properties => ({ type: 'object', properties, required: Object.keys(properties) });
