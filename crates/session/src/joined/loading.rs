//! The calls by which the loader loads the agent's file: they are not the program's, and not shown.
//!
//! ```text
//!  openat(…, "…/agent-….so") = 3 ─► read(3), fstat(3), mmap(where the agent is linked), mprotect(there) ─► close(3)
//! ```
//!
//! The file is known by its path, its descriptor by the call that opened it, its mappings by where they are.

use events::generated as g;
use events::{Event, Schema};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a call has to do with it.
#[derive(Clone, Copy)]
enum Kind {
    /// Opens a file: the argument that has the path.
    Opens(usize),
    /// Uses a descriptor, its first argument.
    Uses,
    /// Closes one.
    Closes,
    /// Maps, changes or removes memory, at its first argument.
    Maps,
}

/// The processes that are about to load the agent.
pub struct Loading {
    path: Vec<u8>,
    /// The calls, by the ids of their classes.
    kinds: HashMap<u16, Kind>,
    /// Calls that are seen for this alone, by the ids of their classes.
    hidden: Vec<u16>,
    /// The descriptors of the file, by process.
    open: HashMap<u32, u64>,
}

impl Loading {
    /// For the agent's file. `class_of` is the class of a call's events, which may have captures; calls that are not `wanted` are seen to know
    /// the others.
    pub fn new(
        file: &Path,
        class_of: impl Fn(&'static Schema) -> &'static Schema,
        wanted: impl Fn(&Schema) -> bool,
    ) -> Loading {
        let calls: [(&'static Schema, Kind); 10] = [
            (&g::C_OPEN, Kind::Opens(0)),
            (&g::C_OPENAT, Kind::Opens(1)),
            (&g::C_READ, Kind::Uses),
            (&g::C_PREAD64, Kind::Uses),
            (&g::C_FSTAT, Kind::Uses),
            (&g::C_NEWFSTATAT, Kind::Uses),
            (&g::C_CLOSE, Kind::Closes),
            (&g::C_MMAP, Kind::Maps),
            (&g::C_MPROTECT, Kind::Maps),
            (&g::C_MUNMAP, Kind::Maps),
        ];
        let hidden = calls.iter().filter(|(call, _)| !wanted(call)).map(|(call, _)| call.id).collect();
        let kinds = calls.into_iter().flat_map(|(call, kind)| [call.id, class_of(call).id].map(|id| (id, kind)));
        Loading { path: file.as_os_str().as_bytes().to_vec(), kinds: kinds.collect(), hidden, open: HashMap::new() }
    }

    /// Whether an event is one of those calls, or of a call that nobody wants.
    pub fn is_part(&mut self, event: &[u8]) -> bool {
        let Some(id) = event.get(8..10).map(|b| u16::from_le_bytes([b[0], b[1]])) else { return false };
        self.is_of_agent(id, event) || self.hidden.contains(&id)
    }

    fn is_of_agent(&mut self, id: u16, event: &[u8]) -> bool {
        if id == g::P_EXEC.id && !self.open.is_empty() {
            if let Ok(ev) = Event::parse(event) {
                self.open.remove(&ev.pid());
            }
            return false;
        }
        let Some(kind) = self.kinds.get(&id) else { return false };
        // Most of the time no process has the file open.
        if matches!(kind, Kind::Uses | Kind::Closes) && self.open.is_empty() {
            return false;
        }
        let Ok(ev) = Event::parse(event) else { return false };
        let is_its = || self.open.get(&ev.pid()) == Some(&(ev.arg(0) & 0xffff_ffff));
        match kind {
            Kind::Opens(path) => {
                let is_it = ev.tail(*path, false).is_some_and(|t| t.bytes == self.path);
                if is_it && ev.errno().is_none() {
                    self.open.insert(ev.pid(), ev.ret() as u64);
                }
                is_it
            }
            Kind::Uses => is_its(),
            Kind::Closes => is_its() && self.open.remove(&ev.pid()).is_some(),
            Kind::Maps => abi::CODE.contains(&ev.arg(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::encode::{self, Fixed};
    use events::layout::Layout;

    const FILE: &str = "/tmp/trapline-agent-7/agent-0123456789abcdef.so";

    /// A call of process 7 with these arguments, and this path if it has one.
    fn call(schema: &'static Schema, args: &[u64], path: Option<&str>, ret: i64) -> Vec<u8> {
        let mut out = Vec::new();
        let nth = schema.args.iter().position(|a| a.name == "filename").unwrap_or(0);
        let cap = if path.is_some() { 1 << (2 * nth) } else { 0 };
        let fixed = Fixed { time: 2, start: 1, ret, tid: 7, pid: 7, cap, ..Fixed::default() };
        encode::fixed(&mut out, schema, &Layout::of(schema), &fixed, args);
        path.into_iter().for_each(|path| encode::str_tail(&mut out, path.as_bytes()));
        if schema.id == g::C_READ.id {
            encode::bytes_tail(&mut out, b"");
        }
        out
    }

    fn loading() -> Loading {
        Loading::new(Path::new(FILE), |s| s, |_| true)
    }

    #[test]
    fn calls_are_left_out_from_the_open_to_the_close() {
        let mut l = loading();
        let open = |path: &str, ret: i64| call(&g::C_OPENAT, &[u64::MAX - 99, 1, 0, 0], Some(path), ret);
        let read = |fd: u64| call(&g::C_READ, &[fd, 0, 832], None, 0);
        let close = |fd: u64| call(&g::C_CLOSE, &[fd], None, 0);
        assert!(!l.is_part(&read(3)) && !l.is_part(&open("/etc/passwd", 3)) && !l.is_part(&read(3)));
        assert!(l.is_part(&open(FILE, 3)));
        assert!(l.is_part(&read(3)) && !l.is_part(&read(4)) && !l.is_part(&close(4)));
        assert!(l.is_part(&close(3)) && !l.is_part(&read(3)) && !l.is_part(&close(3)));
        // An open that fails opens nothing; a program that is executed has nothing open.
        assert!(l.is_part(&open(FILE, -2)) && !l.is_part(&read(3)));
        assert!(l.is_part(&open(FILE, 5)));
        let exec = engine::own_events::process(&g::P_EXEC, 3, (7, 7), &[0, 7, 0, 0], &[b"x"]);
        assert!(!l.is_part(&exec) && !l.is_part(&read(5)));
    }

    #[test]
    fn calls_that_nobody_wants_are_seen_and_left_out() {
        let mut l = Loading::new(Path::new(FILE), |s| s, |s| s.id == g::C_READ.id);
        let open = |path: &str| call(&g::C_OPENAT, &[u64::MAX - 99, 1, 0, 0], Some(path), 3);
        let [read, close] = [&g::C_READ, &g::C_CLOSE].map(|s| call(s, &[3, 0, 832][..s.args.len()], None, 0));
        assert!(l.is_part(&open("/etc/passwd")) && !l.is_part(&read) && l.is_part(&close));
        assert!(l.is_part(&open(FILE)) && l.is_part(&read) && l.is_part(&close) && !l.is_part(&read));
    }

    #[test]
    fn mappings_are_known_by_their_place() {
        let mut l = loading();
        for (at, its) in [(abi::CODE.start, true), (abi::CODE.end - 4096, true), (abi::CODE.end, false), (0, false)] {
            assert_eq!(l.is_part(&call(&g::C_MMAP, &[at, 4096, 1, 2, 3, 0], None, at as i64)), its, "{at:x}");
            assert_eq!(l.is_part(&call(&g::C_MPROTECT, &[at, 4096, 1], None, 0)), its, "{at:x}");
        }
    }

    #[test]
    fn nonsense_is_no_part() {
        let mut l = loading();
        for len in 0..40 {
            assert!(!l.is_part(&vec![0xff; len]));
            assert!(!l.is_part(&call(&g::C_OPENAT, &[0; 4], None, 3)[..len.min(24)]));
        }
    }
}
