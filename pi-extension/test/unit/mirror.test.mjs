import assert from "node:assert/strict";
import { test } from "node:test";
import { newsOf } from "../../dist/events.js";
import { fingerprint, Mirror } from "../../dist/mirror.js";
import { assistant, call, result, text, user } from "./messages.mjs";

const messages = [user(1), assistant(2, [call("c1")]), result("c1", 3), assistant(4, [text("done")], "stop")];

function mirrorOf(known) {
	const mirror = new Mirror();
	mirror.replace(0, known);
	return mirror;
}

test("clones are the same, and so are messages with fields that come and go", () => {
	const mirror = mirrorOf(messages);
	const again = structuredClone(messages);
	again[1].durationMs = 12;
	again[1].rawStopReason = "tool_use";
	assert.equal(mirror.isCurrent(again, mirror.firstDifference(again)), true);
});

const changes = [
	["another text", 2, { content: [text("output of c2")] }],
	["a longer text", 2, { content: [text("output of c1 and more")] }],
	["another time", 2, { timestamp: 99 }],
	["another call", 2, { toolCallId: "c9" }],
	["another outcome", 2, { isError: true }],
	["another stop reason", 3, { stopReason: "aborted" }],
	["one part more", 0, { content: [text("go"), text("on")] }],
	["another role", 0, { role: "custom", customType: "note" }],
];
for (const [claim, at, change] of changes) {
	test(`${claim} is a difference`, () => {
		const other = structuredClone(messages);
		Object.assign(other[at], change);
		assert.equal(mirrorOf(messages).firstDifference(other), at);
	});
}

test("a message more, and a message less", () => {
	assert.equal(mirrorOf(messages.slice(0, 3)).firstDifference(messages), 3);
	const longer = mirrorOf(messages);
	assert.equal(longer.firstDifference(messages.slice(0, 3)), 3);
	assert.equal(longer.isCurrent(messages.slice(0, 3), 3), false);
});

test("a fingerprint takes any shape", () => {
	for (const message of [{ role: "x" }, { role: "user", content: [null, 3, {}] }, { role: "user", content: 7 }]) assert.equal(typeof fingerprint(message), "number");
});

test("results and unreported replies are news", () => {
	assert.deepEqual(newsOf(messages, 1, new Set()), { reply: messages[3], hasResults: true });
	assert.deepEqual(newsOf(messages, 3, new Set([4])), { reply: undefined, hasResults: false });
});

test("a session that was just loaded has no news of old replies", () => {
	assert.equal(newsOf(messages, 0, new Set()).reply, undefined);
});
