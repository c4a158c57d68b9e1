//! The functions of the kernel: read when the first address of it is asked for.

use super::Origin;
use super::packs;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use symbols::Symbolizer;
use symbols::kallsyms::Kallsyms;
use symbols::pack::Pack;

/// The functions of the running kernel.
const LIST: &str = "/proc/kallsyms";

/// Where they come from.
pub struct Kernel {
    /// This is the kernel, as it was started, whose addresses are asked for.
    same_boot: bool,
    /// The trace that may have a pack.
    trace: Option<PathBuf>,
    /// The kernel's list of functions, open.
    list: Option<File>,
    asked: bool,
    trouble: Option<String>,
}

impl Kernel {
    /// Nothing is read yet.
    pub fn new(origin: &Origin, trace: Option<PathBuf>) -> Kernel {
        let same_boot = matches!(origin, Origin::Live | Origin::Trace { same_boot: true, .. });
        // The kernel looks at the rights of whoever opens it, and a session gives its own up when it begins.
        let list = if matches!(origin, Origin::Live) { File::open(LIST).ok() } else { None };
        Kernel { same_boot, trace, list, asked: false, trouble: None }
    }

    /// Reads them, the first time.
    pub fn prepare(&mut self, symbolizer: &mut Symbolizer) {
        if std::mem::replace(&mut self.asked, true) {
            return;
        }
        let pack = self.trace.as_deref().and_then(|dir| packs::read(dir, &packs::kernel_identity()));
        if let Some(pack) = pack.and_then(|bytes| Pack::parse(&bytes).ok()) {
            return symbolizer.set_kernel_pack(pack);
        }
        if !self.same_boot {
            let why = "it was recorded on another machine, or before this one was started";
            self.trouble = Some(format!("[kernel]: {why} ('trapline pack' there, before that, keeps its functions)"));
            return;
        }
        let mut text = Vec::new();
        let read = self.list.take().map_or_else(|| File::open(LIST), Ok).and_then(|mut f| f.read_to_end(&mut text));
        let text = read.map(|_| text).map_err(|e| e.to_string());
        match text.and_then(|text| Kallsyms::parse(&text).map_err(|e| e.to_string())) {
            Ok(kallsyms) => symbolizer.set_kernel(kallsyms),
            Err(why) => self.trouble = Some(format!("[kernel]: /proc/kallsyms: {why}")),
        }
    }

    /// Why they are not known.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }
}
