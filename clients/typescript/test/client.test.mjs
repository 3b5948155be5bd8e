// The client against a real `memd serve`. Needs nothing but Node.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { inspect } from "node:util";
import { Memd, MemdError } from "memd-client";
import { freePort, start } from "./server.mjs";

/** @type {import("./server.mjs").Running} */
let served;
/** @type {Memd} */
let memd;

before(async () => {
  served = await start();
  memd = new Memd({ url: served.url, token: served.tokens.desk, timeoutMs: 60_000 });
});
after(() => served.stop());

/** A user that no other test has. */
const someone = () => `ana ${randomUUID()}`;

/**
 * The error that a call rejects with.
 * @param {Promise<unknown>} call
 */
async function errorOf(call) {
  const error = await call.then(
    () => assert.fail("it was not refused"),
    (/** @type {unknown} */ reason) => reason,
  );
  assert.ok(error instanceof MemdError, inspect(error));
  return error;
}

/**
 * A fetch that gives these answers first, then memd's: an error is thrown, null takes the request and loses the reply.
 * @param {Array<Response | Error | null>} answers
 */
function disturbed(...answers) {
  const asked = { count: 0 };
  /** @type {typeof fetch} */
  const instead = async (input, init) => {
    const answer = answers[asked.count++];
    if (answer instanceof Error) throw answer;
    if (answer instanceof Response) return answer;
    const reply = await fetch(input, init);
    if (answer === null) throw new TypeError("fetch failed");
    return reply;
  };
  return { asked, memd: new Memd({ url: served.url, token: served.tokens.desk, timeoutMs: 60_000, fetch: instead }) };
}

/**
 * A refusal as memd sends it.
 * @param {number} status
 * @param {string} code
 * @param {Record<string, string>} headers
 */
function problem(status, code, headers = {}) {
  const body = { type: `urn:memd:problem:${code}`, title: "", status, detail: "try again", code };
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/problem+json", ...headers } });
}

test("what was said in English and Chinese is stored, injected and found", async () => {
  const user_id = someone();
  const messages = [
    { id: "1", role: "user", content: "I live in Porto. 我喜欢喝绿茶。" },
    { id: "2", role: "assistant", content: "A fine city. 好茶。" },
  ];
  const receipt = await memd.push({ user_id, thread_id: "t-1", messages });
  assert.equal(receipt.status, "queued");
  const outcome = await memd.ended(receipt, user_id);
  assert.equal(outcome.state, "stored");
  assert.equal(outcome.fact_ids.length, 2);
  const { text } = await memd.inject({ user_id });
  assert.match(text, /^<memory>\n[^]*Porto[^]*绿茶[^]*<\/memory>$/);
  const [found] = await memd.search({ user_id, query: "喝什么", limit: 1 });
  assert.match(String(found?.fact.content), /绿茶/);
  const [where] = await memd.search({ user_id, query: "Porto", limit: 1, explain: true });
  assert.match(String(where?.fact.content), /Porto/);
  assert.ok(where?.explain);
});

test("a push whose reply was lost is repeated, and stored once", async () => {
  const user_id = someone();
  const { asked, memd: unlucky } = disturbed(null, new TypeError("fetch failed"));
  const push = { user_id, thread_id: "t-1", messages: [{ role: "user", content: "I work at Siemens." }] };
  const receipt = await unlucky.push(push);
  assert.equal(asked.count, 3);
  await memd.ended(receipt, user_id);
  await memd.ended(await memd.push(push), user_id);
  assert.equal((await memd.facts({ user_id })).facts.length, 1);
});

test("a push with nothing to remember has ended at once, with the reason", async () => {
  const user_id = someone();
  const receipt = await memd.push({ user_id, thread_id: "t-1", messages: [{ role: "user", content: "Thanks! 谢谢！" }] });
  assert.equal(receipt.id, null);
  const { state, reason } = await memd.ended(receipt, user_id);
  assert.deepEqual([state, reason], ["skipped", "nothing_left"]);
});

