//! What the agent and its tools put into the transcript.

use decant::engine::entry::SUMMARY;
use decant::engine::message::{Message, Opaque, Part, Role, StopReason, ToolCall};
use decant::engine::session::Usage;
use serde_json::json;

use super::{Stop, World};
use crate::invariants::host::{Item, hold};
use crate::invariants::script::{Call, CallId, Fate, Foreign, Reply, Turn};
use crate::invariants::texts;

const TOOLS: [&str; 6] = [
    "bash",
    "read",
    "grep",
    "edit",
    "mcp__x__y",
    "odd \"tool\"]]",
];

impl World {
    pub(super) fn push_role(&mut self, role: Role, content: Vec<Part>) {
        let at_ms = self.now;
        self.push(Message {
            role,
            content,
            at_ms,
        });
    }

    pub(super) fn push(&mut self, message: Message) {
        self.now = self.now.max(message.at_ms) + 1;
        let item = Item::Message(message.clone());
        hold(&self.host).disk.items.push(item);
        self.transcript.push(message);
        if self.kind.syncs_at_once {
            self.tell();
        }
    }

    pub(super) fn call_id(&mut self, id: CallId) -> String {
        match id {
            CallId::Fresh => {
                self.calls += 1;
                format!("call_{}", self.calls)
            }
            CallId::Reused(n) => {
                ["c0", "c1", "t1", "b1", "c/2", "c_2"][usize::from(n) % 6].to_owned()
            }
        }
    }

    pub(super) fn result(
        &self,
        id: &str,
        tool: &str,
        text: String,
        is_error: bool,
        has_image: bool,
    ) -> Message {
        let mut content = Vec::new();
        if has_image {
            content.push(Part::Opaque(Opaque {
                kind: "image".to_owned(),
                chars: 900,
            }));
        }
        if !text.is_empty() || !has_image {
            content.push(Part::Text(text));
        }
        Message {
            role: Role::ToolResult {
                call_id: id.to_owned(),
                tool: tool.to_owned(),
                is_error,
            },
            content,
            at_ms: self.now,
        }
    }

    pub(super) fn turn(&mut self, turn: &Turn) -> Result<(), Stop> {
        self.model_call()?;
        let mut content = Vec::new();
        if turn.thinking > 0 {
            content.push(Part::Thinking(turn.thinking));
        }
        if turn.has_encrypted_reasoning {
            content.push(Part::Opaque(Opaque {
                kind: "reasoning".to_owned(),
                chars: 30,
            }));
        }
        if let Some(words) = turn.words {
            content.push(Part::Text(texts::output(words)));
        }
        let mut calls: Vec<(String, &Call)> = Vec::new();
        for call in &turn.calls {
            let id = self.call_id(call.id);
            content.push(Part::ToolCall(ToolCall {
                id: id.clone(),
                name: TOOLS[usize::from(call.tool) % TOOLS.len()].to_owned(),
                arguments: texts::arguments(call.arguments),
            }));
            calls.push((id, call));
        }
        self.push_role(Role::Assistant { stop: turn.stop }, content);
        if turn.is_reversed {
            calls.reverse();
        }
        self.results(turn, &calls);
        for _ in 0..turn.ends {
            let usage = turn.tokens.map(|tokens| Usage {
                tokens: (tokens % 7 != 0).then_some(u64::from(tokens)),
                context_window: 200_000,
            });
            self.turn_end(usage)?;
        }
        Ok(())
    }

    pub(super) fn results(&mut self, turn: &Turn, calls: &[(String, &Call)]) {
        let began = self.now;
        for (n_returned, (id, call)) in calls.iter().enumerate() {
            if let Some((foreign, behind)) = turn.foreign
                && usize::from(behind) == n_returned
            {
                self.foreign(foreign);
            }
            let tool = TOOLS[usize::from(call.tool) % TOOLS.len()];
            let text = texts::output(call.output);
            let mut message = self.result(id, tool, text, call.is_error, call.has_image);
            match call.fate {
                Fate::Returned => {
                    if turn.is_simultaneous {
                        message.at_ms = began;
                    }
                    self.push(message);
                }
                Fate::HeldBack => self.held.push(message),
                Fate::Lost => {}
            }
        }
    }

