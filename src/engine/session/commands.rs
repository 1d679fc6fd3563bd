//! What the user can ask for.

use super::flush::Trigger;
use super::{Activity, CommandError, Session};
use crate::engine::block::State;
use crate::engine::config::Config;
use crate::engine::entry;
use crate::engine::host::{Host, Notice};
use crate::engine::ids::{BlockId, Ref};
use crate::engine::protect::Protection;

impl Session {
    /// Flushes everything that waits, whatever `pruneOn` says.
    ///
    /// # Errors
    /// Pruning is off, a flush is in progress, or nothing waits.
    pub fn flush(&mut self, now_ms: u64, host: &mut dyn Host) -> Result<Activity, CommandError> {
        self.command(Trigger::Manual, now_ms, host)
    }

    /// Compresses every closed chain, whatever the rolling window says; what waits is flushed first.
    ///
    /// # Errors
    /// Pruning or chain compression is off, a flush is in progress, or there is no chain.
    pub fn compact(&mut self, now_ms: u64, host: &mut dyn Host) -> Result<Activity, CommandError> {
        if self.config.enabled && !self.config.chain_compression.enabled {
            let key = "chainCompression.enabled".to_owned();
            return Err(CommandError::SwitchedOff(key));
        }
        self.command(Trigger::Compact, now_ms, host)
    }

    fn command(
        &mut self,
        trigger: Trigger,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Result<Activity, CommandError> {
        self.begin(now_ms);
        if !self.config.enabled {
            return Err(CommandError::Disabled);
        }
        if !self.query_tool_offered {
            let key = "context_tree_query".to_owned();
            return Err(CommandError::SwitchedOff(key));
        }
        self.commit_if_ready(now_ms, host);
        if self.flush.is_some() {
            return Err(CommandError::Busy);
        }
        self.keep_up(now_ms, host);
        if !self.start_flush(trigger, None, now_ms, host) {
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
        self.report_status(host);
        Ok(self.activity())
    }

    /// Takes a block (`b1`) or the batch of a ref (`t1`) back: its originals stand again, and stay.
    ///
    /// # Errors
    /// There is no such block or batch, it is out of the context already, a flush is in progress,
    /// or the log cannot be written.
    pub fn undo(
        &mut self,
        name: &str,
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Result<String, CommandError> {
        self.begin(now_ms);
        if self.flush.is_some() {
            return Err(CommandError::Busy);
        }
        let name = name.trim();
        if let Some(id) = BlockId::parse(name) {
            return self.undo_block(id, host);
        }
        match Ref::parse(name) {
            Some(reference) => self.undo_batch(reference, host),
            None => Err(CommandError::Malformed(format!(
                "`{name}`: name a block such as b1, or a ref such as t1"
            ))),
        }
    }

    fn undo_block(&mut self, id: BlockId, host: &mut dyn Host) -> Result<String, CommandError> {
        let state = self.blocks.all.get(&id).map(|block| block.state.clone());
        match state {
            None => return Err(CommandError::NotFound(id.to_string())),
            Some(State::Undone | State::Superseded) => {
                let why = format!("{id} does not stand in the context");
                return Err(CommandError::NothingToDo(why));
            }
            Some(State::Placed(_) | State::Unplaced) => {}
        }
        self.log_undo(
            entry::Undo {
                block_id: Some(id.to_string()),
                refs: Vec::new(),
                epoch_end: None,
            },
            host,
        )?;
        self.mark_undone(id);
        self.advance_epoch();
        self.report_status(host);
        Ok(format!(
            "{id} is taken back: its turns stand in the context again"
        ))
    }

    fn undo_batch(&mut self, name: Ref, host: &mut dyn Host) -> Result<String, CommandError> {
        let Some(batch) = self.batch_named(name) else {
            return Err(match self.archive.named(name) {
                Some(_) => CommandError::NothingToDo(format!("no summary covers {name}")),
                None => CommandError::NotFound(name.to_string()),
            });
        };
        let Some(known) = self.archive.batch(batch) else {
            return Err(CommandError::NotFound(name.to_string()));
        };
        if let Some(block) = known.block.filter(|id| self.is_in_placed_block(Some(*id))) {
            let why = format!("{name} is inside {block}: take {block} back first");
            return Err(CommandError::NothingToDo(why));
        }
        if known.undone {
            let why = format!("the batch of {name} has been taken back");
            return Err(CommandError::NothingToDo(why));
        }
        let refs: Vec<String> = known
            .records
            .iter()
            .filter_map(|record| self.archive.record(*record))
            .map(|record| record.name.to_string())
            .collect();
        self.log_undo(
            entry::Undo {
                block_id: None,
                refs: refs.clone(),
                epoch_end: None,
            },
            host,
        )?;
        if let Some(batch) = self.archive.batch_mut(batch) {
            batch.undone = true;
        }
        self.settle_batch(batch);
        self.settle_aliases_of(batch);
        self.advance_epoch();
        self.report_status(host);
        Ok(format!("taken back: {}", refs.join(", ")))
    }

    fn settle_aliases_of(&mut self, batch: usize) {
        let records = self.archive.batch(batch).map(|batch| batch.records.clone());
        for record in records.unwrap_or_default() {
            for alias in self.archive.aliases_of(record).to_vec() {
                if let Some(at) = self.position_of(super::Member::Alias(alias)) {
                    self.settle(at);
                }
            }
        }
    }

    fn log_undo(&mut self, mut undo: entry::Undo, host: &mut dyn Host) -> Result<(), CommandError> {
        undo.epoch_end = Some(self.end_mark());
        host.append(entry::UNDO, &entry::write(&undo))
            .map(|_| ())
            .map_err(|err| CommandError::LogFailed(err.to_string()))
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
        now_ms: u64,
        host: &mut dyn Host,
    ) -> Result<Vec<Notice>, CommandError> {
        self.begin(now_ms);
        let (config, notices) = Config::parse(config).map_err(CommandError::Malformed)?;
        if config == self.config {
            return Ok(notices);
        }
        let epoch = entry::Epoch {
            epoch_end: self.end_mark(),
            flush: None,
        };
        host.append(entry::EPOCH, &entry::write(&epoch))
            .map_err(|err| CommandError::LogFailed(err.to_string()))?;
        self.protection = Protection::new(&config);
        self.config = config;
        self.is_stale = true;
        self.epoch.end = self.transcript.len();
        self.epoch.is_closed = self.is_user_turn_over();
        self.epoch.mark = Some(epoch.epoch_end);
        self.blocks.decided = self.blocks.extents();
        self.archive.show_everything();
        self.refresh();
        self.report_status(host);
        Ok(notices)
    }

    /// The settings in force, with every key.
    #[must_use]
    pub fn config(&self) -> String {
        self.config.to_json()
    }
}
