export { Memd } from "./client.js";
export { MemdError } from "./errors.js";
