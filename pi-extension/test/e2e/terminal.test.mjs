// What a user sees: pi in a real terminal, its screens compared with the ones in screens/.
// DECANT_BLESS=1 writes them anew.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { startFakeModel } from "../rig/lib/fake-model.mjs";
import { findHost } from "../rig/lib/hosts.mjs";
import { hasTmux, Terminal } from "../rig/lib/terminal.mjs";
import { environment, piArgs, prepare } from "../rig/rig.mjs";
import { EXTENSION, VERSIONS } from "./checks.mjs";
import { prompt, script } from "./scripts.mjs";

const HOSTS = fileURLToPath(new URL("../rig/hosts", import.meta.url));
const SCREENS = fileURLToPath(new URL("screens/", import.meta.url));
const skip = hasTmux() ? false : "tmux is not installed";

async function open(t, pi, settings) {
	const out = mkdtempSync(join(tmpdir(), "decant-tmux-"));
	const host = findHost(HOSTS, pi);
	const model = await startFakeModel({ log: join(out, "requests.jsonl") });
	prepare({ out, script: script([], settings), baseUrl: model.baseUrl });
	const terminal = new Terminal({ command: [host.node, ...piArgs(host, out, [EXTENSION])], cwd: join(out, "work"), env: environment(out, host) });
	t.after(async () => {
		terminal.close();
		await model.close();
		rmSync(out, { recursive: true, force: true });
	});
	await terminal.shows(/rig-main/, 40_000);
	const say = async (text, pattern) => {
		terminal.type(text);
		terminal.press("Enter");
		return terminal.shows(pattern);
	};
	const ask = async (words) => {
		const { prompt: text, turns } = prompt(words);
		model.enqueue(turns);
		return say(text, new RegExp(`${words.join(", ")} done`));
	};
	return { terminal, model, say, ask };
}

/** The lines from the first that matches `from` to the one before the first that matches `to`. */
function part(screen, from, to) {
	const lines = screen.split("\n");
	const first = lines.findIndex((line) => from.test(line));
	const rest = lines.slice(first);
	const end = rest.findIndex((line, i) => i > 0 && to.test(line));
	return `${rest.slice(0, end < 0 ? undefined : end).join("\n").trimEnd()}\n`;
}

const FOOTER = /^(\/|~).*work$/;
const BORDER = /^─{20,}$/m;

function assertScreen(pi, name, screen) {
	const file = join(SCREENS, pi, `${name}.txt`);
	if (process.env.DECANT_BLESS) {
		mkdirSync(join(SCREENS, pi), { recursive: true });
		writeFileSync(file, screen);
	}
	assert.ok(existsSync(file), `there is no ${file}`);
	assert.equal(screen, readFileSync(file, "utf8"), name);
}

const statusLine = (screen) => /│ prune: .* │/.exec(screen)?.[0];

for (const pi of VERSIONS) {
	test(`${pi}: status line, progress, tree, summary and original`, { skip }, async (t) => {
		const { terminal, model, say, ask } = await open(t, pi, { pruneOn: "on-demand" });
		await ask(["one", "two"]);
		assert.equal(statusLine(await terminal.shows(/2 pending/)), "│ prune: ON · 2 pending │");

		model.setAuxiliaryRules([{ match: "tool-call-batch", text: "- **wrote** the rows\n- nothing else", delayMs: 1500 }]);
		const running = await say("/pruner now", /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] turn 1/);
		assertScreen(pi, "progress", part(running, /^ *Pruning · Esc/, BORDER).replace(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/g, "⠋"));
		assert.match(running, /│ prune: summarizing \(2 to go\) │/);
		const done = await terminal.shows(/Done: 2 summaries written/);
		assert.match(statusLine(await terminal.shows(/prune: ON · \d+->/)), /^│ prune: ON · \d+->\d+ \(-\d+%\) │$/);
		assert.doesNotMatch(done, /Pruning · Esc/);

		const tree = await say("/pruner tree", /Pruned in this session/);
		assertScreen(pi, "tree", part(tree, /Pruned in this session/, FOOTER));
		terminal.press("Right", "Down");
		assertScreen(pi, "tree-open", part(await terminal.shows(/› +t1/), /Pruned in this session/, FOOTER));
		terminal.press("Enter");
		assertScreen(pi, "original", part(await terminal.shows(/╭─ t1/), /╭─ t1/, FOOTER));
		terminal.press("Escape");
		await terminal.shows(/Pruned in this session/);
		terminal.press("C-o");
		assertScreen(pi, "summary", part(await terminal.shows(/╭─ turn 0/), /╭─ turn 0/, FOOTER));
		terminal.press("Escape");
		await terminal.shows(/Pruned in this session/);
		terminal.type("/read");
		await terminal.shows(/search: read▏/);
		terminal.press("Escape");
		await terminal.shows(/Pruned in this session \(3 shown\)$/m);
		terminal.press("Escape");
		await terminal.shows(BORDER);
	});

	test(`${pi}: Esc cancels a flush`, { skip }, async (t) => {
		const { terminal, model, say, ask } = await open(t, pi, { pruneOn: "on-demand" });
		await ask(["one", "two"]);
		model.setAuxiliaryRules([{ match: "tool-call-batch", text: "never", hang: true }]);
		await say("/pruner now", /Pruning · Esc to cancel/);
		terminal.press("Escape");
		await terminal.shows(/Cancelled\. Everything that waited still waits\./);
		assert.equal(statusLine(await terminal.shows(/2 pending/)), "│ prune: ON · 2 pending │");
	});

	test(`${pi}: the settings overlay`, { skip }, async (t) => {
		const { terminal, say } = await open(t, pi, {});
		assertScreen(pi, "settings", part(await say("/pruner settings", /Decant settings/), /Decant settings/, FOOTER));
		terminal.type("minBatch");
		await terminal.shows(/→ minBatchChars/);
		terminal.press("Enter");
		assertScreen(pi, "settings-value", part(await terminal.shows(/Enter to set/), /minBatchChars/, FOOTER));
		terminal.press("BSpace", "BSpace", "BSpace");
		terminal.type("77");
		terminal.press("Enter");
		await terminal.shows(/→ minBatchChars +77/);
		terminal.press("Escape");
		await terminal.shows(/minBatchChars: 77/);
	});

	test(`${pi}: sub-commands and their arguments are completed`, { skip }, async (t) => {
		const { terminal } = await open(t, pi, {});
		terminal.type("/pruner pro");
		const screen = await terminal.shows(/protected-paths/);
		assert.match(screen, /protected-tools/);
		terminal.type("tected-paths r");
		await terminal.shows(/→ remove/);
	});
}
