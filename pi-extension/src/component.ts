// The component, usable from any JavaScript host: compiled once per process, instantiated once per session.

import { readFileSync } from "node:fs";
import { instantiate, type ImportObject, type Root } from "../component/pruner.js";

import type * as Blobs from "../component/interfaces/decant-pruner-blobs.js";
import type * as Control from "../component/interfaces/decant-pruner-control.js";
import type * as Edits from "../component/interfaces/decant-pruner-edits.js";
import type * as Lifecycle from "../component/interfaces/decant-pruner-lifecycle.js";
import type * as Messages from "../component/interfaces/decant-pruner-messages.js";
import type * as Notices from "../component/interfaces/decant-pruner-notices.js";
import type * as Query from "../component/interfaces/decant-pruner-query.js";
import type * as SessionLog from "../component/interfaces/decant-pruner-session-log.js";
import type * as Summarizer from "../component/interfaces/decant-pruner-summarizer.js";
import type { HostError } from "../component/interfaces/decant-pruner-host-types.js";

export type Stamp = SessionLog.Stamp;
export type { Blobs, Control, Edits, HostError, Lifecycle, Messages, Notices, Query, SessionLog, Summarizer };

/** What a host offers the pruner: the imports of the contract, by interface. */
export interface HostImports {
	sessionLog: Pick<typeof SessionLog, "append" | "appendMessage" | "read">;
	blobs: Pick<typeof Blobs, "write" | "read">;
	summarizer: Pick<typeof Summarizer, "submit" | "cancel">;
	notices: Pick<typeof Notices, "notify" | "status" | "cost">;
}

/** One instance, for one session. */
export interface Pruner {
	lifecycle: typeof Lifecycle;
	query: typeof Query;
	control: typeof Control;
}

/** The compiled modules hold no state, so that every evaluation of this file in a process may share them. */
const COMPILED = Symbol.for("pi-decant.compiled-modules");
const shared = globalThis as { [COMPILED]?: Map<string, WebAssembly.Module> };

function coreModule(name: string): WebAssembly.Module {
	const compiled = (shared[COMPILED] ??= new Map());
	const url = new URL(`../component/${name}`, import.meta.url);
	let module = compiled.get(url.href);
	if (!module) {
		module = new WebAssembly.Module(readFileSync(url));
		compiled.set(url.href, module);
	}
	return module;
}

/** The error that an import throws to say no: only a `payload` crosses the boundary, anything else kills the instance. */
export class Refusal extends Error {
	readonly payload: HostError;

	constructor(payload: HostError) {
		super("val" in payload ? payload.val : payload.tag);
		this.payload = payload;
	}
}

/** The error of a command that the pruner could not be asked: it broke down. Nothing is lost. */
export class PrunerDown extends Error {
	/** `isFinal`: it has broken down too often to be started again. */
	constructor(isFinal: boolean) {
		const next = isFinal ? "This session goes on without pruning; /reload starts the pruner again." : "It starts anew from the session: try again.";
		super(`The pruner failed, and nothing was done. ${next}`);
	}
}

/** Why the pruner refused a call: a case of the contract's error variants. */
export interface Refused {
	tag: string;
	val?: unknown;
}

/** Whether the pruner refused a call: it is unharmed then. Any other error means that the instance is lost. */
export function refusal(error: unknown): Refused | undefined {
	if (!(error instanceof Error) || !("payload" in error)) return undefined;
	return error.payload as Refused;
}

/** Makes `call` safe as an import: whatever it throws becomes a refusal, and what is no value is refused. */
function guarded<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R {
	return (...args) => {
		try {
			return call(...args);
		} catch (error) {
			if (error instanceof Refusal) throw error;
			throw new Refusal({ tag: "failed", val: error instanceof Error ? error.message : String(error) });
		}
	};
}

/** As {@link guarded}, for imports that cannot fail. */
function silenced<A extends unknown[]>(call: (...args: A) => void): (...args: A) => void {
	return (...args) => {
		try {
			call(...args);
		} catch {
			// The contract has no way to say it, and what is only shown is not worth an instance.
		}
	};
}

/** Makes an instance of the pruner. Throws if the component cannot be loaded. */
export function createPruner(host: HostImports): Pruner {
	const imports = {
		"decant:pruner/session-log": {
			append: guarded(host.sessionLog.append),
			appendMessage: guarded(host.sessionLog.appendMessage),
			read: guarded(host.sessionLog.read),
		},
		"decant:pruner/blobs": { write: guarded(host.blobs.write), read: guarded(host.blobs.read) },
		"decant:pruner/summarizer": {
			submit: guarded(host.summarizer.submit),
			cancel: silenced(host.summarizer.cancel),
		},
		"decant:pruner/notices": {
			notify: silenced(host.notices.notify),
			status: silenced(host.notices.status),
			cost: silenced(host.notices.cost),
		},
		// Hash maps of libraries ask for it; a constant keeps every run the same.
		"wasi:random/insecure-seed": { insecureSeed: () => [0n, 0n] },
	};
	const root: Root = instantiate(coreModule, imports as unknown as ImportObject);
	return { lifecycle: root.lifecycle, query: root.query, control: root.control };
}
