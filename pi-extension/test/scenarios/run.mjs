#!/usr/bin/env node
// Runs scenarios through the transpiled component with the adapter's own conversion, mirror and plans, step by step
// as the other lanes do.
// usage: run.mjs FILE.json    prints the outcome

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { applyPlan, Plan } from "../../dist/apply.js";
import { createPruner, refusal } from "../../dist/component.js";
import { isFinalReply, toContract } from "../../dist/convert.js";
import { Mirror } from "../../dist/mirror.js";
import { printedStats, printedStatus, printedTree, refusalLine } from "./commands.mjs";
import { ScenarioHost } from "./host.mjs";
import { Summarizer } from "./summarizer.mjs";

const DEFAULT_CLOCK_MS = 1_745_251_200_000;

/** Runs a parsed scenario and returns its outcome as text. */
export function runScenario(scenario) {
	const driver = new Driver(scenario);
	for (const [index, step] of scenario.steps.entries()) {
		try {
			driver.take(step);
		} catch (error) {
			throw new Error(`step ${index}: ${error.message} ${JSON.stringify(error.payload ?? null)}`, { cause: error });
		}
	}
	return driver.host.print();
}

class Driver {
	host;
	#session;
	#config;
	#summarizer;
	#pruner;
	#mirror = new Mirror();
	#plan = new Plan();
	/** Answers on their way, with the steps that they still take. */
	#delayed = [];

	constructor({ config = {}, session = {}, clock = DEFAULT_CLOCK_MS, summarizer = [] }) {
		this.#session = { id: session.id ?? "s1", summariesInTranscript: session.summariesInTranscript ?? true };
		this.#config = structuredClone(config);
		this.#summarizer = new Summarizer(summarizer);
		this.host = new ScenarioHost({ sessionId: this.#session.id, summariesInTranscript: this.#session.summariesInTranscript, clock });
	}

	take(step) {
		const [[kind, value], ...more] = Object.entries(step);
		if (more.length > 0) throw new Error("a step has exactly one key");
		const take = this.#steps[kind];
		if (!take) throw new Error(`unknown kind ${kind}`);
		this.#finishDelayed();
		take(value);
		this.#finishJobs();
	}

	#steps = {
		message: (message) => this.#message(message),
		turnEnd: ({ usage }) => {
			this.#sync();
			this.#loaded.lifecycle.turnEnd(usage && { tokens: usage.tokens == null ? undefined : BigInt(usage.tokens), contextWindow: BigInt(usage.contextWindow) }, this.#now);
		},
		context: () => this.#context(),
		query: (query) => this.#call("context_tree_query", Array.isArray(query) ? { toolCallIds: query } : renamed(query)),
		call: ({ tool, arguments: args = {} }) => this.#call(tool, args),
		command: (line) => this.#command(line),
		entry: (entry) => this.host.addEntry(entry),
		config: (changes) => this.#configure(changes),
		restart: () => this.#load(),
		branch: (kept) => {
			this.host.goBack(kept);
			this.#load();
		},
		blobs: (state) => {
			if (state === "lose") this.host.outcome.blobs.clear();
			else this.host.blobsFail = state === "fail";
		},
		log: (state) => {
			this.host.logFails = state === "fail";
		},
		tick: (ms) => {
			this.host.clock += ms;
		},
		modelChanged: () => this.#loaded.lifecycle.modelChanged(),
		queryToolOffered: (isOffered) => this.#loaded.lifecycle.queryToolOffered(isOffered),
	};

	get #now() {
		return BigInt(this.host.clock);
	}

	/** The instance at hand; the first time it is asked for, the session is loaded. */
	get #loaded() {
		if (!this.#pruner) this.#load();
		return this.#pruner;
	}

