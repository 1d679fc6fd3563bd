// The settings: the block `contextPrune` of pi's settings.json. Other keys of the file are not ours to touch.

import { randomBytes } from "node:crypto";
import { readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const BLOCK = "contextPrune";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

/** The settings file cannot be read or written; it was left as it is. The message is for the user. */
export class SettingsError extends Error {}

export class Settings {
	readonly #path: string;

	/** `agentDir` is pi's configuration directory. */
	constructor(agentDir: string) {
		this.#path = join(agentDir, "settings.json");
	}

	/** The JSON text of the user's settings; `{}` where there are none. Throws {@link SettingsError}. */
	read(): string {
		const block = this.#file().settings[BLOCK];
		return JSON.stringify(block === undefined ? {} : block);
	}

	/** The settings with `value` at `path` (`["chainCompression", "enabled"]`), not written yet. */
	with(path: readonly string[], value: Json): string {
		return JSON.stringify(this.#changed(path, value).settings[BLOCK]);
	}

	/** Writes `value` at `path` and leaves everything else as it stands. Throws {@link SettingsError}. */
	set(path: readonly string[], value: Json): void {
		const { text, settings } = this.#changed(path, value);
		const indent = /^\s*\{\r?\n?([ \t]+)"/.exec(text)?.[1] ?? "  ";
		const end = text === "" || text.endsWith("\n") ? "\n" : "";
		const lines = JSON.stringify(settings, null, indent) + end;
		this.#write(text.includes("\r\n") ? lines.replaceAll("\n", "\r\n") : lines);
	}

	#changed(path: readonly string[], value: Json): { text: string; settings: JsonObject } {
		const file = this.#file();
		let inner = blockOf(file.settings, BLOCK);
		for (const key of path.slice(0, -1)) inner = blockOf(inner, key);
		inner[path[path.length - 1] as string] = value;
		return file;
	}

	#file(): { text: string; settings: JsonObject } {
		const text = this.#readText();
		if (text.trim() === "") return { text, settings: {} };
		let settings: unknown;
		try {
			settings = JSON.parse(text.replace(/^\ufeff/, ""));
		} catch (error) {
			throw new SettingsError(`${this.#path} is not valid JSON (${reasonOf(error)}). It was left as it is; mend it first.`);
		}
		if (!isObject(settings)) throw new SettingsError(`${this.#path} holds no JSON object. It was left as it is; mend it first.`);
		return { text, settings };
	}

	#readText(): string {
		try {
			return readFileSync(this.#path, "utf8");
		} catch (error) {
			if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
			throw new SettingsError(`${this.#path} cannot be read (${reasonOf(error)}).`);
		}
	}

	/** In one step, so that a crash leaves the old file or the new one; through a link, not over it. */
	#write(text: string): void {
		let temporary: string | undefined;
		try {
			const { target, mode } = targetOf(this.#path);
			temporary = join(dirname(target), `.settings-${randomBytes(4).toString("hex")}.tmp`);
			writeFileSync(temporary, text, { mode, flag: "wx" });
			renameSync(temporary, target);
		} catch (error) {
			if (temporary) rmSync(temporary, { force: true });
			throw new SettingsError(`${this.#path} cannot be written (${reasonOf(error)}). The setting holds for this session only.`);
		}
	}
}

function targetOf(path: string): { target: string; mode: number } {
	try {
		const target = realpathSync(path);
		return { target, mode: statSync(target).mode & 0o777 };
	} catch {
		return { target: path, mode: 0o600 };
	}
}

function isObject(value: unknown): value is JsonObject {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object at `key`, put there if something else, or nothing, is. */
function blockOf(object: JsonObject, key: string): JsonObject {
	const inner = object[key];
	if (isObject(inner)) return inner;
	const fresh: JsonObject = {};
	object[key] = fresh;
	return fresh;
}

function reasonOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}
