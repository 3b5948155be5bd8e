import { operations } from "../generated/openapi.js";
import type { Operations } from "../generated/openapi.js";
import { MemdError } from "./errors.js";
import { TimeLimit } from "./time-limit.js";
import { Transport } from "./transport.js";
import type { CallOptions, MemdOptions } from "./transport.js";

/** What an operation takes: the fields of its path, query or body, under the door's own names. */
export type Input<Name extends keyof Operations> = Operations[Name]["input"];
/** What an operation returns. */
export type Output<Name extends keyof Operations> = Operations[Name]["output"];

export type Push = Input<"push">;
/** One message of a push, in any of the shapes of docs/wire.md: OpenAI's, Anthropic's, Gemini's, the AI SDK's and others. */
export type Message = Push["messages"][number];
export type Receipt = Output<"push">;
/** The state of a push. It has ended as stored, skipped (see `reason`) or dead. */
export type Outcome = Output<"receipt">;
export type Block = Output<"injectFor">;
export type Found = Output<"search">["found"][number];
export type ListedFact = Output<"facts">["facts"][number];

const FIRST_LOOK_MS = 100;
const LAST_LOOK_MS = 2_000;
/** The time of one look, so that a server that hangs does not take all the time of the wait. */
const LOOK_MS = 10_000;
/** Longer than the default quiet time of 30 seconds and an extraction. */
const ENDS_MS = 120_000;

/** How long memd waits for a flush, unless `timeout_s` says otherwise. */
const FLUSH_S = 20;

/**
 * What may be repeated besides reading and setting: memd knows the messages of a push by their identity (their `id`,
 * else their text and what stands before it), so a push whose reply was lost is merged with itself and stored once.
 * Anything else is sent once: removed twice is "not found", and a forgetting repeated takes what was said since.
 */
const REPEATABLE: ReadonlySet<keyof Operations> = new Set(["push", "injectFor", "search", "flush"] as const);

/**
 * memd over HTTP. Each method is one operation of the door, with the fields that `/openapi.json` lists; `call` has the
 * operations without a method of their own. All reject with MemdError.
 */
export class Memd {
  readonly #transport: Transport;

  constructor(options: MemdOptions) {
    this.#transport = new Transport(options);
  }

