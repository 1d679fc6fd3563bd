//! The tools that the model calls: `context_tree_query`, and the compress tool.

use super::Session;
use crate::engine::entry;
use crate::engine::facts::{Alias, Member, Record};
use crate::engine::flush::texts_of_block;
use crate::engine::hook::Hook;
use crate::engine::host::{Host, HostError};
use crate::engine::ids::{BlockId, OccurrenceKey, Ref};
use crate::engine::query::names::{Name, resolve_spelling};
use crate::engine::query::{self, Found, Request};

/// The name of the tool that compresses a finished sub-task.
const COMPRESS_TOOL: &str = "context_compress";

/// A tool to offer to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// A JSON schema.
    pub parameters: String,
}

/// What a tool call is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    pub is_error: bool,
    /// Occurrences whose non-text parts the host should attach.
    pub attachments: Vec<OccurrenceKey>,
}

impl Answer {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_error: false,
            attachments: Vec::new(),
        }
    }

    fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::new(text)
        }
    }
}

impl Session {
    /// The tools to offer under the present settings.
    #[must_use]
    pub fn tools(&self) -> Vec<Tool> {
        let (name, description, parameters) = query::tool_definition();
        let mut tools = vec![Tool {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: parameters.to_owned(),
        }];
        if self.basis.rules.config.compress_tool {
            tools.push(Tool {
                name: COMPRESS_TOOL.to_owned(),
                description: "Call this when a sub-task is done: its finished turns are put away \
                              under a summary. Their outputs stay available through \
                              context_tree_query."
                    .to_owned(),
                parameters: r#"{"type":"object","properties":{}}"#.to_owned(),
            });
        }
        tools
    }

    /// Answers a call of one of these tools.
    pub fn call(&mut self, tool: &str, arguments: &str, hook: &mut Hook<'_>) -> Answer {
        self.refresh();
        match tool {
            query::TOOL_NAME => match Request::parse(arguments) {
                Ok(request) => self.query(&request, hook.host),
                Err(why) => Answer::error(why),
            },
            COMPRESS_TOOL if self.basis.rules.config.compress_tool => {
                if !self.basis.rules.may_replace()
                    || !self.basis.rules.config.chain_compression.enabled
                {
                    return Answer::error("context compression is switched off");
                }
                self.budget.compress_asked = true;
                Answer::new("The finished turns are compressed when this turn ends.")
            }
            _ => Answer::error(format!("there is no tool `{tool}` here")),
        }
    }

    fn query(&self, request: &Request, host: &mut dyn Host) -> Answer {
        let mut answers: Vec<String> = Vec::new();
        let mut attachments = Vec::new();
        let knows_id = |id: &str| self.basis.facts.archive().members_of(id).next().is_some();
        for written in &request.names {
            for name in resolve_spelling(written, &knows_id) {
                self.answer_name(&name, request, host, &mut answers, &mut attachments);
            }
        }
        Answer {
            text: query::join(&answers),
            is_error: false,
            attachments,
        }
    }

    fn answer_name(
        &self,
        name: &Name,
        request: &Request,
        host: &mut dyn Host,
        answers: &mut Vec<String>,
        attachments: &mut Vec<OccurrenceKey>,
    ) {
        let title = title_of(name);
        let members: Vec<Member> = match name {
            Name::Ref(name) => self
                .basis
                .facts
                .archive()
                .named(*name)
                .map(Member::Record)
                .into_iter()
                .collect(),
            Name::Id(id) => self.basis.facts.archive().members_of(id).collect(),
            Name::Occurrence(key) => self.basis.facts.archive().member(key).into_iter().collect(),
            Name::Block(id) => {
                answers.push(self.answer_block(*id, request, host));
                return;
            }
        };
        if members.is_empty() {
            answers.push(query::not_found(&title, &self.known_names()));
            return;
        }
        let is_shared = members.len() > 1;
        for member in members {
            let title = match self.basis.facts.archive().key_of(member) {
                Some(key) if is_shared => key.to_string(),
                Some(_) | None => title.clone(),
            };
            answers.push(self.answer_member(&title, member, request, host));
            let has_other_parts = self
                .basis
                .facts
                .archive()
                .original(member)
                .is_some_and(|record| record.has_other_parts);
            if let Some(key) = self
                .basis
                .facts
                .archive()
                .key_of(member)
                .filter(|_| has_other_parts)
            {
                attachments.push(key.clone());
            }
        }
    }

    /// Which refs there are, in words for the model.
    fn known_names(&self) -> String {
        match self.basis.facts.archive().last_named() {
            Some(Ref(1)) => "t1".to_owned(),
            Some(last) => format!("t1..{last}"),
            None => String::new(),
        }
    }

