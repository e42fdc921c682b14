// server-everything listens on every interface of the machine. Loaded before it (node --import), this keeps it
// to the loopback one.
import { Server } from 'node:net';

const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, port, '127.0.0.1', ...rest);
};
