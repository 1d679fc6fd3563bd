//! The file of a session log, with an index of its entries.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::line::{Head, Line, active_branch};
use crate::{LogEntry, Stamp};

/// How much of the log is handed over at once, in bytes.
const PAGE_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Open once an entry was read.
    reader: Option<File>,
    /// Open once an entry was written: a log that is only read may be read-only.
    writer: Option<File>,
    /// Length of the file.
    end: u64,
    /// Whether the file ends within a line: a crash cut it off.
    torn: bool,
    /// Where our entries of the active branch are, in the order of the branch.
    branch: Vec<Place>,
    by_id: HashMap<String, Place>,
    ids: HashSet<String>,
    /// The id of the last line that has one.
    leaf: Option<String>,
    /// Whether the lines form a tree, so that what is appended names its parent.
    has_parents: bool,
}

/// A line of the file.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: u64,
    len: u64,
}

impl Log {
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let mut log = Self {
            path,
            reader: None,
            writer: None,
            end: 0,
            torn: false,
            branch: Vec::new(),
            by_id: HashMap::new(),
            ids: HashSet::new(),
            leaf: None,
            has_parents: false,
        };
        match File::open(&log.path) {
            Ok(file) => log.index(BufReader::new(file))?,
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            Err(err) => return Err(err),
        }
        Ok(log)
    }

    fn index(&mut self, mut reader: impl BufRead) -> io::Result<()> {
        let mut lines = Vec::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            let len = reader.read_until(b'\n', &mut line)? as u64;
            if len == 0 {
                break;
            }
            // A last line without its end may be whole all the same.
            self.torn = !line.ends_with(b"\n");
            let start = self.end;
            self.end += len;
            if let Some(head) = Head::parse(&line) {
                lines.push((head, Place { start, len }));
            }
        }
        self.adopt(&lines);
        Ok(())
    }

    fn adopt(&mut self, lines: &[(Head, Place)]) {
        let in_tree = |head: &Head| head.parent.is_some() || head.version.is_some_and(|v| v > 1);
        self.has_parents = lines.iter().any(|(head, _)| in_tree(head));
        let branch = active_branch(lines.iter().map(|(head, _)| head));
        for (head, place) in lines {
            let Some(id) = &head.id else { continue };
            self.ids.insert(id.clone());
            if head.is_header() {
                continue;
            }
            self.leaf = Some(id.clone());
            if head.is_custom() {
                self.by_id.insert(id.clone(), *place);
                if !self.has_parents || branch.contains(id.as_str()) {
                    self.branch.push(*place);
                }
            }
        }
    }

    pub(super) fn append(&mut self, kind: &str, data: &str, at_ms: u64) -> io::Result<Stamp> {
        let line = Line::entry(kind, data, at_ms)?;
        self.write(line)
    }

    pub(super) fn append_message(
        &mut self,
        kind: &str,
        content: &str,
        details: &str,
        at_ms: u64,
    ) -> io::Result<Stamp> {
        let line = Line::message(kind, content, details, at_ms)?;
        self.write(line)
    }

    /// Eight hexadecimal digits, as pi's ids have.
    fn next_id(&self) -> String {
        let mut number = self.ids.len();
        loop {
            let id = format!("{number:08x}");
            if !self.ids.contains(&id) {
                return id;
            }
            number += 1;
        }
    }

    /// Writes a line to the disk. When that fails the file is as it was.
    fn write(&mut self, mut line: Line) -> io::Result<Stamp> {
        let id = self.next_id();
        line.id.clone_from(&id);
        line.parent_id = self.leaf.clone().filter(|_| self.has_parents);
        let mut text = if self.torn { vec![b'\n'] } else { Vec::new() };
        let start = self.end + text.len() as u64;
        serde_json::to_writer(&mut text, &line)?;
        text.push(b'\n');
        self.write_at_end(&text)?;
        let place = Place {
            start,
            len: self.end - start,
        };
        self.branch.push(place);
        self.by_id.insert(id.clone(), place);
        self.ids.insert(id.clone());
        self.leaf = Some(id.clone());
        Ok(Stamp {
            entry: id,
            at: line.at_ms(),
        })
    }

    fn write_at_end(&mut self, text: &[u8]) -> io::Result<()> {
        let end = self.end;
        let file = self.writer()?;
        file.seek(SeekFrom::Start(end))?;
        let written = file.write_all(text).and_then(|()| file.sync_data());
        written.inspect_err(|_| drop(file.set_len(end)))?;
        self.torn = false;
        self.end = end + text.len() as u64;
        Ok(())
    }

    fn writer(&mut self) -> io::Result<&mut File> {
        if let Some(ref mut file) = self.writer {
            return Ok(file);
        }
        let folder = self
            .path
            .parent()
            .filter(|path| !path.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)?;
        sync_folder(folder)?;
        Ok(self.writer.insert(file))
    }

    pub(super) fn read(&mut self, id: &str) -> io::Result<Option<LogEntry>> {
        let place = self.by_id.get(id).copied();
        place.map(|place| self.read_place(place)).transpose()
    }

    /// At least one entry, unless there is none from here on.
    pub(super) fn entries(&mut self, from: usize) -> io::Result<Vec<LogEntry>> {
        let mut entries = Vec::new();
        let mut bytes = 0;
        while bytes < PAGE_BYTES
            && let Some(place) = self.branch.get(from + entries.len()).copied()
        {
            bytes += place.len;
            entries.push(self.read_place(place)?);
        }
        Ok(entries)
    }

    fn read_place(&mut self, place: Place) -> io::Result<LogEntry> {
        let file = match self.reader {
            Some(ref mut file) => file,
            None => self.reader.insert(File::open(&self.path)?),
        };
        file.seek(SeekFrom::Start(place.start))?;
        let mut line = Vec::new();
        file.take(place.len).read_to_end(&mut line)?;
        Ok(Line::parse(&line)?.into_log_entry())
    }
}

/// Makes a new name in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
