//! A script among the views of a session or of a report: its lines are between theirs, and they show what was asked for otherwise.

use super::catalogue::Found;
use super::sink::{Script, ScriptSink};
use crate::output::{Output, complain};
use crate::show::ToOutput;
use engine::Result;
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::recorder::Monitor;
use engine::pipeline::world::World;
use engine::provider::quoting;
use engine::request::call_enabling::{self, CallEnabling};
use engine::request::parse::Request;
use engine::request::select::Calls;
use events::names::Names;
use events::{Class, Event, Schema, functions};
use lang::filter::Context;
use lang::pattern::glob;
use lang::{Filter, Verdict};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The word before the time at which a script has ended, in the end record of a trace.
pub const END: &str = "script";

/// Distinguishes events that only a script wants from other requested events.
pub struct Unasked {
    /// Calls that only the script wants.
    pub calls: String,
    /// They have asked for signals and ends.
    pub lives: bool,
    /// The probes of the script.
    pub probes: Vec<String>,
    /// What others have asked for of these, and of calls.
    pub asked: Vec<String>,
    hidden: Calls,
    enablings: Vec<CallEnabling>,
    requests: Vec<Request>,
    aliases: HashMap<String, Vec<(String, String)>>,
    /// By class, and number of a function.
    known: HashMap<(u16, u32), Shown>,
}

/// Whether an event of a probe is shown.
enum Shown {
    Always,
    Never,
    /// Where one of these passes.
    Where(Vec<Filter>),
}

impl Unasked {
    /// `calls` and `asked` are in the form of `-e`; `found` has the other names of arguments.
    pub fn new(calls: &str, lives: bool, probes: Vec<String>, asked: Vec<String>, found: &Found) -> Result<Unasked> {
        let requests = asked.iter().map(|r| Request::parse(r)).collect::<Result<Vec<_>>>()?;
        let enablings = call_enabling::call_enablings(&requests)?;
        let enablings = if enablings.iter().any(|e| e.filter.is_some()) { enablings } else { Vec::new() };
        Ok(Unasked {
            hidden: Calls::parse(calls)?,
            calls: calls.into(),
            lives,
            probes,
            asked,
            enablings,
            requests,
            aliases: found.values().flatten().cloned().collect(),
            known: HashMap::new(),
        })
    }

    /// Whether others have asked for the event.
    pub fn passes(&mut self, ev: &Event<'_>, names: &dyn Names) -> bool {
        match (ev.schema.class, ev.schema.name) {
            (Class::Syscall, _) => !self.hidden.contains(ev.schema) && self.call(ev, names),
            (Class::Probe, _) => self.probe(ev, names),
            (_, "exit" | "superseded" | "signal" | "stop") => self.lives,
            (_, "inflight") => Event::parse(ev.bytes_of("call")).is_ok_and(|call| !self.hidden.contains(call.schema)),
            _ => true,
        }
    }

    fn call(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        let mut of = self.enablings.iter().filter(|e| e.calls.contains(ev.schema)).peekable();
        of.peek().is_none() || of.any(|e| e.typed.get(&ev.schema.base).is_none_or(|f| passes(f, ev, names)))
    }

    fn probe(&mut self, ev: &Event<'_>, names: &dyn Names) -> bool {
        let is_function = matches!(functions::kind(ev.schema), Some(functions::Kind::Entry | functions::Kind::Exit));
        let key = (ev.schema.id, if is_function { ev.value_of("number") as u32 } else { 0 });
        if !self.known.contains_key(&key) {
            let name = match is_function {
                true => format!("function:{}", String::from_utf8_lossy(ev.bytes_of("function"))),
                false => quoting::unquote(ev.schema.name),
            };
            let shown = self.shown(&name, ev.schema);
            self.known.insert(key, shown);
        }
        match self.known.get(&key) {
            Some(Shown::Never) => false,
            Some(Shown::Where(filters)) => filters.iter().any(|f| passes(f, ev, names)),
            _ => true,
        }
    }

    fn shown(&self, name: &str, schema: &'static Schema) -> Shown {
        let is_it = |pattern: &String| glob(quoting::unquote(pattern).as_bytes(), name.as_bytes());
        if !self.probes.iter().any(is_it) {
            return Shown::Always;
        }
        let of: Vec<&Request> = self.requests.iter().filter(|r| r.names.iter().any(is_it)).collect();
        let aliases = self.aliases.get(schema.name);
        let called = |name: &str| aliases?.iter().find(|a| a.0 == name).map(|a| a.1.clone());
        let typed = |text: &String| lang::filter::parse(text, &[]).ok()?.renamed(&called).check(schema).ok();
        match of.iter().map(|r| r.filter.as_ref()).collect::<Option<Vec<_>>>() {
            _ if of.is_empty() => Shown::Never,
            None => Shown::Always,
            Some(filters) => Shown::Where(filters.into_iter().filter_map(typed).collect()),
        }
    }
}

fn passes(filter: &Filter, ev: &Event<'_>, names: &dyn Names) -> bool {
    let (uid, gid) = names.ids(ev.tid());
    filter.matches(ev, &Context { comm: names.comm(ev.tid()), uid, gid, cpu: None }) == Verdict::Pass
}

/// A view of what was asked for.
pub struct Asked {
    pub unasked: Rc<RefCell<Unasked>>,
    pub view: ToOutput,
}

