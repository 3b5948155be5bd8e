/** The longest time of a timer; a longer one would end at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** The time that a call has in all, and the caller's own signal, as one signal. */
export class TimeLimit {
  readonly #controller = new AbortController();
  readonly #callers: AbortSignal | undefined;
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #until: number;
  readonly #abort = (): void => this.#controller.abort();

  /** `timeoutMs`: from now on. */
  constructor(timeoutMs: number, callers: AbortSignal | undefined) {
    this.#callers = callers;
    this.#until = performance.now() + timeoutMs;
    this.#timer = setTimeout(this.#abort, Math.min(timeoutMs, LONGEST_MS));
    if (callers?.aborted) this.#abort();
    callers?.addEventListener("abort", this.#abort, { once: true });
  }

  /** Aborted when the time is over or the caller's signal is. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get leftMs(): number {
    return Math.max(0, this.#until - performance.now());
  }

  /** Throws the reason of the caller's signal, if it was aborted. */
  throwIfAborted(): void {
    this.#callers?.throwIfAborted();
  }

  /** Wait; returns early when the signal is aborted. */
  async pause(ms: number): Promise<void> {
    if (this.signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.signal.addEventListener("abort", done);
    });
  }

  /** Let the timer and the caller's signal go. */
  end(): void {
    clearTimeout(this.#timer);
    this.#callers?.removeEventListener("abort", this.#abort);
  }
}
