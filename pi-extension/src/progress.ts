// The progress of a flush that the user asked for: a row per batch above the editor, Esc cancels.

import { matchesKey } from "@mariozechner/pi-tui";
import type { Call } from "./commands.ts";
import type { Control, Lifecycle } from "./component.ts";
import { count, short } from "./report.ts";

const WIDGET_KEY = "decant-progress";
const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_MS = 80;

const MARKS: Record<Control.BatchState, string | undefined> = { queued: "·", running: undefined, answered: "✓", failed: "⚠" };

/** One line per batch; `frame` counts the steps of the spinner. */
export function progressLines(rows: readonly Control.BatchProgress[], frame: number): string[] {
	const lines = rows.map(({ label, state, chars }) => {
		const mark = MARKS[state] ?? FRAMES[frame % FRAMES.length];
		return `${mark} ${label}${chars > 0 ? `  ${short(chars)} chars` : ""}`;
	});
	return ["Pruning · Esc to cancel", ...lines];
}

/** Starts a flush, shows how it goes, and says how it went. */
export async function showProgress(call: Call, start: () => Lifecycle.Activity): Promise<void> {
	const { pruner, surface, ctx } = call;
	const display = new ProgressDisplay(call);
	const abort = new AbortController();
	const stopListening = ctx.hasUI ? ctx.ui.onTerminalInput((data) => escape(data, abort)) : () => {};
	surface.onProgress = () => display.changed();
	try {
		const before = size(call);
		start();
		display.changed();
		await pruner.finish(abort.signal);
		pruner.syncWithSession();
		surface.status(pruner.peek(({ control }) => control.status().line) ?? "");
		surface.say(abort.signal.aborted ? "Cancelled. Everything that waited still waits." : outcome(display, before, size(call)));
	} finally {
		surface.onProgress = () => {};
		stopListening();
		display.close();
	}
}

function escape(data: string, abort: AbortController): { consume: boolean } | undefined {
	if (!matchesKey(data, "escape")) return undefined;
	abort.abort();
	return { consume: true };
}

function size({ pruner }: Call): Control.Size | undefined {
	return pruner.peek(({ control }) => control.status().after);
}

function outcome(display: ProgressDisplay, before: Control.Size | undefined, after: Control.Size | undefined): string {
	const { answered, failed } = display;
	const parts = [`Done: ${count(answered, "summary").replace("summarys", "summaries")} written`];
	if (failed > 0) parts.push(`${failed} failed and wait for the next flush`);
	if (before && after) parts.push(`the context went from ${short(before.tokens)} to ${short(after.tokens)} tokens`);
	return `${parts.join(", ")}.`;
}

/** Draws the rows; a spinner turns only where somebody sees it. */
class ProgressDisplay {
	answered = 0;
	failed = 0;
	readonly #call: Call;
	readonly #before: { answered: number; failed: number };
	readonly #timer: NodeJS.Timeout | undefined;
	#frame = 0;
	#shown = "";

	constructor(call: Call) {
		this.#call = call;
		this.#before = { ...call.pruner.jobs.ended };
		if (call.ctx.hasUI && call.surface.isScreen()) this.#timer = setInterval(() => this.#draw(this.#frame++), FRAME_MS);
	}

	changed(): void {
		const { answered, failed } = this.#call.pruner.jobs.ended;
		this.answered = answered - this.#before.answered;
		this.failed = failed - this.#before.failed;
		this.#draw(this.#frame);
	}

	close(): void {
		clearInterval(this.#timer);
		if (this.#shown !== "") this.#call.surface.widget(WIDGET_KEY, undefined);
	}

	#draw(frame: number): void {
		const rows = this.#call.pruner.peek(({ control }) => control.progress()) ?? [];
		if (rows.length === 0) return;
		const lines = progressLines(rows, frame);
		if (lines.join("\n") === this.#shown) return;
		this.#shown = lines.join("\n");
		this.#call.surface.widget(WIDGET_KEY, lines);
	}
}
