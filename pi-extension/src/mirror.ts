// What the pruner knows of the transcript, remembered as one number per message.

import type { HostMessage } from "./convert.ts";

/**
 * A number that differs, in all likelihood, when the message does.
 *
 * pi clones the messages for every call and gives them no id. Compared is what the pruner reads and what pi keeps
 * through a reload; fields that come and go (durations, raw stop reasons, response ids) are left out. Of a long
 * text the length and a few characters are taken: who edits a message in place without changing its length or
 * any of these is not noticed.
 */
export function fingerprint(message: HostMessage): number {
	let hash = mixText(0x811c9dc5, message.role);
	hash = mix(hash, typeof message.timestamp === "number" ? message.timestamp % 0x7fffffff : 0);
	hash = mixText(hash, message.toolCallId ?? message.customType ?? message.stopReason ?? "");
	hash = mix(hash, message.isError === true ? 1 : 2);
	hash = mixContent(hash, message.content ?? message.summary ?? message.output);
	return hash;
}

function mixContent(hash: number, content: unknown): number {
	if (typeof content === "string") return mixText(hash, content);
	if (!Array.isArray(content)) return hash;
	for (const part of content) {
		hash = mixText(hash, part?.type ?? "");
		hash = mixText(hash, part?.text ?? part?.thinking ?? part?.data ?? part?.id ?? "");
	}
	return hash;
}

function mix(hash: number, value: number): number {
	return Math.imul(hash ^ value, 0x01000193) >>> 0;
}

const SAMPLES = 8;

function mixText(hash: number, text: string): number {
	if (typeof text !== "string") return hash;
	const { length } = text;
	hash = mix(hash, length);
	const step = Math.max(1, Math.floor(length / SAMPLES));
	for (let i = 0; i < length; i += step) hash = mix(hash, text.charCodeAt(i));
	return length > 0 ? mix(hash, text.charCodeAt(length - 1)) : hash;
}

/** The fingerprints of the messages that the pruner has been told, in order. */
export class Mirror {
	#known: number[] = [];

	get length(): number {
		return this.#known.length;
	}

	clear(): void {
		this.#known = [];
	}

	/** The position of the first message that the pruner does not have like this. */
	firstDifference(messages: readonly HostMessage[]): number {
		const end = Math.min(messages.length, this.#known.length);
		let at = 0;
		while (at < end && this.#known[at] === fingerprint(messages[at] as HostMessage)) at++;
		return at;
	}

	/** Whether the pruner has exactly these messages, given where the first difference is. */
	isCurrent(messages: readonly HostMessage[], firstDifference: number): boolean {
		return firstDifference === messages.length && messages.length === this.#known.length;
	}

	/** From `at` on the pruner has been told `tail`. */
	replace(at: number, tail: readonly HostMessage[]): void {
		this.#known.length = at;
		for (const message of tail) this.#known.push(fingerprint(message));
	}
}
