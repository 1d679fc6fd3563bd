// What goes wrong: summarizers that fail or hang, aborts, a full disk, a process that is killed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNothingLost, blocksOf, notices, ofKind, play, VERSIONS } from "./checks.mjs";
import { prompt, script } from "./scripts.mjs";

const BATCH = "tool-call-batch";
const hasStub = ({ body }) => JSON.stringify(body.messages).includes("Summarized in pruner summary");
const flushes = (session) => ofKind(session, "context-prune-frontier").length;

for (const pi of VERSIONS) {
	test(`${pi}: a summarizer that fails costs nothing, and the next flush tries again`, async (t) => {
		const failing = [{ match: BATCH, error: { status: 500, message: "out of order" } }];
		const run = await play(t, { pi, script: script([prompt(["one"], { auxiliary: failing }), prompt(["two"], { auxiliary: [] }), prompt(["three"])]) });
		assert.ok(!run.agent.filter(({ step }) => step === 1).some(hasStub));
		assert.ok(notices(run).some((text) => /summarization failed/.test(text)));
		assert.ok(run.agent.some(({ step, body }) => step === 2 && JSON.stringify(body).includes("`t2`")), "both prompts are summarized in the end");
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: a summarizer that hangs is given up at its idle limit`, async (t) => {
		const hanging = [{ match: BATCH, text: "never", hang: true }];
		const began = Date.now();
		const run = await play(t, { pi, script: script([prompt(["one"], { auxiliary: hanging }), prompt(["two"], { auxiliary: [] })], { summarizerIdleTimeoutMs: 400 }) });
		assert.ok(Date.now() - began < 15_000);
		assert.ok(notices(run).some((text) => /no output within 0\.4 s/.test(text)));
		assert.ok(flushes(run.sessions[0]) >= 1);
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: an abort in the middle of a flush ends it at once; its batches wait`, async (t) => {
		const hanging = [{ match: BATCH, text: "never", hang: true }];
		const steps = [prompt(["one"], { auxiliary: hanging, abortAfterMs: 1500 }), prompt(["two"], { auxiliary: [] }), prompt(["three"])];
		// Pi 0.73 has ended its run by then and has nothing to abort: there the limit ends the flush.
		const summarizerIdleTimeoutMs = pi === "0.73.1" ? 3000 : 0;
		const run = await play(t, { pi, script: script(steps, { summarizerIdleTimeoutMs, summarizerMaxTimeoutMs: 0 }) });
		assert.ok(!run.agent.filter(({ step }) => step === 1).some(hasStub), "nothing was committed");
		assert.ok(hasStub(run.agent.at(-1)));
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: a full disk costs no turn`, async (t) => {
		const steps = [prompt(["one"]), prompt(["two"]), { restart: true, env: { RIG_FULL_AFTER: "0" } }, prompt(["three"]), prompt(["four"])];
		const run = await play(t, { pi, script: script(steps), env: { RIG_FULL_AFTER: "2" } });
		assert.ok(notices(run).some((text) => /cannot be written/.test(text)));
		assert.ok(!run.agent.filter(({ step }) => step < 3).some(hasStub), "what is not written is not pruned");
		assert.ok(hasStub(run.agent.at(-1)), "with room again, it flushes");
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: a flush in the background that the end of the process interrupts leaves nothing behind`, async (t) => {
		const slow = [{ match: BATCH, text: "- done", delayMs: 20_000 }];
		const steps = [prompt(["one"], { auxiliary: slow }), { restart: true }, prompt(["two"], { auxiliary: [] }), { wait: 500 }, prompt(["three"])];
		const run = await play(t, { pi, script: script(steps, { flushMode: "background" }) });
		const [session] = run.sessions;
		const replies = session.entries.flatMap(({ message }, i) => (message?.role === "assistant" && message.stopReason === "stop" ? [i] : []));
		const untilRestart = session.entries.slice(0, replies[0] + 1);
		assert.deepEqual(untilRestart.filter(({ customType }) => customType?.startsWith("context-prune-")), []);
		assert.ok(hasStub(run.agent.at(-1)), "the next process flushes what has waited");
		assertNothingLost(session);
	});

	for (const after of [1, 2, 3, 4, 5, 6, 7, 8]) {
		test(`${pi}: killed right after the pruner's entry ${after}`, async (t) => {
			const steps = [prompt(["one", "two"], { dies: true }), { resume: "last", env: { RIG_KILL_AFTER: "0" } }, prompt(["three"]), prompt(["four"])];
			const run = await play(t, { pi, script: script(steps, { chainCompression: { rollingWindow: 0 } }), env: { RIG_KILL_AFTER: String(after) } });
			assert.ok(run.steps[0].response.died, "it was killed");
			assert.ok(/Summarized in pruner|compressed-chain/.test(JSON.stringify(run.agent.at(-1).body.messages)));
			assertOneSummaryEach(run.agent.at(-1));
			assertNothingLost(run.sessions[0]);
		});
	}
}

/** No ref is summarized twice in what the model sees. */
function assertOneSummaryEach({ body }) {
	const texts = body.messages.flatMap((message) => blocksOf(message).map(({ text }) => text ?? ""));
	const refs = texts.flatMap((text) => /\*\*Summarized tool refs\*\*: (.*)/.exec(text)?.[1].split(", ") ?? []);
	assert.equal(new Set(refs).size, refs.length, refs.join(" "));
}
