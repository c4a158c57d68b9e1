//! The drain thread: a source in a thread of its own, so that the rings are emptied even if the views are slow.
//!
//! ```text
//! source ─► (recorder) ─► chunks ─► backlog ─► front end        front end ── orders ──► control channel ──► source
//! ```

use super::aside::{Aside, Choice};
use super::backlog::Backlog;
use super::chunk::{self, Chunk};
use super::recorder::Recorder;
use super::source::Source;
use crate::control::{ControlChannel, Order, Preparer, State};
use crate::error::{Error, Result};
use crate::pipeline::backend::{Attached, Backend, Deliver, Polled};
use crate::plan::Plan;
use crate::stats::Report;
use events::StreamId;
use events::functions::Run;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use sys::priority::Urgency;
use sys::ptrace::Change;

/// What both threads see. Legend: (r) written by the drain thread, (f) by the front end.
#[derive(Default)]
struct Shared {
    /// (d) appends chunks of events and marks their end, (f) takes them.
    backlog: Backlog,
    /// (f) leaves orders, (d) carries them out.
    control: ControlChannel,
    /// (f) Detach and finish.
    stop: AtomicBool,
    /// (d) The report at the end; (f) takes it.
    end: Mutex<End>,
}

#[derive(Default)]
struct End {
    report: Option<Report>,
    recorder: Option<Recorder>,
    status: Option<Change>,
}

impl Shared {
    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The front end's side.
pub struct Threaded {
    shared: Arc<Shared>,
    name: &'static str,
    command: Option<i32>,
    attached: Attached,
    failure: Option<Error>,
    preparer: Option<Box<dyn Preparer>>,
    ended: bool,
}

impl Threaded {
    /// Moves a source that has started into a thread; with `live`, its events are delivered here too.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(mut source: Source<'static>, plan: &Plan, live: bool) -> Result<Threaded> {
        let shared = Arc::new(Shared::default());
        let (name, command, attached) = (source.name(), source.command(), source.take_attached());
        let (failure, preparer) = (source.failure(plan), source.take_preparer());
        let has_agent = plan.functions.is_some() || plan.may_get_agent();
        let reader = Reader { source, shared: Arc::clone(&shared), live, has_agent };
        // Nobody joins it: what a backend does after its report runs in parallel with the views, or ends with the process.
        std::thread::Builder::new()
            .name("trapline-drain".into())
            .spawn(move || reader.run())
            .map_err(|e| Error::failed("drain thread", e.to_string(), "free some processes"))?;
        // Capabilities belong to threads: the new one has given its own up. Probes and an agent that are added later need those to attach,
        // which are not in effect until then.
        let aside = if preparer.is_some() || plan.may_get_agent() { sys::caps::TO_ATTACH } else { 0 };
        let _ = sys::caps::set_aside(sys::caps::AFTER_ATTACH, aside);
        Ok(Threaded { shared, name, command, attached, failure, preparer, ended: false })
    }
}

impl Backend for Threaded {
    fn name(&self) -> &'static str {
        self.name
    }

    fn poll(&mut self, _room: bool, each: &mut dyn Deliver) -> Polled {
        let ended = self.shared.backlog.is_finished();
        let (mut events, mut chunk) = (0, Vec::new());
        // The front end must get a turn to end the session, however fast the target is.
        let since = Instant::now();
        while since.elapsed() < TURN && self.shared.backlog.pop(&mut chunk) {
            events += chunk::deliver(&chunk, each);
        }
        self.ended |= ended;
        Polled { events, ended }
    }

    fn wait(&mut self, timeout: Duration) {
        self.shared.backlog.wait(timeout);
    }

    fn control(&mut self, order: Order) -> Result<State> {
        let order = match &mut self.preparer {
            Some(preparer) => preparer.prepare(order)?,
            None => order,
        };
        self.shared.control.ask(order, Duration::from_secs(5))
    }

    fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
    }

    fn command(&self) -> Option<i32> {
        self.command
    }

    fn command_status(&mut self) -> Option<Change> {
        self.shared.end().status
    }

    fn take_attached(&mut self) -> Attached {
        std::mem::take(&mut self.attached)
    }

    fn failure(&mut self, _plan: &Plan) -> Option<Error> {
        self.failure.take()
    }

    /// The recorder on the other side already knows.
    fn streams(&self) -> Vec<StreamId> {
        Vec::new()
    }

    fn dropped_on(&self, _stream: StreamId) -> u64 {
        0
    }

    fn report(&mut self) -> Report {
        let mut report = self.shared.end().report.take().unwrap_or_default();
        let (why, lost) = (self.shared.backlog.take_error().map(|e| e.to_string()), self.shared.backlog.lost_bytes());
        let trouble = match (why, lost) {
            (None, 0) => None,
            (why, 0) => Some(format!("{} (the events were kept in memory)", why.unwrap_or_default())),
            (why, n) => Some(format!("{}: {n} bytes of events are lost and not counted", why.unwrap_or_default())),
        };
        report.trouble.extend(trouble.map(|t| format!("event backlog: {t}")));
        report
    }

    fn take_recorder(&mut self) -> Option<Recorder> {
        self.shared.end().recorder.take()
    }
}

