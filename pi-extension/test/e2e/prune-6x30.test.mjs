// 30 tool calls in 6 prompts: summaries, duplicates, a spilled result, chains, a recovery, a failed edit.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readScript } from "../rig/rig.mjs";
import { assertNothingLost, assertStableWithinSteps, blocksOf, ofKind, play, prefixBreaks, sum, VERSIONS } from "./checks.mjs";

/** Characters sent by pi-condense 2.0.0, in all and outside the prefix shared with the request before. */
const TO_BEAT = { "1.6.0": { total: 331_454, fresh: 60_072 }, "0.73.1": { total: 356_061, fresh: 93_138 } };

for (const pi of VERSIONS) {
	test(`${pi}: every request is valid, the prefix is stable, nothing is lost`, async (t) => {
		const run = await play(t, { pi, script: readScript("prune-6x30") });
		assert.equal(run.agent.length, 28);
		assertStableWithinSteps(run.agent);
		assert.ok(prefixBreaks(run.agent).length <= 5, "one break for each flush");
		const [session] = run.sessions;
		assertNothingLost(session);
		assert.equal(ofKind(session, "context-prune-frontier").length, 6);
		assert.ok(ofKind(session, "context-prune-chain").length >= 4);
		assert.ok(ofKind(session, "context-prune-dedup-alias").length >= 1);
		assert.ok(ofKind(session, "context-prune-index").some(({ data }) => data.toolCalls.some(({ spillPath }) => spillPath)));
	});

	test(`${pi}: less is sent than pi-condense sends`, async (t) => {
		const run = await play(t, { pi, script: readScript("prune-6x30") });
		const total = sum(run.agent, ({ promptChars }) => promptChars);
		const fresh = sum(run.agent, ({ promptChars, commonPrefixChars }) => promptChars - commonPrefixChars);
		t.diagnostic(`${total} characters sent, ${fresh} outside the prefix, ${run.agent.at(-1).promptChars} in the last request, ${sum(run.summarizer, (r) => r.promptChars)} to the summarizer`);
		assert.ok(total < TO_BEAT[pi].total, `${total} characters sent`);
		assert.ok(fresh < TO_BEAT[pi].fresh, `${fresh} characters outside the prefix`);
	});

	test(`${pi}: the model gets an original back byte for byte`, async (t) => {
		const script = readScript("prune-6x30");
		const run = await play(t, { pi, script: { ...script, steps: script.steps.slice(0, 5) } });
		const original = run.sessions[0].entries.find(({ message }) => message?.role === "toolResult").message.content[0].text;
		const asked = run.agent.find(({ step }) => step === 4);
		const answered = run.agent[run.agent.indexOf(asked) + 1];
		const texts = blocksOf(answered.body.messages.at(-1)).map(({ content }) => (typeof content === "string" ? content : content?.[0].text));
		assert.ok(texts[0].endsWith(original), "the answer ends with the original");
		assert.ok(!JSON.stringify(asked.body.messages).includes("listing 77"), "before, it was not in the context");
	});

	test(`${pi}: OpenAI's protocol`, async (t) => {
		const run = await play(t, { pi, script: readScript("prune-6x30"), api: "openai" });
		assert.equal(run.agent.length, 28);
		assertStableWithinSteps(run.agent);
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: background flushes`, async (t) => {
		const script = readScript("prune-6x30");
		script.settings.contextPrune.flushMode = "background";
		script.auxiliary = [{ match: "tool-call-batch", text: "- done", delayMs: 150 }];
		const run = await play(t, { pi, script });
		assert.equal(run.agent.length, 28);
		assertNothingLost(run.sessions[0]);
		assert.ok(ofKind(run.sessions[0], "context-prune-frontier").length >= 3);
	});
}
