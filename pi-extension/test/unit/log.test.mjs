// What the log hands over, and what it leaves out.

import assert from "node:assert/strict";
import { test } from "node:test";
import { lean, SessionLog } from "../../dist/log.js";
import { FakeManager } from "./pi.mjs";

const HOSTILE = ['a "quoted" word', "ends with \\", '","contentHash":"x","resultText":"y', "\ud800"];

test("a load has no texts of results that have a hash, and the session keeps them", () => {
	const manager = new FakeManager();
	const log = new SessionLog(manager);
	const calls = HOSTILE.map((resultText) => ({ resultText, contentHash: "h", args: { resultText, contentHash: "a" } }));
	const index = { toolCalls: [...calls, { resultText: "no hash" }], turnIndex: 1 };
	const { entry, at } = log.imports.append("context-prune-index", JSON.stringify(index));
	const [loaded] = log.entries();
	assert.equal(loaded.at, at);
	assert.deepEqual(
		JSON.parse(loaded.data).toolCalls.map(({ resultText }) => resultText),
		[...HOSTILE.map(() => ""), "no hash"],
	);
	assert.equal(JSON.parse(loaded.data).toolCalls[0].args.resultText, HOSTILE[0]);
	assert.equal(JSON.parse(log.imports.read(entry)).toolCalls[0].resultText, HOSTILE[0]);
});

test("an alias does without its own text if it has its hash", () => {
	const alias = (own) => lean({ type: "custom", customType: "context-prune-dedup-alias", data: { own } }).data.own;
	assert.equal(alias({ resultText: "a", contentHash: "h", rawHash: "r" }).resultText, "");
	assert.equal(alias({ resultText: "a", contentHash: "h" }).resultText, "a");
	assert.equal(alias(undefined), undefined);
});

test("what has another shape is handed over as it is", () => {
	for (const data of [null, 1, "x", [], {}, { toolCalls: 1 }]) {
		const entry = { type: "custom", customType: "context-prune-index", data };
		assert.equal(lean(entry), entry);
	}
	const odd = { type: "custom", customType: "context-prune-index", data: { toolCalls: [null, 1, { resultText: 1, contentHash: "h" }] } };
	assert.deepEqual(lean(odd).data, odd.data);
});

test("an appended message has the time that the session has", () => {
	const manager = new FakeManager();
	const log = new SessionLog(manager);
	const { entry, at } = log.imports.appendMessage("context-prune-summary", "words", "{}");
	assert.equal(at, BigInt(Date.parse(manager.getEntry(entry).timestamp)));
	assert.equal(log.appended[0].message.timestamp, Number(at));
});
