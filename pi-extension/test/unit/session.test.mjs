// The pruner of a session over pi's session in memory, with the real component.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createPruner } from "../../dist/component.js";
import { withSummaries } from "../../dist/log.js";
import { assistant, call, image, result, text, user } from "./messages.mjs";
import { answer, FakeManager, run, sessionOf } from "./pi.mjs";

const LONG = "a long line of output\n".repeat(40);

let clock = 1_000;
const tick = () => (clock += 10);

/** One prompt with one tool call, told to session and pruner as pi 1.x does; returns what the model would have seen. */
async function work(session, manager, id, words = LONG, more = {}) {
	const see = async () => (await session.context(manager.messages(manager.buildSessionProjection !== undefined), run(more))) ?? manager.messages(true);
	manager.appendMessage(user(tick(), `do ${id}`));
	const contexts = [await see()];
	manager.appendMessage(assistant(tick(), [call(id)]));
	manager.appendMessage(result(id, tick(), `${id} ${words}`));
	contexts.push(await see());
	const reply = assistant(tick(), [text(`${id} done`)], "stop");
	await session.replied(reply, run(more));
	manager.appendMessage(reply);
	return contexts;
}

const textsOf = (messages) => messages.map(({ content }) => (typeof content === "string" ? content : content.map((part) => part.text ?? part.type).join("\n")));
const isPruned = (messages, id) => !textsOf(messages).some((words) => words.startsWith(`${id} a long`));

for (const isProjected of [true, false]) {
	const line = isProjected ? "1.x" : "0.73";
	test(`${line}: a flush at the reply shows in the next request, its summary before the reply`, async () => {
		const manager = new FakeManager("s1", { isProjected });
		const { session, shown } = sessionOf(manager);
		const [, before] = await work(session, manager, "c1");
		assert.equal(isPruned(before, "c1"), false);
		const [after] = await work(session, manager, "c2");
		assert.equal(isPruned(after, "c1"), true);
		assert.deepEqual(after.map(({ role }) => role), ["user", "assistant", "toolResult", "custom", "assistant", "user"]);
		assert.equal(shown.costs.length, 2);
		assert.match(shown.status.at(-1), /prune: ON/);
	});
}

test("a trap costs no turn: the context goes out as it is, and the next one is pruned again", async () => {
	let trap = false;
	const create = (imports) => {
		const { lifecycle, query, control } = createPruner(imports);
		const plan = (...args) => {
			if (trap) throw new WebAssembly.RuntimeError("unreachable");
			return lifecycle.plan(...args);
		};
		return { lifecycle: { ...lifecycle, plan }, query, control };
	};
	const manager = new FakeManager();
	const { session, shown } = sessionOf(manager, { create });
	await work(session, manager, "c1");
	trap = true;
	assert.equal(await session.context(manager.messages(true), run()), undefined);
	trap = false;
	assert.equal(shown.notices.filter((words) => /failed \(unreachable\)/.test(words)).length, 1);
	const [after] = await work(session, manager, "c2");
	assert.equal(isPruned(after, "c1"), true, "the state is back");
});

test("an instance that always traps is given up, with a word", async () => {
	const create = () => {
		throw new WebAssembly.RuntimeError("unreachable");
	};
	const manager = new FakeManager();
	const { session, shown } = sessionOf(manager, { create });
	for (let i = 0; i < 9; i++) assert.equal(await session.context(manager.messages(true), run()), undefined);
	assert.equal(shown.notices.length, 3);
	assert.match(shown.notices.at(-1), /goes on without pruning/);
});

test("two sessions of one process do not see each other", async () => {
	const managers = [new FakeManager("a"), new FakeManager("b")];
	const sessions = managers.map((manager) => sessionOf(manager).session);
	for (const id of ["c1", "c2", "c3"]) await Promise.all(sessions.map((session, i) => work(session, managers[i], `${id}-${i}`)));
	for (const [i, session] of sessions.entries()) {
		const other = 1 - i;
		assert.match(session.query("context_tree_query", { toolCallIds: [`c1-${i}`] }).text, new RegExp(`c1-${i} a long line`));
		assert.doesNotMatch(session.query("context_tree_query", { toolCallIds: [`c1-${other}`, "t1", "t2", "t3"] }).text, new RegExp(`c1-${other} a long line`));
	}
});

test("a full disk: nothing is pruned, the session stays whole, and later it flushes", async () => {
	const manager = new FakeManager();
	const { session, shown } = sessionOf(manager);
	manager.isFull = true;
	await work(session, manager, "c1");
	assert.ok(manager.getBranch().every(({ type }) => type === "message"), "no entry that is not on disk is a parent");
	assert.ok(shown.notices.some((words) => /cannot be written/.test(words)));
	manager.isFull = false;
	const [before] = await work(session, manager, "c2");
	assert.equal(isPruned(before, "c1"), false);
	const [after] = await work(session, manager, "c3");
	assert.equal(isPruned(after, "c1") && isPruned(after, "c2"), true);
});

