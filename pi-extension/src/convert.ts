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
			return { tag: "user", val: { content: blocks(message.content), at } };
		case "assistant":
			return { tag: "assistant", val: { content: blocks(message.content), stop: stopReason(message), at } };
		case "toolResult":
			return toolResult(message, at);
		case "custom":
			return custom(message, at);
		default:
			return { tag: "other", val: { role: message.role, content: otherContent(message), at } };
	}
}

function toolResult(message: HostMessage, at: bigint): Messages.Message {
	const { toolCallId, toolName, content, isError } = message;
	const callId = typeof toolCallId === "string" ? toolCallId : "";
	const tool = typeof toolName === "string" ? toolName : "";
	return { tag: "tool-result", val: { callId, tool, content: blocks(content), isError: isError === true, at } };
}

function custom(message: HostMessage, at: bigint): Messages.Message {
	const kind = String(message.customType ?? "");
	const details = kind === SUMMARY_KIND ? jsonText(message.details ?? {}) : "";
	return { tag: "custom", val: { kind, content: blocks(message.content), details, at } };
}

/** What pi sends of a message of another role, near enough for the accounts. */
function otherContent(message: HostMessage): Messages.Block[] {
	switch (message.role) {
		case "bashExecution":
			return message.excludeFromContext === true ? [] : [text(message.command), text(message.output)];
		case "branchSummary":
		case "compactionSummary":
			return [text(message.summary)];
		default:
			return blocks(message.content);
	}
}

function text(value: unknown): Messages.Block {
	return { tag: "text", val: typeof value === "string" ? value : "" };
}

function blocks(content: unknown): Messages.Block[] {
	if (typeof content === "string") return [{ tag: "text", val: content }];
	if (!Array.isArray(content)) return [];
	return content.map(block);
}

// biome-ignore lint/suspicious/noExplicitAny: see HostMessage
function block(part: any): Messages.Block {
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
function thinking(part: any): Messages.Block {
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
