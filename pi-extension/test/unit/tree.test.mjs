import assert from "node:assert/strict";
import { test } from "node:test";
import { treeReport } from "../../dist/report.js";
import { TreeModel } from "../../dist/tree.js";

const nodes = [
	{ kind: "block", name: "b1", label: "2 calls", parent: undefined, callId: "" },
	{ kind: "summary", name: "", label: "turn 1", parent: 0, callId: "" },
	{ kind: "call", name: "t1", label: "bash ls", parent: 1, callId: "c1" },
	{ kind: "call", name: "t2", label: "read a.txt", parent: 1, callId: "c2" },
	{ kind: "summary", name: "", label: "turn 2", parent: undefined, callId: "" },
	{ kind: "call", name: "t3", label: "bash wc", parent: 4, callId: "c3" },
];

const shown = (model) => model.rows.map(({ node, depth }) => `${" ".repeat(depth)}${node.name || node.label}`);

test("it begins folded, opens step by step and folds upwards", () => {
	const model = new TreeModel(nodes);
	assert.deepEqual(shown(model), ["b1", "turn 2"]);
	model.unfold();
	model.unfold();
	model.unfold();
	assert.deepEqual(shown(model), ["b1", " turn 1", "  t1", "  t2", "turn 2"]);
	assert.equal(model.current.node.label, "turn 1");
	model.move(2);
	model.fold();
	assert.equal(model.current.node.label, "turn 1");
	model.fold();
	assert.deepEqual(shown(model), ["b1", " turn 1", "turn 2"]);
});

test("a search shows what matches and all above it", () => {
	const model = new TreeModel(nodes);
	model.find("bash");
	assert.deepEqual(shown(model), ["b1", " turn 1", "  t1", "turn 2", " t3"]);
	assert.equal(model.current.node.name, "t1");
	model.find("no such thing");
	assert.deepEqual(shown(model), []);
	model.move(1);
	assert.equal(model.current, undefined);
	model.find("");
	assert.deepEqual(shown(model), ["b1", "turn 2"]);
});

test("the cursor stays on the list", () => {
	const model = new TreeModel(nodes);
	model.move(99);
	assert.equal(model.cursor, 1);
	model.move(-99);
	assert.equal(model.cursor, 0);
});

test("without a screen the tree is indented text", () => {
	assert.equal(treeReport(nodes), "b1 · 2 calls\n  turn 1\n    t1 · bash ls\n    t2 · read a.txt\nturn 2\n  t3 · bash wc");
	assert.equal(treeReport([]), "Nothing has been pruned yet.");
});