test("an abort ends the wait for summaries at once", async () => {
	const manager = new FakeManager();
	const { session } = sessionOf(manager, { reply: () => new Promise(() => {}), config: { summarizerIdleTimeoutMs: 0, summarizerMaxTimeoutMs: 0 } });
	const abort = new AbortController();
	const working = work(session, manager, "c1", LONG, { signal: abort.signal });
	await new Promise((resolve) => setTimeout(resolve, 30));
	abort.abort();
	await working;
	assert.equal(session.jobs.running, 0);
	assert.equal(manager.getBranch().filter(({ type }) => type !== "message").length <= 1, true);
});

test("in the background the agent goes on, and between a call and its results nothing is appended", async () => {
	let isBusy = false;
	let finish;
	const manager = new FakeManager();
	const reply = () => new Promise((resolve) => (finish = () => resolve(answer("- done"))));
	const { session } = sessionOf(manager, { reply, config: { flushMode: "background" }, isBusy: () => isBusy });
	await work(session, manager, "c1");
	assert.equal(session.jobs.running, 1, "the reply did not wait");
	isBusy = true;
	manager.appendMessage(user(tick(), "next"));
	await session.context(manager.messages(true), run());
	manager.appendMessage(assistant(tick(), [call("c2")]));
	await new Promise(setImmediate);
	finish();
	await new Promise((resolve) => setTimeout(resolve, 20));
	assert.equal(manager.getBranch().at(-1).type, "message", "it waits for the results");
	manager.appendMessage(result("c2", tick(), LONG));
	const next = await session.context(manager.messages(true), run());
	assert.equal(isPruned(next, "c1"), true, "and is committed before the next model call");
});

test("a flush that is begun while the agent works waits for the next model call", async () => {
	const manager = new FakeManager();
	const { session } = sessionOf(manager, { config: { pruneOn: "on-demand" }, isBusy: () => true });
	await work(session, manager, "c1");
	session.flushSoon();
	const [next] = await work(session, manager, "c2");
	assert.equal(isPruned(next, "c1"), true);
});

test("what a query finds comes with its images", async () => {
	const manager = new FakeManager();
	const { session } = sessionOf(manager);
	manager.appendMessage(user(tick()));
	manager.appendMessage(assistant(tick(), [call("c1")]));
	manager.appendMessage(result("c1", tick(), "", { content: [text(LONG), image] }));
	const reply = assistant(tick(), [text("done")], "stop");
	await session.context(manager.messages(true), run());
	await session.replied(reply, run());
	manager.appendMessage(reply);
	await session.context(manager.messages(true), run());
	assert.deepEqual(session.query("context_tree_query", { toolCallIds: ["t1"] }).parts, [image]);
	assert.equal(session.query("no_such_tool", {}).isError, true);
});

test("while the tool is not offered nothing is stubbed", async () => {
	const manager = new FakeManager();
	const { session } = sessionOf(manager);
	await work(session, manager, "c1", LONG, { isQueryOffered: () => false });
	const [after] = await work(session, manager, "c2", LONG, { isQueryOffered: () => false });
	assert.equal(isPruned(after, "c1"), false);
});

test("a session that is closed does nothing any more", async () => {
	const manager = new FakeManager();
	const { session } = sessionOf(manager);
	session.close();
	manager.appendMessage(user(tick()));
	assert.equal(await session.context(manager.messages(true), run()), undefined);
	await session.replied(assistant(tick(), [text("done")], "stop"), run());
	assert.equal(manager.getBranch().length, 1);
});

test("a summary is put where the session has it, once, behind the last of parallel results", () => {
	const messages = [user(1), assistant(2, [call("c1"), call("c2")]), result("c1", 3), result("c2", 3), assistant(4, [text("done")], "stop")];
	const summary = { role: "custom", customType: "context-prune-summary", content: "- s", timestamp: 5 };
	const all = withSummaries(messages, [{ message: summary, after: 3 }]);
	assert.deepEqual(all.map(({ role }) => role), ["user", "assistant", "toolResult", "toolResult", "custom", "assistant"]);
	assert.equal(withSummaries(all, [{ message: summary, after: 3 }]), all);
	assert.equal(withSummaries(messages, []), messages);
	assert.equal(withSummaries(messages, [{ message: summary, after: 99 }]).length, messages.length, "its place is gone, as after a compaction");
});
