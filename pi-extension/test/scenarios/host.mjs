// The host of a scenario: a session log, a blob folder and a clock, all in memory.

import { Refusal } from "../../dist/component.js";
import { jsonText, SUMMARY_KIND } from "../../dist/convert.js";

const refuse = (tag, val) => {
	throw new Refusal({ tag, val });
};

/** A JSON text as a value; one that is malformed is shown as it is. */
function parsed(text) {
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}

export class ScenarioHost {
	clock;
	logFails = false;
	blobsFail = false;
	jobs = [];
	outcome = { contexts: [], queries: [], attachments: [], entries: [], summaries: [], requests: [], notices: [], commands: [], blobs: new Map() };
	#sessionId;
	#summariesInTranscript;
	#log = [];
	#made = 0;
	#submitted = 0n;

	constructor({ sessionId, summariesInTranscript, clock }) {
		this.#sessionId = sessionId;
		this.#summariesInTranscript = summariesInTranscript;
		this.clock = clock;
	}

	addMessage(message) {
		this.#add(message.timestamp, { message });
	}

	/** Goes back to the first `kept` entries, of all kinds. */
	goBack(kept) {
		this.#log.length = Math.min(kept, this.#log.length);
	}

	transcript() {
		return this.#log.flatMap(({ at, message, summary }) => {
			if (message) return [message];
			if (!summary || !this.#summariesInTranscript) return [];
			const { kind: customType, content, details } = summary;
			return [{ role: "custom", customType, content: [{ type: "text", text: content }], display: true, details: parsed(details), timestamp: at }];
		});
	}

	/** An entry that this run of the pruner did not write. */
	addEntry({ customType: kind, data = null }) {
		this.#add(this.clock, { kind, data: jsonText(data) });
	}

	entries() {
		return this.#log.filter(isEntry).map((entry) => ({ id: entry.id, kind: kindOf(entry), data: dataOf(entry), at: BigInt(entry.at) }));
	}

	#stamped(what) {
		const at = this.clock;
		return { entry: this.#add(at, what), at: BigInt(at) };
	}

	/** The pruner's imports. */
	get imports() {
		return {
			sessionLog: {
				append: (kind, data) => {
					this.#checkLog();
					this.outcome.entries.push({ customType: kind, data: parsed(data) });
					return this.#stamped({ kind, data });
				},
				appendMessage: (kind, content, details) => {
					this.#checkLog();
					this.outcome.summaries.push({ content, details: parsed(details) });
					return this.#stamped({ summary: { kind, content, details } });
				},
				read: (id) => {
					const entry = this.#log.find((candidate) => candidate.id === id && isEntry(candidate));
					return entry ? dataOf(entry) : refuse("not-found");
				},
			},
			blobs: {
				write: (name, text) => {
					if (this.blobsFail) refuse("failed", "the blob folder is full");
					this.outcome.blobs.set(name, text);
					return `<sessions>/${this.#sessionId}-blobs/${name}`;
				},
				read: (name) => this.outcome.blobs.get(name) ?? refuse("not-found"),
			},
			summarizer: {
				submit: (request) => {
					const model = request.model === "configured" ? { model: request.modelName } : {};
					this.outcome.requests.push({ kind: request.kind, prompt: request.prompt, ...model });
					this.jobs.push({ id: ++this.#submitted, request });
					return this.#submitted;
				},
				cancel: (id) => {
					this.jobs = this.jobs.filter((job) => job.id !== id);
				},
			},
			notices: { notify: ({ level, text }) => this.outcome.notices.push({ level, text }), status: () => {}, cost: () => {} },
		};
	}

	/** The outcome as text, as `decant scenario run` prints it. */
	print() {
		const { attachments, blobs, contexts, queries, ...rest } = this.outcome;
		const shown = attachments.some((ofAnswer) => ofAnswer.length > 0) ? { attachments } : {};
		const files = Object.fromEntries([...blobs].sort(([a], [b]) => (a < b ? -1 : 1)));
		return `${JSON.stringify({ contexts, queries, ...shown, ...rest, blobs: files }, null, 1)}\n`;
	}

	#add(at, what) {
		const id = `e${++this.#made}`;
		this.#log.push({ id, at, ...what });
		return id;
	}

	#checkLog() {
		if (this.logFails) refuse("failed", "the session log is full");
	}
}

/** Summaries are the pruner's, also those that an earlier program wrote as messages. */
function isEntry({ message }) {
	return !message || message.customType === SUMMARY_KIND;
}

function kindOf({ kind, summary, message }) {
	return message?.customType ?? summary?.kind ?? kind;
}

function dataOf({ data, summary, message }) {
	if (message) return jsonText({ content: message.content.map(({ text }) => text ?? "").join("\n"), details: message.details ?? null });
	return summary ? jsonText({ content: summary.content, details: parsed(summary.details) }) : data;
}
