import type { Operations } from "../generated/openapi.js";
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
/**
 * memd over HTTP. Each method is one operation of the door, with the fields that `/openapi.json` lists; `call` has the
 * operations without a method of their own. All reject with MemdError.
 */
export declare class Memd {
    #private;
    constructor(options: MemdOptions);
    /** Any operation by its name in the OpenAPI document. */
    call<Name extends keyof Operations>(name: Name, input: Input<Name>, options?: CallOptions): Promise<Output<Name>>;
    /**
     * Hand over a conversation, or its newest messages. Repeating a push is safe; with `id`s also of single messages.
     * `unconfirmed`: it was taken, but too few replicas had it in time; the same push again, later, confirms it.
     */
    push(push: Push, options?: CallOptions): Promise<Receipt>;
    /** The state of a push now. E_NOT_FOUND: memd does not know it: not this user's, too old, or lost in a failover. */
    receipt(input: Input<"receipt">, options?: CallOptions): Promise<Outcome>;
    /**
     * Wait until a push has ended, asking ever more rarely; an outage meanwhile is waited out. E_TIMEOUT: it has not ended
     * within `timeoutMs` (120,000 by default), but it will: ask again.
     */
    ended(receipt: Receipt | string, user_id: string, options?: CallOptions): Promise<Outcome>;
    /** Make pending pushes due now; with `wait`, until they have ended, for which `timeout_s` is added to the call's time. */
    flush(input: Input<"flush">, options?: CallOptions): Promise<Output<"flush">>;
    /** The block for the next prompt. In a body, so neither the user's id nor the query appears in an address. */
    inject(input: Input<"injectFor">, options?: CallOptions): Promise<Block>;
    /** The facts that match, best first. */
    search(input: Input<"search">, options?: CallOptions): Promise<Found[]>;
    /** A page of the facts of a memory, oldest first; `next` is `after` of the next page, empty on the last. */
    facts(input: Input<"facts">, options?: CallOptions): Promise<Output<"facts">>;
    /** Add a fact in the name of an agent; returns its id. */
    addNote(input: Input<"addNote">, options?: CallOptions): Promise<string>;
    /** Add a fact by a person's hand; returns its id. Needs the scope person, as the next two. */
    addFact(input: Input<"addFact">, options?: CallOptions): Promise<string>;
    /** Change a fact's content, its category, or both. */
    editFact(input: Input<"editFact">, options?: CallOptions): Promise<void>;
    /** Remove a fact for good. */
    removeFact(input: Input<"removeFact">, options?: CallOptions): Promise<void>;
    /** A page of the users that have a memory; `next` is `after` of the next page, empty on the last. */
    users(input?: Input<"users">, options?: CallOptions): Promise<Output<"users">>;
    /** Forget a user for good, or one agent's memory of the user. */
    forget(input: Input<"forget">, options?: CallOptions): Promise<Output<"forget">>;
}
