// What the user interface knows of the settings: names, words and help. What is allowed the pruner itself decides.

/** How a setting is edited. */
export type Editor =
	| { kind: "flag" }
	| { kind: "words"; words: readonly string[] }
	/** A number; `orNull` where "off" means none. */
	| { kind: "number"; orNull?: boolean }
	| { kind: "list" }
	| { kind: "text" };

export interface Setting {
	/** The key below `contextPrune`, blocks separated by dots. */
	key: string;
	about: string;
	editor: Editor;
}

const FLAG: Editor = { kind: "flag" };
const NUMBER: Editor = { kind: "number" };
const NUMBER_OR_OFF: Editor = { kind: "number", orNull: true };
const LIST: Editor = { kind: "list" };

export const THINKING_LEVELS = ["default", "off", "minimal", "low", "medium", "high", "xhigh"] as const;
export const PRUNE_ON = ["agent-message", "on-demand"] as const;
export const BATCHING = ["turn", "agent-message"] as const;

export const SETTINGS: readonly Setting[] = [
	{ key: "enabled", about: "Prune at all", editor: FLAG },
	{ key: "pruneOn", about: "When waiting turns are flushed by themselves", editor: { kind: "words", words: PRUNE_ON } },
	{ key: "batchingMode", about: "One summary for each turn, or one for all that waits", editor: { kind: "words", words: BATCHING } },
	{ key: "flushMode", about: "Whether the next model call waits for the summaries", editor: { kind: "words", words: ["blocking", "background"] } },
	{ key: "cachePolicy", about: "Whether what was once sent changes only when a flush does it anyway", editor: { kind: "words", words: ["stable", "live"] } },
	{ key: "summarizerModel", about: "Who writes summaries: default (the session's model) or provider/model", editor: { kind: "text" } },
	{ key: "summarizerThinking", about: "Thinking level of the summarizer", editor: { kind: "words", words: THINKING_LEVELS } },
	{ key: "summarizerIdleTimeoutMs", about: "Without output for this long a summary has failed (0: no limit)", editor: NUMBER },
	{ key: "summarizerMaxTimeoutMs", about: "After this long a summary has failed (0: no limit)", editor: NUMBER },
	{ key: "summarizerConcurrency", about: "How many summaries are written at a time (off: all)", editor: NUMBER_OR_OFF },
	{ key: "minBatchChars", about: "A batch with less text than this is left alone", editor: NUMBER },
	{ key: "dedupByContentHash", about: "Results that were seen before need no summary", editor: FLAG },
	{ key: "protectedTools", about: "Tools whose output is never pruned (* and ? allowed)", editor: LIST },
	{ key: "protectedPaths", about: "Files whose content is never pruned (* ? ** allowed)", editor: LIST },
	{ key: "spillThreshold", about: "A result this long goes to a file at once (0: never)", editor: NUMBER },
	{ key: "spillPreviewBytes", about: "How much of it stays in the context", editor: NUMBER },
	{ key: "autoBudgetThreshold", about: "Flush when this share of the window is used (0 to 1, off)", editor: NUMBER_OR_OFF },
	{ key: "budgetTurnDelta", about: "Flush when one turn uses this share of the window (0 to 1, off)", editor: NUMBER_OR_OFF },
	{ key: "budgetWindowCap", about: "Windows count as this many tokens at most (off: no cap)", editor: NUMBER_OR_OFF },
	{ key: "flushWhenSaves", about: "Flush at the end of a turn when it saves this many characters (off)", editor: NUMBER_OR_OFF },
	{ key: "idleColdMs", about: "After this long without a model call the provider's cache counts as cold", editor: NUMBER },
	{ key: "recoveryGraceTurns", about: "For how many user turns recovered output stays as it is", editor: NUMBER },
	{ key: "chainCompression.enabled", about: "Compress closed chains", editor: FLAG },
	{ key: "chainCompression.rollingWindow", about: "How many closed chains stay as they are", editor: NUMBER },
	{ key: "chainCompression.fuseRangeSummary", about: "Fuse the summaries of a chain into one", editor: FLAG },
	{ key: "chainCompression.stripFinalAssistantThinking", about: "Drop the thinking of a compressed chain's final reply", editor: FLAG },
	{ key: "chainCompression.mergeAfter", about: "Fuse this many adjacent blocks into one (off)", editor: NUMBER_OR_OFF },
	{ key: "chainCompression.openChain.keepTurns", about: "Compress an open chain up to its last so many turns (off)", editor: NUMBER_OR_OFF },
	{ key: "purgeErrors.enabled", about: "Drop the arguments of calls that failed", editor: FLAG },
	{ key: "purgeErrors.cooldownTurns", about: "How many turns after the failure", editor: NUMBER },
	{ key: "purgeErrors.minArgChars", about: "Only arguments at least this long", editor: NUMBER },
	{ key: "thinkingStrip.enabled", about: "Drop old thinking", editor: FLAG },
	{ key: "thinkingStrip.keepLastTurns", about: "How many assistant messages keep theirs", editor: NUMBER },
	{ key: "quietOversizedSkips", about: "Say nothing when a summary is longer than what it replaces", editor: FLAG },
	{ key: "compressTool", about: "Offer the model a tool that compresses a finished sub-task", editor: FLAG },
	{ key: "showStatusLine", about: "Show the status line", editor: FLAG },
];

export type Value = null | boolean | number | string | string[];

export function findSetting(key: string): Setting | undefined {
	return SETTINGS.find((setting) => setting.key.toLowerCase() === key.toLowerCase());
}

/** The value of `setting` in the JSON object of the settings in force. */
export function valueOf(config: string, setting: Setting): Value | undefined {
	let value: unknown = JSON.parse(config);
	for (const key of setting.key.split(".")) value = (value as Record<string, unknown> | undefined)?.[key];
	return value as Value | undefined;
}

/** A value as the user reads and writes it. */
export function printValue(value: Value | undefined): string {
	if (value === null || value === undefined) return "off";
	if (typeof value === "boolean") return value ? "on" : "off";
	if (Array.isArray(value)) return value.length > 0 ? value.join(", ") : "(none)";
	return String(value);
}

/** What the user wrote, as a value; what cannot be one is passed on as it is, so that the pruner says what is allowed. */
export function parseValue(editor: Editor, text: string): Value {
	const word = text.trim();
	switch (editor.kind) {
		case "flag":
			if (/^(on|true|yes)$/i.test(word)) return true;
			return /^(off|false|no)$/i.test(word) ? false : word;
		case "number":
			if (editor.orNull && /^(off|none|null)$/i.test(word)) return null;
			return word !== "" && Number.isFinite(Number(word)) ? Number(word) : word;
		case "list":
			return /^\(?none\)?$/i.test(word) ? [] : word.split(/[\s,]+/).filter(Boolean);
		default:
			return word;
	}
}
