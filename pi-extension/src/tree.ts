// The tree browser without its looks: which rows are visible, where the cursor is, what is folded.

import type { Control } from "./component.ts";
import { nodeLine } from "./report.ts";

export interface Row {
	node: Control.Node;
	/** Index in the pruner's list. */
	index: number;
	depth: number;
	isFolded: boolean;
	hasChildren: boolean;
}

export class TreeModel {
	readonly #nodes: readonly Control.Node[];
	readonly #children: number[][];
	readonly #depths: number[] = [];
	readonly #folded = new Set<number>();
	#search = "";
	#cursor = 0;
	#rows: Row[] = [];

	/** All roots start folded: the list of what was pruned comes before its details. */
	constructor(nodes: readonly Control.Node[]) {
		this.#nodes = nodes;
		this.#children = nodes.map(() => []);
		for (const [index, { parent }] of nodes.entries()) {
			this.#depths.push(parent === undefined ? 0 : (this.#depths[parent] ?? 0) + 1);
			if (parent !== undefined) this.#children[parent]?.push(index);
		}
		for (const [index, children] of this.#children.entries()) if (children.length > 0) this.#folded.add(index);
		this.#update();
	}

	get rows(): readonly Row[] {
		return this.#rows;
	}

	get cursor(): number {
		return this.#cursor;
	}

	get current(): Row | undefined {
		return this.#rows[this.#cursor];
	}

	get search(): string {
		return this.#search;
	}

	move(by: number): void {
		this.#cursor = Math.max(0, Math.min(this.#rows.length - 1, this.#cursor + by));
	}

	/** Shows what matches `text` and all above it, whatever is folded; an empty text shows the tree as it is folded. */
	find(text: string): void {
		this.#search = text;
		this.#update();
		if (text !== "") this.#cursor = Math.max(0, this.#rows.findIndex(({ node }) => this.#matches(node)));
	}

	/** Opens the node at the cursor, or goes into it. */
	unfold(): void {
		const row = this.current;
		if (!row?.hasChildren) return;
		if (row.isFolded) this.#fold(row.index, false);
		else this.move(1);
	}

	/** Folds the node at the cursor, or goes to the one above it. */
	fold(): void {
		const row = this.current;
		if (!row) return;
		if (row.hasChildren && !row.isFolded) this.#fold(row.index, true);
		else if (row.node.parent !== undefined) this.#moveTo(row.node.parent);
	}

	toggle(): void {
		const row = this.current;
		if (row?.hasChildren) this.#fold(row.index, !row.isFolded);
	}

	#fold(index: number, isFolded: boolean): void {
		if (isFolded) this.#folded.add(index);
		else this.#folded.delete(index);
		this.#update();
		this.#moveTo(index);
	}

	#moveTo(index: number): void {
		this.#cursor = Math.max(0, this.#rows.findIndex((row) => row.index === index));
	}

	#matches(node: Control.Node): boolean {
		return nodeLine(node).toLowerCase().includes(this.#search.toLowerCase());
	}

	#update(): void {
		const shown = this.#search === "" ? undefined : this.#withAncestors();
		this.#rows = [];
		const add = (index: number) => {
			const node = this.#nodes[index];
			if (!node || (shown && !shown.has(index))) return;
			const children = this.#children[index] ?? [];
			const isFolded = !shown && this.#folded.has(index);
			this.#rows.push({ node, index, depth: this.#depths[index] ?? 0, isFolded, hasChildren: children.length > 0 });
			if (!isFolded) children.forEach(add);
		};
		for (const [index, { parent }] of this.#nodes.entries()) if (parent === undefined) add(index);
		this.move(0);
	}

	#withAncestors(): Set<number> {
		const shown = new Set<number>();
		for (const [index, node] of this.#nodes.entries()) {
			if (!this.#matches(node)) continue;
			for (let at: number | undefined = index; at !== undefined; at = this.#nodes[at]?.parent) shown.add(at);
		}
		return shown;
	}
}
