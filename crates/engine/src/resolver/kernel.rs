//! The functions of the kernel: read in a thread when the first stack of it is seen, and waited for when its first address is asked for.

use super::Origin;
use super::packs;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};
use symbols::Symbolizer;
use symbols::kallsyms::Kallsyms;
use symbols::pack::Pack;

/// The functions of the running kernel.
const LIST: &str = "/proc/kallsyms";

/// What is read, or why it is not.
type Functions = Result<Kallsyms, String>;

/// Where they come from.
pub struct Kernel {
    /// This is the kernel, as it was started, whose addresses are asked for.
    same_boot: bool,
    /// The trace that may have a pack.
    trace: Option<PathBuf>,
    /// The kernel's list of functions, open.
    list: Option<File>,
    begun: bool,
    pack: Option<Pack>,
    reader: Option<JoinHandle<Functions>>,
    asked: bool,
    trouble: Option<String>,
}

impl Kernel {
    /// Nothing is read yet.
    pub fn new(origin: &Origin, trace: Option<PathBuf>) -> Kernel {
        let same_boot = matches!(origin, Origin::Live | Origin::Trace { same_boot: true, .. });
        // The kernel looks at the rights of whoever opens it, and a session gives its own up when it begins.
        let list = if matches!(origin, Origin::Live) { File::open(LIST).ok() } else { None };
        Kernel { same_boot, trace, list, begun: false, pack: None, reader: None, asked: false, trouble: None }
    }

    /// Begins to read them, the first time: the kernel takes as long to list them as a trace of 100,000 samples to be read.
    pub fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let pack = self.trace.as_deref().and_then(|dir| packs::read(dir, &packs::kernel_identity()));
        self.pack = pack.and_then(|bytes| Pack::parse(&bytes).ok());
        if self.pack.is_none() && self.same_boot {
            let list = self.list.take();
            self.reader = Builder::new().name("trapline-kernel".into()).spawn(|| read(list)).ok();
        }
    }

    /// Makes them known to a symbolizer, the first time.
    pub fn prepare(&mut self, symbolizer: &mut Symbolizer) {
        if std::mem::replace(&mut self.asked, true) {
            return;
        }
        self.begin();
        if let Some(pack) = self.pack.take() {
            return symbolizer.set_kernel_pack(pack);
        }
        if !self.same_boot {
            let why = "it was recorded on another machine, or before this one was started";
            self.trouble = Some(format!("[kernel]: {why} ('trapline pack' there, before that, keeps its functions)"));
            return;
        }
        // Without a thread, now.
        match self.reader.take().and_then(|r| r.join().ok()).unwrap_or_else(|| read(None)) {
            Ok(kallsyms) => symbolizer.set_kernel(kallsyms),
            Err(why) => self.trouble = Some(format!("[kernel]: /proc/kallsyms: {why}")),
        }
    }

    /// Why they are not known.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }
}

fn read(list: Option<File>) -> Functions {
    let mut text = Vec::new();
    let read = list.map_or_else(|| File::open(LIST), Ok).and_then(|mut f| f.read_to_end(&mut text));
    read.map_err(|e| e.to_string())?;
    Kallsyms::parse(&text).map_err(|e| e.to_string())
}
