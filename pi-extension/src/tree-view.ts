// The tree browser on the screen: keys, rows, and a box for a summary or an original.

import { type Component, matchesKey, type TUI } from "@mariozechner/pi-tui";
import type { Theme } from "@mariozechner/pi-coding-agent";
import type { Call } from "./commands.ts";
import { type Control, PrunerDown, refusal } from "./component.ts";
import { TextBox } from "./overlay.ts";
import { nodeLine, refusalText } from "./report.ts";
import { fit, height } from "./screen.ts";
import { type Row, TreeModel } from "./tree.ts";

const HINT = "↑↓ move · ←→ fold · Enter original · Ctrl-O summary · / search · Esc close";

/** Opens the browser; false where pi has no screen for it. */
export async function openTree(call: Call, nodes: readonly Control.Node[]): Promise<boolean> {
	let isOpen = false;
	await call.ctx.ui.custom<void>((tui, theme, _keys, done) => {
		isOpen = true;
		return new TreeView(call, new TreeModel(nodes), tui, theme, done);
	});
	return isOpen;
}

class TreeView implements Component {
	readonly #call: Call;
	readonly #model: TreeModel;
	readonly #tui: TUI;
	readonly #theme: Theme;
	readonly #done: () => void;
	#box: TextBox | undefined;
	#isTyping = false;

	constructor(call: Call, model: TreeModel, tui: TUI, theme: Theme, done: () => void) {
		this.#call = call;
		this.#model = model;
		this.#tui = tui;
		this.#theme = theme;
		this.#done = done;
	}

	invalidate(): void {
		this.#box?.invalidate();
	}

	render(width: number): string[] {
		if (this.#box) return this.#box.render(width);
		const rows = this.#model.rows;
		const space = height(this.#tui) - 3;
		const first = Math.max(0, Math.min(this.#model.cursor - Math.floor(space / 2), rows.length - space));
		const lines = rows.slice(first, first + space).map((row, i) => this.#line(row, first + i === this.#model.cursor, width));
		return [this.#head(width), ...lines, this.#theme.fg("dim", fit(HINT, width))];
	}

	#head(width: number): string {
		const search = this.#isTyping || this.#model.search !== "" ? ` · search: ${this.#model.search}${this.#isTyping ? "▏" : ""}` : "";
		const title = fit(`Pruned in this session (${this.#model.rows.length} shown)${search}`, width);
		return this.#theme.fg("accent", title);
	}

	#line(row: Row, isCurrent: boolean, width: number): string {
		const fold = row.hasChildren ? (row.isFolded ? "▸" : "▾") : " ";
		const text = fit(`${isCurrent ? "›" : " "} ${"  ".repeat(row.depth)}${fold} ${nodeLine(row.node)}`, width);
		return isCurrent ? this.#theme.fg("accent", text) : text;
	}

	handleInput(data: string): void {
		if (this.#box) this.#boxKey(data);
		else if (this.#isTyping) this.#searchKey(data);
		else this.#treeKey(data);
		this.#tui.requestRender();
	}

	#boxKey(data: string): void {
		if (matchesKey(data, "escape") || matchesKey(data, "ctrl+o") || data === "q") this.#box = undefined;
		else this.#box?.handleInput(data);
	}

	#searchKey(data: string): void {
		const { search } = this.#model;
		if (matchesKey(data, "escape")) this.#model.find("");
		if (matchesKey(data, "escape") || matchesKey(data, "enter")) this.#isTyping = false;
		else if (matchesKey(data, "backspace")) this.#model.find(search.slice(0, -1));
		else if (data >= " " && !data.startsWith("\x1b")) this.#model.find(search + data);
	}

	#treeKey(data: string): void {
		const page = height(this.#tui) - 4;
		if (matchesKey(data, "escape") || data === "q") this.#close();
		else if (matchesKey(data, "up")) this.#model.move(-1);
		else if (matchesKey(data, "down")) this.#model.move(1);
		else if (matchesKey(data, "pageUp")) this.#model.move(-page);
		else if (matchesKey(data, "pageDown")) this.#model.move(page);
		else if (matchesKey(data, "right")) this.#model.unfold();
		else if (matchesKey(data, "left")) this.#model.fold();
		else if (matchesKey(data, "enter")) this.#open();
		else if (matchesKey(data, "ctrl+o")) this.#openSummary();
		else if (data === "/") this.#isTyping = true;
	}

	/** Esc takes a search back before it closes the browser. */
	#close(): void {
		if (this.#model.search !== "") this.#model.find("");
		else this.#done();
	}

	#open(): void {
		const row = this.#model.current;
		if (!row) return;
		const isOriginal = row.node.kind === "call" || row.node.kind === "alias";
		if (!isOriginal) return this.#model.toggle();
		this.#box = new TextBox(nodeLine(row.node), this.#nodeText(row.index), "plain", this.#tui, this.#theme);
	}

	/** The summary that covers the row at the cursor: its own, or that of the nearest node above it. */
	#openSummary(): void {
		const row = this.#summaryRow();
		if (!row) return;
		this.#box = new TextBox(nodeLine(row.node), this.#nodeText(row.index), "markdown", this.#tui, this.#theme);
	}

	#summaryRow(): Row | undefined {
		const { rows, cursor } = this.#model;
		const own = rows[cursor];
		if (!own || own.node.kind === "summary" || own.node.kind === "block") return own;
		return rows.slice(0, cursor).findLast(({ index }) => index === own.node.parent);
	}

	#nodeText(index: number): string {
		try {
			return this.#call.pruner.command(({ control }) => control.nodeText(index));
		} catch (error) {
			if (error instanceof PrunerDown) return error.message;
			const reason = refusal(error);
			if (!reason) throw error;
			return refusalText(reason);
		}
	}
}
