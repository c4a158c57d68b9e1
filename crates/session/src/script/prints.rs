//! What a script prints: text or JSON, with names; files that it shows, and commands that it runs.

use super::cgroups::Cgroups;
use super::seen::Stacks;
use crate::output::Output;
use crate::view::screen::Clocks;
use ctf::folder::reason;
use engine::pipeline::world::World;
use engine::request::watches::Watches;
use engine::rights;
use events::names::{EXACT, Frame as Named, Names as _, Stack};
use lang::diag::Span;
use lang::script::run::{Failure, Host};
use lang::script::time::Wall;
use lang::script::types::Space;
use lang::script::{Program, run::Output as Printed};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;
use views::script::{self as view, Frame, Goes, Printer};

/// Names of what is printed.
pub struct Names<'a> {
    pub world: Option<&'a World>,
    pub stacks: &'a RefCell<Stacks>,
    pub now: u64,
}

impl Names<'_> {
    fn frames(&self, pid: u32, time: u64, stack: &Stack<'_>) -> Vec<Frame> {
        let mut found = Vec::new();
        let Some(world) = self.world else { return found };
        let mut addresses = stack.frames.iter();
        world.frames(pid, time, stack, &mut |f: &Named<'_>| {
            if f.inlined {
                return;
            }
            let own =
                addresses.next().map_or(0, |a| if stack.kernel { *a } else { a & !(EXACT | events::names::GUESSED) });
            let name = (!f.function.is_empty()).then(|| f.function.to_string());
            found.push(Frame { address: own, name, offset: f.offset.unwrap_or(0) });
        });
        found
    }
}

impl view::Names for Names<'_> {
    fn stack(&self, _: Space, stack: u64, pid: u32) -> Vec<Frame> {
        let stacks = self.stacks.borrow();
        let known = stacks.get(stack);
        let time = known.map_or(self.now, |known| known.time);
        let part = known.and_then(|known| known.part.as_ref());
        let part = part.map(|(kernel, frames)| Stack { kernel: *kernel, ended: 0, guessed: 0, frames });
        let found = part.or_else(|| self.world?.stack(stack));
        found.map(|s| self.frames(pid, time, &s)).unwrap_or_default()
    }

    fn symbol(&self, space: Space, address: u64, pid: u32) -> Option<String> {
        let kernel = space == Space::Kernel;
        let frame = [if kernel { address } else { address | EXACT }];
        let stack = Stack { kernel, ended: 0, guessed: 0, frames: &frame };
        self.frames(pid, self.now, &stack).pop().and_then(|f| f.name)
    }

    fn user(&self, uid: u32) -> Option<String> {
        Some(sys::users::name(uid))
    }
}

/// Prints.
pub struct Prints<'a> {
    pub program: &'a Program,
    pub source: (&'a str, &'a str),
    pub names: Names<'a>,
    pub output: &'a mut Output,
    pub json: bool,
    /// Errors are among what is printed.
    pub one_stream: bool,
    pub raw_strings: bool,
    pub clocks: Clocks,
    pub strange: &'a mut Option<u64>,
    pub cgroups: &'a mut Cgroups,
    /// Operations that fail are said.
    pub failures: bool,
    /// What watchpoints at functions' arguments watch, by probe.
    pub watches: &'a [(String, Watches)],
}

impl Host for Prints<'_> {
    fn output(&mut self, printed: Printed<'_>) {
        let printer =
            Printer { program: self.program, source: self.source, names: &self.names, raw_strings: self.raw_strings };
        let mut text = Vec::new();
        let goes = match self.json {
            true => view::json::output(&printer, &printed, &mut text),
            false => view::text::output(&printer, &printed, &mut text),
        };
        match goes {
            Goes::Out => self.output.write_lines(&text),
            Goes::Err => self.errors(&text),
            Goes::File => self.file(&text),
            Goes::Command => self.command(&text),
        }
    }

    fn failed(&mut self, what: Failure, at: Span) {
        if !self.failures {
            return;
        }
        let mut text = Vec::new();
        if self.json {
            view::json::failure(self.source, what, at, &mut text);
            return self.output.write_lines(&text);
        }
        view::text::failure(self.source, what, at, &mut text);
        self.errors(&text);
    }

    fn unwatch(&mut self, address: u64) {
        self.watches.iter().for_each(|(_, watches)| watches.release(address));
    }

    fn wall(&mut self, nsecs: Option<u64>) -> Wall {
        let real = (nsecs.unwrap_or(self.names.now) as i64).saturating_add(self.clocks.realtime_offset);
        let (seconds, rest) = (real.div_euclid(1_000_000_000), real.rem_euclid(1_000_000_000));
        Wall { seconds, nanoseconds: rest as u32, offset: self.clocks.utc_offset as i32 }
    }

    fn cgroup_path(&mut self, id: u64, hierarchies: &[u8]) -> String {
        if let Some(n) = self.strange {
            *n += 1;
            return String::new();
        }
        self.cgroups.path(id, hierarchies)
    }
}

impl Prints<'_> {
    /// Prints errors and warnings.
    fn errors(&mut self, text: &[u8]) {
        if self.one_stream {
            return self.output.write_lines(text);
        }
        self.output.flush();
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text);
    }

    /// Prints what a file has, or a command has written.
    fn contents(&mut self, kind: &str, text: &[u8]) {
        if !self.json {
            return self.output.write_lines(text);
        }
        let data = String::from_utf8_lossy(text).into_owned();
        let mut line = Vec::new();
        view::json::line(kind, &mut line, |out| {
            out.extend_from_slice(serde_json::Value::String(data).to_string().as_bytes());
        });
        self.output.write_lines(&line);
    }

    /// Runs a command, and prints what it writes.
    fn command(&mut self, text: &[u8]) {
        if let Some(n) = self.strange {
            *n += 1;
            return;
        }
        // Its errors are among what was printed before.
        self.output.flush();
        let mut sh = sys::process::command("/bin/sh");
        sh.arg("-c").arg(OsStr::from_bytes(text)).stdin(Stdio::null()).stderr(Stdio::inherit());
        match sh.output() {
            Ok(done) if done.stdout.is_empty() => {}
            Ok(done) => self.contents("syscall", &done.stdout),
            Err(e) => eprintln!("ERROR: failed to run '{}': {}", String::from_utf8_lossy(text), reason(&e)),
        }
    }

    /// Shows a file.
    fn file(&mut self, path: &[u8]) {
        let most = self.program.config.max_cat_bytes;
        let path = Path::new(OsStr::from_bytes(path));
        if let Some(n) = self.strange {
            *n += 1;
            return;
        }
        let mut text = Vec::new();
        match rights::open(path).and_then(|f| f.take(most).read_to_end(&mut text)) {
            Ok(_) => self.contents("cat", &text),
            Err(e) => {
                self.output.flush();
                eprintln!("ERROR: failed to open file '{}': {}", path.display(), reason(&e));
            }
        }
    }
}
