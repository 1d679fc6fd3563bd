// Which model answers a summary request, and how it is asked: through pi's own model registry.

import * as ai from "@mariozechner/pi-ai";
import type { Lifecycle, Summarizer } from "./component.ts";

/** The part of pi's models, registry and streams that is used here; the same on both lines of pi. */
export interface Model {
	id: string;
	provider: string;
	name?: string;
	reasoning?: boolean;
}

export interface ModelRegistry {
	find(provider: string, id: string): Model | undefined;
	getAvailable(): Model[];
	getApiKeyAndHeaders(model: Model): Promise<{ ok: boolean; apiKey?: string; headers?: Record<string, string>; error?: string }>;
	/** From pi 0.86 on: resolves keys, base URLs and providers that extensions have registered. */
	streamSimple?: StreamSimple;
}

interface StreamOptions {
	signal: AbortSignal;
	reasoning?: string;
	apiKey?: string;
	headers?: Record<string, string>;
}

interface Prompt {
	messages: { role: "user"; content: { type: "text"; text: string }[]; timestamp: number }[];
}

export interface StreamEvent {
	type: string;
	delta?: string;
}

/** The assistant message at the end of a stream. */
export interface ModelResponse {
	content: { type: string; text?: string }[];
	stopReason: string;
	errorMessage?: string;
	usage?: { input: number; output: number; cacheRead?: number; cacheWrite?: number; cost?: { total?: number } };
}

export interface ResponseStream extends AsyncIterable<StreamEvent> {
	result(): Promise<ModelResponse>;
}

type StreamSimple = (model: Model, prompt: Prompt, options: StreamOptions) => ResponseStream;

/** A request that no model can be asked: it will not work at another time either. */
export class NoModel extends Error {}

/** The model that `request` names. */
export function resolveModel(request: Summarizer.Request, registry: ModelRegistry, session: Model | undefined): Model {
	if (request.model === "session" || request.modelName === "" || request.modelName === "default") {
		if (!session) throw new NoModel("no model is selected in this session");
		return session;
	}
	const slash = request.modelName.indexOf("/");
	const model = registry.find(request.modelName.slice(0, slash), request.modelName.slice(slash + 1));
	if (!model) throw new NoModel(`pi knows no model ${request.modelName}; choose one with /pruner model`);
	return model;
}

/** Sends `prompt` as one user message, with no tools and no system prompt. */
export async function ask(model: Model, request: Summarizer.Request, registry: ModelRegistry, signal: AbortSignal): Promise<ResponseStream> {
	const prompt: Prompt = { messages: [{ role: "user", content: [{ type: "text", text: request.prompt }], timestamp: Date.now() }] };
	const options: StreamOptions = { signal, ...reasoning(request.thinking) };
	if (registry.streamSimple) return registry.streamSimple(model, prompt, options);
	const auth = await registry.getApiKeyAndHeaders(model);
	if (!auth.ok) throw new NoModel(auth.error ?? `no key for ${model.provider}/${model.id}`);
	const stream = ai.streamSimple as unknown as StreamSimple;
	return stream(model, prompt, { ...options, apiKey: auth.apiKey, headers: auth.headers });
}

/** pi has no level for "off": a request without one does not think. */
function reasoning(thinking: string): { reasoning?: string } {
	return thinking === "default" || thinking === "off" || thinking === "" ? {} : { reasoning: thinking };
}

/** What a response means for the pruner. */
export function outcomeOf(response: ModelResponse): Lifecycle.Outcome {
	const usage = usageOf(response);
	if (response.stopReason === "error" || response.stopReason === "aborted") {
		const message = response.errorMessage ?? response.stopReason;
		const kind = response.stopReason === "aborted" ? "aborted" : failureKind(message);
		return { tag: "failed", val: { kind, message, usage } };
	}
	const text = response.content.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("");
	return { tag: "answered", val: { text, truncated: response.stopReason === "length", usage } };
}

function usageOf({ usage }: ModelResponse): Lifecycle.JobUsage | undefined {
	if (!usage) return undefined;
	const input = usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
	return { input: count(input), output: count(usage.output), cost: usage.cost?.total };
}

function count(tokens: number): bigint {
	return Number.isFinite(tokens) && tokens > 0 ? BigInt(Math.round(tokens)) : 0n;
}

/**
 * Providers say in words why they failed. What is certain not to work again is permanent; everything else may be
 * worth another try on another model.
 */
export function failureKind(message: string): Lifecycle.FailureKind {
	if (/\b(429|5\d\d)\b|overloaded|rate.?limit|too many requests/i.test(message)) return "transient";
	const permanent = /\b(400|401|402|403|404|413|422)\b|api.?key|unauthori[sz]ed|forbidden|not.?found|invalid|permission|billing/i;
	return permanent.test(message) ? "permanent" : "transient";
}
