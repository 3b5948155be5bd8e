/** The time that a call has in all, and the caller's own signal, as one signal. */
export declare class TimeLimit {
    #private;
    /** `timeoutMs`: from now on. */
    constructor(timeoutMs: number, callers: AbortSignal | undefined);
    /** Aborted when the time is over or the caller's signal is. */
    get signal(): AbortSignal;
    get leftMs(): number;
    /** Throws the reason of the caller's signal, if it was aborted. */
    throwIfAborted(): void;
    /** Wait; returns early when the signal is aborted. */
    pause(ms: number): Promise<void>;
    /** Let the timer and the caller's signal go. */
    end(): void;
}
