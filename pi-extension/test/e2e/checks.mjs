// What must hold for the requests that a model received and the session that pi wrote.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PROBE, runScript } from "../rig/rig.mjs";
import { Archive } from "./archive.mjs";

export const VERSIONS = (process.env.DECANT_PI ?? "1.6.0,0.73.1").split(",");
export const EXTENSION = fileURLToPath(new URL("../../", import.meta.url));

/** A folder for one test; with DECANT_KEEP it stays. */
export function newFolder(t) {
	const out = mkdtempSync(join(tmpdir(), "decant-pi-"));
	t.after(() => (process.env.DECANT_KEEP ? console.error(out) : rmSync(out, { recursive: true, force: true })));
	return out;
}

/** Runs a script with the extension, and checks what every run must hold to. */
export async function play(t, { pi, script, api, env, packages, extensions = [PROBE, EXTENSION], mayFail = false, out = newFolder(t), keep }) {
	const run = await runScript({ pi, script, out, api, env, packages, extensions, keep });
	if (run.failure && !mayFail) throw run.failure;
	assert.deepEqual(run.events.filter(({ type }) => type === "extension_error"), []);
	assert.deepEqual(run.unscripted, [], "no model call that the script does not have");
	for (const request of run.requests) assertPaired(request);
	return { ...run, out, agent: run.requests.filter(({ kind }) => kind === "agent"), summarizer: run.requests.filter(({ kind }) => kind !== "agent") };
}

export const blocksOf = ({ content }) => (Array.isArray(content) ? content : [{ type: "text", text: content }]);

/** Every result answers an open call of the assistant message before it, and every call has exactly one. */
export function assertPaired({ seq, api, body }) {
	const open = new Set();
	const where = (id) => `request ${seq}: ${id}`;
	for (const message of body.messages) {
		const results = api === "openai" ? (message.role === "tool" ? [message.tool_call_id] : []) : blocksOf(message).flatMap((block) => (block.type === "tool_result" ? [block.tool_use_id] : []));
		for (const id of results) assert.ok(open.delete(id), `${where(id)} answers no open call`);
		if (results.length > 0) continue;
		assert.deepEqual([...open], [], where("calls without a result"));
		const calls = api === "openai" ? (message.tool_calls ?? []) : blocksOf(message).filter(({ type }) => type === "tool_use");
		for (const { id } of calls) open.add(id);
	}
	assert.deepEqual([...open], [], where("calls without a result"));
	assert.doesNotMatch(JSON.stringify(body.messages), /No result provided/, where("a result was lost"));
}

/** The agent requests that do not begin with the whole request before them. */
export function prefixBreaks(agent) {
	return agent.filter((request, i) => i > 0 && request.commonPrefixMessages < agent[i - 1].messageCount);
}

/** The prefix may break at the first request of a step only: there the flush of the step before shows. */
export function assertStableWithinSteps(agent) {
	for (const request of prefixBreaks(agent)) {
		const first = agent.find(({ step }) => step === request.step);
		assert.equal(request.seq, first.seq, `request ${request.seq} breaks the prefix in the middle of step ${request.step}`);
	}
}

/** Every tool result of the session is in the context or can be had in full, byte for byte, from its file alone. */
export function assertNothingLost(session) {
	const archive = new Archive(session.file);
	const sent = archive.rendered;
	for (const result of archive.results) {
		const text = result.content.map((part) => part.text ?? "").join("\n");
		if (text === "" || sent.includes(JSON.stringify(text).slice(1, -1))) continue;
		if (result.toolName === "context_tree_query") continue;
		assert.equal(readBack(archive, `${result.toolCallId}@${result.timestamp}`), text, `the output of ${result.toolCallId} (${result.toolName})`);
	}
	return archive;
}

const FOOTER = /\n\n\[context_tree_query: lines \d+-(\d+) of (\d+)\. [^\]]*\]$/;

/** All pages of one original, put together. */
export function readBack(archive, id) {
	const pages = [];
	for (let offset = 0; ; ) {
		const answer = archive.query({ toolCallIds: [id], ...(offset > 0 ? { offset } : {}) });
		const body = answer.slice(answer.indexOf("\n\n") + 2);
		const footer = FOOTER.exec(body);
		pages.push(footer ? body.slice(0, footer.index) : body);
		if (!footer || footer[1] === footer[2]) return pages.join("");
		offset = Number(footer[1]);
	}
}

export const sum = (requests, of) => requests.reduce((total, request) => total + of(request), 0);

/** What pi was asked to show, by method. */
export const shown = (run, method) => run.events.filter((event) => event.type === "extension_ui_request" && event.method === method);

export const notices = (run) => shown(run, "notify").map(({ message }) => message);

export const ofKind = (session, kind) => session.entries.filter(({ customType }) => customType === kind);
