/** Characters of a query at most. */
const QUERY_CHARS = 20_000;
/**
 * The prompt with the block behind the system text that leads it. Some models take one system message only, so it goes
 * into that one; but a message with provider options may end a cached prefix, which must not change with the memory.
 */
export function withBlock(prompt, block) {
    if (block === "")
        return prompt;
    const first = prompt.findIndex((message) => message.role !== "system");
    const end = first === -1 ? prompt.length : first;
    const last = prompt[end - 1];
    if (last?.role === "system" && last.providerOptions === undefined)
        return [...prompt.slice(0, end - 1), { ...last, content: `${last.content}\n\n${block}` }, ...prompt.slice(end)];
    return [...prompt.slice(0, end), { role: "system", content: block }, ...prompt.slice(end)];
}
/**
 * The messages to push. An answer that calls tools is pushed with the loop's next steps; should there be none, memd has
 * the user's message, which comes with the first step.
 */
export function saidIn(prompt, reply, ending) {
    const goesOn = ending === "tool-calls";
    if (ending === "error" || (goesOn && prompt.at(-1)?.role !== "user"))
        return [];
    const messages = turnsOf(prompt);
    const content = goesOn || ending === "cancelled" ? [] : reply.filter((text) => text !== "").map(textPart);
    return content.length > 0 ? [...messages, { role: "assistant", content }] : messages;
}
/** What users and the assistant said, without the contents of files, tool calls and thoughts. */
function turnsOf(prompt) {
    return prompt.flatMap((message) => message.role === "user" || message.role === "assistant"
        ? [{ role: message.role, content: message.content.map(outline) }]
        : []);
}
function outline(part) {
    if (part.type === "text")
        return textPart(part.text ?? "");
    return part.providerExecuted === true ? { type: part.type, providerExecuted: true } : { type: part.type };
}
function textPart(text) {
    return { type: "text", text: text.replace(/\p{Surrogate}/gu, "\ufffd") }; // a lone half is no text; memd refuses it
}
/** The texts of an answer. */
export function textsOf(content) {
    return content.flatMap((part) => (part.type === "text" ? [part.text] : []));
}
/** Whether the user said it. */
export function isUsers(message) {
    return "role" in message && message.role === "user";
}
/** What the user said last, as a query; undefined when that is no text. */
export function lastUserText(prompt) {
    const message = prompt.findLast(({ role }) => role === "user");
    if (message?.role !== "user")
        return undefined;
    const texts = message.content.flatMap((part) => (part.type === "text" ? [part.text] : []));
    const query = [...texts.join("\n").replace(/\p{Surrogate}/gu, "\ufffd")].slice(0, QUERY_CHARS).join("").trim();
    return query === "" ? undefined : query;
}
