import type { LanguageModelMiddleware } from "ai";
import type { Memd } from "./client.js";
import { MemdError } from "./errors.js";
/** What a call names in `providerOptions.memd`: its user, its conversation, and whether memory takes part. */
export type MemdRun = {
    user_id?: string | undefined;
    /** The conversation; `session_id` is another name of it. */
    thread_id?: string | undefined;
    session_id?: string | undefined;
    /** What the user is called. */
    user_name?: string | undefined;
    /** The project that the user's new message is about; its facts are in the block, too. */
    project_id?: string | undefined;
    /** Default: true. With false the call gets no block and is not pushed. */
    enable_memory?: boolean | undefined;
};
export interface MemdMiddlewareOptions {
    memd: Memd;
    /** The only user that this model serves; the call's `user_id` is then ignored. */
    user_id?: string | undefined;
    /** Gives this agent a separate memory of its users. */
    agent_name?: string | undefined;
    /** Budget of the block, in estimated tokens. Default: the server's setting. */
    max_tokens?: number | undefined;
    /** Facts that match the user's last message come first. The block then changes with each message. */
    relevant?: boolean | undefined;
    /** How long each request to memd may hold the call up, in milliseconds. Default: 2,000. */
    timeoutMs?: number | undefined;
    /**
     * Takes the push over, so that the call need not wait for it: `waitUntil` of the platform, or `after` of Next.js. The
     * promise never rejects.
     */
    waitUntil?: ((pushed: Promise<void>) => void) | undefined;
    /** Hears of what failed; the call goes on. Default: a warning on the console with the error's code. */
    onError?: ((event: MemdEvent, error: MemdError) => unknown) | undefined;
}
/** push_delayed: what was said comes with the conversation's next call. push_refused: memd will not take it. */
export type MemdEvent = "inject_failed" | "push_delayed" | "push_refused";
/**
 * Memory for a language model of the AI SDK: the block goes into the system prompt of each call, and what was said is
 * pushed when the model has answered.
 *
 * The conversation is pushed as the call has it. memd knows the messages that it has already, so neither the steps of a
 * tool loop nor a repeated call store anything twice. A call that fails pushes nothing; its messages come with the next
 * call of the conversation. Nothing that fails here, in memd or in `onError` and `waitUntil`, costs the app the answer.
 */
export declare function memdMiddleware(options: MemdMiddlewareOptions): LanguageModelMiddleware;
