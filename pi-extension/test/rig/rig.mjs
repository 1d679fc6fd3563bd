// Runs one scripted session in a real pi, offline, and records what it sent to the model. See README.md.

import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { startFakeModel } from "./lib/fake-model.mjs";
import { findHost } from "./lib/hosts.mjs";
import { PiRpc, runPrint } from "./lib/pi-rpc.mjs";

const RIG = dirname(fileURLToPath(import.meta.url));
export const PROBE = join(RIG, "probe.ts");

export const readScript = (name) => JSON.parse(readFileSync(join(RIG, "scripts", `${name}.json`), "utf8"));
export const readLines = (file) => readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));

/** { line: "row {n}", times: 40 } becomes 40 numbered lines. */
function expand(content) {
	if (typeof content === "string") return content;
	return Array.from({ length: content.times }, (_, n) => `${content.line.replaceAll("{n}", n + 1)}\n`).join("");
}

function writeJson(file, value) {
	writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

/** Writes pi's configuration into `out`: models, settings and the files of the script. */
export function prepare({ out, script, api = "anthropic", baseUrl, packages }) {
	const path = (...parts) => join(out, ...parts);
	for (const directory of ["agent", "sessions", "work", "home"]) mkdirSync(path(directory), { recursive: true });
	for (const [name, content] of Object.entries(script.files ?? {})) {
		mkdirSync(dirname(path("work", name)), { recursive: true });
		writeFileSync(path("work", name), expand(content));
	}
	const cost = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
	const model = { reasoning: true, input: ["text", "image"], contextWindow: 200000, maxTokens: 8192, cost, ...script.model };
	const models = ["main", "other"].map((id) => ({ id: `rig-${id}`, name: `Rig ${id}`, ...model }));
	const provider = api === "openai" ? { baseUrl: `${baseUrl}/v1`, api: "openai-completions" } : { baseUrl, api: "anthropic-messages" };
	writeJson(path("agent", "models.json"), { providers: { rig: { ...provider, apiKey: "rig-key", models } } });
	writeJson(path("agent", "settings.json"), {
		defaultProvider: "rig",
		defaultModel: "rig-main",
		defaultThinkingLevel: "medium",
		compaction: { enabled: false },
		retry: { enabled: false },
		quietStartup: true,
		enableInstallTelemetry: false,
		...(packages ? { packages } : {}),
		...script.settings,
	});
	return path;
}

export function environment(out, host, more = {}) {
	return {
		PATH: `${dirname(host.node)}:${process.env.PATH}`,
		LANG: process.env.LANG ?? "C.UTF-8",
		HOME: join(out, "home"),
		TMPDIR: tmpdir(),
		PI_CODING_AGENT_DIR: join(out, "agent"),
		PI_OFFLINE: "1",
		PI_SKIP_VERSION_CHECK: "1",
		PI_TELEMETRY: "0",
		...more,
	};
}

export function piArgs(host, out, extensions, ...more) {
	const off = ["--no-skills", "--no-prompt-templates", "--no-themes", "--no-context-files"];
	const loaded = extensions ? ["--no-extensions", ...extensions.flatMap((file) => ["-e", file])] : [];
	return [host.cli, "--session-dir", join(out, "sessions"), ...off, ...loaded, ...more];
}

/**
 * @param {object} options
 * @param {string} options.pi           version of pi
 * @param {object} options.script       see README.md
 * @param {string} options.out          emptied first, unless the script resumes a session in it
 * @param {string[]} [options.extensions]  paths to load with -e
 * @param {string[]} [options.packages] loaded through settings.json instead
 * @param {string} [options.api]        anthropic or openai
 * @returns what happened: requests, entries per session file, UI requests, failures
 */
export async function runScript({ pi: version, script, out: folder, extensions = [], packages, api, env = {}, keep = false }) {
	const host = findHost(join(RIG, "hosts"), version);
	const out = resolve(folder);
	if (!keep) rmSync(out, { recursive: true, force: true });
	mkdirSync(out, { recursive: true });
	const log = join(out, "requests.jsonl");
	const model = await startFakeModel({ log });
	const path = prepare({ out, script, api, baseUrl: model.baseUrl, packages });
	const run = new Run({ host, out, path, model, script, extensions: packages ? undefined : extensions.map((file) => resolve(file)), env });
	const failure = await run.all();
	await model.close();
	return { ...run.report(), ...model.state(), failure, requests: requestsIn(log), sessions: sessionsIn(path("sessions")), path };
}

function requestsIn(log) {
	try {
		return readLines(log);
	} catch {
		return [];
	}
}

/** The session files, oldest first, each as its entries. */
function sessionsIn(folder) {
	const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(".jsonl")).sort();
	return files.map((file) => ({ file: join(folder, file), entries: readLines(join(folder, file)) }));
}

