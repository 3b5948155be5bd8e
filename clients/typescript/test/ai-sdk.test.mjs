// The middleware in the real AI SDK, 7 and 6, with a model endpoint of ours. Needs the packages of `npm ci`.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { Memd, MemdError } from "memd-client";
import { memdMiddleware } from "memd-client/ai-sdk";
import { all, startModel } from "./model.mjs";
import { start } from "./server.mjs";

const sdk = await import("ai").catch(() => undefined);
const skip = sdk === undefined && "not run: the packages are not installed (npm ci)";

/** @type {import("./server.mjs").Running} */
let served;
/** @type {Awaited<ReturnType<typeof startModel>>} */
let model;
/** @type {Array<import("memd-client").Push>} */
let pushed = [];

before(async () => {
  served = await start();
  model = await startModel();
});
after(async () => {
  await model.stop();
  await served.stop();
});

/** A client whose pushes are noted. */
function noting() {
  pushed = [];
  /** @type {typeof fetch} */
  const noted = (input, init) => {
    if (String(input).endsWith("/v1/push")) pushed.push(JSON.parse(String(init?.body)));
    return fetch(input, init);
  };
  return new Memd({ url: served.url, token: served.tokens.desk, fetch: noted });
}

const someone = () => `ana ${randomUUID()}`;

/**
 * A model of the SDK with memory. A slow machine may take more than the usual two seconds.
 * @param {Partial<import("memd-client/ai-sdk").MemdMiddlewareOptions>} options
 */
async function remembering(options = {}) {
  const { wrapLanguageModel } = await import("ai");
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const memd = noting();
  const middleware = memdMiddleware({ memd, timeoutMs: 60_000, ...options });
  const plain = createOpenAICompatible({ name: "ours", baseURL: model.url })("ours");
  return { memd, model: wrapLanguageModel({ model: plain, middleware }) };
}

/**
 * Wait until everything that was pushed for a user has ended.
 * @param {Memd} memd
 * @param {string} user_id
 */
async function settled(memd, user_id) {
  const { timed_out } = await memd.flush({ user_id, wait: true, timeout_s: 20 }, { timeoutMs: 60_000 });
  assert.equal(timed_out, false);
}

/** The system prompts of the newest request to the model. */
function systemPrompts() {
  const { messages } = model.asked.at(-1) ?? { messages: [] };
  return messages.filter(({ role }) => role === "system").map(({ content }) => content);
}

/** @param {import("memd-client").Push | undefined} push */
function linesOf(push) {
  return push?.messages.map((message) => {
    const { role, content } = /** @type {{ role: string, content: Array<{ type: string, text?: string }> }} */ (message);
    return `${role}: ${content.map(({ type, text }) => text ?? `(${type})`).join(" ")}`;
  });
}

test("what a user said in one call is known in the next one, and the model gets no ids", { skip }, async () => {
  const { generateText } = await import("ai");
  const user_id = someone();
  const { memd, model: remembers } = await remembering();
  const call = { model: remembers, instructions: "Be kind.", providerOptions: { memd: { user_id, thread_id: "t-1" } } };
  model.replies.push({ text: "A fine city. 好茶。" }, { text: "In Porto, with green tea." });
  await generateText({ ...call, prompt: "I live in Porto. 我喜欢喝绿茶。" });
  assert.deepEqual(systemPrompts(), ["Be kind."]);
  await settled(memd, user_id);
  const { text } = await generateText({ ...call, prompt: "Where do I live?" });
  assert.equal(text, "In Porto, with green tea.");
  assert.equal(systemPrompts().length, 1);
  assert.match(String(systemPrompts()[0]), /^Be kind\.\n\n<memory>\nWhat is remembered [^]*Porto[^]*绿茶[^]*<\/memory>$/);
  assert.ok(!JSON.stringify(model.asked).includes(user_id));
  assert.deepEqual(pushed.map(linesOf), [
    ["user: I live in Porto. 我喜欢喝绿茶。", "assistant: A fine city. 好茶。"],
    ["user: Where do I live?", "assistant: In Porto, with green tea."],
  ]);
});