  /** Any operation by its name in the OpenAPI document. */
  async call<Name extends keyof Operations>(
    name: Name,
    input: Input<Name>,
    options: CallOptions = {},
  ): Promise<Output<Name>> {
    const [method, template, reply] = operations[name];
    const fields = new Map<string, unknown>(Object.entries(input));
    const path = template.replace(/\{(\w+)\}/g, (_, field: string) => {
      const value = segment(field, fields.get(field));
      fields.delete(field);
      return value;
    });
    const repeatable = method === "GET" || method === "PUT" || REPEATABLE.has(name);
    const bare = method === "GET" || method === "DELETE";
    const request = bare
      ? { method, path: path + queryOf(fields), body: undefined, reply, repeatable }
      : { method, path, body: Object.fromEntries(fields), reply, repeatable };
    return (await this.#transport.send(request, options)) as Output<Name>;
  }

  /**
   * Hand over a conversation, or its newest messages. Repeating a push is safe; with `id`s also of single messages.
   * `unconfirmed`: it was taken, but too few replicas had it in time; the same push again, later, confirms it.
   */
  push(push: Push, options?: CallOptions): Promise<Receipt> {
    return this.call("push", push, options);
  }

  /** The state of a push now. E_NOT_FOUND: memd does not know it: not this user's, too old, or lost in a failover. */
  receipt(input: Input<"receipt">, options?: CallOptions): Promise<Outcome> {
    return this.call("receipt", input, options);
  }

  /**
   * Wait until a push has ended, asking ever more rarely; an outage meanwhile is waited out. E_TIMEOUT: it has not ended
   * within `timeoutMs` (120,000 by default), but it will: ask again.
   */
  async ended(receipt: Receipt | string, user_id: string, options: CallOptions = {}): Promise<Outcome> {
    const receipt_id = typeof receipt === "string" ? receipt : receipt.id;
    if (receipt_id === null) return nothingToDo(receipt as Receipt);
    const limit = new TimeLimit(options.timeoutMs ?? ENDS_MS, options.signal);
    try {
      for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LAST_LOOK_MS, pauseMs * 1.5)) {
        const outcome = await this.#look({ receipt_id, user_id }, { ...options, timeoutMs: Math.min(limit.leftMs, LOOK_MS) });
        if (outcome !== undefined && outcome.state !== "pending" && outcome.state !== "claimed") return outcome;
        await limit.pause(pauseMs);
        limit.throwIfAborted();
        if (limit.signal.aborted) throw stillPending();
      }
    } finally {
      limit.end();
    }
  }

  /** The outcome, or undefined while memd is away. */
  async #look(input: Input<"receipt">, options: CallOptions): Promise<Outcome | undefined> {
    try {
      return await this.receipt(input, options);
    } catch (error) {
      if (error instanceof MemdError && error.temporary) return undefined;
      throw error;
    }
  }

  /** Make pending pushes due now; with `wait`, until they have ended, for which `timeout_s` is added to the call's time. */
  flush(input: Input<"flush">, options: CallOptions = {}): Promise<Output<"flush">> {
    const waitMs = input.wait === true ? (input.timeout_s ?? FLUSH_S) * 1000 : 0;
    return this.call("flush", input, { ...options, timeoutMs: options.timeoutMs ?? this.#transport.timeoutMs + waitMs });
  }

  /** The block for the next prompt. In a body, so neither the user's id nor the query appears in an address. */
  inject(input: Input<"injectFor">, options?: CallOptions): Promise<Block> {
    return this.call("injectFor", input, options);
  }

  /** The facts that match, best first. */
  async search(input: Input<"search">, options?: CallOptions): Promise<Found[]> {
    return (await this.call("search", input, options)).found;
  }

  /** A page of the facts of a memory, oldest first; `next` is `after` of the next page, empty on the last. */
  facts(input: Input<"facts">, options?: CallOptions): Promise<Output<"facts">> {
    return this.call("facts", input, options);
  }

  /** Add a fact in the name of an agent; returns its id. */
  async addNote(input: Input<"addNote">, options?: CallOptions): Promise<string> {
    return (await this.call("addNote", input, options)).id;
  }

  /** Add a fact by a person's hand; returns its id. Needs the scope person, as the next two. */
  async addFact(input: Input<"addFact">, options?: CallOptions): Promise<string> {
    return (await this.call("addFact", input, options)).id;
  }

  /** Change a fact's content, its category, or both. */
  async editFact(input: Input<"editFact">, options?: CallOptions): Promise<void> {
    await this.call("editFact", input, options);
  }

  /** Remove a fact for good. */
  async removeFact(input: Input<"removeFact">, options?: CallOptions): Promise<void> {
    await this.call("removeFact", input, options);
  }

  /** A page of the users that have a memory; `next` is `after` of the next page, empty on the last. */
  users(input: Input<"users"> = {}, options?: CallOptions): Promise<Output<"users">> {
    return this.call("users", input, options);
  }

  /** Forget a user for good, or one agent's memory of the user. */
  forget(input: Input<"forget">, options?: CallOptions): Promise<Output<"forget">> {
    return this.call("forget", input, options);
  }
}

/** The outcome of a push of which nothing was taken. */
function nothingToDo(receipt: Receipt): Outcome {
  const reason = receipt.reason ?? receipt.status;
  return {
    state: "skipped", reason, fact_ids: [], counts: {}, refused: {}, not_kept: {}, project: {}, due_at: null,
  };
}

function stillPending(): MemdError {
  return new MemdError("E_TIMEOUT", "the push has not ended yet; ask again", { temporary: true });
}

/** A field as one part of a path; one that would lead to another path is refused. */
function segment(field: string, value: unknown): string {
  if (value === undefined || value === null || /^\.{0,2}$/.test(String(value)))
    throw new MemdError(`E_${field.toUpperCase()}`, `${field} is not one that memd gave`, { field });
  return encoded(field, value);
}

function queryOf(fields: ReadonlyMap<string, unknown>): string {
  const given = [...fields].filter(([, value]) => value !== undefined && value !== null);
  const pairs = given.map(([field, value]) => `${field}=${encoded(field, value)}`);
  return pairs.length > 0 ? `?${pairs.join("&")}` : "";
}

/** A value for an address. A lone surrogate is refused: replaced, it could name another user. */
function encoded(field: string, value: unknown): string {
  try {
    return encodeURIComponent(String(value));
  } catch {
    throw new MemdError("E_SURROGATE", `${field} has a lone surrogate`, { field });
  }
}
