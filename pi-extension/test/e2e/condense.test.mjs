// A session that pi-condense 2.9 has pruned goes on under Decant.

import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PROBE, readLines } from "../rig/rig.mjs";
import { assertNothingLost, newFolder, ofKind, play, VERSIONS } from "./checks.mjs";
import { prompt, script } from "./scripts.mjs";

/** The entries that pi-condense writes for one summarized call, before the final reply. */
function entriesFor({ toolCallId, toolName, timestamp: resultTimestamp, content }, call, at) {
	const ref = { shortId: "t1", toolCallId, resultTimestamp };
	const record = { toolCallId, toolName, args: call.arguments, resultText: content[0].text, isError: false, turnIndex: 0, timestamp: at, resultTimestamp };
	const summary = "- printed the rows\n\n---\n**Summarized tool refs**: `t1`\nUse `context_tree_query` with these refs to retrieve the original full outputs.";
	return [
		{ type: "custom_message", customType: "context-prune-summary", content: summary, display: false, details: { toolCallRefs: [ref], toolNames: [toolName], turnIndex: 0, timestamp: at } },
		{ type: "custom", customType: "context-prune-index", data: { toolCalls: [record] } },
		{
			type: "custom",
			customType: "context-prune-frontier",
			data: { lastAttemptedToolCallId: toolCallId, lastAttemptedToolName: toolName, lastAttemptedTurnIndex: 0, lastAttemptedTimestamp: at, attemptedBatchCount: 1, attemptedToolCallCount: 1, rawCharCount: content[0].text.length, summaryCharCount: summary.length, outcome: "summarized" },
		},
		{ type: "custom", customType: "context-prune-stats", data: { totalInputTokens: 100, totalOutputTokens: 10, totalCost: 0.001, callCount: 1, chainsCompressed: 0, rangesSummarized: 0 } },
	];
}

/** Puts them into a session file that pi alone has written. */
function condense(file) {
	const lines = readLines(file);
	const end = lines.findIndex(({ message }) => message?.role === "assistant" && message.stopReason === "stop");
	const { message: result, id, timestamp } = lines[end - 1];
	const { message: turn } = lines[end - 2];
	let parentId = id;
	const entries = entriesFor(result, turn.content.find(({ type }) => type === "toolCall"), turn.timestamp).map((entry, i) => {
		const made = { ...entry, id: `c0de000${i}`, parentId, timestamp };
		parentId = made.id;
		return made;
	});
	lines[end].parentId = parentId;
	lines.splice(end, 0, ...entries);
	writeFileSync(file, `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`);
}

for (const pi of VERSIONS) {
	test(`${pi}: its stubs, summaries and refs are in force, and new refs go on`, async (t) => {
		const out = newFolder(t);
		await play(t, { pi, script: script([prompt(["one"])]), out, extensions: [PROBE] });
		const folder = join(out, "sessions");
		condense(join(folder, readdirSync(folder, { recursive: true }).find((name) => name.endsWith(".jsonl"))));
		const ask = { prompt: "ask", turns: [{ tools: [{ name: "context_tree_query", args: { toolCallIds: ["t1"] } }] }, { text: "ok" }] };
		const run = await play(t, { pi, script: script([{ resume: "last" }, prompt(["two"]), ask]), out, keep: true });
		const first = run.agent.find(({ step, seq, body }) => step === 1 && JSON.stringify(body).includes("do two") && seq > 1);
		const sent = JSON.stringify(first.body.messages);
		assert.match(sent, /ref `t1`\. Use context_tree_query/);
		assert.match(sent, /printed the rows/);
		assert.doesNotMatch(sent, /one 77/);
		assert.match(JSON.stringify(run.agent.at(-1).body.messages), /one 77/, "the model has read it back");
		assert.ok(ofKind(run.sessions[0], "context-prune-index").some(({ data }) => data.toolCalls.some(({ shortId }) => shortId === "t2")));
		assertNothingLost(run.sessions[0]);
	});
}
