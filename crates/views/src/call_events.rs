//! Events of a session or a trace as calls: function records that were made events, ends of threads, and system calls where they are asked for.

use crate::calls::{CallView, Functions, Step, SystemCall, Thread, What};
use crate::profile::name;
use crate::text::Text;
use crate::{Options, View};
use events::Event;
use events::functions::{Kind, kind};
use events::generated::{P_EXEC, P_EXIT, P_RESUMED, P_UNTRACED};
use events::names::{FunctionName, Names};
use events::values::Signature;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// Most functions of which names are kept.
const MOST: usize = 1 << 22;

/// Makes the shown name of a function.
pub type Shown = fn(&FunctionName<'_>) -> String;

/// A function that events have named.
#[derive(Debug)]
struct Named {
    shown: String,
    whole: String,
    module: String,
    aliases: Vec<String>,
    signature: Option<Signature>,
}

/// Functions that events have named.
#[derive(Debug, Default)]
struct Seen {
    all: HashMap<u32, Named>,
}

impl Functions for Seen {
    fn name(&self, number: u32) -> Option<&str> {
        self.all.get(&number).map(|f| f.shown.as_str())
    }

    fn whole_name(&self, number: u32) -> Option<&str> {
        self.all.get(&number).map(|f| f.whole.as_str())
    }

    fn aliases(&self, number: u32) -> &[String] {
        self.all.get(&number).map_or(&[], |f| &f.aliases)
    }

    fn module(&self, number: u32) -> &str {
        self.all.get(&number).map_or("", |f| f.module.as_str())
    }

    fn signature(&self, number: u32) -> Option<&Signature> {
        self.all.get(&number)?.signature.as_ref()
    }
}

/// Shows events by a view of calls.
pub struct CallEvents<V> {
    view: V,
    seen: Seen,
    /// Processes and threads that have made a step and not ended.
    threads: BTreeSet<(u32, u32)>,
    /// Those that have ended, and when: the view gets them with the next event.
    ended: Vec<((u32, u32), u64)>,
    /// The time of the last event of any kind.
    last: u64,
    shown: Shown,
    /// Shows system calls, if they are asked for.
    text: Option<Text>,
    line: Vec<u8>,
}

impl<V: CallView> CallEvents<V> {
    /// A view of function calls alone, which shows demangled names.
    pub fn new(view: V) -> CallEvents<V> {
        CallEvents {
            view,
            seen: Seen::default(),
            threads: BTreeSet::new(),
            ended: Vec::new(),
            last: 0,
            shown: |f| f.name.to_owned(),
            text: None,
            line: Vec::new(),
        }
    }

    /// With these names.
    pub fn names(self, shown: Shown) -> CallEvents<V> {
        CallEvents { shown, ..self }
    }

    /// With the system calls of the threads, as strace shows them.
    pub fn system_calls(mut self, options: Options) -> CallEvents<V> {
        self.text = Some(Text::new(options));
        self
    }

    /// The view.
    pub fn view(&self) -> &V {
        &self.view
    }

    /// The view, for what no event says.
    pub fn view_mut(&mut self) -> &mut V {
        &mut self.view
    }

    fn function(&mut self, ev: &Event<'_>, names: &dyn Names) -> u32 {
        // What does not fit is not a number of a function.
        let number = u32::try_from(ev.value_of("number")).unwrap_or(0);
        if !self.seen.all.contains_key(&number) && self.seen.all.len() < MOST {
            let whole = String::from_utf8_lossy(ev.bytes_of("function")).into_owned();
            let known = names.function(number);
            let shown = known.map_or_else(|| whole.clone(), |f| (self.shown)(&f));
            let module = known.map_or("", |f| f.module).to_owned();
            let aliases = known.map_or(&[][..], |f| f.aliases).to_vec();
            let signature = names.signature(number).cloned();
            self.seen.all.insert(number, Named { shown, whole, module, aliases, signature });
        }
        number
    }

    /// Notifies the view of threads that have ended. Calls that are open there have lasted until then.
    fn end_threads(&mut self, out: &mut Vec<u8>) {
        for ((pid, tid), time) in self.ended.drain(..) {
            self.view.step(Thread { pid, tid, comm: "" }, Step { time, what: What::End }, &self.seen, out);
        }
    }

    /// The session was stopped and runs again: the open calls of all threads are unknown.
    fn resumed(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        // Several streams say it: a thread is reported once, until it makes another step.
        for (pid, tid) in std::mem::take(&mut self.threads) {
            let comm = names.comm(tid).and_then(|comm| std::str::from_utf8(comm).ok()).unwrap_or_default();
            let thread = Thread { pid, tid, comm };
            self.view.step(thread, Step { time: ev.time(), what: What::Pause }, &self.seen, out);
        }
    }

    /// A program whose functions are not in the trace: shown where a system call would be.
    fn untraced(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        let text = |arg: &str| String::from_utf8_lossy(ev.bytes_of(arg)).into_owned();
        let text = name::visible(&format!("/* not traced: {}: {} */", text("path"), text("why"))).into_owned();
        let call = SystemCall { start: ev.time(), end: ev.time(), name: "untraced", text: &text };
        self.view.system_call(thread(ev, &comm(ev, names)), &call, &self.seen, out);
    }

    fn system_call(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        let Some(text) = &mut self.text else { return };
        self.line.clear();
        text.event(ev, names, &mut self.line);
        let line = String::from_utf8_lossy(&self.line);
        let call = SystemCall { start: ev.start(), end: ev.time(), name: ev.schema.name, text: line.trim_end() };
        self.view.system_call(thread(ev, &comm(ev, names)), &call, &self.seen, out);
    }
}

/// What a thread is called.
fn comm<'a>(ev: &Event<'_>, names: &'a dyn Names) -> Cow<'a, str> {
    match names.origin(ev.tid()) {
        Some(_) => names.called(ev.tid()),
        None => names.comm(ev.tid()).and_then(|comm| std::str::from_utf8(comm).ok()).unwrap_or_default().into(),
    }
}

fn thread<'a>(ev: &Event<'_>, comm: &'a str) -> Thread<'a> {
    Thread { pid: ev.pid(), tid: ev.tid(), comm }
}

impl<V: CallView> View for CallEvents<V> {
    fn see(&mut self, ev: &Event<'_>) {
        self.last = self.last.max(ev.time());
        let of = (ev.pid(), ev.tid());
        // Its end need not be among the events that are shown.
        if (ev.schema.id == P_EXIT.id || ev.schema.id == P_EXEC.id) && self.threads.remove(&of) {
            self.ended.push((of, ev.time()));
        }
    }

    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        self.end_threads(out);
        let what = match kind(ev.schema) {
            Some(Kind::Entry) => What::Entry(self.function(ev, names)),
            Some(Kind::Exit) => What::Exit(self.function(ev, names)),
            Some(Kind::Lost) => What::Gap { dropped: ev.value_of("records") },
            Some(Kind::Begun) => What::End,
            None if ev.schema.id == P_RESUMED.id => return self.resumed(ev, names, out),
            None if ev.schema.id == P_UNTRACED.id => return self.untraced(ev, names, out),
            None if ev.is_syscall() => return self.system_call(ev, names, out),
            None => return,
        };
        let of = (ev.pid(), ev.tid());
        // Calls are open in threads that have made one.
        if what == What::End {
            self.threads.remove(&of)
        } else {
            self.threads.insert(of)
        };
        if matches!(what, What::Entry(_) | What::Exit(_)) {
            self.view.values(ev.bytes_of("values"));
        }
        self.view.step(thread(ev, &comm(ev, names)), Step { time: ev.time(), what }, &self.seen, out);
    }

    fn lost(&mut self, events: u64) {
        self.view.lost(events);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let last = self.last;
        self.ended.extend(std::mem::take(&mut self.threads).into_iter().map(|of| (of, last)));
        self.end_threads(out);
        self.view.end(&self.seen, out);
    }
}

impl CallView for Box<dyn CallView> {
    fn values(&mut self, values: &[u8]) {
        (**self).values(values);
    }

    fn step(&mut self, thread: Thread<'_>, step: Step, functions: &dyn Functions, out: &mut Vec<u8>) {
        (**self).step(thread, step, functions, out);
    }

    fn system_call(&mut self, thread: Thread<'_>, call: &SystemCall<'_>, functions: &dyn Functions, out: &mut Vec<u8>) {
        (**self).system_call(thread, call, functions, out);
    }

    fn flush(&mut self, now: u64, functions: &dyn Functions, out: &mut Vec<u8>) {
        (**self).flush(now, functions, out);
    }

    fn lost(&mut self, events: u64) {
        (**self).lost(events);
    }

    fn end(&mut self, functions: &dyn Functions, out: &mut Vec<u8>) {
        (**self).end(functions, out);
    }
}
