import assert from "node:assert/strict";
import { test } from "node:test";
import { applyPlan, Plan } from "../../dist/apply.js";
import { assistant, call, image, result, text, user } from "./messages.mjs";

function plan(...edits) {
	const taken = new Plan();
	taken.take({ revision: 1n, base: undefined, removed: [], added: edits.map(([at, tag, val], id) => ({ id, at, change: { tag, val } })) });
	return taken.byPosition();
}

const brief = (messages) =>
	messages.map((message) => `${message.role}${message.toolCallId ? ` ${message.toolCallId}` : ""}: ${JSON.stringify(message.content).slice(0, 120)}`);

const messages = [
	user(1),
	assistant(2, [{ type: "thinking", thinking: "hm" }, call("c1"), call("c2")]),
	result("c1", 3, "one", { content: [text("one"), image, text("more")], isError: true }),
	{ role: "custom", customType: "note", content: "foreign", timestamp: 4 },
	result("c2", 5, "two"),
	assistant(6, [text("done")], "stop"),
];

test("no edits leave the very same messages", () => {
	assert.deepEqual(applyPlan(messages, plan()), messages);
	assert.equal(applyPlan(messages, plan())[2], messages[2]);
});

test("a stub replaces the text, keeps the other parts and is no error", () => {
	const rendered = applyPlan(messages, plan([2, "replace-text", "[stub]"]));
	assert.deepEqual(rendered[2].content, [text("[stub]"), image]);
	assert.equal(rendered[2].isError, false);
	assert.equal(rendered[2].toolCallId, "c1");
	assert.equal(messages[2].content.length, 3, "the host's own message is untouched");
});

test("a result moves behind the results that stand at its call", () => {
	const rendered = applyPlan(messages, plan([4, "move-up", 1]));
	assert.deepEqual(rendered.map(({ role }) => role), ["user", "assistant", "toolResult", "toolResult", "custom", "assistant"]);
	assert.equal(rendered[3].toolCallId, "c2");
});

test("a moved result can be stubbed too, and insertions follow it", () => {
	const rendered = applyPlan(
		messages,
		plan([4, "move-up", 1], [4, "replace-text", "[stub]"], [2, "insert-user", { parts: [{ tag: "text", val: "in" }], at: 9n }]),
	);
	assert.deepEqual(brief(rendered).slice(2, 5), [
		brief([messages[2]])[0],
		'toolResult c2: [{"type":"text","text":"[stub]"}]',
		'user: [{"type":"text","text":"in"}]',
	]);
});

test("a span is dropped, and what is inserted after a dropped message stays", () => {
	const rendered = applyPlan(
		messages,
		plan([1, "drop", 4], [2, "insert-user", { parts: [{ tag: "text", val: "block" }, { tag: "attachments", val: 2 }], at: 9n }]),
	);
	assert.deepEqual(rendered, [
		messages[0],
		{ role: "user", content: [text("block"), image], timestamp: 9 },
		messages[5],
	]);
});

test("what is inserted after one position stands in the order of the ids", () => {
	const inserted = (val) => ({ parts: [{ tag: "text", val }], at: 9n });
	const rendered = applyPlan(messages, plan([0, "insert-user", inserted("first")], [0, "insert-user", inserted("second")]));
	assert.deepEqual(rendered.slice(1, 3).map(({ content }) => content[0].text), ["first", "second"]);
});

test("a summary is a custom message of pi", () => {
	const rendered = applyPlan(messages, plan([4, "insert-summary", { content: "- s", details: '{"turnIndex":1}', at: 9n }]));
	assert.deepEqual(rendered[5], { role: "custom", customType: "context-prune-summary", content: [text("- s")], display: false, details: { turnIndex: 1 }, timestamp: 9 });
});

test("thinking goes, and the arguments of one call are replaced", () => {
	const rendered = applyPlan(messages, plan([1, "strip-thinking"], [1, "replace-arguments", { call: 1, arguments: '{"_purged":"x"}' }]));
	assert.deepEqual(rendered[1].content, [call("c1"), call("c2", { _purged: "x" })]);
});

test("a difference is taken only to the plan that it belongs to", () => {
	const edit = (id, at) => ({ id, at, change: { tag: "drop", val: 1 } });
	const taken = new Plan();
	assert.equal(taken.take({ revision: 1n, base: undefined, removed: [], added: [edit(1, 0), edit(2, 3)] }), true);
	assert.equal(taken.take({ revision: 2n, base: 1n, removed: Uint32Array.of(1), added: [edit(3, 5)] }), true);
	assert.deepEqual([...taken.byPosition().keys()], [3, 5]);
	assert.equal(taken.take({ revision: 4n, base: 3n, removed: [], added: [] }), false);
	assert.equal(taken.revision, 2n);
	assert.equal(taken.take({ revision: 9n, base: undefined, removed: [], added: [] }), true);
	assert.equal(taken.isEmpty, true);
});
