// The sub-commands that change one setting, and the one way in which a setting is changed.

import { BATCHING, PRUNE_ON, parseValue, printValue, type Setting, SETTINGS, THINKING_LEVELS, type Value, valueOf } from "./setting-list.ts";
import type { Call, Command, Desk } from "./commands.ts";
import { SettingsError } from "./settings.ts";

function setting(key: string): Setting {
	const found = SETTINGS.find((candidate) => candidate.key === key);
	if (!found) throw new Error(`no setting ${key}`);
	return found;
}

export const SETTING_COMMANDS: readonly Command[] = [
	{ name: "on", about: "Switch pruning on", run: (call) => change(call, setting("enabled"), true) },
	{ name: "off", about: "Switch pruning off; the context is sent as it is", run: (call) => change(call, setting("enabled"), false) },
	word("model", "summarizerModel", "[default|PROVIDER/MODEL]", "Who writes summaries", modelNames),
	word("thinking", "summarizerThinking", "[LEVEL]", "How much the summarizer thinks", () => THINKING_LEVELS),
	word("prune-on", "pruneOn", "[agent-message|on-demand]", "When waiting turns are flushed", () => PRUNE_ON),
	word("batching", "batchingMode", "[turn|agent-message]", "How much one summary covers", () => BATCHING),
	list("protected-tools", "protectedTools", "Tools whose output is never pruned"),
	list("protected-paths", "protectedPaths", "Files whose content is never pruned"),
	word("min-batch-chars", "minBatchChars", "[N]", "The least text worth a summary"),
	word("dedup", "dedupByContentHash", "[on|off|status]", "Whether results seen before need no summary", () => ["on", "off", "status"]),
	word("recovery-grace", "recoveryGraceTurns", "[N]", "For how many user turns recovered output stays"),
];

function word(name: string, key: string, usage: string, about: string, words?: Command["words"]): Command {
	return {
		name,
		usage,
		about,
		words,
		run(call) {
			if (call.args === "" || call.args === "status") return show(call, setting(key));
			change(call, setting(key), parseValue(setting(key).editor, call.args));
		},
	};
}

function list(name: string, key: string, about: string): Command {
	return {
		name,
		usage: "[add|remove NAME…|clear|A,B…]",
		about,
		words: () => ["add", "remove", "clear"],
		run(call) {
			if (call.args === "" || call.args === "status") return show(call, setting(key));
			const current = valueOf(config(call), setting(key));
			change(call, setting(key), changedList(Array.isArray(current) ? current : [], call.args));
		},
	};
}

/** `add`, `remove` and `clear` change the list that there is; anything else replaces it. */
export function changedList(current: readonly string[], args: string): string[] {
	const [verb = "", ...rest] = args.split(/[\s,]+/).filter(Boolean);
	switch (verb) {
		case "add":
			return [...new Set([...current, ...rest])];
		case "remove":
			return current.filter((entry) => !rest.includes(entry));
		case "clear":
			return [];
		default:
			return [...new Set([verb, ...rest])];
	}
}

function modelNames({ desk }: { desk: Desk }): readonly string[] {
	return ["default", ...desk.surface.models()];
}

export function config({ pruner }: Pick<Call, "pruner">): string {
	return pruner.command(({ control }) => control.config());
}

export function show(call: Call, what: Setting): void {
	call.surface.say(`${what.key}: ${printValue(valueOf(config(call), what))}`);
}

/** Puts a setting into force and into the file; what the pruner does not accept changes neither. */
export function change(call: Pick<Call, "pruner" | "settings" | "surface" | "tools">, what: Setting, value: Value): void {
	const { pruner, settings, surface } = call;
	const path = what.key.split(".");
	const configure = (json: string) => pruner.command(({ control }) => control.configure(json, BigInt(Date.now())));
	const before = settings.read();
	const notices = configure(settings.with(path, value));
	if (JSON.stringify(valueOf(config(call), what)) !== JSON.stringify(value)) {
		configure(before);
		const reason = notices.find(({ text }) => text.includes(what.key.split(".").at(-1) ?? what.key))?.text;
		return surface.say(reason ?? `${what.key} cannot be ${printValue(value)}.`, "error");
	}
	save(call, path, value);
	call.tools.update();
	surface.say(`${what.key}: ${printValue(value)}`);
}

/** A file that cannot be written is no reason to refuse what the user wants for this session. */
function save({ settings, surface }: Pick<Call, "settings" | "surface">, path: readonly string[], value: Value): void {
	try {
		settings.set(path, value);
	} catch (error) {
		if (!(error instanceof SettingsError)) throw error;
		surface.say(error.message, "warning");
	}
}
