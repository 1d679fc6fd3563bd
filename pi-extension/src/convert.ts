// pi's messages in the contract's types. The one place that takes messages as they come: pi's versions and
// other extensions add roles and fields, so that nothing here trusts a shape.

import type { Messages } from "./component.ts";

/** A message as pi hands it out; `AgentMessage` fits. */
// biome-ignore lint/suspicious/noExplicitAny: the boundary to untyped data
export type HostMessage = { role: string } & Record<string, any>;

/** The kind of the messages that hold summaries. */
export const SUMMARY_KIND = "context-prune-summary";

const U32_MAX = 0xffff_ffff;

/** The contract's form of `message`. */
export function toContract(message: HostMessage): Messages.Message {
	const at = epochMs(message.timestamp);
	switch (message.role) {
		case "user":
			return { tag: "user", val: { content: parts(message.content), at } };
		case "assistant":
			return { tag: "assistant", val: { content: parts(message.content), stop: stopReason(message), at } };
		case "toolResult":
			return toolResult(message, at);
		case "custom":
			return custom(message, at);
		default:
			return { tag: "other", val: { role: message.role, content: otherContent(message), at } };
	}
}

function toolResult(message: HostMessage, at: bigint, content = parts(message.content)): Messages.Message {
	const { toolName, isError } = message;
	const tool = typeof toolName === "string" ? toolName : "";
	return { tag: "tool-result", val: { callId: callIdOf(message), tool, content, isError: isError === true, at } };
}

function callIdOf({ toolCallId }: HostMessage): string {
	return typeof toolCallId === "string" ? toolCallId : "";
}

/** Shorter texts of results always cross: they may be stubs. */
const LEAST_WITHHELD = 1000;

/** The results whose text the log holds: at a load their texts need not cross. */
export class KnownResults {
	readonly #keys: Set<string>;

	constructor(occurrences: readonly Messages.Occurrence[] = []) {
		this.#keys = new Set(occurrences.map(({ callId, at }) => `${callId}@${at}`));
	}

	/** As {@link toContract}, but without the text that the log holds. Of results that share a key the first is meant. */
	toContract(message: HostMessage): Messages.Message {
		if (message.role !== "toolResult") return toContract(message);
		const at = epochMs(message.timestamp);
		if (!this.#keys.delete(`${callIdOf(message)}@${at}`)) return toContract(message);
		const content = parts(message.content);
		const length = content.reduce((sum, { tag, val }) => (tag === "text" ? sum + val.length : sum), 0);
		return toolResult(message, at, length >= LEAST_WITHHELD ? content.map(withheld) : content);
	}
}

function withheld(part: Messages.Part): Messages.Part {
	return part.tag === "text" ? { tag: "withheld", val: textSize(part.val) } : part;
}

/** Each UTF-16 code unit of ASCII is one byte in UTF-8, and of nothing else. */
function textSize(text: string): Messages.TextSize {
	const { length } = text;
	const ascii = Buffer.byteLength(text) === length ? length : length - (text.match(/[^\0-\x7f]/g)?.length ?? 0);
	return { chars: chars(length), ascii: chars(ascii) };
}

function custom(message: HostMessage, at: bigint): Messages.Message {
	const kind = String(message.customType ?? "");
	const details = kind === SUMMARY_KIND ? jsonText(message.details ?? {}) : "";
	return { tag: "custom", val: { kind, content: parts(message.content), details, at } };
}

/** What pi sends of a message of another role, near enough for the accounts. */
function otherContent(message: HostMessage): Messages.Part[] {
	switch (message.role) {
		case "bashExecution":
			return message.excludeFromContext === true ? [] : [text(message.command), text(message.output)];
		case "branchSummary":
		case "compactionSummary":
			return [text(message.summary)];
		default:
			return parts(message.content);
	}
}

function text(value: unknown): Messages.Part {
	return { tag: "text", val: typeof value === "string" ? value : "" };
}

function parts(content: unknown): Messages.Part[] {
	if (typeof content === "string") return [{ tag: "text", val: content }];
	if (!Array.isArray(content)) return [];
	return content.map(part);
}

// biome-ignore lint/suspicious/noExplicitAny: see HostMessage
function part(part: any): Messages.Part {
	switch (part?.type) {
		case "text":
			return text(part.text);
		case "thinking":
			return thinking(part);
		case "toolCall": {
			const args = part.arguments === undefined ? "" : jsonText(part.arguments);
			return { tag: "tool-call", val: { id: String(part.id ?? ""), name: String(part.name ?? ""), arguments: args } };
		}
		default:
			return { tag: "opaque", val: { kind: String(part?.type ?? "unknown"), chars: chars(opaqueLength(part)) } };
	}
}

/** Without readable text it is a provider's encrypted state, which goes with its message or not at all. */
// biome-ignore lint/suspicious/noExplicitAny: see HostMessage
function thinking(part: any): Messages.Part {
	const size = chars(lengthOf(part.thinking) + lengthOf(part.thinkingSignature));
	const isReadable = part.redacted !== true && typeof part.thinking === "string" && part.thinking.trim() !== "";
	return isReadable ? { tag: "thinking", val: size } : { tag: "opaque", val: { kind: "reasoning", chars: size } };
}

/** The size of an image is its data; of a part that nobody knows, its JSON. */
// biome-ignore lint/suspicious/noExplicitAny: see HostMessage
function opaqueLength(part: any): number {
	return typeof part?.data === "string" ? part.data.length : (JSON.stringify(part)?.length ?? 0);
}

function lengthOf(text: unknown): number {
	return typeof text === "string" ? text.length : 0;
}

function chars(length: number): number {
	return Math.min(length, U32_MAX);
}

const STOP_REASONS: Record<string, Messages.StopReason> = {
	stop: "stop",
	toolUse: "tool-use",
	length: "length",
	error: "error",
	aborted: "aborted",
};

/** Sessions of long ago lack the reason; there a tool call tells. */
function stopReason({ stopReason: reason, content }: HostMessage): Messages.StopReason {
	if (reason === undefined) return hasToolCall(content) ? "tool-use" : "stop";
	return STOP_REASONS[String(reason)] ?? "other";
}

/** A point in time for the contract; 0 for what is none. */
export function epochMs(time: unknown): bigint {
	return typeof time === "number" && Number.isFinite(time) && time > 0 ? BigInt(Math.trunc(time)) : 0n;
}

/**
 * `value` as a JSON text that every parser takes: `JSON.stringify` leaves lone surrogates as escapes, which
 * strict parsers refuse.
 */
export function jsonText(value: unknown): string {
	const text = JSON.stringify(value) ?? "null";
	return text.includes("\\ud") ? text.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (found) => (found === "\\\\" ? found : "\\ufffd")) : text;
}

/** Whether the assistant came to its end by itself and asks for no tool: the reply that closes a chain. */
export function isFinalReply(message: HostMessage): boolean {
	return message.role === "assistant" && stopReason(message) === "stop" && !hasToolCall(message.content);
}

function hasToolCall(content: unknown): boolean {
	return Array.isArray(content) && content.some((part) => part?.type === "toolCall");
}
