// Summary requests under way: each with its limits, each ending in exactly one outcome.

import type { HostImports, Lifecycle, Summarizer } from "./component.ts";
import { ask, type Model, type ModelRegistry, NoModel, failureKind, outcomeOf, resolveModel } from "./models.ts";

/** What a job reports, always from the event loop, never from inside `submit` or `cancel`. */
export interface JobEvents {
	ended(job: Summarizer.JobId, outcome: Lifecycle.Outcome): void;
	progress(job: Summarizer.JobId, chars: number): void;
}

/** Which models there are at the moment of a request. */
export interface Models {
	registry: ModelRegistry;
	session: Model | undefined;
}

interface Job {
	id: Summarizer.JobId;
	request: Summarizer.Request;
	abort: AbortController;
}

/** Ends a job from outside; carries what is to be reported. */
class Stopped extends Error {
	readonly kind: Lifecycle.FailureKind;

	constructor(kind: Lifecycle.FailureKind, message: string) {
		super(message);
		this.kind = kind;
	}
}

/** A display need not be told more often than this. */
const PROGRESS_MS = 80;

export class Jobs {
	readonly #models: () => Models;
	readonly #events: JobEvents;
	readonly #running = new Map<Summarizer.JobId, Job>();
	/** How many jobs have ended since the session was opened. */
	readonly ended = { answered: 0, failed: 0 };
	#lastId = 0n;
	#waiting: (() => void)[] = [];

	constructor(models: () => Models, events: JobEvents) {
		this.#models = models;
		this.#events = events;
	}

	get running(): number {
		return this.#running.size;
	}

	readonly imports: HostImports["summarizer"] = {
		submit: (request) => {
			const job: Job = { id: ++this.#lastId, request, abort: new AbortController() };
			this.#running.set(job.id, job);
			setImmediate(() => void this.#run(job));
			return job.id;
		},
		cancel: (id) => {
			const job = this.#running.get(id);
			this.#running.delete(id);
			job?.abort.abort(new Stopped("aborted", "cancelled"));
		},
	};

	/** Stops every job; each reports that it was aborted. */
	abortAll(): void {
		for (const job of this.#running.values()) job.abort.abort(new Stopped("aborted", "aborted"));
	}

	/** Stops every job, and none reports any more. */
	dropAll(): void {
		const dropped = [...this.#running.values()];
		this.#running.clear();
		for (const job of dropped) job.abort.abort(new Stopped("aborted", "dropped"));
		this.#wake();
	}

	/** Resolves when the next job has ended and its outcome has been delivered. */
	next(): Promise<void> {
		return new Promise((resolve) => this.#waiting.push(resolve));
	}

	#wake(): void {
		for (const resolve of this.#waiting.splice(0)) resolve();
	}

	async #run(job: Job): Promise<void> {
		const outcome = await this.#outcome(job);
		if (this.#running.delete(job.id)) {
			this.ended[outcome.tag]++;
			this.#events.ended(job.id, outcome);
		}
		this.#wake();
	}

	async #outcome(job: Job): Promise<Lifecycle.Outcome> {
		const limits = new Limits(job);
		try {
			// A provider that ignores the signal must not keep the job alive: whoever is first wins.
			return await Promise.race([limits.stopped, this.#stream(job, limits)]);
		} catch (error) {
			const reason: unknown = job.abort.signal.aborted ? job.abort.signal.reason : error;
			return { tag: "failed", val: { kind: kindOf(reason), message: reason instanceof Error ? reason.message : String(reason) } };
		} finally {
			limits.clear();
		}
	}

	async #stream(job: Job, limits: Limits): Promise<Lifecycle.Outcome> {
		const { registry, session } = this.#models();
		const model = resolveModel(job.request, registry, session);
		const stream = await ask(model, job.request, registry, job.abort.signal);
		let chars = 0;
		let shown = 0;
		for await (const event of stream) {
			limits.heard();
			chars += event.type === "text_delta" ? (event.delta?.length ?? 0) : 0;
			if (Date.now() - shown < PROGRESS_MS || !this.#running.has(job.id)) continue;
			shown = Date.now();
			this.#events.progress(job.id, chars);
		}
		return outcomeOf(await stream.result());
	}
}

function kindOf(reason: unknown): Lifecycle.FailureKind {
	if (reason instanceof Stopped) return reason.kind;
	if (reason instanceof NoModel) return "permanent";
	return failureKind(reason instanceof Error ? reason.message : String(reason));
}

/** The two time limits of a job. They abort it; a limit of 0 is none. */
class Limits {
	readonly stopped: Promise<never>;
	readonly #job: Job;
	#idle: NodeJS.Timeout | undefined;
	#total: NodeJS.Timeout | undefined;

	constructor(job: Job) {
		this.#job = job;
		const { signal } = job.abort;
		this.stopped = new Promise((_, reject) => {
			if (signal.aborted) reject(signal.reason);
			signal.addEventListener("abort", () => reject(signal.reason), { once: true });
		});
		this.stopped.catch(() => {});
		if (signal.aborted) return;
		this.#total = this.#timer(job.request.totalTimeoutMs, "no summary");
		this.heard();
	}

	/** Something has arrived: the idle limit begins anew. */
	heard(): void {
		clearTimeout(this.#idle);
		this.#idle = this.#timer(this.#job.request.idleTimeoutMs, "no output");
	}

	clear(): void {
		clearTimeout(this.#idle);
		clearTimeout(this.#total);
	}

	#timer(ms: number, what: string): NodeJS.Timeout | undefined {
		if (ms === 0) return undefined;
		return setTimeout(() => this.#job.abort.abort(new Stopped("timeout", `${what} within ${ms / 1000} s`)), ms);
	}
}
