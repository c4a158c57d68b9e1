//! A session without the command line: recorded, and read again. It has one thread, and so no harness.

use engine::Result;
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::world::World;
use events::Event;
use session::ask::{Ask, Keep, Select, Targets, Tracing};
use session::run::Status;
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use testkit::Scratch;

/// Counts calls of openat.
struct Counts(Rc<Cell<u64>>);

impl Sink for Counts {
    fn event(&mut self, ev: &Event<'_>, _: &World) -> Result<Flow> {
        self.0.set(self.0.get() + u64::from(ev.schema.name == "openat"));
        Ok(Flow::Continue)
    }

    fn has_written(&self) -> bool {
        true
    }
}

fn recorded_and_read(dir: &Path) -> Result<()> {
    let words = ["/bin/sh", "-c", "cat /dev/null /etc/passwd >/dev/null; exit 3"];
    let target = Targets { command: words.map(Into::into).to_vec(), ..Targets::default() };
    let keep = Keep { output: Some(dir.into()), ..Keep::default() };
    let select = Select { expr: vec!["openat".into()], ..Select::default() };
    let tracing = Tracing { backend: Some("ptrace".into()), ..Tracing::default() };
    let ask = Ask { target, keep, select, tracing, quiet: 1, ..Ask::default() };
    let seen = Rc::new(Cell::new(0));
    let status = session::record::run_with(&ask, vec![Box::new(Counts(Rc::clone(&seen)))])?;
    assert_eq!(status, Status::Exit(3));
    let (mut read, mut last) = (0, 0);
    let lost = session::read(dir, |event, _| {
        assert!(event.time() >= last, "not in the order of their times");
        last = event.time();
        read += u64::from(event.schema.name == "openat");
        Ok(())
    })?;
    assert_eq!(lost, Some(0));
    assert!(read >= 4, "openat of cat's files and of its loader's: {read}");
    assert_eq!(read, seen.get(), "the trace has what the sink has seen");
    Ok(())
}

fn main() {
    let scratch = Scratch::new("embed");
    recorded_and_read(&scratch.join("trace")).expect("a trace that can be read");
    println!("test recorded_and_read ... ok\n");
    println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s");
}
