//! What has become due by the epoch: the purge of arguments, the stripping of thinking, the end of a
//! recovery's grace.

use super::Basis;
use crate::engine::config::CachePolicy;
use crate::engine::transcript::{ChainEnd, Position};

impl Basis {
    #[must_use]
    pub fn strips_thinking(&self, at: Position) -> bool {
        let settings = &self.rules.config.thinking_strip;
        settings.enabled
            && at < self.thinking_limit()
            && self.transcript.assistants_between(at, self.epoch.end)
                > settings.keep_last_turns as usize
    }

    /// Thinking of an open tool cycle is left alone under `stable`: providers reject a cycle that
    /// has lost some of it, or bill it anew.
    fn thinking_limit(&self) -> Position {
        let end = self.epoch.end;
        match self.rules.config.cache_policy {
            CachePolicy::Live => end,
            CachePolicy::Stable => self.open_cycle_start(end).min(end),
        }
    }

    /// Where the tool cycle begins that is open at a position, with its first turn; the position
    /// itself if none is. Nothing that comes behind the position changes the answer.
    #[must_use]
    pub fn open_cycle_start(&self, at: Position) -> Position {
        let last = self.transcript.chain_before(at);
        let Some(chain) = last.and_then(|id| self.transcript.chain(id)) else {
            return at;
        };
        match chain.end {
            ChainEnd::Closed(reply) if reply < at => at,
            ChainEnd::Interrupted(next) if next < at => at,
            ChainEnd::Closed(_) | ChainEnd::Open | ChainEnd::Interrupted(_) => {
                chain.first_turn().map_or(at, |first| first.min(at))
            }
        }
    }

    #[must_use]
    pub fn is_purge_due(&self, at: Position) -> bool {
        let settings = &self.rules.config.purge_errors;
        settings.enabled
            && self.transcript.assistants_between(at + 1, self.epoch.end)
                >= settings.cooldown_turns as usize
            && at < self.epoch.end
    }

    /// Whether nothing that is not in a record yet holds up the purge of a message's failed calls.
    #[must_use]
    pub fn can_purge_all(&self, at: Position) -> bool {
        let least = u64::from(self.rules.config.purge_errors.min_arg_chars);
        let calls = self.transcript.assistant(at).map(|turn| &turn.calls);
        calls.into_iter().flatten().all(|call| {
            let result = call.result.filter(|_| call.arguments_size.chars >= least);
            result.is_none_or(|at| {
                let result = self.transcript.result(at);
                result.is_some_and(|result| !result.is_error || result.ambiguous)
                    || self.is_put_away(at)
            })
        })
    }

    /// Whether a result is in a record that counts since the last epoch.
    #[must_use]
    pub fn is_put_away(&self, at: Position) -> bool {
        let member = self.member_at(at);
        at < self.epoch.end && member.is_some_and(|member| self.is_shown(member))
    }

    /// Whether an output of `context_tree_query` has to stand as it is.
    #[must_use]
    pub fn is_in_grace(&self, at: Position) -> bool {
        self.is_in_grace_until(at, self.epoch.end, self.epoch.is_closed)
    }

    /// The same if there were an epoch now.
    #[must_use]
    pub fn is_recovered_fresh(&self, at: Position) -> bool {
        self.is_in_grace_until(at, self.transcript.len(), self.is_user_turn_over())
    }

    /// The user turn in which an output was recovered counts as the first of its grace, and is never
    /// cut short. A turn is over with the final reply, or when the next prompt is there.
    fn is_in_grace_until(&self, at: Position, end: Position, is_closed: bool) -> bool {
        let grace = self.rules.config.recovery_grace_turns.max(1) as usize;
        at >= end || self.transcript.users_between(at, end) + usize::from(is_closed) < grace
    }

    /// Whether an assistant message has cooled down, so that the arguments of its failed calls could
    /// go if there were an epoch now.
    #[must_use]
    pub fn has_cooled_down(&self, at: Position) -> bool {
        let settings = &self.rules.config.purge_errors;
        let len = self.transcript.len();
        settings.enabled
            && self.transcript.assistants_between(at + 1, len) >= settings.cooldown_turns as usize
    }
}

impl Basis {
    /// Results in no record of the failed calls of an assistant message whose arguments are large.
    #[must_use]
    pub fn failed_calls(&self, assistant: Position) -> Vec<Position> {
        let least = u64::from(self.rules.config.purge_errors.min_arg_chars);
        let turn = self.transcript.assistant(assistant);
        turn.iter()
            .flat_map(|turn| &turn.calls)
            .filter(|call| call.arguments_size.chars >= least)
            .filter_map(|call| call.result)
            .filter(|at| {
                let result = self.transcript.result(*at);
                result.is_some_and(|result| result.is_error && !result.ambiguous)
            })
            .filter(|at| self.member_at(*at).is_none())
            .collect()
    }
}