	#load() {
		this.host.jobs = [];
		this.#delayed = [];
		this.#pruner = createPruner(this.host.imports);
		this.#note(this.#pruner.lifecycle.open(this.#session, JSON.stringify(this.#config)));
		this.#note(this.#pruner.lifecycle.restore(this.host.entries()));
		this.#mirror.clear();
		this.#plan.clear();
		const transcript = this.host.transcript();
		this.#pruner.lifecycle.sync(0, transcript.map(toContract));
		this.#mirror.replace(0, transcript);
	}

	#sync() {
		const { lifecycle } = this.#loaded;
		const transcript = this.host.transcript();
		const at = this.#mirror.firstDifference(transcript);
		if (this.#mirror.isCurrent(transcript, at)) return;
		lifecycle.sync(at, transcript.slice(at).map(toContract));
		this.#mirror.replace(at, transcript.slice(at));
	}

	#message(written) {
		const { lifecycle } = this.#loaded;
		const message = { ...written };
		if (typeof message.content === "string") message.content = [{ type: "text", text: message.content }];
		if (message.timestamp === undefined) message.timestamp = this.host.clock++;
		if (isFinalReply(message)) {
			this.#sync();
			lifecycle.replyEnd(BigInt(message.timestamp), this.#now);
			this.#finishJobs();
		}
		this.host.addMessage(message);
	}

	#context() {
		this.#sync();
		const update = this.#loaded.lifecycle.plan(this.#plan.revision, this.#now);
		if (update && !this.#plan.take(update)) throw new Error("a plan for another revision");
		this.host.outcome.contexts.push(applyPlan(this.host.transcript(), this.#plan.byPosition()));
	}

	#call(tool, args) {
		this.#sync();
		const { text, attachments } = this.#loaded.query.call(tool, JSON.stringify(args), this.#now);
		this.host.outcome.attachments.push(attachments.map(({ callId, at }) => ({ toolCallId: callId, resultTimestamp: at === undefined ? null : Number(at) })));
		this.host.outcome.queries.push(text);
	}

	#configure(changes) {
		merge(this.#config, changes);
		this.#sync();
		this.#refusable(() => this.#note(this.#loaded.control.configure(JSON.stringify(this.#config), this.#now)));
	}

	#command(line) {
		this.#sync();
		const [name, argument = ""] = [line.split(" ", 1)[0], line.slice(line.indexOf(" ") + 1)];
		const { control } = this.#loaded;
		const commands = {
			cancel: () => void control.cancel(),
			now: () => void control.flush(this.#now),
			compact: () => void control.compact(this.#now),
			undo: () => control.undo(line.includes(" ") ? argument : "", this.#now),
			config: () => control.config(),
			status: () => printedStatus(control.status()),
			stats: () => printedStats(control.stats()),
			tree: () => printedTree(control.tree()),
			text: () => control.nodeText(Number(argument)),
		};
		if (!commands[name]) throw new Error(`there is no command ${name}`);
		this.#refusable(() => {
			const printed = commands[name]();
			if (printed !== undefined) this.host.outcome.commands.push(printed);
		});
	}

	#refusable(command) {
		try {
			command();
		} catch (error) {
			const reason = refusal(error);
			if (!reason) throw error;
			this.host.outcome.commands.push(`refused: ${refusalLine(reason)}`);
		}
	}

	#finishJobs() {
		for (let job = this.host.jobs.shift(); job; job = this.host.jobs.shift()) {
			const { outcome, tookMs, delaySteps } = this.#summarizer.reply(job.request);
			this.host.clock += tookMs;
			if (!outcome) continue;
			if (delaySteps > 0) this.#delayed.push({ id: job.id, outcome, steps: delaySteps });
			else this.#loaded.lifecycle.summaryReady(job.id, outcome, this.#now);
		}
	}

	/** Delivers the answers whose time has come, one step after another. */
	#finishDelayed() {
		for (const answer of this.#delayed) answer.steps--;
		const due = this.#delayed.filter(({ steps }) => steps === 0);
		this.#delayed = this.#delayed.filter(({ steps }) => steps > 0);
		for (const { id, outcome } of due) this.#loaded.lifecycle.summaryReady(id, outcome, this.#now);
	}

	#note(notices) {
		this.host.outcome.notices.push(...notices.map(({ level, text }) => ({ level, text })));
	}
}

/** Blocks are merged key by key. */
function merge(config, changes) {
	const isBlock = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
	for (const [key, value] of Object.entries(changes)) {
		if (isBlock(config[key]) && isBlock(value)) merge(config[key], value);
		else config[key] = structuredClone(value);
	}
}

function renamed({ ids, ...rest }) {
	return ids === undefined ? rest : { toolCallIds: ids, ...rest };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
	const [file] = process.argv.slice(2);
	if (!file) throw new Error("usage: run.mjs FILE.json");
	process.stdout.write(runScenario(JSON.parse(readFileSync(file, "utf8"))));
}
