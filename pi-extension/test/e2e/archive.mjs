// Reads a session file back through the component alone, as a host that has never seen the session would.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { applyPlan, Plan } from "../../dist/apply.js";
import { createPruner, Refusal } from "../../dist/component.js";
import { jsonText, toContract } from "../../dist/convert.js";
import { readLines } from "../rig/rig.mjs";

const refuse = (tag, val) => {
	throw new Refusal({ tag, val });
};

/** The entries from the root to the last one. */
export function branchOf(entries) {
	const byId = new Map(entries.filter(({ id }) => id).map((entry) => [entry.id, entry]));
	const branch = [];
	for (let at = entries.findLast(({ type }) => type !== "session"); at; at = byId.get(at.parentId)) branch.unshift(at);
	return branch;
}

export class Archive {
	#pruner;
	branch;

	constructor(file) {
		const [header] = readLines(file);
		this.branch = branchOf(readLines(file));
		const ours = this.branch.filter(({ customType }) => customType?.startsWith("context-prune-"));
		const data = (entry) => jsonText(entry.type === "custom" ? entry.data : { content: entry.content, details: entry.details });
		const read = (id) => ours.find((entry) => entry.id === id);
		this.#pruner = createPruner({
			sessionLog: {
				append: () => refuse("unavailable", "read only"),
				appendMessage: () => refuse("unavailable", "read only"),
				read: (id) => (read(id) ? data(read(id)) : refuse("not-found")),
			},
			blobs: {
				write: () => refuse("unavailable", "read only"),
				read: (name) => readFileSync(join(dirname(file), `${header.id}-blobs`, name), "utf8"),
			},
			summarizer: { submit: () => refuse("unavailable", "read only"), cancel: () => {} },
			notices: { notify: () => {}, status: () => {}, cost: () => {} },
		});
		const { lifecycle } = this.#pruner;
		lifecycle.open({ id: header.id }, "{}");
		lifecycle.restore(ours.map((entry) => ({ id: entry.id, kind: entry.customType, data: data(entry), at: BigInt(Date.parse(entry.timestamp)) })));
		lifecycle.sync(0, this.messages.map(toContract));
	}

	get messages() {
		return this.branch.flatMap(({ message }) => (message && message.role !== "system" ? [message] : []));
	}

	get results() {
		return this.messages.filter(({ role }) => role === "toolResult");
	}

	/** The context that the model would see, as JSON. */
	get rendered() {
		const plan = new Plan();
		plan.take(this.#pruner.lifecycle.plan(undefined, BigInt(Date.now())) ?? { revision: 0n, removed: [], added: [] });
		return JSON.stringify(applyPlan(this.messages, plan.byPosition()));
	}

	query(args) {
		return this.#pruner.query.call("context_tree_query", JSON.stringify(args), BigInt(Date.now())).text;
	}

	get pruner() {
		return this.#pruner;
	}
}
