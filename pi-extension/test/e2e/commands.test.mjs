// /pruner in RPC mode: every sub-command, what it says and what it writes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { assertNothingLost, notices, ofKind, play, shown, VERSIONS } from "./checks.mjs";
import { command, prompt, script } from "./scripts.mjs";

for (const pi of VERSIONS) {
	test(`${pi}: looking, flushing, compressing and taking back`, async (t) => {
		const steps = [
			prompt(["one", "two"]),
			command("now"),
			command("status"),
			command("stats"),
			command("tree"),
			command("compact"),
			command("tree"),
			command("undo b1"),
			command("undo t1"),
			command("undo"),
			command("undo b9"),
			command("dance"),
			command("help"),
			prompt(["three"]),
		];
		const run = await play(t, { pi, script: script(steps, { pruneOn: "on-demand" }) });
		const said = notices(run);
		const expect = [/Done: 2 summaries written.*context went from/, /Archive: 2 records/, /Summarizer: 2 calls/, /t1 .*bash/, /b1/, /b1 is taken back/, /taken back: t1/, /Which\?/, /no `?b9/, /no \/pruner dance/, /\/pruner undo b1\|t1/];
		for (const pattern of expect) assert.ok(said.some((text) => pattern.test(text)), `${pattern} in\n${said.join("\n")}`);
		assert.ok(shown(run, "setWidget").length > 0, "the progress was shown");
		assert.equal(shown(run, "setWidget").at(-1).widgetLines, undefined, "and taken away");
		assert.equal(ofKind(run.sessions[0], "context-prune-frontier").length >= 1, true);
		assert.ok(JSON.stringify(run.agent.at(-1).body.messages).includes("one 77"), "undo has put the originals back");
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: settings`, async (t) => {
		const steps = [
			"off", "on", "model rig/rig-other", "model", "model nonsense", "thinking low", "prune-on on-demand", "batching agent-message",
			"protected-tools add read todo*", "protected-tools remove read", "protected-paths a/** *.md", "min-batch-chars 77", "min-batch-chars many",
			"dedup off", "dedup status", "recovery-grace 5", "settings chainCompression.rollingWindow 2", "settings chainCompression.rollingWindow", "settings", "settings nothing 1",
		].map((line) => command(line));
		const run = await play(t, { pi, script: script(steps, { keep: "me" }) });
		const said = notices(run);
		const expect = [/^enabled: off/, /^enabled: on/, /^summarizerModel: rig\/rig-other/, /summarizerThinking: low/, /pruneOn: on-demand/, /batchingMode: agent-message/, /protectedTools: todo\*$/, /protectedPaths: a\/\*\*, \*\.md/, /minBatchChars: 77/, /minBatchChars.*must be/, /dedupByContentHash: off/, /recoveryGraceTurns: 5/, /chainCompression\.rollingWindow: 2/, /no setting nothing/, /idleColdMs +300000/];
		for (const pattern of expect) assert.ok(said.some((text) => pattern.test(text)), `${pattern} in\n${said.join("\n")}`);
		const written = JSON.parse(readFileSync(run.path("agent", "settings.json"), "utf8"));
		assert.deepEqual(written.contextPrune, {
			minBatchChars: 77,
			keep: "me",
			enabled: true,
			summarizerModel: "rig/rig-other",
			summarizerThinking: "low",
			pruneOn: "on-demand",
			batchingMode: "agent-message",
			protectedTools: ["todo*"],
			protectedPaths: ["a/**", "*.md"],
			dedupByContentHash: false,
			recoveryGraceTurns: 5,
			chainCompression: { rollingWindow: 2 },
		});
		assert.equal(written.defaultModel, "rig-main", "pi's own settings are as they were");
	});

	test(`${pi}: the configured summarizer is asked, the session's serves when it fails`, async (t) => {
		const steps = [prompt(["one"]), command("model rig/no-such-model"), prompt(["two"]), command("model default"), prompt(["three"])];
		const run = await play(t, { pi, script: script(steps, { summarizerModel: "rig/rig-other" }) });
		assert.equal(run.summarizer[0].body.model, "rig-other");
		assert.ok(notices(run).some((text) => /knows no model rig\/no-such-model/.test(text)));
		assert.equal(run.summarizer.at(-1).body.model, "rig-main");
		assertNothingLost(run.sessions[0]);
	});

	test(`${pi}: settings that are not allowed are named`, async (t) => {
		const run = await play(t, { pi, script: script([command("settings minBatchChars 5"), command("status")], { chainCompression: 7, minBatchChars: -1 }) });
		assert.ok(notices(run).some((text) => /chainCompression.*must be an object/.test(text)));
	});
}
