// A model endpoint of ours: OpenAI's Chat Completions, streamed or not, with replies that a test gives.
import { once } from "node:events";
import { createServer } from "node:http";

/**
 * @typedef {{ text: string, hangs?: boolean } | { tool: string, input: object }} Reply a text, or the call of a tool;
 *   a stream that hangs does not end
 * @typedef {{ messages: Array<{ role: string, content: string }> } & Record<string, unknown>} Asked
 */

/** Starts it. `replies` are given one after the other; `asked` has the bodies of the requests. */
export async function startModel() {
  /** @type {Reply[]} */
  const replies = [];
  /** @type {Asked[]} */
  const asked = [];
  const server = createServer(async (request, response) => {
    request.setEncoding("utf8");
    const body = JSON.parse((await all(request)).map(String).join(""));
    asked.push(body);
    const reply = replies.shift();
    if (reply === undefined) return void response.writeHead(400).end();
    const streams = body.stream === true;
    response.writeHead(200, { "content-type": streams ? "text/event-stream" : "application/json" });
    if (streams && "hangs" in reply) return void response.write(streamed(reply).split("data: [DONE]")[0]);
    response.end(streams ? streamed(reply) : JSON.stringify(whole(reply)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    replies,
    asked,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/**
 * What a stream gives; Array.fromAsync came with Node 22.
 * @template T
 * @param {AsyncIterable<T>} stream
 */
export async function all(stream) {
  const found = [];
  for await (const one of stream) found.push(one);
  return found;
}

/** @param {Reply} reply */
function whole(reply) {
  const finish_reason = "text" in reply ? "stop" : "tool_calls";
  return { ...FRAME, choices: [{ index: 0, message: { role: "assistant", ...said(reply) }, finish_reason }] };
}

/** @param {Reply} reply */
function streamed(reply) {
  const pieces = "text" in reply ? reply.text.match(/.{1,5}/gsu) ?? [] : [undefined];
  const deltas = pieces.map((piece) => ("text" in reply ? { content: piece } : said(reply)));
  const chunks = deltas.map((delta) => ({ ...FRAME, choices: [{ index: 0, delta, finish_reason: null }] }));
  const finish_reason = "text" in reply ? "stop" : "tool_calls";
  const frames = [...chunks, { ...FRAME, choices: [{ index: 0, delta: {}, finish_reason }] }];
  return [...frames.map((chunk) => JSON.stringify(chunk)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("");
}

/** @param {Reply} reply */
function said(reply) {
  if ("text" in reply) return { content: reply.text };
  const call = { name: reply.tool, arguments: JSON.stringify(reply.input) };
  return { content: null, tool_calls: [{ index: 0, id: "call-1", type: "function", function: call }] };
}

const FRAME = { id: "reply-1", created: 0, model: "ours", object: "chat.completion" };
