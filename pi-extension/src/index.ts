// pi-decant: wires pi's events to the pruner of the session. Nothing is decided here.

import { type ExtensionAPI, type ExtensionContext, buildSessionContext, getAgentDir } from "@mariozechner/pi-coding-agent";
import { matchesKey } from "@mariozechner/pi-tui";
import { registerCommands } from "./commands.ts";
import type { HostMessage } from "./convert.ts";
import type { Run } from "./host.ts";
import type { SessionManager } from "./log.ts";
import type { ModelRegistry } from "./models.ts";
import { PrunerSession } from "./session.ts";
import { Settings, SettingsError } from "./settings.ts";
import { PiSurface } from "./surface.ts";
import { Tools } from "./tools.ts";

export default function decant(pi: ExtensionAPI): void {
	const surface = new PiSurface(pi);
	const settings = new Settings(getAgentDir());
	let session: PrunerSession | undefined;
	const tools = new Tools(pi, () => session);
	const runOf = (ctx: ExtensionContext): Run => ({
		signal: ctx.signal,
		usage: () => ctx.getContextUsage(),
		isQueryOffered: () => tools.isQueryOffered(),
	});

	pi.on("session_start", (_event, ctx) => {
		surface.use(ctx);
		session?.close();
		session = openSession(ctx, surface, settings);
		session.start();
		tools.update();
	});
	pi.on("session_tree", (_event, ctx) => {
		surface.use(ctx);
		session?.start();
	});
	pi.on("context", async (event, ctx) => {
		surface.use(ctx);
		const messages = await session?.context(event.messages as HostMessage[], runOf(ctx));
		return messages ? { messages: messages as typeof event.messages } : undefined;
	});
	pi.on("message_end", async (event, ctx) => {
		surface.use(ctx);
		const escape = listenForEscape(ctx);
		await session?.replied(event.message as HostMessage, { ...runOf(ctx), signal: escape.signal });
		escape.stop();
	});
	pi.on("agent_end", () => session?.settled());
	pi.on("model_select", () => session?.modelChanged());
	pi.on("session_shutdown", async (_event, ctx) => {
		// Without a screen nobody waits but the shell: a flush that was begun is finished.
		if (!ctx.hasUI) await session?.finish();
		session?.close();
		session = undefined;
	});
	registerCommands(pi, { session: () => session, surface, settings, tools });
}

/** Where pi has no run left that could be aborted (before 0.75), Esc ends what the user waits for all the same. */
function listenForEscape(ctx: ExtensionContext): { signal: AbortSignal | undefined; stop(): void } {
	if (ctx.signal || !ctx.hasUI) return { signal: ctx.signal, stop: () => {} };
	const abort = new AbortController();
	const stop = ctx.ui.onTerminalInput((data) => {
		if (matchesKey(data, "escape")) abort.abort();
		return undefined;
	});
	return { signal: abort.signal, stop };
}

/** A session's manager is taken once: a context that pi takes back later cannot be asked for it. */
function openSession(ctx: ExtensionContext, surface: PiSurface, settings: Settings): PrunerSession {
	const manager = ctx.sessionManager as unknown as SessionManager;
	return new PrunerSession({
		manager,
		models: () => ({ registry: ctx.modelRegistry as unknown as ModelRegistry, session: ctx.model }),
		surface,
		config: () => readConfig(settings, surface),
		transcript: () => transcriptOf(manager),
		isBusy: () => isBusy(ctx),
	});
}

function readConfig(settings: Settings, surface: PiSurface): string {
	try {
		return settings.read();
	} catch (error) {
		if (!(error instanceof SettingsError)) throw error;
		surface.notify({ level: "warning", text: `${error.message} Decant uses its defaults.` });
		return "{}";
	}
}

function transcriptOf(manager: SessionManager): HostMessage[] {
	const entries = manager.getEntries() as Parameters<typeof buildSessionContext>[0];
	const { messages } = manager.buildSessionProjection?.() ?? buildSessionContext(entries, manager.getLeafId());
	return (messages as HostMessage[]).filter(({ role }) => role !== "system");
}

function isBusy(ctx: ExtensionContext): boolean {
	try {
		return !ctx.isIdle();
	} catch {
		return false;
	}
}
