// A session of pi in memory, as far as the pruner of a session uses one.

import { PrunerSession } from "../../dist/session.js";

/** The session manager of pi 1.x, or with `isProjected: false` the older one. */
export class FakeManager {
	#entries = [];
	#byId = new Map();
	#leaf = null;
	isFull = false;

	constructor(id = "s1", { isProjected = true } = {}) {
		this.id = id;
		if (!isProjected) this.buildSessionProjection = undefined;
	}

	getSessionId = () => this.id;
	getSessionFile = () => undefined;
	getLeafId = () => this.#leaf;
	getEntry = (id) => this.#byId.get(id);
	getEntries = () => this.#entries;
	getBranch = () => {
		const branch = [];
		for (let at = this.getEntry(this.#leaf); at; at = this.getEntry(at.parentId)) branch.push(at);
		return branch.reverse();
	};
	branch = (id) => {
		this.#leaf = id;
	};
	resetLeaf = () => {
		this.#leaf = null;
	};
	appendMessage = (message) => this.#append({ type: "message", message });
	appendCustomEntry = (customType, data) => this.#append({ type: "custom", customType, data });
	appendCustomMessageEntry = (customType, content, display, details) => this.#append({ type: "custom_message", customType, content, display, details });

	buildSessionProjection() {
		return { messages: this.messages(true) };
	}

	/** The conversation; the older pi has no summaries in its live one. */
	messages(withCustom) {
		return this.getBranch().flatMap((entry) => {
			if (entry.type === "message") return [structuredClone(entry.message)];
			if (entry.type !== "custom_message" || !withCustom) return [];
			const { customType, content, display, details, timestamp } = entry;
			return [{ role: "custom", customType, content, display, details, timestamp: Date.parse(timestamp) }];
		});
	}

	/** pi 0.73 leaves an entry that it could not write in memory, as the leaf. */
	#append(entry) {
		const id = `${this.id}-${this.#entries.length}`;
		const written = { ...entry, id, parentId: this.#leaf, timestamp: new Date().toISOString() };
		this.#entries.push(written);
		this.#byId.set(id, written);
		this.#leaf = id;
		if (this.isFull && entry.type !== "message") throw new Error("ENOSPC: no space left on device, write");
		return id;
	}
}

/** A model registry whose models answer with `reply(prompt)`; what it throws, the stream throws. */
export function registryOf(reply) {
	return {
		find: (provider, id) => (id === "missing" ? undefined : { provider, id }),
		getAvailable: () => [],
		getApiKeyAndHeaders: async () => ({ ok: true }),
		streamSimple: (model, prompt, { signal }) => streamOf(() => reply(prompt.messages[0].content[0].text, model, signal)),
	};
}

function streamOf(reply) {
	let message;
	return {
		async *[Symbol.asyncIterator]() {
			message = { stopReason: "stop", usage: { input: 10, output: 2, cost: { total: 0.01 } }, ...(await reply()) };
			yield { type: "text_delta", delta: message.content[0]?.text ?? "" };
		},
		result: async () => message,
	};
}

export const answer = (text) => ({ content: [{ type: "text", text }] });

/** A session over `manager`, with what it showed. */
export function sessionOf(manager, { reply = () => answer("- done"), config = {}, create, isBusy = () => false } = {}) {
	const shown = { notices: [], status: [], costs: [] };
	const session = new PrunerSession({
		manager,
		create,
		models: () => ({ registry: registryOf(reply), session: { provider: "p", id: "m" } }),
		surface: {
			notify: (notice) => shown.notices.push(notice.text),
			status: (line) => shown.status.push(line),
			cost: (cost) => shown.costs.push(cost),
			progress: () => {},
		},
		config: () => JSON.stringify({ minBatchChars: 0, ...config }),
		transcript: () => manager.messages(true),
		isBusy,
	});
	session.start();
	return { session, shown };
}

export const run = (more = {}) => ({ signal: undefined, usage: () => ({ tokens: 1000, contextWindow: 100_000 }), isQueryOffered: () => true, ...more });
