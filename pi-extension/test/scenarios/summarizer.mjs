// The scripted summarizer of a scenario: rules tried in order, the first that fits answers.

export class Summarizer {
	#rules;

	constructor(rules) {
		this.#rules = rules.map((rule) => ({ ...rule, left: rule.times ?? Number.POSITIVE_INFINITY }));
	}

	/** What becomes of a request, how long it takes, and after how many further steps; no outcome: it waits for ever. */
	reply(request) {
		const rule = this.#rules.find((candidate) => fits(candidate, request));
		if (!rule) return { ...answered(defaultAnswer(request), false), delaySteps: 0 };
		rule.left--;
		return { ...this.#ruled(rule, request), delaySteps: rule.delay ?? 0 };
	}

	#ruled(rule, request) {
		const usage = rule.usage && {
			input: BigInt(rule.usage.input ?? 0),
			output: BigInt(rule.usage.output ?? 0),
			cost: rule.usage.cost ?? undefined,
		};
		const text = rule.text ?? defaultAnswer(request);
		switch (rule.fail) {
			case undefined:
				return answered(text, false, usage);
			case "empty":
				return answered("", false, usage);
			case "truncated":
				return answered(text, true, usage);
			case "error":
				return failed("transient", "error", usage);
			case "permanent":
				return failed("permanent", "permanent error", usage);
			case "abort":
				return failed("aborted", "aborted", usage);
			case "timeout":
				return afterLimits(request, usage);
			default:
				throw new Error(`a summarizer rule fails in an unknown way: ${rule.fail}`);
		}
	}
}

function fits({ kind = "batch", model, match = "", left }, request) {
	return kind === request.kind && (model === undefined || model === request.model) && left > 0 && request.prompt.includes(match);
}

function answered(text, truncated, usage) {
	return { outcome: { tag: "answered", val: { text, truncated, usage } }, tookMs: 0 };
}

function failed(kind, message, usage) {
	return { outcome: { tag: "failed", val: { kind, message, usage } }, tookMs: 0 };
}

/** Nothing arrives at all, so the first limit that is set ends the request. */
function afterLimits({ idleTimeoutMs, totalTimeoutMs }, usage) {
	const limits = [idleTimeoutMs, totalTimeoutMs].filter((limit) => limit > 0);
	if (limits.length === 0) return { outcome: undefined, tookMs: 0 };
	return { ...failed("timeout", "timeout", usage), tookMs: Math.min(...limits) };
}

function defaultAnswer({ kind, prompt }) {
	if (kind === "range") return "- fused summary";
	return `- summary of ${prompt.split("\n").filter((line) => /^\[\[\d/.test(line)).length} calls`;
}
