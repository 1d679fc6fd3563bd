// The pruner of one pi session: keeps its mirror in step, fires its hooks, waits for its summaries, applies its plans.

import { applyPlan, Plan } from "./apply.ts";
import { BlobStore } from "./blobs.ts";
import { type Lifecycle, type Pruner, PrunerDown, refusal } from "./component.ts";
import { epochMs, type HostMessage, isFinalReply, KnownResults } from "./convert.ts";
import { newsOf } from "./events.ts";
import { type Run, type SessionOptions, usageOf } from "./host.ts";
import { Instance, type Loaded } from "./instance.ts";
import { Jobs } from "./jobs.ts";
import { SessionLog, withSummaries } from "./log.ts";
import { Mirror } from "./mirror.ts";
import { refusalText } from "./report.ts";

const IDLE: Lifecycle.Activity = { pendingTurns: 0, runningJobs: 0, blocking: false };
/** Turns of the event loop. */
const PATIENCE = 50;
const now = () => BigInt(Date.now());

export class PrunerSession {
	readonly jobs: Jobs;
	readonly #options: SessionOptions;
	readonly #instance: Instance;
	readonly #log: SessionLog;
	readonly #mirror = new Mirror();
	readonly #plan = new Plan();
	/** Whether pi makes each request from the session. */
	readonly #isProjected: boolean;
	#known = new KnownResults();
	#activity = IDLE;
	#isOffered = true;
	#isFlushWanted = false;
	/** Whether tools have returned that no hook was fired for. */
	#hasResults = false;
	/** Hooks that are running: while one is, outcomes may be committed at once. */
	#hooks = 0;
	#held: (() => void)[] = [];
	#repliesEnded = new Set<number>();
	#shown = new Set<string>();

	constructor(options: SessionOptions) {
		const { manager, surface } = options;
		this.#options = options;
		this.#log = new SessionLog(manager);
		this.#isProjected = typeof manager.buildSessionProjection === "function";
		this.jobs = new Jobs(options.models, {
			ended: (job, outcome) => this.#jobEnded(() => this.#deliver(job, outcome)),
			progress: (job, chars) => {
				this.#instance.call((pruner) => pruner.lifecycle.summaryProgress(job, chars));
				surface.progress();
			},
		});
		this.#instance = new Instance(
			{
				create: options.create,
				imports: {
					sessionLog: this.#log.imports,
					blobs: new BlobStore(manager).imports,
					summarizer: this.jobs.imports,
					notices: { notify: surface.notify, status: surface.status, cost: surface.cost },
				},
				config: options.config,
				session: () => ({ id: manager.getSessionId() }),
				entries: () => this.#log.entries(),
			},
			{ made: (loaded) => this.#made(loaded), lost: (error, isFinal) => this.#lost(error, isFinal) },
		);
	}

	/** Loads the session, or loads it anew: after a branch switch nothing of the old state holds. */
	start(): void {
		this.#instance.drop();
		this.#forget();
		this.#instance.ensure();
		this.syncWithSession();
	}

