// The session log: pi's session, as the pruner's imports see it.

import { nonText } from "./apply.ts";
import { type HostImports, type Lifecycle, type Messages, Refusal, type Stamp } from "./component.ts";
import { epochMs, type HostMessage, jsonText, SUMMARY_KIND } from "./convert.ts";

/** An entry of pi's session, as far as it matters here. */
export interface SessionEntry {
	type: string;
	id: string;
	parentId: string | null;
	timestamp: string;
	customType?: string;
	data?: unknown;
	content?: unknown;
	details?: unknown;
	message?: HostMessage;
}

/**
 * What the log uses of pi's session manager. It is typed read-only for extensions, but it is the real object, and
 * unlike `pi.appendEntry` it goes on working when pi ends the session while a flush commits.
 */
export interface SessionManager {
	getSessionId(): string;
	getSessionFile(): string | undefined;
	getLeafId(): string | null;
	getEntry(id: string): SessionEntry | undefined;
	getEntries(): SessionEntry[];
	getBranch(): SessionEntry[];
	appendCustomEntry(kind: string, data: unknown): string;
	appendCustomMessageEntry(kind: string, content: string, display: boolean, details: unknown): string;
	branch(id: string): void;
	resetLeaf(): void;
	/** pi 1.x only: every request is made from what this returns. */
	buildSessionProjection?(): { messages: HostMessage[] };
}

/** Entries of other kinds mean nothing to the pruner and need not cross the boundary. */
const KIND_PREFIX = "context-prune-";
/** Kinds of entries that hold texts of results. */
const INDEX_KIND = "context-prune-index";
const ALIAS_KIND = "context-prune-dedup-alias";

/** Appends to, and reads from, one session. */
export class SessionLog {
	readonly #manager: SessionManager;
	#appended: Appended[] = [];

	constructor(manager: SessionManager) {
		this.#manager = manager;
	}

	/** The summaries appended since the session was loaded. */
	get appended(): readonly Appended[] {
		return this.#appended;
	}

	/** The pruner's entries on the active branch, oldest first, without the texts that a load can do without. */
	entries(): Lifecycle.LogEntry[] {
		return this.#manager.getBranch().filter(isOurs).map((entry) => ({
			id: entry.id,
			kind: entry.customType ?? "",
			data: entryData(lean(entry)),
			at: timeOf(entry),
		}));
	}

	/** Whether the newest message of the session is `message`. */
	endsWith(message: HostMessage): boolean {
		const newest = this.#newest();
		return newest?.role === message.role && newest.timestamp === message.timestamp && newest.toolCallId === message.toolCallId;
	}

	/** The newest message of the conversation; summaries are none. */
	#newest(): HostMessage | undefined {
		for (let id = this.#manager.getLeafId(); id !== null; ) {
			const entry = this.#manager.getEntry(id);
			if (!entry) return undefined;
			if (entry.message && entry.message.role !== "system") return entry.message;
			if (entry.type === "custom_message" && !isOurs(entry)) return { role: "custom", timestamp: Date.parse(entry.timestamp) };
			id = entry.parentId;
		}
		return undefined;
	}

	/** The parts of these results that are no text, in order. */
	attachments(occurrences: readonly Messages.Occurrence[]): HostMessage["content"][] {
		if (occurrences.length === 0) return [];
		const results = this.#manager.getBranch().flatMap(({ message }) => (message?.role === "toolResult" ? [message] : []));
		return occurrences.flatMap(({ callId, at }) =>
			results.filter((result) => result.toolCallId === callId && (at === undefined || epochMs(result.timestamp) === at)).flatMap(nonText),
		);
	}

	readonly imports: HostImports["sessionLog"] = {
		append: (kind, data) => this.#append(() => this.#manager.appendCustomEntry(kind, JSON.parse(data))),
		appendMessage: (kind, content, details) => {
			const parsed: unknown = JSON.parse(details);
			const after = this.#newest();
			const stamp = this.#append(() => this.#manager.appendCustomMessageEntry(kind, content, false, parsed));
			const timestamp = Number(stamp.at);
			const message = { role: "custom", customType: kind, content, display: false, details: parsed, timestamp };
			this.#appended.push({ message, after: after?.timestamp });
			return stamp;
		},
		read: (id) => {
			const entry = this.#manager.getEntry(id);
			if (!entry || !isOurs(entry)) throw new Refusal({ tag: "not-found" });
			return entryData(entry);
		},
	};

	/**
	 * An entry that could not be written must not become the parent of later ones: pi 0.73 leaves it in memory as the
	 * leaf, and everything after it would be lost to the next load.
	 */
	#append(append: () => string): Stamp {
		const leaf = this.#manager.getLeafId();
		try {
			const entry = append();
			return { entry, at: timeOf(this.#manager.getEntry(entry)) };
		} catch (error) {
			if (leaf === null) this.#manager.resetLeaf();
			else this.#manager.branch(leaf);
			const reason = error instanceof Error ? error.message : String(error);
			throw new Refusal({ tag: "failed", val: `the session file cannot be written (${reason})` });
		}
	}
}

