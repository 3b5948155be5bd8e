// Prompts and answers of the AI SDK: what memd puts into them, and what it gets of them.
import type { LanguageModelMiddleware } from "ai";

import type { Message } from "./client.js";

export type Params = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];
export type Prompt = Params["prompt"];
export type Generated = Awaited<ReturnType<Parameters<NonNullable<LanguageModelMiddleware["wrapGenerate"]>>[0]["doGenerate"]>>;
/** How an answer ended; cancelled: by the app, which has at most a part of it. */
export type Ending = Generated["finishReason"]["unified"] | "cancelled";

/** Characters of a query at most. */
const QUERY_CHARS = 20_000;

/**
 * The prompt with the block behind the system text that leads it. Some models take one system message only, so it goes
 * into that one; but a message with provider options may end a cached prefix, which must not change with the memory.
 */
export function withBlock(prompt: Prompt, block: string): Prompt {
  if (block === "") return prompt;
  const first = prompt.findIndex((message) => message.role !== "system");
  const end = first === -1 ? prompt.length : first;
  const last = prompt[end - 1];
  if (last?.role === "system" && last.providerOptions === undefined)
    return [...prompt.slice(0, end - 1), { ...last, content: `${last.content}\n\n${block}` }, ...prompt.slice(end)];
  return [...prompt.slice(0, end), { role: "system", content: block }, ...prompt.slice(end)];
}

/**
 * The messages to push. An answer that calls tools is pushed with the loop's next steps; should there be none, memd has
 * the user's message, which comes with the first step.
 */
export function saidIn(prompt: Prompt, reply: readonly string[], ending: Ending): Message[] {
  const goesOn = ending === "tool-calls";
  if (ending === "error" || (goesOn && prompt.at(-1)?.role !== "user")) return [];
  const messages = turnsOf(prompt);
  const content = goesOn || ending === "cancelled" ? [] : reply.filter((text) => text !== "").map(textPart);
  return content.length > 0 ? [...messages, { role: "assistant", content }] : messages;
}

/** What users and the assistant said, without the contents of files, tool calls and thoughts. */
function turnsOf(prompt: Prompt): Message[] {
  return prompt.flatMap((message): Message[] =>
    message.role === "user" || message.role === "assistant"
      ? [{ role: message.role, content: message.content.map(outline) }]
      : [],
  );
}

function outline(part: { type: string; text?: string; providerExecuted?: boolean | undefined }): object {
  if (part.type === "text") return textPart(part.text ?? "");
  return part.providerExecuted === true ? { type: part.type, providerExecuted: true } : { type: part.type };
}

function textPart(text: string): { type: "text"; text: string } {
  return { type: "text", text: text.replace(/\p{Surrogate}/gu, "\ufffd") }; // a lone half is no text; memd refuses it
}

/** The texts of an answer. */
export function textsOf(content: Generated["content"]): string[] {
  return content.flatMap((part) => (part.type === "text" ? [part.text] : []));
}

/** Whether the user said it. */
export function isUsers(message: Message): boolean {
  return "role" in message && message.role === "user";
}

/** What the user said last, as a query; undefined when that is no text. */
export function lastUserText(prompt: Prompt): string | undefined {
  const message = prompt.findLast(({ role }) => role === "user");
  if (message?.role !== "user") return undefined;
  const texts = message.content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const query = [...texts.join("\n").replace(/\p{Surrogate}/gu, "\ufffd")].slice(0, QUERY_CHARS).join("").trim();
  return query === "" ? undefined : query;
}