test("a stream passes unchanged, and is pushed when it ends", { skip }, async () => {
  const { streamText } = await import("ai");
  const user_id = someone();
  const { memd, model: remembers } = await remembering();
  model.replies.push({ text: "杭州很美，龙井茶也好喝。" });
  const providerOptions = { memd: { user_id, session_id: "t-1", user_name: "王芳" } };
  const { textStream } = streamText({ model: remembers, prompt: "我住在杭州。", providerOptions });
  assert.equal((await all(textStream)).join(""), "杭州很美，龙井茶也好喝。");
  await settled(memd, user_id);
  assert.deepEqual(pushed.map(linesOf), [["user: 我住在杭州。", "assistant: 杭州很美，龙井茶也好喝。"]]);
  assert.equal(pushed[0]?.user_name, "王芳");
  assert.match((await memd.inject({ user_id })).text, /杭州/);
});

test("an answer that the user stops is pushed without its half", { skip }, async () => {
  const { streamText } = await import("ai");
  const user_id = someone();
  const controller = new AbortController();
  /** @type {Array<Promise<void>>} */
  const later = [];
  const { model: remembers } = await remembering({ waitUntil: (done) => void later.push(done) });
  model.replies.push({ text: "A fine city on the Douro.", hangs: true });
  const providerOptions = { memd: { user_id, thread_id: "t-1" } };
  const { textStream } = streamText({ model: remembers, prompt: "I live in Porto.", providerOptions, abortSignal: controller.signal });
  const read = [];
  for await (const text of textStream) {
    read.push(text);
    controller.abort();
  }
  assert.ok(read.length > 0);
  await Promise.all(later);
  assert.deepEqual(pushed.map(linesOf), [["user: I live in Porto."]]);
});

test("a loop of tools is pushed without what the tools said", { skip }, async () => {
  const { generateText, isStepCount, tool } = await import("ai");
  const { z } = await import("zod");
  const user_id = someone();
  const { memd, model: remembers } = await remembering();
  const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: async () => "I live in Madrid, says the tool." });
  model.replies.push({ tool: "weather", input: { city: "Porto" } }, { text: "It is sunny." });
  const { text } = await generateText({
    model: remembers,
    prompt: "I live in Porto. How is the weather?",
    tools: { weather },
    stopWhen: isStepCount(3),
    providerOptions: { memd: { user_id, thread_id: "t-1" } },
  });
  assert.equal(text, "It is sunny.");
  await settled(memd, user_id);
  const turns = ["user: I live in Porto. How is the weather?", "assistant: (tool-call)", "assistant: It is sunny."];
  assert.deepEqual(pushed.map(linesOf), [turns.slice(0, 1), turns]);
  assert.deepEqual((await memd.facts({ user_id })).facts.map(({ content }) => /Porto/.test(content)), [true]);
});

test("a conversation that is sent again stores nothing twice", { skip }, async () => {
  const { generateText } = await import("ai");
  const user_id = someone();
  const { memd, model: remembers } = await remembering();
  const call = { model: remembers, providerOptions: { memd: { user_id, thread_id: "t-1" } } };
  model.replies.push({ text: "Noted." }, { text: "Noted, too." });
  /** @type {import("ai").ModelMessage[]} */
  const messages = [{ role: "user", content: "I work at Siemens." }];
  const first = await generateText({ ...call, messages });
  await settled(memd, user_id);
  messages.push(...first.response.messages, { role: "user", content: "I am allergic to nuts. \ud83d" });
  await generateText({ ...call, messages });
  await settled(memd, user_id);
  const { facts } = await memd.facts({ user_id });
  assert.deepEqual(facts.filter(({ content }) => content.includes("Siemens")).length, 1);
  assert.deepEqual(linesOf(pushed[1]), [
    "user: I work at Siemens.", "assistant: Noted.", "user: I am allergic to nuts. \ufffd", "assistant: Noted, too.",
  ]);
});

test("memd away: the model answers, and the app hears of it", { skip }, async () => {
  const { generateText } = await import("ai");
  /** @type {string[]} */
  const heard = [];
  const { model: remembers } = await remembering({
    memd: new Memd({ url: "http://127.0.0.1:1" }),
    onError: (event, error) => heard.push(`${event} ${error.code}`),
  });
  model.replies.push({ text: "Hello." });
  const { text } = await generateText({ model: remembers, prompt: "Hi.", providerOptions: { memd: { user_id: "ana", thread_id: "t" } } });
  assert.equal(text, "Hello.");
  assert.deepEqual(heard, ["inject_failed E_UNREACHABLE", "push_delayed E_UNREACHABLE"]);
});

