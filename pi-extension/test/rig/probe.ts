// Commands for what pi's RPC protocol has no verb for, and ways to make the session file fail:
//   /rig-tree N    move to the Nth user message of the tree (0-based)
//   /rig-entry     append a custom entry
// RIG_KILL_AFTER=N      the process kills itself right after the Nth entry of the pruner was written
// RIG_FULL_AFTER=N      from the Nth entry of the pruner on the disk is full
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function probe(pi: ExtensionAPI) {
	pi.registerCommand("rig-tree", {
		description: "Move to the Nth user message",
		handler: async (args, ctx) => {
			const users = ctx.sessionManager.getEntries().filter((entry) => entry.type === "message" && entry.message.role === "user");
			const target = users[Number(args)];
			if (target) await ctx.navigateTree(target.id, { summarize: false });
		},
	});
	pi.registerCommand("rig-entry", { description: "Append a custom entry", handler: async (args) => pi.appendEntry("rig-entry", { args }) });
	const killAfter = Number(process.env.RIG_KILL_AFTER ?? 0);
	const fullAfter = Number(process.env.RIG_FULL_AFTER ?? 0);
	if (killAfter > 0 || fullAfter > 0) pi.on("session_start", (_event, ctx) => sabotage(ctx.sessionManager, killAfter, fullAfter));
}

function sabotage(manager: any, killAfter: number, fullAfter: number) {
	if (manager.rigSabotaged) return;
	manager.rigSabotaged = true;
	let written = 0;
	for (const name of ["appendCustomEntry", "appendCustomMessageEntry"]) {
		const append = manager[name].bind(manager);
		manager[name] = (kind: string, ...rest: unknown[]) => {
			if (!kind.startsWith("context-prune-")) return append(kind, ...rest);
			written++;
			if (fullAfter > 0 && written >= fullAfter) return withFullDisk(manager, () => append(kind, ...rest));
			const id = append(kind, ...rest);
			if (written === killAfter) process.kill(process.pid, "SIGKILL");
			return id;
		};
	}
}

/** pi's own way of failing, with whatever it leaves behind in memory. */
function withFullDisk(manager: any, append: () => string) {
	const persist = manager._persist;
	manager._persist = () => {
		throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
	};
	try {
		return append();
	} finally {
		manager._persist = persist;
	}
}