function isOurs(entry: SessionEntry): boolean {
	const isCustom = entry.type === "custom" || entry.type === "custom_message";
	return isCustom && (entry.customType?.startsWith(KIND_PREFIX) ?? false);
}

function timeOf(entry: SessionEntry | undefined): bigint {
	return epochMs(Date.parse(entry?.timestamp ?? ""));
}

/** The entry without the texts of results whose hash it has. The entry itself is not touched. */
export function lean(entry: SessionEntry): SessionEntry {
	const { customType, data } = entry;
	if (customType === INDEX_KIND && isObject(data) && Array.isArray(data.toolCalls)) {
		return { ...entry, data: { ...data, toolCalls: data.toolCalls.map((call) => leanCall(call, "contentHash")) } };
	}
	if (customType === ALIAS_KIND && isObject(data)) return { ...entry, data: { ...data, own: leanCall(data.own, "rawHash") } };
	return entry;
}

function leanCall(call: unknown, hash: string): unknown {
	if (!isObject(call) || typeof call[hash] !== "string" || typeof call.resultText !== "string") return call;
	return { ...call, resultText: "" };
}

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

function entryData(entry: SessionEntry): string {
	if (entry.type === "custom") return jsonText(entry.data ?? null);
	return jsonText({ content: textOf(entry.content), details: entry.details ?? {} });
}

/** A summary's content is one text; a hand-edited session may have it as blocks. */
function textOf(content: unknown): string {
	if (typeof content === "string") return content;
	if (!Array.isArray(content)) return "";
	return content.map((part: { text?: unknown }) => (typeof part?.text === "string" ? part.text : "")).join("\n");
}

/** A summary, and the time of the message that it follows in the session. */
export interface Appended {
	message: HostMessage;
	after: number | undefined;
}

/**
 * `messages` with those of the summaries that they lack, where the session has them.
 *
 * Before pi 1.x what is appended to the session reaches the live conversation with the next load only; later pi makes
 * each request from the session, but makes its list before the hook that may append. This way the model sees a
 * summary in the same place from the first request on, on every pi.
 */
export function withSummaries(messages: HostMessage[], appended: readonly Appended[]): HostMessage[] {
	const missing = missingByPlace(messages, appended);
	if (missing.size === 0) return messages;
	const all: HostMessage[] = [];
	for (const [index, message] of messages.entries()) {
		all.push(message);
		const here = missing.get(message.timestamp);
		// Parallel results share their time: the last of them is meant.
		if (!here || messages[index + 1]?.timestamp === message.timestamp) continue;
		all.push(...here);
		missing.delete(message.timestamp);
	}
	return all;
}

function missingByPlace(messages: readonly HostMessage[], appended: readonly Appended[]): Map<number, HostMessage[]> {
	const missing = new Map<number, HostMessage[]>();
	if (appended.length === 0) return missing;
	const present = new Set(messages.filter(({ customType }) => customType === SUMMARY_KIND).map(summaryKey));
	for (const { message, after } of appended) {
		if (after === undefined || present.has(summaryKey(message))) continue;
		missing.set(after, [...(missing.get(after) ?? []), message]);
	}
	return missing;
}

function summaryKey({ timestamp, content }: HostMessage): string {
	return `${timestamp} ${textOf(content)}`;
}
