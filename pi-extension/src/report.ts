// The words of /pruner status, stats and the plain-text tree.

import type { Control } from "./component.ts";

/** `1234567` as `1.2M`, `92345` as `92k`. */
export function short(count: bigint | number): string {
	const value = Number(count);
	const size = Math.abs(value);
	if (size < 1000) return String(value);
	if (size < 9950) return `${(value / 1000).toFixed(1)}k`;
	if (size < 999_500) return `${Math.round(value / 1000)}k`;
	return `${(value / 1e6).toFixed(1)}M`;
}

function percent(before: bigint, after: bigint): string {
	if (before === 0n) return "0%";
	const change = Math.round((Number(after - before) / Number(before)) * 100);
	return `${change > 0 ? "+" : ""}${change}%`;
}

/** What pi itself says about the window: it counts what was sent last, this extension what will be sent next. */
export interface WindowUse {
	tokens: number | null;
	contextWindow: number;
}

export function statusReport(status: Control.SessionStatus, window: WindowUse | undefined): string {
	const { before, after } = status;
	const lines = [
		`Pruning is ${status.enabled ? "on" : "off"}.`,
		`Context: ${short(before.tokens)} -> ${short(after.tokens)} tokens (${percent(before.tokens, after.tokens)}), ${short(before.chars)} -> ${short(after.chars)} characters.`,
		`Archive: ${count(status.records, "record")}, ${count(status.blocks, "block")}.`,
		`Waiting: ${count(status.pendingTurns, "turn")}; summaries being written: ${status.runningJobs}.`,
		`Strategies: ${status.strategies.map(({ kind, count: n, saved }) => `${kind} ${n} (${short(saved)} chars)`).join(", ")}.`,
		`Not prunable yet: ${short(status.openCycleThinking.tokens)} tokens of thinking in the open tool cycle, ${short(status.frontierGap.tokens)} tokens past the frontier; the largest chain holds ${status.largestChainPercent}%.`,
	];
	if (window?.tokens) lines.push(`pi counts ${short(window.tokens)} of ${short(window.contextWindow)} tokens for the last request.`);
	return lines.join("\n");
}

export function statsReport(stats: Control.SummarizerStats): string {
	return [
		`Summarizer: ${count(stats.calls, "call")}, ${short(stats.inputTokens)} tokens read, ${short(stats.outputTokens)} written, $${stats.cost.toFixed(4)}.`,
		`Chains compressed: ${stats.chainsCompressed}; summaries fused: ${stats.rangesSummarized}.`,
	].join("\n");
}

export function count(n: number, noun: string): string {
	return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

/** The tree as indented lines, for hosts without a screen. */
export function treeReport(nodes: readonly Control.Node[]): string {
	const lines: string[] = [];
	const add = (parent: number | undefined, depth: number) => {
		for (const [index, node] of nodes.entries()) {
			if (node.parent !== parent) continue;
			lines.push(`${"  ".repeat(depth)}${nodeLine(node)}`);
			add(index, depth + 1);
		}
	};
	add(undefined, 0);
	return lines.length > 0 ? lines.join("\n") : "Nothing has been pruned yet.";
}

export function nodeLine({ name, label }: Control.Node): string {
	return name === "" ? label : `${name} · ${label}`;
}

/** A refusal of the pruner in the user's words. */
export function refusalText({ tag, val }: { tag: string; val?: unknown }): string {
	switch (tag) {
		case "disabled":
			return "Pruning is switched off; /pruner on switches it on.";
		case "switched-off":
			return `\`${val}\` is switched off; /pruner settings changes that.`;
		case "busy":
			return "Summaries are being written; wait for them, or press Esc in /pruner now.";
		case "nothing-to-do":
			return `Nothing to do: ${val}.`;
		case "not-found":
			return `There is no \`${val}\`.`;
		case "not-open":
			return "The pruner has no session open; /reload starts it again.";
		case "re-entered":
			return "The pruner is at work; try again.";
		case "malformed":
			return `That cannot be read; allowed is: ${val}.`;
		case "unreadable":
			return `The text cannot be read: ${val}.`;
		case "log-failed":
			return `The session could not be written: ${val}. Nothing was changed.`;
		default:
			return `That cannot be done: ${val ?? tag}.`;
	}
}
