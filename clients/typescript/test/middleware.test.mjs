// The middleware against a real memd, with streams of ours instead of the SDK's. Needs nothing but Node.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { Memd } from "memd-client";
import { memdMiddleware } from "memd-client/ai-sdk";
import { all } from "./model.mjs";
import { start } from "./server.mjs";

/**
 * @typedef {import("ai").LanguageModelMiddleware} Middleware
 * @typedef {Parameters<NonNullable<Middleware["wrapStream"]>>[0]} Wrapped
 * @typedef {Awaited<ReturnType<Wrapped["doStream"]>>["stream"]} Stream
 * @typedef {Stream extends ReadableStream<infer T> ? T : never} Chunk
 * @typedef {Wrapped["params"]["prompt"]} Prompt
 * @typedef {Partial<import("memd-client/ai-sdk").MemdMiddlewareOptions>} Options
 */

/** @type {import("./server.mjs").Running} */
let served;

before(async () => {
  served = await start();
});
after(() => served.stop());

const usage = /** @type {Extract<Chunk, { type: "finish" }>["usage"]} */ (
  /** @type {unknown} */ ({ inputTokens: { total: 1 }, outputTokens: { total: 1 } })
);

/** @param {"stop" | "tool-calls" | "error"} unified @returns {Chunk} */
const finish = (unified) => ({ type: "finish", finishReason: { unified, raw: unified }, usage });

/** @type {Chunk[]} */
const ANSWER = [
  { type: "text-start", id: "1" },
  { type: "text-delta", id: "1", delta: "A fine " },
  { type: "text-delta", id: "1", delta: "city. 好茶。" },
  { type: "text-end", id: "1" },
  finish("stop"),
];

/** @type {Prompt} */
const PROMPT = [{ role: "user", content: [{ type: "text", text: "I live in Porto. 我喜欢喝绿茶。" }] }];
const SAID = "user: I live in Porto. 我喜欢喝绿茶。";
const ANSWERED = "assistant: A fine city. 好茶。";

/**
 * A model with memory that gives these chunks, then what `end` does. `pushed` has what was pushed, `heard` what onError
 * heard; `push` is called instead of fetch for pushes.
 * @param {{ chunks?: Chunk[], end?: (controller: ReadableStreamDefaultController<Chunk>) => void, prompt?: Prompt,
 *   signal?: AbortSignal, push?: typeof fetch, inject?: typeof fetch, options?: Options }} given
 */
function talk({ chunks = ANSWER, end = (controller) => controller.close(), prompt = PROMPT, signal, push, inject, options = {} }) {
  /** @type {string[][]} */
  const pushed = [];
  /** @type {string[]} */
  const heard = [];
  const user_id = `ana ${randomUUID()}`;
  /** @type {typeof fetch} */
  const noted = async (input, init) => {
    if (!String(input).endsWith("/v1/push")) return (inject ?? fetch)(input, init);
    pushed.push(linesOf(JSON.parse(String(init?.body))));
    return (push ?? fetch)(input, init);
  };
  const memd = new Memd({ url: served.url, token: served.tokens.desk, fetch: noted, retries: 0 });
  const middleware = memdMiddleware({
    memd,
    user_id,
    timeoutMs: 60_000,
    onError: (event, { code }) => heard.push(`${event} ${code}`),
    ...options,
  });
  const doStream = async () => {
    const left = [...chunks];
    /** @type {Stream} */
    const stream = new ReadableStream({
      pull(controller) {
        const chunk = left.shift();
        if (chunk === undefined) end(controller);
        else controller.enqueue(chunk);
      },
    });
    return { stream };
  };
  const text = chunks.flatMap((chunk) => (chunk.type === "text-delta" ? [chunk.delta] : [])).join("");
  const ended = chunks.find((chunk) => chunk.type === "finish") ?? finish("error");
  const doGenerate = async () => {
    const finishReason = "finishReason" in ended ? ended.finishReason : { unified: /** @type {const} */ ("error"), raw: "" };
    return { content: [{ type: /** @type {const} */ ("text"), text }], finishReason, usage, warnings: [] };
  };
  /** As the SDK calls it. */
  const parts = async () => {
    /** @type {Wrapped["params"]} */
    const given = { prompt, providerOptions: { memd: { thread_id: "t-1" } }, ...(signal && { abortSignal: signal }) };
    const model = /** @type {Wrapped["model"]} */ ({});
    const params = await middleware.transformParams?.({ type: "stream", params: given, model });
    assert.ok(params && middleware.wrapStream && middleware.wrapGenerate);
    return { wrapStream: middleware.wrapStream, wrapGenerate: middleware.wrapGenerate, given: { params, model, doStream, doGenerate } };
  };
  return {
    pushed,
    heard,
    memd,
    user_id,
    streamed: async () => parts().then(async ({ wrapStream, given }) => (await wrapStream(given)).stream),
    generated: async () => parts().then(({ wrapGenerate, given }) => wrapGenerate(given)),
  };
}

/** @param {import("memd-client").Push} push */
function linesOf(push) {
  return push.messages.map((message) => {
    const { role, content } = /** @type {{ role: string, content: Array<{ type: string, text?: string }> }} */ (message);
    return `${role}: ${content.map(({ type, text }) => text ?? `(${type})`).join(" ")}`;
  });
}

/** A fetch that answers never, but ends with its signal. @type {typeof fetch} */
const hangs = (_, init) => new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(new Error())));

