import assert from "node:assert/strict";
import { test } from "node:test";
import { Jobs } from "../../dist/jobs.js";
import { failureKind, outcomeOf } from "../../dist/models.js";
import { answer, registryOf } from "./pi.mjs";

const REQUEST = { kind: "batch", index: 0, prompt: "p", model: "session", modelName: "", thinking: "default", idleTimeoutMs: 0, totalTimeoutMs: 0 };

/** Submits a request and resolves with its outcome. */
async function outcome(reply, request = {}, session = { provider: "p", id: "m" }) {
	const ended = [];
	const jobs = new Jobs(() => ({ registry: registryOf(reply), session }), { ended: (id, result) => ended.push([id, result]), progress: () => {} });
	jobs.imports.submit({ ...REQUEST, ...request });
	assert.deepEqual(ended, [], "never from inside submit");
	await jobs.next();
	return ended[0][1];
}

const never = () => new Promise(() => {});

test("an answer with its usage", async () => {
	assert.deepEqual(await outcome(() => answer("- done")), { tag: "answered", val: { text: "- done", truncated: false, usage: { input: 10n, output: 2n, cost: 0.01 } } });
});

const rows = [
	["an answer that is cut off", () => ({ ...answer("- do"), stopReason: "length" }), {}, (o) => o.val.truncated === true],
	["an outage", () => ({ content: [], stopReason: "error", errorMessage: "529 overloaded" }), {}, (o) => o.val.kind === "transient"],
	["a wrong key", () => ({ content: [], stopReason: "error", errorMessage: "401 invalid x-api-key" }), {}, (o) => o.val.kind === "permanent"],
	["a stream that throws", () => Promise.reject(new Error("socket hang up")), {}, (o) => o.val.kind === "transient"],
	["a stream that never begins", never, { idleTimeoutMs: 20 }, (o) => o.val.kind === "timeout" && /no output within 0.02 s/.test(o.val.message)],
	["a stream that takes too long", never, { totalTimeoutMs: 20 }, (o) => o.val.kind === "timeout" && /no summary within 0.02 s/.test(o.val.message)],
	["a model that pi does not know", () => answer("x"), { model: "configured", modelName: "p/missing" }, (o) => o.val.kind === "permanent" && /pi knows no model p\/missing/.test(o.val.message)],
];
for (const [claim, reply, request, holds] of rows) test(claim, async () => assert.ok(holds(await outcome(reply, request))));

test("no model at all", async () => assert.equal((await outcome(() => answer("x"), {}, null)).val.kind, "permanent"));

test("a cancelled job says nothing, an aborted one that it was", async () => {
	const ended = [];
	const jobs = new Jobs(() => ({ registry: registryOf(never), session: { provider: "p", id: "m" } }), { ended: (id, result) => ended.push([id, result.val.kind]), progress: () => {} });
	const [first, second] = [jobs.imports.submit(REQUEST), jobs.imports.submit(REQUEST)];
	await new Promise(setImmediate);
	jobs.imports.cancel(first);
	jobs.abortAll();
	await new Promise((resolve) => setTimeout(resolve, 10));
	assert.deepEqual(ended, [[second, "aborted"]]);
	assert.equal(jobs.running, 0);
});

test("the words of providers", () => {
	const said = { "429 Too Many Requests": "transient", "503 upstream": "transient", "ECONNRESET": "transient", "something odd": "transient", "403 forbidden": "permanent", "model not found": "permanent", "credit billing": "permanent" };
	for (const [words, kind] of Object.entries(said)) assert.equal(failureKind(words), kind, words);
});

test("an abort of the provider's is one", () => assert.equal(outcomeOf({ content: [], stopReason: "aborted" }).val.kind, "aborted"));
