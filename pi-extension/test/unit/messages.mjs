// Messages as pi hands them out, for the unit tests.

export const text = (value) => ({ type: "text", text: value });
export const call = (id, args = { n: id }) => ({ type: "toolCall", id, name: "bash", arguments: args });
export const user = (at, words = "go") => ({ role: "user", content: [text(words)], timestamp: at });
export const assistant = (at, content, stopReason = "toolUse") => ({ role: "assistant", content, stopReason, timestamp: at });
export const result = (id, at, words = `output of ${id}`, more = {}) => ({
	role: "toolResult",
	toolCallId: id,
	toolName: "bash",
	content: [text(words)],
	isError: false,
	timestamp: at,
	...more,
});
export const image = { type: "image", data: "AAAA", mimeType: "image/png" };