/// The thread's side.
struct Reader {
    source: Source<'static>,
    shared: Arc<Shared>,
    live: bool,
    /// The agent is in the processes, or may be later.
    has_agent: bool,
}

impl Reader {
    fn run(mut self) {
        // Else it gets only as much CPU time as each of the threads whose events it must keep up with.
        let _ = sys::priority::raise(Urgency::Reader);
        self.source.start_writer();
        let aside = if self.has_agent { sys::caps::TO_DETACH } else { 0 };
        let _ = sys::caps::set_aside(sys::caps::AFTER_ATTACH, aside);
        let mut idle = 0u32;
        let (aside, mut choice) = (Aside::here(), Choice::default());
        loop {
            if let Some(order) = self.shared.control.take() {
                let answer = self.source.control(order);
                self.shared.control.answer(answer);
            }
            if self.shared.stop.load(Ordering::Acquire) {
                self.source.stop();
            }
            let polled = self.round();
            if polled.ended {
                break;
            }
            if let Some(off) = choice.after(self.source.origin()) {
                aside.keep_off(off);
                self.source.keep_writer_off(off);
            }
            idle = if polled.events > 0 { 0 } else { idle + 1 };
            self.source.wait(Duration::from_micros(if idle > 8 { 4000 } else { 1000 }));
        }
        self.shared.control.close();
        let report = self.source.report();
        let (recorder, status) = (self.source.take_recorder(), self.source.command_status());
        *self.shared.end() = End { report: Some(report), recorder, status };
        self.shared.backlog.finish();
    }

    /// Takes the available events, once.
    fn round(&mut self) -> Polled {
        let Reader { source, shared, live, .. } = self;
        // A backlog that has no room, neither in memory nor on disk, leaves the rings to fill up, and to count.
        let room = !shared.backlog.is_full();
        if !*live {
            return source.poll(room, &mut |_, _: &[u8]| {});
        }
        let mut pieces = Pieces { chunk: Chunk::default(), backlog: &shared.backlog };
        let polled = source.poll(room, &mut pieces);
        pieces.push();
        polled
    }
}

/// How long the front end takes events in a turn.
const TURN: Duration = Duration::from_millis(50);

/// The bytes from which on a chunk is handed over before its round is over.
const PIECE: usize = 1 << 20;

/// Puts what is delivered into the backlog, in pieces.
struct Pieces<'b> {
    chunk: Chunk,
    backlog: &'b Backlog,
}

impl Pieces<'_> {
    fn push(&mut self) {
        let chunk = std::mem::take(&mut self.chunk.0);
        if !chunk.is_empty() {
            self.backlog.push(chunk);
        }
    }

    fn push_large(&mut self) {
        if self.chunk.0.len() >= PIECE {
            self.push();
        }
    }
}

impl Deliver for Pieces<'_> {
    #[inline]
    fn event(&mut self, stream: StreamId, event: &[u8]) {
        self.chunk.event(stream, event);
        self.push_large();
    }

    fn functions(&mut self, run: &Run<'_>) {
        self.chunk.functions(run);
        self.push_large();
    }

    fn settled(&mut self, until: u64) {
        self.chunk.settled(until);
    }
}
