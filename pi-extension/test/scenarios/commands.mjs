// What the commands of a scenario print.

export function refusalLine({ tag, val }) {
	switch (tag) {
		case "disabled":
			return "pruning is switched off";
		case "switched-off":
			return `\`${val}\` is switched off`;
		case "busy":
			return "a flush is in progress";
		case "nothing-to-do":
			return `nothing to do: ${val}`;
		case "not-found":
			return `there is no \`${val}\``;
		case "log-failed":
			return `the session log failed: ${val}`;
		case "unreadable":
			return `the text cannot be read: ${val}`;
		default:
			return `cannot be read: ${val}`;
	}
}

export function printedStatus(status) {
	return [
		status.line,
		`enabled: ${status.enabled}`,
		`before: ${status.before.chars} chars`,
		`after: ${status.after.chars} chars`,
		`pending turns: ${status.pendingTurns}`,
		`running jobs: ${status.runningJobs}`,
		`records: ${status.records}`,
		`blocks: ${status.blocks}`,
		...status.strategies.map(({ kind, count, saved }) => `${kind}: ${count}, saved ${saved}`),
	].join("\n");
}

export function printedStats(stats) {
	return [
		`calls: ${stats.calls}`,
		`input tokens: ${stats.inputTokens}`,
		`output tokens: ${stats.outputTokens}`,
		`cost: ${stats.cost}`,
		`chains compressed: ${stats.chainsCompressed}`,
		`ranges summarized: ${stats.rangesSummarized}`,
	].join("\n");
}

export function printedTree(nodes) {
	const depths = [];
	const lines = nodes.map(({ kind, name, label, parent }) => {
		const depth = parent === undefined ? 0 : (depths[parent] ?? 0) + 1;
		depths.push(depth);
		return "  ".repeat(depth) + [kind, name, label].map((word) => word.trim()).filter(Boolean).join(" ");
	});
	return lines.join("\n");
}
