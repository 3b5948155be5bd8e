// Checked by tsc --strict, never run: what the types of the package let pass and what they refuse.
import { wrapLanguageModel, type LanguageModel, type ModelMessage, type UIMessage } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Memd, MemdError, type Block, type Found, type Message, type Outcome, type Output, type Receipt } from "memd-client";
import { memdMiddleware, type MemdRun } from "memd-client/ai-sdk";

const memd = new Memd({ url: "http://127.0.0.1:8477", token: undefined });
const user_id = "ana";
const thread_id = "t-1";

// @ts-expect-error  a client has an address
new Memd({});

/** Messages as other packages declare them: interfaces, with fields that memd does not list. */
interface ChatMessage {
  role: "user" | "assistant" | "tool";
  content: string | Array<{ type: "text"; text: string }> | null;
  tool_calls?: Array<{ id: string }>;
}

export async function pushes(chat: ChatMessage[], model: ModelMessage[], ui: UIMessage[], signal: AbortSignal): Promise<void> {
  const receipt: Receipt = await memd.push({ user_id, thread_id, messages: chat }, { signal, timeoutMs: 1_000, retries: 0 });
  const status: "queued" | "merged" | "unconfirmed" | "skipped" | "disabled" = receipt.status;
  const outcome: Outcome = await memd.ended(receipt, user_id);
  const state: "pending" | "claimed" | "stored" | "skipped" | "dead" | "unknown" = outcome.state;
  await memd.push({ user_id, thread_id, messages: model });
  await memd.push({ user_id, thread_id, messages: ui });
  await memd.push({ user_id, thread_id, messages: [{ role: "user", content: "你好", name: "王芳", id: 1, created_at: 0, extra: true }] });
  const message: Message = { type: "human", data: { role: "user", content: "…" } };
  await memd.push({ user_id, thread_id, messages: [message], signals: ["goal"], source: { kind: "user" }, now: true });
  // @ts-expect-error  a push has a thread
  await memd.push({ user_id, messages: chat });
  // @ts-expect-error  a message has a role
  await memd.push({ user_id, thread_id, messages: [{ content: "…" }] });
  // @ts-expect-error  fields that memd does not know are refused
  await memd.push({ user_id, thread_id, messages: chat, threadId: thread_id });
  // @ts-expect-error  a signal that memd does not know
  await memd.push({ user_id, thread_id, messages: chat, signals: ["love"] });
  // @ts-expect-error  an outcome has no such field
  outcome.facts;
  // @ts-expect-error  a receipt has no such status
  if (status === "lost") return;
  console.log(state, status);
}

export async function reads(): Promise<void> {
  const block: Block = await memd.inject({ user_id, max_tokens: 500, query: "喝什么", thread_id: undefined });
  const found: Found[] = await memd.search({ user_id, query: "tea", scopes: ["user"], by: "said" });
  const content: string | undefined = found[0]?.fact.content;
  const status: "active" | "superseded" | "archived" | undefined = (await memd.facts({ user_id })).facts[0]?.status;
  const { next }: { next: string } = await memd.users();
  const why: Output<"why"> = await memd.call("why", { user_id, fact_id: "fact_00000000" });
  await memd.call("import", { user_id, document: await memd.call("export", { user_id }) });
  const gone: undefined = await memd.call("removeFact", { user_id, fact_id: "fact_00000000" });
  // @ts-expect-error  a search has a query
  await memd.search({ user_id });
  // @ts-expect-error  a scope that memd does not know
  await memd.search({ user_id, query: "tea", scopes: ["world"] });
  // @ts-expect-error  an operation that the door does not have
  await memd.call("remember", { user_id });
  // @ts-expect-error  an operation's fields are its own
  await memd.call("receipt", { user_id });
  console.log(block.text, block.version, content, status, next, why.content, gone);
}

export function errors(error: unknown): string {
  if (!(error instanceof MemdError)) return "";
  const limit: number | undefined = error.limit;
  const field: string | undefined = error.field;
  return `${error.code} ${field} ${limit} ${error.temporary}`;
}

export const model: LanguageModel = wrapLanguageModel({
  model: new MockLanguageModelV4(),
  middleware: memdMiddleware({ memd, relevant: true, onError: (event, { code }) => console.warn(event, code) }),
});
export const run: { memd: MemdRun } = { memd: { user_id, thread_id, enable_memory: true } };
// @ts-expect-error  the field is called enable_memory
export const wrong: MemdRun = { enableMemory: true };
