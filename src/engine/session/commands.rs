//! What the user can ask for.

use super::{Activity, CommandError, Session};
use crate::engine::basis::Rules;
use crate::engine::block::Validity;
use crate::engine::config::Config;
use crate::engine::entry;
use crate::engine::facts::Fact;
use crate::engine::flush::Trigger;
use crate::engine::hook::Hook;
use crate::engine::host::{Host, Notice};
use crate::engine::ids::{BlockId, Ref};

impl Session {
    /// Flushes everything that waits, whatever `pruneOn` says.
    ///
    /// # Errors
    /// Pruning is off, a flush is in progress, or nothing waits.
    pub fn flush(&mut self, hook: &mut Hook<'_>) -> Result<Activity, CommandError> {
        self.command(Trigger::Manual, hook)
    }

    /// Compresses every closed chain, whatever the rolling window says; what waits is flushed first.
    ///
    /// # Errors
    /// Pruning or chain compression is off, a flush is in progress, or there is no chain.
    pub fn compact(&mut self, hook: &mut Hook<'_>) -> Result<Activity, CommandError> {
        if self.basis.rules.config.enabled && !self.basis.rules.config.chain_compression.enabled {
            let key = "chainCompression.enabled".to_owned();
            return Err(CommandError::SwitchedOff(key));
        }
        self.command(Trigger::Compact, hook)
    }

    fn command(&mut self, trigger: Trigger, hook: &mut Hook<'_>) -> Result<Activity, CommandError> {
        self.refresh();
        if !self.basis.rules.config.enabled {
            return Err(CommandError::Disabled);
        }
        if !self.basis.rules.query_tool_offered {
            let key = "context_tree_query".to_owned();
            return Err(CommandError::SwitchedOff(key));
        }
        self.commit_if_ready(hook);
        if self.flush.is_some() {
            return Err(CommandError::Busy);
        }
        self.keep_up(hook);
        if !self.start_flush(trigger, None, hook) {
            let what = match trigger {
                Trigger::Compact => "no closed chain is left to compress",
                Trigger::Reply
                | Trigger::Interrupted
                | Trigger::Manual
                | Trigger::Budget
                | Trigger::Delta
                | Trigger::Savings
                | Trigger::Tool => "no tool output waits",
            };
            return Err(CommandError::NothingToDo(what.to_owned()));
        }
        self.report_status(hook.host);
        Ok(self.activity())
    }

    /// Takes a block (`b1`) or the batch of a ref (`t1`) back: its originals stand again, and stay.
    ///
    /// # Errors
    /// There is no such block or batch, it is out of the context already, a flush is in progress,
    /// or the log cannot be written.
    pub fn undo(&mut self, name: &str, hook: &mut Hook<'_>) -> Result<String, CommandError> {
        self.refresh();
        if self.flush.is_some() {
            return Err(CommandError::Busy);
        }
        let name = name.trim();
        if let Some(id) = BlockId::parse(name) {
            return self.undo_block(id, hook);
        }
        match Ref::parse(name) {
            Some(reference) => self.undo_batch(reference, hook),
            None => Err(CommandError::Malformed(format!(
                "`{name}`: name a block such as b1, or a ref such as t1"
            ))),
        }
    }

    fn undo_block(&mut self, id: BlockId, hook: &mut Hook<'_>) -> Result<String, CommandError> {
        let block = self.basis.facts.blocks().get(id);
        match block.map(|block| block.validity) {
            None => return Err(CommandError::NotFound(id.to_string())),
            Some(Validity::Undone | Validity::Superseded) => {
                let why = format!("{id} does not stand in the context");
                return Err(CommandError::NothingToDo(why));
            }
            Some(Validity::InForce) => {}
        }
        let undo = entry::Undo {
            block_id: Some(id.to_string()),
            ..entry::Undo::default()
        };
        self.write_undo(undo, hook)?;
        Ok(format!(
            "{id} is taken back: its turns stand in the context again"
        ))
    }

    fn undo_batch(&mut self, name: Ref, hook: &mut Hook<'_>) -> Result<String, CommandError> {
        let archive = self.basis.facts.archive();
        let Some(batch) = archive.batch_named(name) else {
            return Err(match archive.named(name) {
                Some(_) => CommandError::NothingToDo(format!("no summary covers {name}")),
                None => CommandError::NotFound(name.to_string()),
            });
        };
        let Some(known) = archive.batch(batch) else {
            return Err(CommandError::NotFound(name.to_string()));
        };
        let blocks = &self.view.layout().blocks;
        if let Some(block) = known.block.filter(|id| blocks.is_placed(*id)) {
            let why = format!("{name} is inside {block}: take {block} back first");
            return Err(CommandError::NothingToDo(why));
        }
        if known.undone {
            let why = format!("the batch of {name} has been taken back");
            return Err(CommandError::NothingToDo(why));
        }
        let records = archive.records_of(batch);
        let refs: Vec<String> = records.map(|record| record.name.to_string()).collect();
        let undo = entry::Undo {
            refs: refs.clone(),
            ..entry::Undo::default()
        };
        self.write_undo(undo, hook)?;
        Ok(format!("taken back: {}", refs.join(", ")))
    }

    fn write_undo(
        &mut self,
        mut undo: entry::Undo,
        hook: &mut Hook<'_>,
    ) -> Result<(), CommandError> {
        undo.epoch_end = Some(self.basis.end_mark());
        self.write(Fact::Undo(undo), hook.host)
            .map_err(|err| CommandError::LogFailed(err.to_string()))?;
        self.report_status(hook.host);
        Ok(())
    }

    /// Gives the flush in progress up.
    ///
    /// # Errors
    /// There is none.
    pub fn cancel(&mut self, host: &mut dyn Host) -> Result<(), CommandError> {
        if self.flush.is_none() {
            let why = "no flush is in progress".to_owned();
            return Err(CommandError::NothingToDo(why));
        }
        self.abandon_flush(host);
        self.report_status(host);
        Ok(())
    }

    /// Replaces the settings; an epoch.
    ///
    /// # Errors
    /// The text is no JSON object, or the log cannot be written.
    pub fn configure(
        &mut self,
        config: &str,
        hook: &mut Hook<'_>,
    ) -> Result<Vec<Notice>, CommandError> {
        self.refresh();
        let (config, notices) = Config::parse(config).map_err(CommandError::Malformed)?;
        if config == self.basis.rules.config {
            return Ok(notices);
        }
        let epoch = entry::Epoch {
            epoch_end: self.basis.end_mark(),
            flush: None,
        };
        self.write(Fact::Epoch(epoch), hook.host)
            .map_err(|err| CommandError::LogFailed(err.to_string()))?;
        self.basis.rules = Rules {
            query_tool_offered: self.basis.rules.query_tool_offered,
            ..Rules::new(config)
        };
        self.is_stale = true;
        self.refresh();
        self.report_status(hook.host);
        Ok(notices)
    }

    /// The settings in force, with every key.
    #[must_use]
    pub fn config(&self) -> String {
        self.basis.rules.config.to_json()
    }
}
