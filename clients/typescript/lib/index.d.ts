export { Memd } from "./client.js";
export type { Block, Found, Input, ListedFact, Message, Outcome, Output, Push, Receipt } from "./client.js";
export { MemdError } from "./errors.js";
export type { MemdErrorCode } from "./errors.js";
export type { CallOptions, MemdOptions } from "./transport.js";
export type { Operations } from "../generated/openapi.js";
