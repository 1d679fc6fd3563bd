// How much room there is, and text that fits into it.

import { type TUI, truncateToWidth } from "@mariozechner/pi-tui";

/** Left free for what pi itself shows below and above. */
const MARGIN = 6;
const LEAST = 8;

/** The lines that a browser may take. */
export function height(tui: TUI): number {
	return Math.max(LEAST, (tui.terminal.rows || 24) - MARGIN);
}

/** One line of `text`, no wider than `width`; control characters of tool output must not reach the terminal. */
export function fit(text: string, width: number): string {
	return truncateToWidth(plain(text), width, "…");
}

/** `text` without escape sequences and control characters; tabs become blanks. */
export function plain(text: string): string {
	return (
		text
			.replaceAll("\t", "    ")
			// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
			.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)?|[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, "")
			.replaceAll("\n", " ")
	);
}
