// A bordered box with a text that can be scrolled: a summary as markdown, or an original as it is.

import { getMarkdownTheme, type Theme } from "@mariozechner/pi-coding-agent";
import { type Component, Markdown, matchesKey, type TUI, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "@mariozechner/pi-tui";
import { fit, height, plain } from "./screen.ts";

export type TextKind = "markdown" | "plain";

export class TextBox implements Component {
	readonly #title: string;
	readonly #text: string;
	readonly #kind: TextKind;
	readonly #tui: TUI;
	readonly #theme: Theme;
	#first = 0;
	#wrapped: { width: number; lines: string[] } | undefined;

	constructor(title: string, text: string, kind: TextKind, tui: TUI, theme: Theme) {
		this.#title = title;
		this.#text = text;
		this.#kind = kind;
		this.#tui = tui;
		this.#theme = theme;
	}

	invalidate(): void {
		this.#wrapped = undefined;
	}

	render(width: number): string[] {
		const inner = Math.max(1, width - 4);
		const lines = this.#lines(inner);
		const space = this.#space();
		this.#first = Math.max(0, Math.min(this.#first, lines.length - space));
		const shown = lines.slice(this.#first, this.#first + space);
		return [
			this.#border("╭", "╮", ` ${fit(this.#title, inner - 2)} `, width),
			...shown.map((line) => this.#row(line, inner)),
			this.#border("╰", "╯", ` ${this.#position(lines.length, space)} `, width),
		];
	}

	handleInput(data: string): void {
		const page = this.#space() - 1;
		if (matchesKey(data, "up")) this.#first--;
		else if (matchesKey(data, "down")) this.#first++;
		else if (matchesKey(data, "pageUp")) this.#first -= page;
		else if (matchesKey(data, "pageDown")) this.#first += page;
		else if (matchesKey(data, "home")) this.#first = 0;
		else if (matchesKey(data, "end")) this.#first = Number.MAX_SAFE_INTEGER;
	}

	#space(): number {
		return height(this.#tui) - 3;
	}

	#position(total: number, space: number): string {
		const last = Math.min(total, this.#first + space);
		return `${total === 0 ? 0 : this.#first + 1}-${last} of ${total} lines · Esc back`;
	}

	#lines(width: number): string[] {
		if (this.#wrapped?.width !== width) this.#wrapped = { width, lines: this.#wrap(width) };
		return this.#wrapped.lines;
	}

	#wrap(width: number): string[] {
		if (this.#kind === "markdown") return new Markdown(this.#text, 0, 0, getMarkdownTheme()).render(width);
		return this.#text.split("\n").flatMap((line) => wrapTextWithAnsi(plain(line), width));
	}

	#row(line: string, inner: number): string {
		const text = truncateToWidth(line, inner, "");
		const edge = this.#theme.fg("border", "│");
		return `${edge} ${text}${" ".repeat(Math.max(0, inner - visibleWidth(text)))} ${edge}`;
	}

	#border(left: string, right: string, label: string, width: number): string {
		const text = fit(label, Math.max(0, width - 3));
		const rest = "─".repeat(Math.max(0, width - 3 - visibleWidth(text)));
		return this.#theme.fg("border", `${left}─${text}${rest}${right}`);
	}
}
