//! An environment that keeps its log in a file and its blobs in a folder beside it.

mod line;
mod log;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use log::Log;

use crate::{Environment, HostError, JobQueue, LogEntry, Notice, Request, Stamp, TotalCost};

/// Log and blobs on disk, jobs and notices in memory.
///
/// The log is JSON lines in the form of pi's session files, with the entries `custom` and
/// `custom_message`; lines of other types are left alone, so the log may be a session file of pi
/// itself. There the entries are those of the branch that the last line ends. Blobs are files in
/// the folder `NAME-blobs` beside the log `NAME.jsonl`.
///
/// Source: pi session format v3.
#[derive(Debug)]
pub struct FileHost {
    log: Log,
    blobs: PathBuf,
    pub jobs: JobQueue,
    pub notices: Vec<Notice>,
    pub status_line: String,
    pub cost: Option<TotalCost>,
}

impl FileHost {
    /// Opens a log, or the place where one will be made by the first entry.
    ///
    /// # Errors
    /// The file is there but cannot be read.
    pub fn open(log: impl Into<PathBuf>) -> io::Result<Self> {
        let path = log.into();
        let mut folder = path.file_stem().unwrap_or_default().to_owned();
        folder.push("-blobs");
        Ok(Self {
            blobs: path.with_file_name(folder),
            log: Log::open(path)?,
            jobs: JobQueue::default(),
            notices: Vec::new(),
            status_line: String::new(),
            cost: None,
        })
    }

    /// Keeps the blobs in another folder.
    #[must_use]
    pub fn with_blobs(mut self, folder: impl Into<PathBuf>) -> Self {
        self.blobs = folder.into();
        self
    }

    /// Where the blobs are.
    #[must_use]
    pub fn blobs(&self) -> &Path {
        &self.blobs
    }
}

impl Environment for FileHost {
    fn append(&mut self, kind: &str, data: &str, at_ms: u64) -> Result<Stamp, HostError> {
        self.log.append(kind, data, at_ms).map_err(failed)
    }

    fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
        at_ms: u64,
    ) -> Result<Stamp, HostError> {
        let appended = self.log.append_message(kind, content, details, at_ms);
        appended.map_err(failed)
    }

    fn read(&mut self, entry: &str) -> Result<String, HostError> {
        let found = self.log.read(entry).map_err(failed)?;
        Ok(found.ok_or(HostError::NotFound)?.data)
    }

    fn entries(&mut self, from: usize) -> Result<Vec<LogEntry>, HostError> {
        self.log.entries(from).map_err(failed)
    }

    fn write_blob(&mut self, name: &str, text: &str) -> Result<String, HostError> {
        let path = self.blobs.join(name);
        write_whole(&path, text).map_err(failed)?;
        Ok(path.display().to_string())
    }

    fn read_blob(&mut self, name: &str) -> Result<String, HostError> {
        match fs::read_to_string(self.blobs.join(name)) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => Err(HostError::NotFound),
            read => read.map_err(failed),
        }
    }

    fn submit(&mut self, request: Request) -> Result<u64, HostError> {
        Ok(self.jobs.submit(request))
    }

    fn cancel(&mut self, job: u64) {
        self.jobs.cancel(job);
    }

    fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn status(&mut self, line: &str) {
        line.clone_into(&mut self.status_line);
    }

    fn cost(&mut self, cost: TotalCost) {
        self.cost = Some(cost);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of `map_err`")]
fn failed(err: io::Error) -> HostError {
    HostError::Failed(err.to_string())
}

/// Writes a file so that after a crash it is there whole or not at all.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let partial = path.with_added_extension("partial");
    let mut file = File::create(&partial)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(&partial, path)?;
    log::sync_folder(folder)
}

#[cfg(test)]
mod tests;
