import assert from "node:assert/strict";
import { test } from "node:test";
import { epochMs, isFinalReply, jsonText, KnownResults, toContract } from "../../dist/convert.js";
import { assistant, call, image, result, text, user } from "./messages.mjs";

const rows = [
	["a string as content is one text block", { role: "user", content: "hi", timestamp: 5 }, { tag: "user", val: { content: [{ tag: "text", val: "hi" }], at: 5n } }],
	[
		"thinking crosses as a length, signature included",
		assistant(7, [{ type: "thinking", thinking: "abc", thinkingSignature: "12" }, call("c1", { a: 1 })]),
		{
			tag: "assistant",
			val: {
				content: [
					{ tag: "thinking", val: 5 },
					{ tag: "tool-call", val: { id: "c1", name: "bash", arguments: '{"a":1}' } },
				],
				stop: "tool-use",
				at: 7n,
			},
		},
	],
	[
		"thinking without a text is a provider's state",
		assistant(7, [{ type: "thinking", thinking: "", thinkingSignature: "rs_1" }, { type: "thinking", thinking: "[redacted]", thinkingSignature: "x", redacted: true }], "stop"),
		{ tag: "assistant", val: { content: [{ tag: "opaque", val: { kind: "reasoning", chars: 4 } }, { tag: "opaque", val: { kind: "reasoning", chars: 11 } }], stop: "stop", at: 7n } },
	],
	[
		"an image crosses as a size",
		result("c1", 9, "seen", { content: [text("seen"), image], isError: true }),
		{
			tag: "tool-result",
			val: { callId: "c1", tool: "bash", content: [{ tag: "text", val: "seen" }, { tag: "opaque", val: { kind: "image", chars: 4 } }], isError: true, at: 9n },
		},
	],
	["a result without an id answers no call", { ...result("c", 9, "x"), toolCallId: undefined }, { tag: "tool-result", val: { callId: "", tool: "bash", content: [{ tag: "text", val: "x" }], isError: false, at: 9n } }],
	[
		"a summary brings its details",
		{ role: "custom", customType: "context-prune-summary", content: "- s", details: { turnIndex: 1 }, timestamp: 3 },
		{ tag: "custom", val: { kind: "context-prune-summary", content: [{ tag: "text", val: "- s" }], details: '{"turnIndex":1}', at: 3n } },
	],
	[
		"other custom messages keep theirs",
		{ role: "custom", customType: "note", content: "n", details: { secret: 1 }, timestamp: 3 },
		{ tag: "custom", val: { kind: "note", content: [{ tag: "text", val: "n" }], details: "", at: 3n } },
	],
	[
		"a command that is kept from the model has no content",
		{ role: "bashExecution", command: "ls", output: "a", excludeFromContext: true, timestamp: 3 },
		{ tag: "other", val: { role: "bashExecution", content: [], at: 3n } },
	],
	["a compaction summary has its text", { role: "compactionSummary", summary: "s", timestamp: 3 }, { tag: "other", val: { role: "compactionSummary", content: [{ tag: "text", val: "s" }], at: 3n } }],
	["a command and its output are two texts", { role: "bashExecution", command: "ls", output: "a", timestamp: 3 }, { tag: "other", val: { role: "bashExecution", content: [{ tag: "text", val: "ls" }, { tag: "text", val: "a" }], at: 3n } }],
	["an unknown stop reason is another", assistant(1, [], "deferred"), { tag: "assistant", val: { content: [], stop: "other", at: 1n } }],
	["no content at all is none", { role: "user", timestamp: 1 }, { tag: "user", val: { content: [], at: 1n } }],
	["a call without arguments has an empty text", assistant(1, [{ type: "toolCall", id: "c", name: "ls" }]), { tag: "assistant", val: { content: [{ tag: "tool-call", val: { id: "c", name: "ls", arguments: "" } }], stop: "tool-use", at: 1n } }],
];

for (const [claim, message, expected] of rows) test(claim, () => assert.deepEqual(toContract(message), expected));

test("JSON has no lone surrogates, and text that looks like one is left alone", () => {
	assert.equal(jsonText({ a: "x\ud83dy" }), '{"a":"x\\ufffdy"}');
	assert.equal(jsonText({ a: "\\ud83d" }), '{"a":"\\\\ud83d"}');
	assert.equal(jsonText({ a: "\u{1f600}" }), '{"a":"\u{1f600}"}');
});

test("a time that is none is 0", () => {
	assert.deepEqual([12.7, undefined, Number.NaN, -3, "7"].map(epochMs), [12n, 0n, 0n, 0n, 0n]);
});

test("only an assistant that stopped by itself and asks for nothing closes a chain", () => {
	assert.equal(isFinalReply(assistant(1, [text("done")], "stop")), true);
	assert.equal(isFinalReply(assistant(1, [text("done"), call("c")], "stop")), false);
	for (const reason of ["error", "aborted", "length"]) assert.equal(isFinalReply(assistant(1, [text("x")], reason)), false);
	assert.equal(isFinalReply(user(1)), false);
});

test("of a known result the sizes cross and what is no text, once", () => {
	const known = new KnownResults([{ callId: "c1", at: 7n }]);
	const message = result("c1", 7, "", { content: [text("é".repeat(600) + "🙂".repeat(250)), text("plain"), image] });
	assert.deepEqual(known.toContract(message).val.content, [
		{ tag: "withheld", val: { chars: 1100, ascii: 0 } },
		{ tag: "withheld", val: { chars: 5, ascii: 5 } },
		{ tag: "opaque", val: { kind: "image", chars: 4 } },
	]);
	assert.deepEqual(known.toContract(message), toContract(message));
});

test("what is short or unknown crosses whole", () => {
	const known = new KnownResults([{ callId: "c1", at: 7n }, { callId: "c2" }]);
	for (const message of [result("c1", 8, "x".repeat(1000)), result("c1", 7, "x".repeat(999)), result("c2", 7, "x".repeat(1000)), user(7)]) {
		assert.deepEqual(known.toContract(message), toContract(message));
	}
});
