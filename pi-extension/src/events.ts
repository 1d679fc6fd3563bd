// What has happened since the last model call, read off the messages: the one account that both lines of pi give in time.

import { type HostMessage, isFinalReply } from "./convert.ts";

export interface News {
	/** A final reply that nobody has reported yet. */
	reply: HostMessage | undefined;
	/** Whether tools have returned. */
	hasResults: boolean;
}

/**
 * `first` is the first message that is new; `reported` holds the timestamps of replies that were reported as they
 * came. Where everything is new the session has just been loaded, and its old replies are no news.
 */
export function newsOf(messages: readonly HostMessage[], first: number, reported: ReadonlySet<number>): News {
	const fresh = messages.slice(first);
	const isUnreported = (message: HostMessage) => isFinalReply(message) && !reported.has(message.timestamp);
	return {
		reply: first > 0 ? fresh.findLast(isUnreported) : undefined,
		hasResults: fresh.some(({ role }) => role === "toolResult"),
	};
}
