// One living instance of the pruner: made from the session, lost by a trap, made anew.

import { createPruner, type HostImports, type Lifecycle, type Messages, type Notices, type Pruner, type Refused, refusal } from "./component.ts";

/** Everything that an instance is made from. */
export interface Origin {
	/** Makes an instance; the component's own, unless a test has another. */
	create?: typeof createPruner;
	imports: HostImports;
	/** The settings: the JSON object of pi's `contextPrune`. */
	config(): string;
	session(): Lifecycle.SessionInfo;
	/** The pruner's entries on the active branch. */
	entries(): Lifecycle.LogEntry[];
}

/** The log crosses the boundary in pieces, so that a long one needs no memory twice. */
const ENTRIES_PER_PIECE = 256;

/** After so many losses without a success in between the session goes on unpruned. */
const MAX_LOSSES = 3;

/** A pruner that knows the log, but not the transcript. */
export interface Loaded {
	pruner: Pruner;
	notices: Notices.Notice[];
	/** The results whose texts need not cross with the transcript. */
	known: Messages.Occurrence[];
}

/** Makes a pruner and tells it what the log knows. */
export function load(origin: Origin): Loaded {
	const pruner = (origin.create ?? createPruner)(origin.imports);
	const notices = openWith(pruner, origin);
	const entries = origin.entries();
	for (let at = 0; at < entries.length; at += ENTRIES_PER_PIECE) {
		notices.push(...pruner.lifecycle.restore(entries.slice(at, at + ENTRIES_PER_PIECE)));
	}
	return { pruner, notices, known: pruner.lifecycle.knownResults() };
}

/** Settings that are no object at all cost the settings, not the session. */
function openWith(pruner: Pruner, origin: Origin): Notices.Notice[] {
	try {
		return pruner.lifecycle.open(origin.session(), origin.config());
	} catch (error) {
		const reason = refusal(error);
		if (reason?.tag !== "malformed-config") throw error;
		const text = `\`contextPrune\` in settings.json is not usable (${String(reason.val)}). The defaults are used.`;
		return [{ level: "warning", text }, ...pruner.lifecycle.open(origin.session(), "{}")];
	}
}

/** What the owner of an instance is told about its life. */
export interface InstanceEvents {
	/** A new instance is there. */
	made(loaded: Loaded): void;
	/** The instance is gone; everything that it started is void. */
	lost(error: unknown, isFinal: boolean): void;
}

/**
 * Holds the instance of one session.
 *
 * A trap poisons an instance for good, and so does an error that no contract names. Both are met in one way: the
 * instance is dropped, the caller goes on without pruning, and the next use makes a new one from the session.
 */
export class Instance {
	readonly #origin: Origin;
	readonly #events: InstanceEvents;
	#pruner: Pruner | undefined;
	#losses = 0;
	#isClosed = false;

	constructor(origin: Origin, events: InstanceEvents) {
		this.#origin = origin;
		this.#events = events;
	}

	/** The instance if there is one at the moment. */
	get current(): Pruner | undefined {
		return this.#pruner;
	}

	/** Whether it has been lost too often to be made again. */
	get isDown(): boolean {
		return this.#losses >= MAX_LOSSES;
	}

	/** The instance, made if need be; undefined when it cannot be had. */
	ensure(): Pruner | undefined {
		if (this.#pruner || this.#isClosed || this.isDown) return this.#pruner;
		try {
			const loaded = load(this.#origin);
			this.#pruner = loaded.pruner;
			this.#events.made(loaded);
		} catch (error) {
			this.lose(error);
		}
		return this.#pruner;
	}

	/**
	 * Calls the pruner. A refusal is passed on: the pruner is unharmed. Anything else loses the instance and returns
	 * undefined, as does having none.
	 */
	call<T>(call: (pruner: Pruner) => T): T | undefined {
		if (!this.#pruner) return undefined;
		try {
			return call(this.#pruner);
		} catch (error) {
			if (refusal(error)) throw error;
			this.lose(error);
			return undefined;
		}
	}

	/** As {@link call}, for what may well be refused: returns the refusal. */
	attempt(call: (pruner: Pruner) => void): Refused | undefined {
		try {
			this.call(call);
			return undefined;
		} catch (error) {
			const reason = refusal(error);
			if (!reason) throw error;
			return reason;
		}
	}

	/** A whole model call went well: earlier losses are forgiven. */
	succeeded(): void {
		this.#losses = 0;
	}

	lose(error: unknown): void {
		this.#pruner = undefined;
		this.#losses++;
		this.#events.lost(error, this.isDown);
	}

	/** Lets the instance go; the next use makes another one, with nothing held against it. */
	drop(): void {
		this.call((pruner) => pruner.lifecycle.shutdown());
		this.#pruner = undefined;
		this.#losses = 0;
	}

	/** Lets the instance go for good. */
	close(): void {
		this.drop();
		this.#isClosed = true;
	}
}
