// The tools that the model is offered, as the pruner describes them.

import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import type { Query } from "./component.ts";
import type { PrunerSession } from "./session.ts";

export const QUERY_TOOL = "context_tree_query";

/** Registers what the pruner offers, and takes back what it no longer does. */
export class Tools {
	readonly #pi: ExtensionAPI;
	readonly #session: () => PrunerSession | undefined;
	#offered = new Map<string, string>();

	constructor(pi: ExtensionAPI, session: () => PrunerSession | undefined) {
		this.#pi = pi;
		this.#session = session;
	}

	/** Whether the model can ask for originals. */
	isQueryOffered(): boolean {
		try {
			return this.#pi.getActiveTools().includes(QUERY_TOOL);
		} catch {
			return true;
		}
	}

	/** Brings pi's list in line with the pruner's. */
	update(): void {
		const tools = this.#session()?.peek((pruner) => pruner.query.tools());
		if (!tools) return;
		const gone = [...this.#offered.keys()].filter((name) => !tools.some((tool) => tool.name === name));
		if (gone.length > 0) this.#pi.setActiveTools(this.#pi.getActiveTools().filter((name) => !gone.includes(name)));
		for (const name of gone) this.#offered.delete(name);
		for (const tool of tools) this.#register(tool);
	}

	#register(tool: Query.Tool): void {
		const description = JSON.stringify(tool);
		if (this.#offered.get(tool.name) === description) return;
		this.#offered.set(tool.name, description);
		this.#pi.registerTool({
			name: tool.name,
			label: tool.name.replaceAll("_", " "),
			description: tool.description,
			parameters: JSON.parse(tool.parameters),
			execute: async (_id, params) => this.#answer(tool.name, params),
		});
	}

	#answer(name: string, params: unknown) {
		const session = this.#session();
		if (!session) throw new Error("There is no session to ask.");
		const { text, isError, parts } = session.query(name, params);
		if (isError) throw new Error(text);
		return { content: [{ type: "text" as const, text }, ...parts], details: {} };
	}
}