class Run {
	#options;
	#rpc;
	#events = [];
	#steps = [];
	#env;

	constructor(options) {
		this.#options = options;
		const { out, host, script, env } = options;
		this.#env = environment(out, host, { ...script.env, ...env });
		options.model.setAuxiliaryRules(script.auxiliary ?? []);
	}

	report() {
		return { events: this.#events, steps: this.#steps };
	}

	/** Takes all steps; returns the error that ended them early, if one did. */
	async all() {
		const { model, script } = this.#options;
		let failure;
		try {
			for (const [index, step] of script.steps.entries()) {
				model.setLabel({ step: index });
				if (step.auxiliary) model.setAuxiliaryRules(step.auxiliary);
				model.enqueue(step.turns ?? []);
				const response = await this.#take(step);
				this.#steps.push({ index, leftOver: model.clear(), response });
				if (response?.success === false && !step.mayFail) throw new Error(`step ${index}: ${response.error ?? response.stdout}`);
			}
		} catch (error) {
			failure = error;
		}
		this.#steps.push({ exit: await this.#rpc?.close() });
		return failure;
	}

	async #take(step) {
		if (step.print !== undefined) return this.#print(step);
		if (step.prompt !== undefined) return this.#prompt(step);
		if (step.wait !== undefined) return void (await new Promise((done) => setTimeout(done, step.wait)));
		if (step.restart || step.resume) return this.#restart(step);
		if (step.fork !== undefined) return this.#fork(step.fork);
		const response = await this.#start().request(step.rpc);
		await this.#rpc.idle();
		return response;
	}

	#start(...more) {
		const { host, out, extensions, path } = this.#options;
		this.#rpc ??= new PiRpc({
			node: host.node,
			args: piArgs(host, out, extensions, "--mode", "rpc", ...more),
			cwd: path("work"),
			env: this.#env,
			hasSettled: host.hasSettled,
			stderrLog: path("stderr.log"),
			onRecord: (record) => this.#record(record),
		});
		return this.#rpc;
	}

	#record(record) {
		if (record.type === "message_update") return;
		this.#events.push(record);
		appendFileSync(this.#options.path("events.jsonl"), `${JSON.stringify(record)}\n`);
	}

	/** A process that is expected to die in a prompt leaves nothing to wait for. */
	async #prompt(step) {
		try {
			return await this.#start().prompt(step.prompt, step);
		} catch (error) {
			if (!step.dies) throw error;
			this.#rpc = undefined;
			return { success: true, died: error.message };
		}
	}

	async #print(step) {
		const { host, out, extensions, path } = this.#options;
		const args = piArgs(host, out, extensions, ...(step.continue ? ["--continue"] : []), "-p", step.print);
		return runPrint({ node: host.node, args, cwd: path("work"), env: this.#env, stderrLog: path("stderr.log") });
	}

	async #restart({ resume, env }) {
		if (this.#rpc && !resume) {
			const { data } = await this.#rpc.request({ type: "get_state" });
			await this.#rpc.close();
			resume = data.sessionFile;
		}
		this.#rpc = undefined;
		if (env) this.#env = { ...this.#env, ...env };
		const file = resume === "last" ? sessionsIn(this.#options.path("sessions")).at(-1).file : resume;
		return this.#start("--session", file).request({ type: "get_state" });
	}

	async #fork(n) {
		const { data } = await this.#start().request({ type: "get_fork_messages" });
		const response = await this.#rpc.request({ type: "fork", entryId: data.messages[n].entryId });
		await this.#rpc.idle();
		return response;
	}
}
