// /pruner and its sub-commands.

import type { ExtensionAPI, ExtensionCommandContext } from "@mariozechner/pi-coding-agent";
import { refusal } from "./component.ts";
import { showProgress } from "./progress.ts";
import { refusalText, statsReport, statusReport, treeReport } from "./report.ts";
import type { PrunerSession } from "./session.ts";
import { SETTING_COMMANDS } from "./setting-commands.ts";
import type { Settings } from "./settings.ts";
import { openSettings } from "./settings-overlay.ts";
import type { PiSurface } from "./surface.ts";
import type { Tools } from "./tools.ts";
import { openTree } from "./tree-view.ts";

/** What a command works with. */
export interface Desk {
	session: () => PrunerSession | undefined;
	surface: PiSurface;
	settings: Settings;
	tools: Tools;
}

/** A command at work: its arguments, the desk and pi's context. */
export interface Call extends Desk {
	args: string;
	ctx: ExtensionCommandContext;
	pruner: PrunerSession;
}

export interface Command {
	name: string;
	/** Its arguments, for the help. */
	usage?: string;
	about: string;
	/** Words that may follow. */
	words?: (call: { ctx?: ExtensionCommandContext; desk: Desk }) => readonly string[];
	run(call: Call): void | Promise<void>;
}

const COMMANDS: readonly Command[] = [
	...SETTING_COMMANDS,
	{ name: "status", about: "What is pruned, what waits, what it saves", run: status },
	{ name: "stats", about: "What the summarizer has cost", run: stats },
	{ name: "now", about: "Flush everything that waits", run: (call) => flush(call, "flush") },
	{ name: "compact", about: "Compress every closed chain", run: (call) => flush(call, "compact") },
	{ name: "tree", about: "Browse what was pruned", run: tree },
	{ name: "undo", usage: "b1|t1", about: "Put a block or a batch back into the context", words: undoWords, run: undo },
	{ name: "settings", usage: "[KEY [VALUE]]", about: "Show and change settings", run: openSettings },
	{ name: "help", about: "This list", run: help },
];

export function registerCommands(pi: ExtensionAPI, desk: Desk): void {
	pi.registerCommand("pruner", {
		description: "Context pruning: status, now, tree, settings, help …",
		getArgumentCompletions: (prefix) => completions(prefix, desk),
		handler: (args, ctx) => run(args, ctx, desk),
	});
}

async function run(line: string, ctx: ExtensionCommandContext, desk: Desk): Promise<void> {
	desk.surface.use(ctx);
	const [name = "", ...rest] = line.trim().split(/\s+/);
	const command = COMMANDS.find((candidate) => candidate.name === (name || "status").toLowerCase());
	if (!command) return desk.surface.say(`There is no /pruner ${name}. /pruner help lists what there is.`, "error");
	const pruner = desk.session();
	if (!pruner) return desk.surface.say("There is no session yet.", "error");
	try {
		pruner.syncWithSession();
		await command.run({ ...desk, args: rest.join(" "), ctx, pruner });
	} catch (error) {
		const reason = refusal(error);
		const text = reason ? refusalText(reason) : error instanceof Error ? error.message : String(error);
		desk.surface.say(text, "warning");
	}
}

/** Completes the name of a sub-command, then its first argument. pi replaces the whole argument text. */
export function completions(prefix: string, desk: Desk): { value: string; label: string; description?: string }[] | null {
	const [name = "", argument] = prefix.trimStart().split(/\s+/, 2);
	const command = COMMANDS.find((candidate) => candidate.name === name);
	const choices =
		argument === undefined
			? COMMANDS.map((candidate) => ({ value: candidate.name, label: candidate.name, description: candidate.about }))
			: (command?.words?.({ desk }) ?? []).map((word) => ({ value: `${name} ${word}`, label: word }));
	return matching(choices, argument ?? name);
}

/** What begins with `text`. With a word that is complete there is nothing to choose, and Enter sends the command. */
function matching<T extends { label: string }>(choices: readonly T[], text: string): T[] | null {
	const found = choices.filter(({ label }) => label.toLowerCase().startsWith(text.toLowerCase()));
	return found.length === 0 || found.some(({ label }) => label === text) ? null : found;
}

function status({ pruner, surface, ctx }: Call): void {
	const status = pruner.command(({ control }) => control.status());
	surface.say(statusReport(status, ctx.getContextUsage()));
}

function stats({ pruner, surface }: Call): void {
	surface.say(statsReport(pruner.command(({ control }) => control.stats())));
}

async function flush(call: Call, what: "flush" | "compact"): Promise<void> {
	const { pruner, surface, ctx } = call;
	if (what === "flush" && !ctx.isIdle()) {
		pruner.flushSoon();
		return surface.say("The agent is at work: everything that waits is flushed before its next model call.");
	}
	await showProgress(call, () => pruner.act(({ control }) => control[what](BigInt(Date.now()))));
}

async function tree(call: Call): Promise<void> {
	const nodes = call.pruner.command(({ control }) => control.tree());
	if (nodes.length === 0 || !(await openTree(call, nodes))) call.surface.say(treeReport(nodes));
}

function undo({ pruner, surface, args }: Call): void {
	if (args === "") return surface.say("Which? /pruner undo b1 takes a block back, /pruner undo t1 the batch of a ref; /pruner tree shows them.", "error");
	surface.say(pruner.command(({ control }) => control.undo(args, BigInt(Date.now()))));
}

function undoWords({ desk }: { desk: Desk }): readonly string[] {
	try {
		const nodes = desk.session()?.peek(({ control }) => control.tree()) ?? [];
		return nodes.filter(({ kind, name }) => name !== "" && (kind === "block" || kind === "call")).map(({ name }) => name);
	} catch {
		return [];
	}
}

function help({ surface }: Call): void {
	const heads = COMMANDS.map(({ name, usage }) => `/pruner ${name}${usage ? ` ${usage}` : ""}`);
	const width = Math.max(...heads.map((head) => head.length));
	surface.say(COMMANDS.map(({ about }, i) => `${(heads[i] ?? "").padEnd(width)}  ${about}`).join("\n"));
}
