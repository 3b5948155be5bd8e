import type { LanguageModelMiddleware } from "ai";
import type { Message } from "./client.js";
export type Params = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];
export type Prompt = Params["prompt"];
export type Generated = Awaited<ReturnType<Parameters<NonNullable<LanguageModelMiddleware["wrapGenerate"]>>[0]["doGenerate"]>>;
/** How an answer ended; cancelled: by the app, which has at most a part of it. */
export type Ending = Generated["finishReason"]["unified"] | "cancelled";
/**
 * The prompt with the block behind the system text that leads it. Some models take one system message only, so it goes
 * into that one; but a message with provider options may end a cached prefix, which must not change with the memory.
 */
export declare function withBlock(prompt: Prompt, block: string): Prompt;
/**
 * The messages to push. An answer that calls tools is pushed with the loop's next steps; should there be none, memd has
 * the user's message, which comes with the first step.
 */
export declare function saidIn(prompt: Prompt, reply: readonly string[], ending: Ending): Message[];
/** The texts of an answer. */
export declare function textsOf(content: Generated["content"]): string[];
/** Whether the user said it. */
export declare function isUsers(message: Message): boolean;
/** What the user said last, as a query; undefined when that is no text. */
export declare function lastUserText(prompt: Prompt): string | undefined;