impl Sink for Asked {
    fn expect_several(&mut self) {
        self.view.expect_several();
    }

    fn observe(&mut self, ev: &Event<'_>) {
        self.view.observe(ev);
    }

    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        if self.unasked.borrow_mut().passes(ev, world) { self.view.event(ev, world) } else { Ok(Flow::Continue) }
    }

    fn idle(&mut self, now: u64) -> Result<Flow> {
        self.view.idle(now)
    }

    fn flush(&mut self) -> Result<Flow> {
        self.view.flush()
    }

    fn lost(&mut self, events: u64) {
        self.view.lost(events);
    }

    fn end(&mut self) -> Result<()> {
        self.view.end()
    }

    fn take_lost(&mut self) -> Vec<u16> {
        self.view.take_lost()
    }

    fn has_written(&self) -> bool {
        self.view.has_written()
    }
}

/// A script, and the view whose lines its own are among; without one, they are on stdout.
pub struct Among {
    script: ScriptSink,
    view: Option<Asked>,
    own: Output,
    /// What is printed at the end.
    last: Vec<u8>,
    says: bool,
    /// Of the trace that is recorded, which has the time of the end.
    pub monitor: Option<Monitor>,
}

impl Among {
    /// Takes what the script has printed so far.
    pub fn new(script: &Rc<RefCell<Script>>, view: Option<Asked>, says: bool) -> Among {
        let script = ScriptSink(Rc::clone(script));
        let mut among = Among { script, view, own: Output::stdout(), last: Vec::new(), says, monitor: None };
        among.write();
        among.out().flush();
        among
    }

    fn out(&mut self) -> &mut Output {
        place(&mut self.view, &mut self.own)
    }

    /// Writes what the script has printed.
    fn write(&mut self) {
        let mut script = self.script.0.borrow_mut();
        let text = script.printed();
        if !text.is_empty() {
            place(&mut self.view, &mut self.own).write_lines(text);
            text.clear();
        }
    }

    /// Of the view and the script together. What `exit` ends is a session; over the past the view goes on.
    fn flow(&mut self, view: Flow, script: Flow) -> Result<Flow> {
        self.write();
        let is_past = self.script.0.borrow().is_past();
        match self.out().take_trouble() {
            Some(e) => Err(e),
            None if view == Flow::Stop || self.out().failed() => Ok(Flow::Stop),
            None if script == Flow::End && !is_past => Ok(Flow::End),
            None => Ok(Flow::Continue),
        }
    }
}

/// Where the lines go.
fn place<'a>(view: &'a mut Option<Asked>, own: &'a mut Output) -> &'a mut Output {
    view.as_mut().map_or(own, |asked| &mut asked.view.out)
}

impl Sink for Among {
    fn expect_several(&mut self) {
        self.view.iter_mut().for_each(Asked::expect_several);
    }

    fn command(&mut self, pid: i32) {
        self.script.command(pid);
    }

    fn observe(&mut self, ev: &Event<'_>) {
        self.view.iter_mut().for_each(|view| view.observe(ev));
    }

    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        // Intervals that were due before.
        self.script.0.borrow_mut().until(ev.time(), Some(world));
        self.write();
        let view = self.view.as_mut().map_or(Ok(Flow::Continue), |view| view.event(ev, world))?;
        let script = self.script.event(ev, world)?;
        self.flow(view, script)
    }

    fn names_addresses(&self) -> bool {
        self.script.names_addresses()
    }

    fn idle(&mut self, now: u64) -> Result<Flow> {
        let view = self.view.as_mut().map_or(Ok(Flow::Continue), |view| view.idle(now))?;
        let script = self.script.idle(now)?;
        self.flow(view, script)
    }

    fn catch_up(&mut self, now: u64, world: &World) -> Result<Flow> {
        let script = self.script.catch_up(now, world)?;
        if now == u64::MAX {
            // Behind what the view shows at the end.
            self.last.append(self.script.0.borrow_mut().printed());
            let ended = self.script.0.borrow().ended();
            if let (Some(monitor), Some(ended)) = (&self.monitor, ended) {
                monitor.say(format!("{END} {ended}"));
            }
        }
        self.flow(Flow::Continue, script)
    }

    fn flush(&mut self) -> Result<Flow> {
        self.out().flush();
        self.flow(Flow::Continue, Flow::Continue)
    }

    fn lost(&mut self, events: u64) {
        self.view.iter_mut().for_each(|view| view.lost(events));
        self.script.lost(events);
    }

    fn end(&mut self) -> Result<()> {
        self.script.end()?;
        let mut text = std::mem::take(&mut self.last);
        text.append(self.script.0.borrow_mut().printed());
        if let Some(Asked { view: ToOutput { shown, out }, .. }) = &mut self.view {
            shown.end(out);
        }
        self.out().write_lines(&text);
        self.out().close();
        if self.says {
            self.script.0.borrow().troubles().iter().for_each(|line| complain(line));
        }
        self.out().take_trouble().map_or(Ok(()), Err)
    }

    fn take_lost(&mut self) -> Vec<u16> {
        self.out().take_lost()
    }

    fn has_written(&self) -> bool {
        self.view.as_ref().map_or(&self.own, |asked| &asked.view.out).has_written()
    }
}
