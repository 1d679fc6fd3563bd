// A plan, and the one function that turns pi's messages into what the model sees.

import type { Edits } from "./component.ts";
import { SUMMARY_KIND, type HostMessage } from "./convert.ts";

/** The plan that the pruner and the host agree on. */
export class Plan {
	#edits = new Map<Edits.EditId, Edits.Edit>();
	#byPosition: Map<Edits.Position, Edits.Edit[]> | undefined;
	#revision: Edits.Revision | undefined;

	get revision(): Edits.Revision | undefined {
		return this.#revision;
	}

	clear(): void {
		this.#edits.clear();
		this.#byPosition = undefined;
		this.#revision = undefined;
	}

	/** Takes a plan of the pruner in. Returns false for a difference to another revision: ask for the whole then. */
	take(plan: Edits.PlanUpdate): boolean {
		if (plan.base === undefined) this.#edits.clear();
		else if (plan.base !== this.#revision) return false;
		for (const id of plan.removed) this.#edits.delete(id);
		for (const edit of plan.added) this.#edits.set(edit.id, edit);
		this.#revision = plan.revision;
		this.#byPosition = undefined;
		return true;
	}

	get isEmpty(): boolean {
		return this.#edits.size === 0;
	}

	/** The edits by their position, those of one position in rising order of id. */
	byPosition(): ReadonlyMap<Edits.Position, readonly Edits.Edit[]> {
		if (!this.#byPosition) {
			this.#byPosition = new Map();
			for (const edit of [...this.#edits.values()].sort((a, b) => a.id - b.id)) {
				const here = this.#byPosition.get(edit.at);
				if (here) here.push(edit);
				else this.#byPosition.set(edit.at, [edit]);
			}
		}
		return this.#byPosition;
	}
}

/** The messages as the model sees them: a new list; messages that no edit touches are the same objects. */
export function applyPlan(messages: readonly HostMessage[], edits: ReadonlyMap<number, readonly Edits.Edit[]>): HostMessage[] {
	const movedTo = movedResults(messages, edits);
	const rendered: HostMessage[] = [];
	let dropUntil = 0;
	for (let at = 0; at < messages.length; at++) {
		const here = edits.get(at) ?? [];
		for (const { change } of here) if (change.tag === "drop") dropUntil = Math.max(dropUntil, at + change.val);
		const isMoved = here.some(({ change }) => change.tag === "move-up");
		if (at >= dropUntil && !isMoved) rendered.push(edited(messages[at] as HostMessage, here));
		for (const from of movedTo.get(at) ?? []) rendered.push(edited(messages[from] as HostMessage, edits.get(from) ?? []));
		for (const { change } of here) {
			const inserted = insertion(messages, change);
			if (inserted) rendered.push(inserted);
		}
	}
	return rendered;
}

/** Which results move behind which position: behind the last result that stands at the call already. */
function movedResults(messages: readonly HostMessage[], edits: ReadonlyMap<number, readonly Edits.Edit[]>): Map<number, number[]> {
	const moved = new Map<number, number[]>();
	for (const [from, here] of edits) {
		for (const { change } of here) {
			if (change.tag !== "move-up") continue;
			let anchor = change.val;
			while (messages[anchor + 1]?.role === "toolResult" && anchor + 1 < from) anchor++;
			moved.set(anchor, [...(moved.get(anchor) ?? []), from].sort((a, b) => a - b));
		}
	}
	return moved;
}

function edited(message: HostMessage, edits: readonly Edits.Edit[]): HostMessage {
	return edits.reduce((result, { change }) => {
		switch (change.tag) {
			case "replace-text":
				return stubbed(result, change.val);
			case "strip-thinking":
				return { ...result, content: parts(result).filter((part) => part?.type !== "thinking") };
			case "replace-arguments":
				return withArguments(result, change.val);
			default:
				return result;
		}
	}, message);
}

/** pi keeps in `details` what its display needs of the text: that goes with it. */
function stubbed({ details: _details, ...result }: HostMessage, text: string): HostMessage {
	return { ...result, content: [{ type: "text", text }, ...nonText(result as HostMessage)], isError: false } as HostMessage;
}

function insertion(messages: readonly HostMessage[], change: Edits.Change): HostMessage | undefined {
	switch (change.tag) {
		case "insert-user": {
			const content = change.val.parts.flatMap((part) =>
				part.tag === "text" ? [{ type: "text", text: part.val }] : nonText(messages[part.val]),
			);
			return { role: "user", content, timestamp: Number(change.val.at) };
		}
		case "insert-summary": {
			const { content: text, details, at } = change.val;
			const content = [{ type: "text", text }];
			return { role: "custom", customType: SUMMARY_KIND, content, display: false, details: JSON.parse(details), timestamp: Number(at) };
		}
		default:
			return undefined;
	}
}

function parts(message: HostMessage | undefined): HostMessage["content"][] {
	return Array.isArray(message?.content) ? message.content : [];
}

/** The parts of a message that are no text: its images and whatever else a provider has. */
export function nonText(message: HostMessage | undefined): HostMessage["content"][] {
	return parts(message).filter((part) => part?.type !== "text");
}

function withArguments(message: HostMessage, { call, arguments: args }: Edits.ReplacedArguments): HostMessage {
	let seen = -1;
	const content = parts(message).map((part) => {
		if (part?.type === "toolCall") seen++;
		return part?.type === "toolCall" && seen === call ? { ...part, arguments: JSON.parse(args) } : part;
	});
	return { ...message, content };
}
