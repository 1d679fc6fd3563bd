// What pi does to a session: compaction, branches, forks, restarts, aborts, errors.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readScript } from "../rig/rig.mjs";
import { assertNothingLost, assertStableWithinSteps, blocksOf, ofKind, play, VERSIONS } from "./checks.mjs";
import { command, prompt, script } from "./scripts.mjs";

const textsOf = (request) => request.body.messages.flatMap((message) => blocksOf(message).map((block) => JSON.stringify(block)));
const hasStub = (request) => textsOf(request).some((text) => text.includes("Summarized in pruner summary"));

for (const pi of VERSIONS) {
	test(`${pi}: a restarted process sends the context that the one before it would have sent`, async (t) => {
		const steps = [prompt(["one", "two"]), prompt(["three"]), { restart: true }, prompt(["four"])];
		const run = await play(t, { pi, script: script(steps) });
		const before = run.agent.findLast(({ step }) => step === 1);
		const after = run.agent.find(({ step }) => step === 3);
		assert.ok(hasStub(after));
		assert.deepEqual(withoutMarkers(after).slice(0, 4), withoutMarkers(before).slice(0, 4));
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: an undisturbed run and a restarted one send the same`, async (t) => {
		const steps = [prompt(["one", "two"]), prompt(["three"]), prompt(["four"])];
		const settings = { chainCompression: { rollingWindow: 1 } };
		const plain = await play(t, { pi, script: script(steps, settings) });
		const restarted = await play(t, { pi, script: script(steps.flatMap((step) => [step, { restart: true }]).slice(0, -1), settings) });
		assert.deepEqual(restarted.agent.map(shape), plain.agent.map(shape));
	});

	test(`${pi}: /tree goes back to a state without the later flushes, and on from there`, async (t) => {
		const steps = [prompt(["one"]), prompt(["two"]), { prompt: "/rig-tree 1" }, prompt(["three"]), { prompt: "/rig-tree 2" }, prompt(["four"])];
		const run = await play(t, { pi, script: script(steps) });
		const onBranch = run.agent.find(({ step }) => step === 3);
		assert.ok(!textsOf(onBranch).some((text) => text.includes("do two")), "the branch that was left is gone");
		assert.ok(hasStub(onBranch), "what was flushed before the branch point still is");
		assertStableWithinSteps(run.agent);
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: a fork keeps the pruned state of its prefix, spilled results included`, async (t) => {
		const steps = [prompt(["one", "two"]), prompt(["three"]), { fork: 1 }, prompt(["four"]), { prompt: "ask", turns: [{ tools: [{ name: "context_tree_query", args: { toolCallIds: ["t1", "t2"] } }] }, { text: "ok" }] }];
		const run = await play(t, { pi, script: script(steps, { spillThreshold: 1000, spillPreviewBytes: 60 }) });
		const [parent, fork] = run.sessions;
		assert.ok(ofKind(parent, "context-prune-index").some(({ data }) => data.toolCalls[0].spillPath));
		const inFork = run.agent.find(({ step }) => step === 3);
		assert.ok(textsOf(inFork).some((text) => text.includes("Spilled: bash")));
		const answer = textsOf(run.agent.at(-1)).findLast((text) => text.includes("## toolRef: t1"));
		assert.ok(answer.includes("one 1\\\\none 2") || answer.includes("one 1\\none 2"), "the fork reads its parent's blob");
		assert.ok(answer.includes("one 200"));
		assert.notEqual(parent.file, fork.file);
	});

	test(`${pi}: pi's own compaction after /pruner compact`, async (t) => {
		const run = await play(t, { pi, script: readScript("prune-compact"), mayFail: false });
		assert.ok(ofKind(run.sessions[0], "context-prune-chain").length >= 3);
		assert.ok(textsOf(run.agent.at(-1)).some((text) => text.includes("summary")));
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: everything that happens in a long life`, async (t) => {
		const life = readScript("lifecycle");
		const steps = life.steps.filter(({ prompt: text }) => !text?.startsWith("/rig-send"));
		const run = await play(t, { pi, script: { ...life, steps, settings: { ...life.settings, contextPrune: { minBatchChars: 50, chainCompression: { rollingWindow: 1 } } } } });
		assert.ok(run.agent.some(hasStub));
		for (const session of run.sessions) assertNothingLost(session);
	});

	test(`${pi}: chains without summaries`, async (t) => {
		const run = await play(t, { pi, script: { ...readScript("prune-backfill"), files: {} } });
		assert.ok(ofKind(run.sessions[0], "context-prune-chain").length >= 1);
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: a retried request`, async (t) => {
		const run = await play(t, { pi, script: { ...readScript("retry"), files: {} } });
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: print mode, twice in one session`, async (t) => {
		const run = await play(t, { pi, script: { ...readScript("print"), files: {} } });
		const [session] = run.sessions;
		assert.equal(ofKind(session, "context-prune-frontier").length, 2, "each process flushes before it ends");
		assert.ok(hasStub(run.agent.find(({ step }) => step === 1)));
		assert.equal(session.entries.filter(({ message }) => message?.role === "assistant").length, 5, "the final replies are in the session");
		assertNothingLost(session);
	});

	test(`${pi}: commands in print mode`, async (t) => {
		const run = await play(t, { pi, script: script([{ print: "/pruner status" }, { print: "/pruner help" }]) });
		assert.deepEqual(run.steps.slice(0, 2).map(({ response }) => response.code), [0, 0]);
	});

	test(`${pi}: switched off, the context is sent as it is`, async (t) => {
		const run = await play(t, { pi, script: script([prompt(["one"]), prompt(["two"]), command("on"), prompt(["three"]), prompt(["four"])], { enabled: false }) });
		assert.ok(!run.agent.filter(({ step }) => step < 2).some(hasStub));
		assert.ok(hasStub(run.agent.at(-1)), "switched on, it flushes what has waited");
		assertNothingLost(run.sessions[0]);
	});
}

/** The messages of a request without cache markers, which move. */
function withoutMarkers({ body }) {
	return JSON.parse(JSON.stringify(body.messages, (key, value) => (key === "cache_control" ? undefined : value)));
}

/** A request without what differs from run to run: ids, paths and times. */
function shape({ body }) {
	const text = JSON.stringify(withoutMarkers({ body }));
	return text.replace(/toolu_\d+_\d+/g, "ID").replace(/sig-\d+|c2ln[A-Za-z0-9+/=]+/g, "SIG");
}
