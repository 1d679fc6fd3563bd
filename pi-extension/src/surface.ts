// Where the pruner's words go: pi's notifications and footer, or the terminal when pi has no screen.

import type { ExtensionAPI, ExtensionContext } from "@mariozechner/pi-coding-agent";
import type { Notices } from "./component.ts";
import type { Surface } from "./host.ts";

const STATUS_KEY = "decant";

/** Other extensions that add costs up listen here. */
const COST_CHANNEL = "cost:external";

export class PiSurface implements Surface {
	readonly #pi: ExtensionAPI;
	#ctx: ExtensionContext | undefined;
	/** Called when the flush in progress has changed. */
	onProgress: () => void = () => {};

	constructor(pi: ExtensionAPI) {
		this.#pi = pi;
	}

	/** The latest context that pi has handed out. */
	use(ctx: ExtensionContext): void {
		this.#ctx = ctx;
	}

	readonly notify = (notice: Notices.Notice): void => {
		this.#quietly((ctx) => {
			if (ctx.hasUI) ctx.ui.notify(notice.text, notice.level);
			else if (notice.level !== "info") console.error(`decant: ${notice.text}`);
		});
	};

	readonly status = (line: string): void => {
		this.#quietly((ctx) => ctx.ui.setStatus(STATUS_KEY, line === "" ? undefined : line));
	};

	readonly cost = (cost: Notices.TotalCost): void => {
		const payload = {
			source: "pi-decant",
			totalCost: cost.total,
			inputTokens: Number(cost.input),
			outputTokens: Number(cost.output),
		};
		this.#quietly(() => this.#pi.events.emit(COST_CHANNEL, payload));
	};

	readonly progress = (): void => this.onProgress();

	/** Prints what a command has to say. */
	say(text: string, level: Notices.Level = "info"): void {
		this.#quietly((ctx) => {
			if (ctx.hasUI) ctx.ui.notify(text, level);
			else if (level === "info") console.log(text);
			else console.error(text);
		});
	}

	/** Shows lines above the editor; undefined takes them away. */
	widget(key: string, lines: string[] | undefined): void {
		this.#quietly((ctx) => ctx.ui.setWidget(key, lines, { placement: "aboveEditor" }));
	}

	/** Whether somebody sees what is drawn, rather than a program that reads it. */
	isScreen(): boolean {
		const mode = (this.#ctx as { mode?: string } | undefined)?.mode;
		return mode === undefined ? process.stdout.isTTY === true : mode === "tui";
	}

	/** The models that can be asked, as `provider/model`. */
	models(): string[] {
		try {
			return this.#ctx?.modelRegistry.getAvailable().map(({ provider, id }) => `${provider}/${id}`) ?? [];
		} catch {
			return [];
		}
	}

	/** A context that pi has taken back throws on every use: then there is nobody to show anything to. */
	#quietly(show: (ctx: ExtensionContext) => void): void {
		try {
			if (this.#ctx) show(this.#ctx);
		} catch {
			this.#ctx = undefined;
		}
	}
}

