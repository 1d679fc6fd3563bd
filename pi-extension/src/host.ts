// What the pruner of a session needs of pi.

import type { createPruner, Lifecycle, Notices } from "./component.ts";
import type { HostMessage } from "./convert.ts";
import type { Models } from "./jobs.ts";
import type { SessionManager } from "./log.ts";

/** What a session shows and asks for; every call may come at any time, and none may throw. */
export interface Surface {
	notify(notice: Notices.Notice): void;
	status(line: string): void;
	cost(cost: Notices.TotalCost): void;
	/** Something about the flush in progress has changed. */
	progress(): void;
}

export interface SessionOptions {
	create?: typeof createPruner;
	manager: SessionManager;
	models: () => Models;
	surface: Surface;
	/** The settings, as the JSON object that the user wrote. */
	config: () => string;
	/** The transcript as the session's entries have it. */
	transcript: () => HostMessage[];
	/** Whether the agent is at work: between its calls and their results nothing may be appended. */
	isBusy: () => boolean;
}

/** What the host knows about the run at the moment of a hook. */
export interface Run {
	signal: AbortSignal | undefined;
	usage: () => { tokens: number | null; contextWindow: number } | undefined;
	isQueryOffered: () => boolean;
}

/** The use of the window, as the contract has it. */
export function usageOf(run: Run): Lifecycle.Usage | undefined {
	const usage = run.usage();
	if (!usage || !(usage.contextWindow > 0)) return undefined;
	const tokens = usage.tokens === null ? undefined : BigInt(Math.max(0, Math.round(usage.tokens)));
	return { tokens, contextWindow: BigInt(Math.round(usage.contextWindow)) };
}
