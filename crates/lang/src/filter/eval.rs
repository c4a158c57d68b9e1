//! Evaluates a filter over events.

use super::ir::{Subject, Text, Value};
use super::{Context, Filter, Missing, Verdict};
use events::layout::{CAP_NO_RESULT, CAP_START_UNKNOWN};
use events::traces::own;
use events::{Cap, Event, Type};

/// An event, and what else is known about it.
struct Reader<'e> {
    event: &'e Event<'e>,
    context: &'e Context<'e>,
}

pub(super) fn matches(filter: &Filter, event: &Event<'_>, context: &Context<'_>) -> Verdict {
    let mut reader = Reader { event, context };
    if let Some(missing) = reader.missing(filter) {
        return Verdict::Unknown(missing);
    }
    for &part in &filter.order {
        match filter.parts[part].cond.eval(&mut reader) {
            Ok(true) => {}
            Ok(false) => return Verdict::Rejected(part),
            Err(missing) => return Verdict::Unknown(missing),
        }
    }
    Verdict::Pass
}

impl Reader<'_> {
    /// What the filter names and this event lacks.
    fn missing(&self, filter: &Filter) -> Option<Missing> {
        let (n, e, c) = (&filter.needs, self.event, self.context);
        let caps = e.caps();
        [
            (e.schema.base != filter.schema || e.schema.name != filter.name, Missing::Probe),
            (n.retval && caps & CAP_NO_RESULT != 0, Missing::Retval),
            (n.start && caps & CAP_START_UNKNOWN != 0, Missing::Start),
            (n.cpu && e.cpus().0.or(c.cpu).is_none(), Missing::Cpu),
            (n.uid && c.uid.is_none(), Missing::Uid),
            (n.gid && c.gid.is_none(), Missing::Gid),
            (n.comm && c.comm.is_none(), Missing::Comm),
        ]
        .into_iter()
        .find(|m| m.0)
        .map(|m| m.1)
    }

    fn value_of(&self, v: Value) -> i64 {
        let e = self.event;
        match v {
            Value::Pid => own(e.pid()).into(),
            Value::Tid => own(e.tid()).into(),
            Value::Uid => self.context.uid.unwrap_or_default().into(),
            Value::Gid => self.context.gid.unwrap_or_default().into(),
            Value::Cpu => e.cpus().0.or(self.context.cpu).unwrap_or_default().into(),
            Value::Nsecs => e.time() as i64,
            Value::Retval => e.ret(),
            Value::Dur => e.time().wrapping_sub(e.start()) as i64,
            Value::Arg(a) => a.cast.apply(e.arg(a.index.into()) as i64),
        }
    }

    fn text(&self, t: &Text) -> Result<bool, Missing> {
        let Subject::Arg(i) = t.subject else { return Ok(t.holds(until_nul(self.context.comm.unwrap_or_default()))) };
        let i = usize::from(i);
        // An address whose string was read for the filter only.
        if matches!(self.event.schema.args.get(i).map(|a| a.ty), Some(Type::Int(_))) {
            return Err(Missing::Text(i as u8));
        }
        let tail = self.event.tail(i, false).or_else(|| self.event.tail(i, true));
        let bytes = tail.map(|t| t.bytes).unwrap_or_default();
        match self.event.cap(i) {
            Cap::Whole => Ok(t.holds(bytes)),
            Cap::Cut => t.holds_cut(bytes).ok_or(Missing::Text(i as u8)),
            // The text may be there when the program comes to it.
            Cap::Fault if self.event.arg(i) != 0 => Err(Missing::Text(i as u8)),
            Cap::None | Cap::Fault => Ok(t.holds(b"")),
        }
    }
}

impl crate::ir::Reader<Value, Text> for Reader<'_> {
    type Stop = Missing;

    fn value(&mut self, v: &Value) -> Result<i64, Missing> {
        Ok(self.value_of(*v))
    }

    fn test(&mut self, t: &Text) -> Result<bool, Missing> {
        self.text(t)
    }
}

fn until_nul(b: &[u8]) -> &[u8] {
    b.split(|b| *b == 0).next().unwrap_or_default()
}
