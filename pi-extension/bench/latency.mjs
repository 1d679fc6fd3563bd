#!/usr/bin/env node
// Latency of the extension in Node: what it adds before each model call, and when a session is opened.
// usage: node bench/latency.mjs [MESSAGES]      (after npm run build)

import { performance } from "node:perf_hooks";
import { toContract } from "../dist/convert.js";
import { Mirror } from "../dist/mirror.js";
import { FakeManager, run, sessionOf } from "../test/unit/pi.mjs";

const MESSAGES = Number(process.argv[2] ?? 20_000);
const TURNS_PER_PROMPT = 16;
const RESULT = "0123456789abcdef".repeat(128);

/** A session of prompts with tool turns, as pi has it in memory. */
function conversation(manager, messages) {
	let at = 1_000;
	for (let n = 0; n < messages; n += 2 * TURNS_PER_PROMPT + 2) {
		manager.appendMessage({ role: "user", content: [{ type: "text", text: `prompt ${n}` }], timestamp: at++ });
		for (let turn = 0; turn < TURNS_PER_PROMPT; turn++) {
			const id = `call-${n}-${turn}`;
			manager.appendMessage({ role: "assistant", content: [{ type: "toolCall", id, name: "bash", arguments: { command: id } }], stopReason: "toolUse", timestamp: at++ });
			manager.appendMessage({ role: "toolResult", toolCallId: id, toolName: "bash", content: [{ type: "text", text: `${id} ${RESULT}` }], isError: false, timestamp: at++ });
		}
		manager.appendMessage({ role: "assistant", content: [{ type: "text", text: "done" }], stopReason: "stop", timestamp: at++ });
	}
}

/** Least, median and greatest of the times that `action` takes, in milliseconds. */
async function time(times, action) {
	const taken = [];
	for (let i = 0; i < times; i++) {
		const before = performance.now();
		await action(i);
		taken.push(performance.now() - before);
	}
	taken.sort((a, b) => a - b);
	return { least: taken[0], median: taken[Math.floor(times / 2)], most: taken.at(-1) };
}

const show = (what, { least, median, most }) => console.log(`${what.padEnd(58)} ${[median, least, most].map((ms) => `${ms.toFixed(3)} ms`.padStart(12)).join("")}`);

const manager = new FakeManager();
conversation(manager, MESSAGES);
console.log(`Node ${process.versions.node}, ${manager.getEntries().length} messages${" ".repeat(28)}      median       least        most`);

const fresh = await time(5, () => sessionOf(new FakeManager()));
show("open an empty session (after the first, which compiles)", fresh);
let session;
show("load this session", await time(3, () => ({ session } = sessionOf(manager, { config: { pruneOn: "on-demand" } }))));

const messages = manager.messages(true);
await session.context(messages, run());
show("context with nothing to do", await time(50, () => session.context(messages, run())));
const mirror = new Mirror();
mirror.replace(0, messages);
show("  of that, comparing the prefix", await time(50, () => mirror.firstDifference(messages)));

const one = toContract({ role: "user", content: [{ type: "text", text: "x".repeat(4096) }], timestamp: 1 });
const length = messages.length;
show("sync of one 4 KB message", await time(200, (i) => session.command((pruner) => pruner.lifecycle.sync(length + i, [one]))));
session.command((pruner) => pruner.lifecycle.sync(length, []));

session.syncWithSession();
session.act(({ control }) => control.flush(BigInt(Date.now())));
await session.finish();
await session.context(messages, run());
show(`context with ${session.command(({ control }) => control.status().records)} stubs in force`, await time(20, () => session.context(messages, run())));
show("load it again, with its log", await time(3, () => ({ session } = sessionOf(manager, { config: { pruneOn: "on-demand" } }))));