test("a call without memory is neither given a block nor pushed; one without a user is refused", { skip }, async () => {
  const { generateText } = await import("ai");
  const user_id = someone();
  const { memd, model: remembers } = await remembering();
  await memd.addFact({ user_id, content: "Lives in Porto." });
  model.replies.push({ text: "Hello." });
  /** @param {import("memd-client/ai-sdk").MemdRun} run */
  const call = (run) => generateText({ model: remembers, prompt: "Hi.", maxRetries: 0, providerOptions: { memd: run } });
  await call({ user_id, thread_id: "t-1", enable_memory: false });
  assert.deepEqual([systemPrompts(), pushed], [[], []]);
  const asked = model.asked.length;
  for (const [run, code] of /** @type {const} */ ([
    [{ thread_id: "t-1" }, "E_USER_ID_MISSING"],
    [{ user_id }, "E_THREAD_ID_MISSING"],
    [{ user_id, thread_id: "t-1", enable_memroy: false }, "E_UNKNOWN_FIELD"],
    [{ user_id, thread_id: "t-1", enable_memory: "no" }, "E_ENABLE_MEMORY"],
  ]))
    await assert.rejects(call(/** @type {{}} */ (run)), (error) => error instanceof MemdError && error.code === code);
  assert.equal(model.asked.length, asked);
});

test("the block is not put where a cached prefix ends, and facts that match come first", { skip }, async () => {
  const { generateText } = await import("ai");
  const user_id = someone();
  const { memd, model: remembers } = await remembering({ user_id, relevant: true, max_tokens: 40 });
  for (const content of ["Lives in Porto.", "Plays the violin.", "Likes green tea.", "用户在学葡萄牙语。"])
    await memd.addFact({ user_id, content });
  model.replies.push({ text: "Tea." });
  await generateText({
    model: remembers,
    allowSystemInMessages: true,
    messages: [
      { role: "system", content: "Long rules.", providerOptions: { ours: { cacheControl: "ephemeral" } } },
      { role: "user", content: [{ type: "text", text: "Which green tea do I like?" }] },
    ],
    providerOptions: { memd: { user_id: "somebody else", thread_id: "t-1" } },
  });
  const [rules, block] = systemPrompts();
  assert.equal(rules, "Long rules.");
  assert.match(String(block), /green tea/);
  assert.equal(pushed[0]?.user_id, user_id);
});

test("a project gets the user's new message, and nothing said before", { skip }, async () => {
  const { generateText } = await import("ai");
  const user_id = someone();
  const { model: remembers } = await remembering();
  model.replies.push({ text: "Good." });
  await generateText({
    model: remembers,
    messages: [
      { role: "user", content: "I am ill." },
      { role: "assistant", content: "Get well." },
      { role: "user", content: "We decided on Rust." },
    ],
    providerOptions: { memd: { user_id, thread_id: "t-1", project_id: "apollo" } },
  });
  assert.deepEqual(pushed.map((push) => [push.project_id, push.messages.length]), [[undefined, 2], ["apollo", 4]]);
});

test("AI SDK 6 takes it, too", { skip }, async () => {
  const { generateText, streamText, wrapLanguageModel } = await import("ai-6");
  const { MockLanguageModelV3, simulateReadableStream } = await import("ai-6/test");
  const user_id = someone();
  const memd = noting();
  const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
  const finishReason = /** @type {const} */ ({ unified: "stop", raw: "stop" });
  const plain = new MockLanguageModelV3({
    doGenerate: async () => ({ content: [{ type: "text", text: "Noted." }], finishReason, usage, warnings: [] }),
    doStream: async () => ({
      stream: simulateReadableStream({
        chunks: [
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "In Por" },
          { type: "text-delta", id: "1", delta: "to." },
          { type: "text-end", id: "1" },
          { type: "finish", finishReason, usage },
        ],
      }),
    }),
  });
  const middleware = /** @type {import("ai-6").LanguageModelMiddleware} */ (
    /** @type {unknown} */ (memdMiddleware({ memd, user_id, timeoutMs: 60_000 }))
  );
  const call = { model: wrapLanguageModel({ model: plain, middleware }), providerOptions: { memd: { thread_id: "t-1" } } };
  await generateText({ ...call, prompt: "I live in Porto." });
  await settled(memd, user_id);
  const { textStream } = streamText({ ...call, prompt: "Where do I live?" });
  assert.equal((await all(textStream)).join(""), "In Porto.");
  assert.match(JSON.stringify(plain.doStreamCalls[0]?.prompt), /<memory>.*Porto/);
  assert.deepEqual(linesOf(pushed[1]), ["user: Where do I live?", "assistant: In Porto."]);
});