    pub(super) fn late(&mut self, which: u8) {
        if self.held.is_empty() {
            return;
        }
        let at = usize::from(which) % self.held.len();
        let mut message = self.held.remove(at);
        message.at_ms = self.now;
        self.push(message);
    }

    pub(super) fn foreign(&mut self, foreign: Foreign) {
        let content = vec![Part::Text("a word from elsewhere".to_owned())];
        let custom = |kind: &str, details: &str| Role::Custom {
            kind: kind.to_owned(),
            details: details.to_owned(),
        };
        let other = |role: &str| Role::Other {
            role: role.to_owned(),
        };
        let role = match foreign {
            Foreign::Custom => custom("notice", ""),
            Foreign::Bash => other("bashExecution"),
            Foreign::BranchSummary => other("branchSummary"),
            Foreign::Other => other("anything"),
            Foreign::StraySummary(n) => {
                let reference = format!("t{}", n % 8);
                let details =
                    json!({ "toolCallRefs": [{ "shortId": reference, "toolCallId": "c0" }] });
                custom(SUMMARY, &details.to_string())
            }
            Foreign::SameTime => Role::User,
        };
        let at_ms = match foreign {
            Foreign::SameTime => self.transcript.last().map_or(self.now, |last| last.at_ms),
            _ => self.now,
        };
        self.push(Message {
            role,
            content,
            at_ms,
        });
    }

    pub(super) fn reply(&mut self, reply: &Reply) -> Result<(), Stop> {
        self.model_call()?;
        let mut content = Vec::new();
        if reply.thinking > 0 {
            content.push(Part::Thinking(reply.thinking));
        }
        content.push(Part::Text(texts::output(reply.words)));
        let message = Message {
            role: Role::Assistant { stop: reply.stop },
            content,
            at_ms: self.now,
        };
        self.now += 1;
        let ends = reply.stop == StopReason::Stop;
        if ends && reply.is_early {
            self.reply_end(Some(message.at_ms))?;
            self.push(message);
        } else {
            self.push(message);
            if ends {
                self.reply_end(None)?;
            } else {
                self.turn_end(None)?;
            }
        }
        Ok(())
    }

    // Hooks.

    pub(super) fn turn_end(&mut self, usage: Option<Usage>) -> Result<(), Stop> {
        self.tell();
        self.is_blocked = self.lane.turn_end(usage, self.now);
        self.after_hook()
    }

    pub(super) fn reply_end(&mut self, closing_at: Option<u64>) -> Result<(), Stop> {
        self.tell();
        self.is_blocked = self.lane.reply_end(closing_at, self.now);
        self.after_hook()
    }

    // The model's tools.

    pub(super) fn query(&mut self, n: u8) -> Result<(), Stop> {
        let arguments = match n {
            7 => json!({ "toolCallIds": ["b1"], "limit": 5 }),
            6 => json!({ "toolCallIds": ["t1", "t2"], "pattern": "a" }),
            _ => json!({ "toolCallIds": [format!("t{}", n + 1)] }),
        };
        self.own_call("context_tree_query", &arguments.to_string())
    }

    pub(super) fn own_call(&mut self, tool: &str, arguments: &str) -> Result<(), Stop> {
        self.model_call()?;
        let id = self.call_id(CallId::Fresh);
        let call = Part::ToolCall(ToolCall {
            id: id.clone(),
            name: tool.to_owned(),
            arguments: arguments.to_owned(),
        });
        let stop = StopReason::ToolUse;
        self.push_role(Role::Assistant { stop }, vec![call]);
        self.tell();
        let text = self.lane.call(tool, arguments, self.now);
        self.after_hook()?;
        let message = self.result(&id, tool, text, false, false);
        self.push(message);
        self.turn_end(None)
    }

    pub(super) fn unreadable(&mut self) -> Result<(), Stop> {
        self.tell();
        hold(&self.host).reads_fail = true;
        // A hook that is called whether or not anything is checked: edits get their ids at hooks.
        self.lane
            .call("context_tree_query", r#"{"toolCallIds":["t1"]}"#, self.now);
        let checked = match &self.watch {
            Some(watch) => watch.check_unreadable(&mut *self.lane, self.now),
            None => Ok(()),
        };
        hold(&self.host).reads_fail = false;
        checked?;
        self.after_hook()
    }
}
