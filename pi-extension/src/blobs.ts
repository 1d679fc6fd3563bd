// Blobs: files beside the session file, for outsized tool results.

import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type HostImports, Refusal } from "./component.ts";
import type { SessionManager } from "./log.ts";

/** The blobs of one session, in a folder that carries its id. */
export class BlobStore {
	readonly #manager: Pick<SessionManager, "getSessionFile" | "getSessionId">;

	constructor(manager: Pick<SessionManager, "getSessionFile" | "getSessionId">) {
		this.#manager = manager;
	}

	readonly imports: HostImports["blobs"] = {
		write: (name, text) => this.#write(name, text),
		read: (name) => this.#read(name),
	};

	#write(name: string, text: string): string {
		const file = this.#manager.getSessionFile();
		if (!file) throw new Refusal({ tag: "unavailable", val: "this session is not saved to disk" });
		const folder = blobFolder(file, this.#manager.getSessionId());
		const path = join(folder, checkedName(name));
		mkdirSync(folder, { recursive: true });
		writeDurably(path, text);
		return path;
	}

	/** A fork has a folder of its own, but its first part was written by its ancestors. */
	#read(name: string): string {
		checkedName(name);
		let session = { file: this.#manager.getSessionFile(), id: this.#manager.getSessionId() };
		const seen = new Set<string>();
		while (session.file && !seen.has(session.file)) {
			seen.add(session.file);
			const text = readIfPresent(join(blobFolder(session.file, session.id), name));
			if (text !== undefined) return text;
			session = parentOf(session.file);
		}
		throw new Refusal({ tag: "not-found" });
	}
}

function blobFolder(sessionFile: string, sessionId: string): string {
	return join(dirname(sessionFile), `${sessionId}-blobs`);
}

/** The contract promises such names; a name that leaves the folder must never reach the disk all the same. */
function checkedName(name: string): string {
	if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,119}$/.test(name)) {
		throw new Refusal({ tag: "failed", val: `not a name for a blob: ${JSON.stringify(name)}` });
	}
	return name;
}

function writeDurably(path: string, text: string): void {
	const temporary = `${path}.${randomBytes(4).toString("hex")}.tmp`;
	try {
		const fd = openSync(temporary, "wx");
		try {
			writeFileSync(fd, text);
			fsyncSync(fd);
		} finally {
			closeSync(fd);
		}
		renameSync(temporary, path);
	} catch (error) {
		rmSync(temporary, { force: true });
		throw error;
	}
}

function readIfPresent(path: string): string | undefined {
	try {
		return readFileSync(path, "utf8");
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
		throw error;
	}
}

/** The session that `file` was forked from. Its id stands in the file's name and, if the name was changed, in its header. */
function parentOf(file: string): { file: string | undefined; id: string } {
	const parent: unknown = header(file)?.parentSession;
	if (typeof parent !== "string") return { file: undefined, id: "" };
	const id: unknown = header(parent)?.id ?? /_([^_]+)\.jsonl$/.exec(basename(parent))?.[1];
	return typeof id === "string" ? { file: parent, id } : { file: undefined, id: "" };
}

function header(file: string): { id?: unknown; parentSession?: unknown } | undefined {
	try {
		return JSON.parse(readFileSync(file, "utf8").split("\n", 1)[0] ?? "");
	} catch {
		return undefined;
	}
}
