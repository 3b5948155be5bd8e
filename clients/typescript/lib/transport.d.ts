/** How a client reaches memd. */
export interface MemdOptions {
    /** The address of `memd serve`, such as http://127.0.0.1:8477; in a browser also a path of the page's own origin. */
    url: string;
    /** A token (`memd token add`), where the server asks for one. Never give it to a browser: proxy the calls. */
    token?: string | undefined;
    /** The time of one call with all its repetitions, in milliseconds. Default: 10,000. */
    timeoutMs?: number | undefined;
    /** How often a call that may be repeated is, at most, when no answer came or memd was not able. Default: 2. */
    retries?: number | undefined;
    /** Default: the global fetch. */
    fetch?: typeof globalThis.fetch | undefined;
}
/** What one call may do otherwise than its client. */
export interface CallOptions {
    /** Ends the call; it then rejects with the signal's reason. */
    signal?: AbortSignal | undefined;
    timeoutMs?: number | undefined;
    /** Also for a call that is sent once unless it is told here. */
    retries?: number | undefined;
}
/** One request; `repeatable`: doing it twice is like doing it once, also for the reply. */
export interface Request {
    method: string;
    path: string;
    body: unknown;
    reply: Reply;
    repeatable: boolean;
}
/** What a response without refusal carries. */
export type Reply = "json" | "text" | "none";
/** Sends requests, within a time limit, and repeats those that got no answer, or one that says "later". */
export declare class Transport {
    #private;
    /** The time of a call, unless its options say otherwise. */
    readonly timeoutMs: number;
    constructor({ url, token, timeoutMs, retries, fetch }: MemdOptions);
    /** The reply to one request: an object, a text, or undefined where there is no body. */
    send({ method, path, body, reply, repeatable }: Request, options: CallOptions): Promise<unknown>;
}