test("the push comes after the last chunk, then the stream closes; it is stored", async () => {
  /** @type {string[]} */
  const order = [];
  /** @type {typeof fetch} */
  const push = (input, init) => {
    order.push("push");
    return fetch(input, init);
  };
  const { pushed, streamed, memd, user_id } = talk({ push });
  for await (const { type } of await streamed()) order.push(type);
  order.push("closed");
  assert.deepEqual(order, ["text-start", "text-delta", "text-delta", "text-end", "finish", "push", "closed"]);
  assert.deepEqual(pushed, [[SAID, ANSWERED]]);
  await memd.flush({ user_id, wait: true });
  assert.match((await memd.inject({ user_id })).text, /Porto[^]*绿茶/);
});

test("a memd that hangs costs the call its time limit, not the answer", async () => {
  const { heard, streamed, generated } = talk({ push: hangs, inject: hangs, options: { timeoutMs: 20 } });
  assert.deepEqual(await all(await streamed()), ANSWER);
  assert.deepEqual(heard, ["inject_failed E_TIMEOUT", "push_delayed E_TIMEOUT"]);
  assert.deepEqual((await generated()).content, [{ type: "text", text: "A fine city. 好茶。" }]);
});

test("onError and waitUntil may throw, and the answer still arrives", async (context) => {
  const warn = context.mock.method(console, "warn", () => {});
  const thrown = () => {
    throw new Error("a bug of the app");
  };
  const rejected = () => Promise.reject(new Error("a bug of the app"));
  for (const options of [{ onError: thrown }, { onError: rejected }, { onError: thrown, waitUntil: thrown }]) {
    const { streamed, generated } = talk({ push: thrown, inject: thrown, options });
    assert.deepEqual(await all(await streamed()), ANSWER);
    assert.equal((await generated()).content.length, 1);
  }
  const warnings = warn.mock.calls.map(({ arguments: [text] }) => String(text));
  assert.ok(warnings.includes("memd: onError failed on push_delayed E_UNREACHABLE"));
  assert.ok(warnings.includes("memd: waitUntil threw, so the call waits for the push"));
  assert.ok(!warnings.some((text) => text.includes("Porto")));
});

test("with waitUntil a stream closes while the push is under way", async () => {
  /** @type {() => void} */
  let go = () => {};
  const gate = new Promise((resolve) => (go = () => resolve(undefined)));
  /** @type {Promise<void>[]} */
  const later = [];
  /** @type {string[]} */
  const order = [];
  /** @type {typeof fetch} */
  const push = async (input, init) => {
    await gate;
    order.push("push");
    return fetch(input, init);
  };
  const { pushed, streamed } = talk({ push, options: { waitUntil: (done) => void later.push(done) } });
  await all(await streamed());
  order.push("closed");
  go();
  await Promise.all(later);
  assert.deepEqual([order, pushed], [["closed", "push"], [[SAID, ANSWERED]]]);
});

test("cancelled or aborted half way, what the user said is pushed without half an answer", async () => {
  const cancelled = talk({ chunks: ANSWER.slice(0, 2), end: () => {} }); // the model goes on thinking
  const reader = (await cancelled.streamed()).getReader();
  await reader.read();
  await reader.cancel();
  assert.deepEqual(cancelled.pushed, [[SAID]]);

  const controller = new AbortController();
  const stop = new Error("the user pressed stop");
  const aborted = talk({
    chunks: ANSWER.slice(0, 3),
    signal: controller.signal,
    end: (stream) => {
      controller.abort(stop);
      stream.error(stop);
    },
  });
  await assert.rejects(all(await aborted.streamed()), stop);
  assert.deepEqual(aborted.pushed, [[SAID]]);
});

test("cancelled after its end, a stream is pushed as a whole, and once", async () => {
  const { pushed, streamed } = talk({});
  const reader = (await streamed()).getReader();
  for (let chunk; chunk?.type !== "finish"; ) chunk = (await reader.read()).value;
  await reader.cancel();
  assert.deepEqual(pushed, [[SAID, ANSWERED]]);
});

test("a stream that breaks passes its error on, and pushes nothing", async () => {
  const broken = new Error("connection reset");
  const { pushed, streamed } = talk({ chunks: ANSWER.slice(0, 3), end: (stream) => stream.error(broken) });
  await assert.rejects(all(await streamed()), broken);
  const failed = talk({ chunks: [...ANSWER.slice(0, 2), { type: "error", error: broken }, finish("error")] });
  assert.equal((await all(await failed.streamed())).length, 4);
  assert.deepEqual([pushed, failed.pushed], [[], []]);
});

test("of a loop of tools the user's message is pushed at once, the rest at its end", async () => {
  const step = talk({ chunks: [finish("tool-calls")] });
  await all(await step.streamed());
  assert.deepEqual(step.pushed, [[SAID]]);
  /** @type {Prompt} */
  const prompt = [
    ...PROMPT,
    { role: "assistant", content: [{ type: "tool-call", toolCallId: "1", toolName: "weather", input: {} }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: "1", toolName: "weather", output: { type: "text", value: "Sun." } }] },
  ];
  const next = talk({ prompt, chunks: [finish("tool-calls")] });
  await all(await next.streamed());
  assert.deepEqual(next.pushed, []);
  const last = talk({ prompt });
  await all(await last.streamed());
  assert.deepEqual(last.pushed, [[SAID, "assistant: (tool-call)", ANSWERED]]);
});
