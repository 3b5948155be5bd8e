/** What memd refused, or why no answer came. Neither message nor fields ever hold a text, an id or a token of the call. */
export class MemdError extends Error {
    name = "MemdError";
    /** What went wrong, for programs. E_UNREACHABLE and E_TIMEOUT: no answer came. E_REPLY: it was not memd's. */
    code;
    /** The HTTP status; 0 when no answer came. */
    status;
    /** The field that was refused, where one was. */
    field;
    /** The limit that it exceeds, where there is one. */
    limit;
    /** Whether the same call may succeed later. It may have been done all the same, when no answer came. */
    temporary;
    /** How long memd asks to wait before the call is repeated, in milliseconds. */
    retryAfterMs;
    constructor(code, detail, about = {}) {
        super(`${code}: ${detail}`);
        this.code = code;
        this.status = about.status ?? 0;
        this.field = about.field;
        this.limit = about.limit;
        this.temporary = about.temporary ?? false;
        this.retryAfterMs = about.retryAfterMs;
    }
}
const TEMPORARY = new Set([408, 429, 502, 503, 504]);
const CODE = /^E_[A-Z0-9_]+$/;
/** The error for a response that is no success. What a proxy may have written into it is not read. */
export async function errorOf(response) {
    const { status } = response;
    const about = { status, retryAfterMs: retryAfterMs(response.headers.get("retry-after")) };
    const problem = await problemOf(response);
    if (problem === undefined)
        return foreign(response, { ...about, temporary: TEMPORARY.has(status) });
    const { code, detail, field, limit } = problem;
    return new MemdError(code, detail, {
        ...about,
        field,
        limit,
        temporary: TEMPORARY.has(status) || code === "E_CONFLICT",
    });
}
/** The error for a fetch that failed. Only the code of what failed is told: its message may quote the address. */
export function unreachable(failure) {
    const { cause } = Object(failure);
    const code = [cause, failure].map((one) => Object(one).code).find(isSystemCode);
    const detail = code === undefined ? "no answer from memd" : `no answer from memd (${code})`;
    return new MemdError("E_UNREACHABLE", detail, { temporary: true });
}
function isSystemCode(code) {
    return typeof code === "string" && /^[A-Z][A-Z0-9_]{2,40}$/.test(code);
}
async function problemOf(response) {
    if (!isOf(response, "application/problem+json"))
        return undefined;
    const found = parsed(await response.text());
    const { code, detail, field, limit } = Object(found);
    if (typeof code !== "string" || !CODE.test(code) || typeof detail !== "string")
        return undefined;
    return {
        code,
        detail,
        field: typeof field === "string" ? field : undefined,
        limit: typeof limit === "number" ? limit : undefined,
    };
}
/** The JSON of a body, which is an object; E_REPLY when it is something else, which no memd sent. */
export async function jsonOf(response) {
    const { status } = response;
    if (!isOf(response, "application/json"))
        throw await foreign(response);
    const found = parsed(await response.text());
    if (typeof found === "object" && found !== null)
        return found;
    throw new MemdError("E_REPLY", "the body of the reply is not the JSON of an object", { status });
}
/** Nothing, as memd says it. A page of something else says 200. */
export async function nothingOf(response) {
    if (response.status !== 204)
        throw await foreign(response);
}
/** The error for a reply that memd did not send. Its body is not read, so that the connection is free. */
async function foreign(response, about = { status: response.status }) {
    if (!response.bodyUsed)
        await response.body?.cancel().catch(() => undefined); // it broke already
    const detail = `status ${response.status}, and not by memd: check the url, and the proxy before it`;
    return new MemdError("E_REPLY", detail, about);
}
function isOf(response, type) {
    return response.headers.get("content-type")?.startsWith(type) ?? false;
}
/** What a text is in JSON; undefined for none. The SyntaxError is not passed on: it quotes what may be a user's text. */
function parsed(text) {
    try {
        return JSON.parse(text);
    }
    catch {
        return undefined;
    }
}
function retryAfterMs(header) {
    return header !== null && /^[0-9]{1,6}$/.test(header) ? Number(header) * 1000 : undefined;
}
