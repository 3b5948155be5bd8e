import { MemdError, errorOf, jsonOf, nothingOf, unreachable } from "./errors.js";
import { TimeLimit } from "./time-limit.js";
const FIRST_PAUSE_MS = 100;
/** Sends requests, within a time limit, and repeats those that got no answer, or one that says "later". */
export class Transport {
    #base;
    #headers;
    /** The time of a call, unless its options say otherwise. */
    timeoutMs;
    #retries;
    #fetch;
    constructor({ url, token, timeoutMs = 10_000, retries = 2, fetch }) {
        this.#base = checkedUrl(url, fetch !== undefined || "location" in globalThis);
        this.#headers = token === undefined ? {} : { authorization: `Bearer ${checkedToken(token)}` };
        this.timeoutMs = timeoutMs;
        this.#retries = retries;
        this.#fetch = fetch ?? ((input, init) => globalThis.fetch(input, init)); // browsers want it called on its object
    }
    /** The reply to one request: an object, a text, or undefined where there is no body. */
    async send({ method, path, body, reply, repeatable }, options) {
        const limit = new TimeLimit(options.timeoutMs ?? this.timeoutMs, options.signal);
        const retries = options.retries ?? (repeatable ? this.#retries : 0);
        try {
            const init = this.#init(method, body, limit.signal);
            for (let attempt = 0;; attempt++) {
                try {
                    limit.throwIfAborted();
                    return await this.#attempt(path, init, reply);
                }
                catch (error) {
                    limit.throwIfAborted();
                    const failure = limit.signal.aborted ? timeIsOver() : error;
                    const pauseMs = nextPauseMs(failure, attempt);
                    const again = pauseMs !== undefined && attempt < retries && pauseMs < limit.leftMs;
                    if (!again)
                        throw failure;
                    await limit.pause(pauseMs);
                }
            }
        }
        finally {
            limit.end();
        }
    }
    #init(method, body, signal) {
        const request = {
            method,
            signal,
            headers: this.#headers,
            cache: "no-store", // some frameworks store what fetch returns unless they are told not to
            redirect: "manual", // memd sends none; a token follows none
        };
        if (body === undefined)
            return request;
        return { ...request, headers: { ...this.#headers, "content-type": "application/json" }, body: JSON.stringify(body) };
    }
    async #attempt(path, init, reply) {
        try {
            const response = await this.#fetch(this.#base + path, init);
            if (!response.ok)
                throw await errorOf(response);
            if (reply === "json")
                return await jsonOf(response);
            if (reply === "text")
                return await response.text();
            return await nothingOf(response);
        }
        catch (error) {
            throw error instanceof MemdError ? error : unreachable(error);
        }
    }
}
/** How long to wait before the call is repeated; undefined for an error that it would not change. */
function nextPauseMs(error, attempt) {
    if (!(error instanceof MemdError) || !error.temporary)
        return undefined;
    return error.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** attempt * (0.5 + Math.random() / 2);
}
function timeIsOver() {
    const detail = "no answer within the time of the call; memd may have taken it all the same";
    return new MemdError("E_TIMEOUT", detail, { temporary: true });
}
/** `hasPage`: a path alone is the address of something, on the origin of a page, or for the app's own fetch. */
function checkedUrl(url, hasPage) {
    const [, origin] = /^(https?:\/\/[^/?#@\s]+)?(\/[^?#\s]*)?$/i.exec(url) ?? [];
    const plain = url !== "" && URL.canParse(url, "http://page") && (origin !== undefined || (hasPage && url.startsWith("/")));
    if (!plain)
        throw new TypeError("url is http(s)://host[:port][/path], in a browser also /path, without a name, password or query");
    return url.replace(/\/+$/, "");
}
function checkedToken(token) {
    if (!/^[\x21-\x7e]+$/.test(token))
        throw new TypeError("token has characters that no token has");
    return token;
}