test("waiting for a push has a time limit, and can be taken up again", async () => {
  const user_id = someone();
  const receipt = await memd.push({ user_id, thread_id: "t-1", messages: [{ role: "user", content: "I live in Lyon." }] });
  assert.equal((await errorOf(memd.ended(receipt, user_id, { timeoutMs: 1 }))).code, "E_TIMEOUT");
  assert.equal((await memd.ended(String(receipt.id), user_id)).state, "stored");
});

test("an outage while waiting is waited out", async () => {
  const user_id = someone();
  const receipt = await memd.push({ user_id, thread_id: "t-1", messages: [{ role: "user", content: "I live in Rome." }] });
  const { asked, memd: unlucky } = disturbed(problem(503, "E_INBOX_UNAVAILABLE"), new TypeError("fetch failed"));
  assert.equal((await unlucky.ended(receipt, user_id, { retries: 0 })).state, "stored");
  assert.ok(asked.count > 2);
});

test("refusals have code, field and limit, and never what was said or who", async () => {
  const user_id = `secret-user-${randomUUID()}`;
  const push = { user_id, thread_id: "secret-thread", messages: [{ role: "secret-role", content: "a secret text 秘密" }] };
  const role = await errorOf(memd.push(push));
  assert.deepEqual([role.code, role.field, role.status, role.temporary], ["E_ROLE", "role", 422, false]);
  const limit = await errorOf(memd.search({ user_id, query: "secret", limit: 1_000_000 }));
  assert.deepEqual([limit.code, limit.field, typeof limit.limit], ["E_LIMIT", "limit", "number"]);
  const surrogate = await errorOf(memd.facts({ user_id: `${user_id}\ud83d` }));
  assert.deepEqual([surrogate.code, surrogate.field], ["E_SURROGATE", "user_id"]);
  const proxy = new Response(`<html>secret</html>`, { status: 502, headers: { "content-type": "text/html" } });
  const html = await errorOf(disturbed(proxy).memd.push(push, { retries: 0 }));
  assert.deepEqual([html.code, html.status, html.temporary], ["E_REPLY", 502, true]);
  const half = new Response('{"text": "secret', { headers: { "content-type": "application/json" } });
  const cut = await errorOf(disturbed(half).memd.inject({ user_id }));
  assert.equal(cut.code, "E_REPLY");
  const away = await errorOf(new Memd({ url: `http://127.0.0.1:${await freePort()}`, token: "secret-token", retries: 0 }).push(push));
  assert.deepEqual([away.code, away.status, away.temporary], ["E_UNREACHABLE", 0, true]);
  assert.match(away.message, /ECONNREFUSED/);
  const page = new Response("<html>secret</html>", { headers: { "content-type": "text/html" } });
  const login = await errorOf(disturbed(page).memd.push(push));
  assert.deepEqual([login.code, login.status, login.temporary], ["E_REPLY", 200, false]);
  const other = await errorOf(disturbed(new Response("secret")).memd.removeFact({ user_id, fact_id: "fact_00000000" }));
  assert.equal(other.code, "E_REPLY");
  const named = new Error(`Failed to parse URL from /v1/facts?user_id=${user_id}`);
  const address = await errorOf(disturbed(named).memd.facts({ user_id }, { retries: 0 }));
  assert.equal(address.code, "E_UNREACHABLE");
  for (const error of [role, limit, surrogate, html, cut, away, login, other, address]) assert.doesNotMatch(inspect(error), /secret|秘密/);
});

test("no token, one of another user, and a missing scope are told apart", async () => {
  const [user_id, shopper] = [someone(), `shop:${randomUUID()}`];
  const shop = new Memd({ url: served.url, token: served.tokens.shop, timeoutMs: 60_000 });
  assert.equal((await errorOf(new Memd({ url: served.url }).inject({ user_id }))).code, "E_TOKEN");
  assert.equal((await errorOf(shop.inject({ user_id }))).code, "E_NOT_FOUND");
  assert.equal((await errorOf(shop.users())).status, 403);
  const receipt = await shop.push({ user_id: shopper, thread_id: "t", messages: [{ role: "user", content: "I live in Bern." }] });
  assert.equal((await errorOf(memd.receipt({ receipt_id: String(receipt.id), user_id }))).code, "E_NOT_FOUND");
});

