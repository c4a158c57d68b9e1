//! A directory of Parquet files: what `--as parquet=DIR` writes.
//!
//! ```text
//! DIR/trapline.json                                            what the directory is, and the version of its schema
//! DIR/calls/date=2026-11-28/host=web-1/part-UUID.parquet       a file for each table and trace
//! DIR/.part-UUID/calls                                         … while it is written
//! ```
//!
//! Files get their names when all of them are complete, that of the table `traces` last. What an interrupted report leaves behind is hidden,
//! and removed by the next one of the trace.

use super::screen::Clocks;
use super::stats::Table as Stats;
use crate::output::without_number;
use ctf::trace::Trace;
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::world::World;
use engine::{Error, Result};
use events::Event;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use views::View;
use views::parquet::schema::{ALL, VERSION};
use views::parquet::{About, Parquet};

/// What is made of a trace.
pub struct Making<'a> {
    /// Makes the tables.
    pub make: fn(About, Stats) -> Parquet,
    /// The trace.
    pub trace: &'a Trace,
    /// Its clocks.
    pub clocks: Clocks,
    /// What is known of it before its events.
    pub stats: Stats,
    /// The directory.
    pub dir: &'a Path,
}

/// The file that says what the directory is.
const MARK: &str = "trapline.json";

/// Makes the directory, or takes one that has tables of other traces.
///
/// # Errors
/// It cannot be made, or has something else in it, or the trace's tables.
pub fn open(making: Making<'_>) -> Result<Box<dyn Sink>> {
    let Making { make, trace, clocks, stats, dir } = making;
    let uuid = trace.metadata.uuid.unwrap_or_default();
    let about = About {
        trace: uuid.iter().map(|byte| format!("{byte:02x}")).collect(),
        host: trace.said("hostname"),
        begin: trace.data.span().map_or(0, |span| span.0),
        realtime_offset: clocks.realtime_offset,
    };
    prepare(dir)?;
    let folder = Folder::new(dir, &about)?;
    Ok(Box::new(ToFolder { view: make(about, stats), folder, unused: Vec::new(), failed: false }))
}

fn cannot(path: &Path, e: &io::Error) -> Error {
    Error::failed(
        path.display().to_string(),
        without_number(e),
        "choose a directory that you may write, with enough space",
    )
}

/// What a program reads and writes may be secret: only the owner may read it.
fn make(dir: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| cannot(dir, &e))
}

/// Makes a directory for tables, unless it is one.
fn prepare(dir: &Path) -> Result<()> {
    let refuse = |why: String| Err(Error::failed(dir.display().to_string(), why, "name a new or an empty directory"));
    let mark = dir.join(MARK);
    match fs::read_to_string(&mark) {
        Ok(text) => {
            let said: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            return match said["parquet"].as_u64() {
                Some(version) if version == u64::from(VERSION) => Ok(()),
                Some(version) => refuse(format!("its tables have version {version}, and these have version {VERSION}")),
                None => refuse(format!("its {MARK} is not that of tables of trapline")),
            };
        }
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(e) => return Err(cannot(&mark, &e)),
    }
    make(dir)?;
    if fs::read_dir(dir).map_err(|e| cannot(dir, &e))?.next().is_some() {
        return refuse("it is not empty, and has no tables of trapline".into());
    }
    let text = format!("{{\"parquet\":{VERSION}}}\n");
    create(&mark).and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| cannot(&mark, &e))
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The files of a trace while they are written.
struct Folder {
    dir: PathBuf,
    /// Where they are until they are complete.
    hidden: PathBuf,
    /// Where they will be in the directory of a table.
    place: PathBuf,
    files: BTreeMap<&'static str, File>,
}

impl Folder {
    fn new(dir: &Path, about: &About) -> Result<Folder> {
        let place = PathBuf::from(about.place()).join(format!("part-{}.parquet", about.trace));
        let folder = Folder {
            dir: dir.to_owned(),
            hidden: dir.join(format!(".part-{}", about.trace)),
            place,
            files: BTreeMap::new(),
        };
        for table in ALL {
            let file = folder.path(table.name);
            if file.exists() {
                let todo = "remove this part in all tables, or name another directory";
                return Err(Error::failed(file.display().to_string(), "the trace is there already", todo));
            }
        }
        Ok(folder)
    }

    fn path(&self, table: &str) -> PathBuf {
        self.dir.join(table).join(&self.place)
    }

    fn write(&mut self, table: &'static str, bytes: &[u8]) -> Result<()> {
        let path = self.hidden.join(table);
        if self.files.is_empty() {
            // Of a report that was interrupted.
            let _ = fs::remove_dir_all(&self.hidden);
            make(&self.hidden)?;
        }
        if !self.files.contains_key(table) {
            self.files.insert(table, create(&path).map_err(|e| cannot(&path, &e))?);
        }
        let file = self.files.get_mut(table);
        file.map_or(Ok(()), |file| file.write_all(bytes)).map_err(|e| cannot(&path, &e))
    }

    /// Gives the files their names, all or none.
    fn finish(&mut self) -> Result<()> {
        let mut named: Vec<PathBuf> = Vec::new();
        for table in ALL {
            let path = self.path(table.name);
            let moved = path
                .parent()
                .map_or(Ok(()), make)
                .and_then(|()| fs::rename(self.hidden.join(table.name), &path).map_err(|e| cannot(&path, &e)));
            if let Err(e) = moved {
                named.iter().for_each(|path| drop(fs::remove_file(path)));
                return Err(e);
            }
            named.push(path);
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.files.is_empty() {
            let _ = fs::remove_dir_all(&self.hidden);
        }
    }
}

/// Writes the tables of a trace.
struct ToFolder {
    view: Parquet,
    folder: Folder,
    /// Where lines of views go, of which this has none.
    unused: Vec<u8>,
    failed: bool,
}

impl ToFolder {
    fn write(&mut self) -> Result<Flow> {
        let (folder, mut result) = (&mut self.folder, Ok(()));
        self.view.take(|table, bytes| {
            if result.is_ok() {
                result = folder.write(table, &bytes);
            }
        });
        self.failed |= result.is_err();
        result.map(|()| Flow::Continue)
    }
}

impl Sink for ToFolder {
    fn observe(&mut self, ev: &Event<'_>) {
        self.view.see(ev);
    }

    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        self.view.event(ev, world, &mut self.unused);
        if self.view.is_ready() { self.write() } else { Ok(Flow::Continue) }
    }

    fn lost(&mut self, events: u64) {
        self.view.lost(events);
    }

    fn end(&mut self) -> Result<()> {
        if self.failed {
            return Ok(());
        }
        self.view.end(&mut self.unused);
        self.write()?;
        self.folder.finish()
    }

    fn has_written(&self) -> bool {
        true
    }
}