	/** Brings the mirror up to date from the session's entries, for what happens between two model calls. */
	syncWithSession(): Pruner | undefined {
		if (!this.#instance.ensure()) return undefined;
		const transcript = this.#options.transcript();
		const first = this.#sync(transcript);
		this.#hasResults ||= newsOf(transcript, first, this.#repliesEnded).hasResults;
		return this.#instance.current;
	}

	/** The messages that the model is to see instead of `messages`; undefined for the very same. */
	async context(messages: HostMessage[], run: Run): Promise<HostMessage[] | undefined> {
		if (!this.#instance.ensure()) return undefined;
		return this.#hook(async () => {
			const known = this.#isProjected ? this.#log.appended.length : 0;
			this.#offer(run);
			const complete = () => withSummaries(messages, this.#log.appended.slice(known));
			const before = this.#log.appended.length;
			let transcript = complete();
			const first = this.#sync(transcript);
			await this.#caughtUp(messages);
			this.#fire(transcript, first, run);
			await this.#settle(run.signal);
			if (this.#log.appended.length > before) {
				transcript = complete();
				this.#sync(transcript);
			}
			this.#update();
			if (!this.#instance.current) return undefined;
			this.#instance.succeeded();
			if (this.#plan.isEmpty) return transcript === messages ? undefined : transcript;
			return applyPlan(transcript, this.#plan.byPosition());
		});
	}

	/** The assistant's message is complete, but not in the session yet. */
	async replied(message: HostMessage, run: Run): Promise<void> {
		if (!isFinalReply(message) || this.#repliesEnded.has(message.timestamp)) return;
		this.#repliesEnded.add(message.timestamp);
		await this.#hook(async () => {
			this.#act((pruner) => pruner.lifecycle.replyEnd(epochMs(message.timestamp), now()));
			await this.#settle(run.signal);
		});
	}

	/** The agent is idle: what had to wait for that is delivered. */
	settled(): void {
		for (const deliver of this.#held.splice(0)) deliver();
	}

	modelChanged(): void {
		this.#instance.call((pruner) => pruner.lifecycle.modelChanged());
	}

	/** Answers a tool call of the model, with the parts of the originals that are no text. */
	query(tool: string, args: unknown): { text: string; isError: boolean; parts: HostMessage["content"][] } {
		this.#instance.ensure();
		const answer = this.#instance.call((pruner) => pruner.query.call(tool, JSON.stringify(args ?? {}), now()));
		if (!answer) return { text: "The archive cannot be read at the moment. Try again.", isError: true, parts: [] };
		return { text: answer.text, isError: answer.isError, parts: this.#log.attachments(answer.attachments) };
	}

	/** Runs a command of the user. Throws the pruner's refusal, and {@link PrunerDown} if it breaks down or is not there. */
	command<T>(command: (pruner: Pruner) => T): T {
		this.#instance.ensure();
		const done = this.#instance.call((pruner) => ({ value: command(pruner) }));
		if (!done) throw new PrunerDown(this.#instance.isDown);
		return done.value;
	}

	/** What the pruner says to `question`, for what is only shown: undefined if it is not there or refuses. */
	peek<T>(question: (pruner: Pruner) => T): T | undefined {
		this.#instance.ensure();
		try {
			return this.#instance.call(question);
		} catch (error) {
			if (!refusal(error)) throw error;
			return undefined;
		}
	}

	/** As {@link command}, for what may start a flush. */
	act(action: (pruner: Pruner) => Lifecycle.Activity): Lifecycle.Activity {
		this.#activity = this.command(action);
		this.#options.surface.progress();
		return this.#activity;
	}

	/** Waits until the flush in progress is over, whatever its mode. */
	async finish(signal?: AbortSignal): Promise<void> {
		await this.#hook(() => this.#wait(signal, () => this.#activity.runningJobs > 0));
	}

	/** Flushes everything that waits before the next model call, where appending does no harm. */
	flushSoon(): void {
		this.#isFlushWanted = true;
	}

	/** Ends the session. A flush in progress is given up, unless it is waited for before. */
	close(): void {
		this.#instance.close();
		this.#forget();
	}

	async #hook<T>(body: () => Promise<T>): Promise<T | undefined> {
		this.#hooks++;
		try {
			this.settled();
			return await body();
		} catch (error) {
			this.#instance.lose(error);
			return undefined;
		} finally {
			this.#hooks--;
		}
	}

	#sync(messages: readonly HostMessage[]): number {
		const at = this.#mirror.firstDifference(messages);
		if (this.#mirror.isCurrent(messages, at)) return at;
		const tail = messages.slice(at);
		const isDone = this.#instance.call((pruner) => {
			pruner.lifecycle.sync(at, tail.map((message) => this.#known.toContract(message)));
			return true;
		});
		if (isDone) {
			this.#mirror.replace(at, tail);
			this.#known = new KnownResults();
		}
		return at;
	}

	/** Fires the hooks for what has happened since the last model call; `first` is the first message that is new. */
	#fire(messages: readonly HostMessage[], first: number, run: Run): void {
		const { reply, hasResults } = newsOf(messages, first, this.#repliesEnded);
		if (reply) {
			this.#repliesEnded.add(reply.timestamp);
			this.#act((pruner) => pruner.lifecycle.replyEnd(undefined, now()));
		}
		if (hasResults || this.#hasResults) this.#act((pruner) => pruner.lifecycle.turnEnd(usageOf(run), now()));
		this.#hasResults = false;
		if (this.#isFlushWanted) this.#flush();
	}

	#flush(): void {
		this.#isFlushWanted = false;
		const reason = this.#instance.attempt(() => this.#act((pruner) => pruner.control.flush(now())));
		if (reason) this.#options.surface.notify({ level: "warning", text: refusalText(reason) });
	}

	/**
	 * Before pi 0.75 the agent does not wait for the session to be written: what is appended now would stand between
	 * a call and its results. The queue that writes them needs a few turns of the event loop.
	 */
	async #caughtUp(messages: readonly HostMessage[]): Promise<void> {
		const last = messages.at(-1);
		if (!last || this.#isProjected) return;
		for (let tries = 0; tries < PATIENCE && !this.#log.endsWith(last); tries++) await new Promise(setImmediate);
	}

	#offer(run: Run): void {
		const isOffered = run.isQueryOffered();
		if (isOffered === this.#isOffered) return;
		this.#isOffered = isOffered;
		this.#instance.call((pruner) => pruner.lifecycle.queryToolOffered(isOffered));
	}

	#update(): void {
		const plan = this.#instance.call((pruner) => pruner.lifecycle.plan(this.#plan.revision, now()));
		if (plan && !this.#plan.take(plan)) throw new Error("a plan for another revision");
	}

	#act(action: (pruner: Pruner) => Lifecycle.Activity): void {
		this.#activity = this.#instance.call(action) ?? this.#activity;
		this.#options.surface.progress();
	}

	async #settle(signal: AbortSignal | undefined): Promise<void> {
		await this.#wait(signal, () => this.#activity.blocking && this.#activity.runningJobs > 0);
	}

	/** Waits for jobs while `isWanted`. The end of the run ends the flush: its batches wait for the next one. */
	async #wait(signal: AbortSignal | undefined, isWanted: () => boolean): Promise<void> {
		const abort = () => this.cancel();
		signal?.addEventListener("abort", abort, { once: true });
		if (signal?.aborted) abort();
		while (isWanted() && this.jobs.running > 0) await this.jobs.next();
		signal?.removeEventListener("abort", abort);
	}

	/** Gives the flush in progress up. */
	cancel(): void {
		this.#instance.attempt((pruner) => pruner.control.cancel());
		this.jobs.dropAll();
		this.#activity = { ...this.#activity, runningJobs: 0, blocking: false };
		this.#options.surface.progress();
	}

	#jobEnded(deliver: () => void): void {
		if (this.#hooks === 0 && this.#options.isBusy()) this.#held.push(deliver);
		else deliver();
	}

	#deliver(job: bigint, outcome: Lifecycle.Outcome): void {
		this.#act((pruner) => pruner.lifecycle.summaryReady(job, outcome, now()));
		// Between two runs is a boundary too; later would put the summaries behind the next prompt.
		if (this.#hooks === 0 && this.#activity.runningJobs === 0) this.#act((pruner) => pruner.lifecycle.turnEnd(undefined, now()));
	}

	#forget(): void {
		this.jobs.dropAll();
		this.#mirror.clear();
		this.#plan.clear();
		this.#held = [];
		this.#activity = IDLE;
		this.#isOffered = true;
	}

	#made({ notices, known }: Loaded): void {
		this.#forget();
		this.#known = new KnownResults(known);
		for (const notice of notices) {
			if (this.#shown.has(notice.text)) continue;
			this.#shown.add(notice.text);
			this.#options.surface.notify(notice);
		}
	}

	#lost(error: unknown, isFinal: boolean): void {
		this.#forget();
		const reason = error instanceof Error ? error.message : String(error);
		const next = isFinal ? "This session goes on without pruning." : "It starts anew from the session.";
		this.#options.surface.notify({ level: "warning", text: `The pruner failed (${reason}). Nothing is lost, and the context is sent as it is. ${next}` });
		this.#options.surface.progress();
	}
}