test("only what memd may answer otherwise later is repeated", async () => {
  const user_id = someone();
  for (const later of [problem(503, "E_INBOX_FULL", { "retry-after": "0" }), problem(409, "E_CONFLICT")]) {
    const { asked, memd: busy } = disturbed(later);
    await busy.inject({ user_id });
    assert.equal(asked.count, 2);
  }
  for (const never of [problem(422, "E_ROLE"), problem(409, "E_PROJECT_EXISTS"), problem(500, "E_INTERNAL")]) {
    const { asked, memd: strict } = disturbed(never);
    await errorOf(strict.inject({ user_id }));
    assert.equal(asked.count, 1);
  }
  const { asked, memd: full } = disturbed(problem(503, "E_INBOX_FULL", { "retry-after": "60" }));
  const error = await errorOf(full.inject({ user_id }, { timeoutMs: 5_000 }));
  assert.deepEqual([error.code, error.retryAfterMs, asked.count], ["E_INBOX_FULL", 60_000, 1]); // no time to wait that long
});

test("what may be done twice is repeated; a removal and a forgetting are not, unless the call says so", async () => {
  const user_id = someone();
  const id = await memd.addFact({ user_id, content: "Lives in Porto." });
  const lost = disturbed(null);
  const error = await errorOf(lost.memd.removeFact({ user_id, fact_id: id }));
  assert.deepEqual([error.code, error.temporary, lost.asked.count], ["E_UNREACHABLE", true, 1]);
  assert.equal((await errorOf(memd.removeFact({ user_id, fact_id: id }))).code, "E_NOT_FOUND"); // it was done
  const forgotten = disturbed(null);
  await errorOf(forgotten.memd.forget({ user_id }));
  assert.equal(forgotten.asked.count, 1);
  const told = disturbed(new TypeError("fetch failed"));
  await told.memd.forget({ user_id }, { retries: 1 });
  assert.equal(told.asked.count, 2);
  const set = disturbed(null);
  await set.memd.call("setProfile", { user_id, field: "username", value: "Ana" });
  assert.equal(set.asked.count, 2);
});

test("an unconfirmed push is one that was taken: its end can be waited for", async () => {
  const user_id = someone();
  const push = { user_id, thread_id: "t-1", messages: [{ role: "user", content: "I live in Turin." }] };
  const receipt = await memd.push(push);
  const body = JSON.stringify({ ...receipt, status: "unconfirmed" });
  const reply = new Response(body, { status: 202, headers: { "content-type": "application/json" } });
  const unconfirmed = await disturbed(reply).memd.push(push);
  assert.equal(unconfirmed.status, "unconfirmed");
  assert.equal((await memd.ended(unconfirmed, user_id)).state, "stored");
  await memd.ended(await memd.push(push), user_id); // to confirm it
  assert.equal((await memd.facts({ user_id })).facts.length, 1);
});

test("a call ends with its time, or when its signal is aborted", async () => {
  const user_id = someone();
  /** @type {typeof fetch} */
  const hangs = (_, init) => new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(new Error())));
  const stuck = new Memd({ url: served.url, fetch: hangs, timeoutMs: 20 });
  assert.equal((await errorOf(stuck.inject({ user_id }))).code, "E_TIMEOUT");
  const gone = new Error("the page was left");
  const controller = new AbortController();
  const call = stuck.inject({ user_id }, { signal: controller.signal, timeoutMs: 60_000 });
  controller.abort(gone);
  await assert.rejects(call, gone);
  await assert.rejects(memd.inject({ user_id }, { signal: AbortSignal.abort(gone) }), gone);
  await assert.rejects(memd.ended("x.y.1", user_id, { signal: AbortSignal.abort(gone) }), gone);
});