    fn answer_member(
        &self,
        title: &str,
        member: Member,
        request: &Request,
        host: &mut dyn Host,
    ) -> String {
        let Some(record) = self.basis.facts.archive().original(member) else {
            return query::not_found(title, &self.known_names());
        };
        let alias = match member {
            Member::Alias(index) => self.basis.facts.archive().alias(index),
            Member::Record(_) => None,
        };
        let original = read_record(record, host);
        let own = alias.and_then(|alias| read_alias(alias, host));
        let mut notes: Vec<String> = Vec::new();
        let text = match (alias, &own) {
            (Some(alias), Some(own)) if alias.has_own_text => own.result_text.clone(),
            _ => match &original {
                Ok(stored) => stored.text.clone(),
                Err(lost) => {
                    notes.push(lost.note.clone());
                    lost.preview.clone()
                }
            },
        };
        let stored_arguments = match &original {
            Ok(stored) => stored.arguments.clone(),
            Err(lost) => lost.arguments.clone(),
        };
        let arguments = own.map_or(stored_arguments, |own| own.args.get().to_owned());
        let found = Found {
            title,
            tool: &record.tool,
            arguments: &arguments,
            is_error: alias.map_or(record.is_error, |alias| alias.is_error),
            turn: alias.map_or(record.turn_index, |alias| alias.turn_index),
            text: &text,
            notes: &notes,
        };
        query::render(&found, request)
    }

    /// The text of an archived result as the tool returned it.
    pub(super) fn original_text(
        &self,
        member: Member,
        host: &mut dyn Host,
    ) -> Result<String, HostError> {
        let archive = self.basis.facts.archive();
        if let Member::Alias(id) = member
            && let Some(alias) = archive.alias(id).filter(|alias| alias.has_own_text)
        {
            let own = read_alias(alias, host).ok_or(HostError::NotFound)?;
            return Ok(own.result_text);
        }
        let record = archive.original(member).ok_or(HostError::NotFound)?;
        match &record.stored.blob {
            Some(blob) => host.read_blob(&blob.name),
            None => read_call(record, host).map(|call| call.result_text),
        }
    }

    /// A block answers with what its dropped messages said, and names what its calls returned.
    fn answer_block(&self, id: BlockId, request: &Request, host: &mut dyn Host) -> String {
        let Some(block) = self.basis.facts.blocks().get(id) else {
            return query::not_found(&id.to_string(), &self.known_names());
        };
        let mut text = block.body.clone();
        for said in texts_of_block(&self.basis, id, host) {
            text.push_str(&format!("\n\n[Turn {}]\n{}", said.turn_index, said.text));
        }
        let refs: Vec<String> = block.refs.iter().map(ToString::to_string).collect();
        let notes = vec![format!("Tool outputs of this block: {}", refs.join(", "))];
        let found = Found {
            title: &id.to_string(),
            tool: "compressed chain",
            arguments: "",
            is_error: false,
            turn: block
                .refs
                .first()
                .and_then(|name| {
                    self.basis
                        .facts
                        .archive()
                        .record(self.basis.facts.archive().named(*name)?)
                })
                .map_or(0, |record| record.turn_index),
            text: &text,
            notes: &notes,
        };
        query::render(&found, request)
    }
}

fn title_of(name: &Name) -> String {
    match name {
        Name::Ref(name) => name.to_string(),
        Name::Block(id) => id.to_string(),
        Name::Id(id) => id.clone(),
        Name::Occurrence(key) => key.to_string(),
    }
}

/// What the log and the blobs hold of a record.
struct StoredText {
    text: String,
    arguments: String,
}

/// A text that cannot be read, and what there is instead.
struct Lost {
    note: String,
    preview: String,
    arguments: String,
}

fn read_record(record: &Record, host: &mut dyn Host) -> Result<StoredText, Lost> {
    let call = read_call(record, host).map_err(|err| Lost {
        note: format!("The original cannot be read from the session log: {err}"),
        preview: String::new(),
        arguments: String::new(),
    })?;
    let arguments = call.args.get().to_owned();
    let Some(blob) = &record.stored.blob else {
        return Ok(StoredText {
            text: call.result_text,
            arguments,
        });
    };
    match host.read_blob(&blob.name) {
        Ok(text) => Ok(StoredText { text, arguments }),
        Err(err) => Err(Lost {
            note: format!(
                "Only the head of {} bytes is left, the spilled original cannot be read at {}: {err}",
                blob.bytes, blob.location
            ),
            preview: call.result_preview.unwrap_or_default(),
            arguments,
        }),
    }
}

fn read_call(record: &Record, host: &mut dyn Host) -> Result<entry::IndexCall, HostError> {
    let data = host.read(&record.stored.entry)?;
    let index: entry::Index = serde_json::from_str(&data)
        .map_err(|err| HostError::Failed(format!("the entry is damaged: {err}")))?;
    index
        .tool_calls
        .into_iter()
        .nth(record.stored.call)
        .filter(|call| call.tool_call_id == record.key.call_id)
        .ok_or(HostError::NotFound)
}

fn read_alias(alias: &Alias, host: &mut dyn Host) -> Option<entry::IndexCall> {
    let data = host.read(&alias.entry).ok()?;
    let alias: entry::Alias = serde_json::from_str(&data).ok()?;
    alias.own
}
