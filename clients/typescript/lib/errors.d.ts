/** A code of this client, or one of memd's (docs/http.md). */
export type MemdErrorCode = "E_UNREACHABLE" | "E_TIMEOUT" | "E_REPLY" | "E_SURROGATE" | (string & {});
/** What memd refused, or why no answer came. Neither message nor fields ever hold a text, an id or a token of the call. */
export declare class MemdError extends Error {
    readonly name = "MemdError";
    /** What went wrong, for programs. E_UNREACHABLE and E_TIMEOUT: no answer came. E_REPLY: it was not memd's. */
    readonly code: MemdErrorCode;
    /** The HTTP status; 0 when no answer came. */
    readonly status: number;
    /** The field that was refused, where one was. */
    readonly field: string | undefined;
    /** The limit that it exceeds, where there is one. */
    readonly limit: number | undefined;
    /** Whether the same call may succeed later. It may have been done all the same, when no answer came. */
    readonly temporary: boolean;
    /** How long memd asks to wait before the call is repeated, in milliseconds. */
    readonly retryAfterMs: number | undefined;
    constructor(code: MemdErrorCode, detail: string, about?: About);
}
/** The fields of an error, where they apply. */
export interface About {
    status?: number | undefined;
    field?: string | undefined;
    limit?: number | undefined;
    temporary?: boolean | undefined;
    retryAfterMs?: number | undefined;
}
/** The error for a response that is no success. What a proxy may have written into it is not read. */
export declare function errorOf(response: Response): Promise<MemdError>;
/** The error for a fetch that failed. Only the code of what failed is told: its message may quote the address. */
export declare function unreachable(failure: unknown): MemdError;
/** The JSON of a body, which is an object; E_REPLY when it is something else, which no memd sent. */
export declare function jsonOf(response: Response): Promise<object>;
/** Nothing, as memd says it. A page of something else says 200. */
export declare function nothingOf(response: Response): Promise<undefined>;