test("facts are added, listed, changed and removed by hand; users are listed and forgotten", async () => {
  const user_id = `王 & 李/${randomUUID()}`;
  const id = await memd.addFact({ user_id, content: "Lives in Porto.", category: "identity" });
  const note = await memd.addNote({ user_id, content: "用户喜欢简短的回答。" });
  await memd.editFact({ user_id, fact_id: id, content: "Lives in Lisbon." });
  const { facts } = await memd.facts({ user_id });
  assert.deepEqual(facts.map(({ content }) => content).sort(), ["Lives in Lisbon.", "用户喜欢简短的回答。"]);
  await memd.removeFact({ user_id, fact_id: note });
  assert.deepEqual((await memd.facts({ user_id })).facts.map((fact) => fact.id), [id]);
  const { users } = await memd.users({ find: user_id });
  assert.deepEqual(users.map((user) => [user.user_id, user.facts]), [[user_id, 1]]);
  await memd.call("setProfile", { user_id, field: "language_preference", value: "zh-CN" });
  const { profile } = await memd.call("profile", { user_id });
  assert.ok(Object.keys(profile).length > 0);
  assert.equal((await memd.forget({ user_id })).dry_run, false);
  assert.deepEqual((await memd.facts({ user_id })).facts, []);
});

test("a flush that waits has the time that memd may wait, besides its own", async (context) => {
  const timer = context.mock.method(globalThis, "setTimeout");
  const { memd: busy } = disturbed(problem(422, "E_WAIT"), problem(422, "E_WAIT"), problem(422, "E_WAIT"));
  await errorOf(busy.flush({}));
  await errorOf(busy.flush({ wait: true }));
  await errorOf(busy.flush({ wait: true, timeout_s: 5 }, { timeoutMs: 1_000 }));
  assert.deepEqual(timer.mock.calls.map(({ arguments: [, ms] }) => ms), [60_000, 80_000, 1_000]);
});

test("pending pushes become due at once with flush", async () => {
  const user_id = someone();
  await memd.push({ user_id, thread_id: "t-1", messages: [{ role: "user", content: "I live in Graz." }] });
  const { timed_out } = await memd.flush({ user_id, wait: true, timeout_s: 20 });
  assert.equal(timed_out, false);
  assert.match((await memd.inject({ user_id })).text, /Graz/);
});

test("an address or a token that cannot work is refused before anything is sent", () => {
  for (const url of ["", "127.0.0.1:8477", "ftp://host", "http://name:word@host", "http://host?x=1", "http://host/ x", "http://host:99999"])
    assert.throws(() => new Memd({ url }), /^TypeError: url is/);
  for (const url of ["http://host", "https://host:8477/memd/"]) new Memd({ url });
  assert.throws(() => new Memd({ url: "/memd" }), TypeError); // there is no page whose origin this could be on
  new Memd({ url: "/memd", fetch });
  assert.throws(() => new Memd({ url: "http://host", token: "secret\n" }), (error) => !inspect(error).includes("secret\n"));
});

test("a field cannot lead a call to another path", async () => {
  const user_id = someone();
  for (const fact_id of ["..", ".", ""]) {
    const error = await errorOf(memd.removeFact({ user_id, fact_id }));
    assert.deepEqual([error.code, error.field, error.status], ["E_FACT_ID", "fact_id", 0]);
  }
  assert.equal((await errorOf(memd.removeFact({ user_id, fact_id: "../users" }))).status, 404);
});

test("the client imports nothing but its own files, so that it runs in browsers", async () => {
  const folder = new URL("../lib/", import.meta.url);
  for (const name of (await readdir(folder)).filter((file) => file.endsWith(".js"))) {
    const code = await readFile(new URL(name, folder), "utf8");
    for (const [, from] of code.matchAll(/(?:from|import)\s*\(?\s*["']([^"']+)["']/g)) assert.match(String(from), /^\.\.?\//);
    assert.doesNotMatch(code, /\b(process|Buffer|require|__dirname)\b/);
  }
});
