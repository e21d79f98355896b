// A worker in JavaScript, without an adapter: it speaks the protocol of docs/protocol.md.
"use strict";

const readline = require("node:readline");

// Standard output is for messages only; console.error is for people.
const send = (message) => process.stdout.write(JSON.stringify(message) + "\n");

class Permanent extends Error {}
class Temporary extends Error {
  constructor(message, delay) {
    super(message);
    this.delay = delay; // in seconds
  }
}

const handlers = {
  async create(call, log) {
    if (call.retry === 0) throw new Temporary("The first attempt fails.", 0.1);
    log(`${call.name} is new.`);
    return { result: { greeting: "hello" }, patch: { metadata: { labels: { "handled-by": "node" } } } };
  },
  async resize(call) {
    if (call.new < 0) throw new Permanent("The size is negative.");
    return { events: [{ reason: "Resized", message: `from ${call.old} to ${call.new}` }] };
  },
};

const declarations = [
  { create: "kopfexamples.kopf.dev", id: "create" },
  { update: "kopfexamples.kopf.dev", id: "resize", field: "spec.size" },
];

async function respond(id, call) {
  let answer;
  try {
    const log = (message) => send({ type: "log", id, level: "info", message });
    answer = await handlers[call.function](call, log);
  } catch (error) {
    console.error(error.stack);
    answer = { error: { message: error.message } };
    if (error instanceof Permanent) answer.error.permanent = true;
    if (error instanceof Temporary) answer.error.delay = error.delay;
  }
  send({ type: "answer", id, answer: answer ?? {} });
}

const lines = readline.createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const message = JSON.parse(line);
  if (message.type === "start") send({ type: "hello", version: 1, handlers: declarations });
  if (message.type === "call") respond(message.id, message.call);
  // These handlers are quick, so they need not know that they are canceled.
});
lines.on("close", () => process.exit(0)); // the operator has ended
