// Short scripts: prompts whose tools print enough to be worth a summary.

/** A tool call that prints `lines` numbered lines. */
export const seq = (word, lines = 200) => ({ name: "bash", args: { command: `seq 1 ${lines} | sed 's/^/${word} /'` } });

/** A prompt with one tool turn for each word, and a final reply. */
export const prompt = (words, more = {}) => ({
	prompt: `do ${words.join(", ")}`,
	turns: [...words.map((word) => ({ thinking: `About ${word}.`, tools: [seq(word)] })), { text: `${words.join(", ")} done` }],
	...more,
});

export const command = (text, more = {}) => ({ prompt: `/pruner ${text}`, ...more });

export const script = (steps, contextPrune = {}, more = {}) => ({
	...more,
	settings: { compaction: { enabled: false, keepRecentTokens: 300 }, contextPrune: { minBatchChars: 100, ...contextPrune }, ...more.settings },
	steps,
});
