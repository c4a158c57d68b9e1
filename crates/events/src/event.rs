//! Reading events: a view over the bytes that [`crate::encode`] wrote.

pub use crate::cap::{Cap, Malformed};
use crate::layout::{self, Layout, Shape};
use crate::message::Cursor;
use crate::schema::{Class, Dir, FIRST_CAPS, MAX_ARGS, Ret, Schema};
use crate::types::Type;

/// A tail's bytes, without its length prefix for all but the nested shapes.
#[derive(Clone, Copy, Debug)]
pub struct Tail<'a> {
    /// Shape.
    pub shape: Shape,
    /// Elements, for [`Shape::One`] and [`Shape::Many`].
    pub n: usize,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// A decoded event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What it carries.
    pub schema: &'static Schema,
    /// Where each field is.
    pub layout: &'static Layout,
    /// The whole event.
    pub bytes: &'a [u8],
}

impl<'a> Event<'a> {
    /// Reads an event of the generated schemas from the front of `bytes`; the rest is ignored.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Event<'a>, Malformed> {
        let id = bytes.get(layout::ID..layout::ID + 2).ok_or(Malformed)?;
        let id = u16::from_le_bytes([id[0], id[1]]);
        let schema = crate::registry::by_id(id).ok_or(Malformed)?;
        let layout = crate::registry::layout(id).ok_or(Malformed)?;
        Event::with(bytes, schema, layout)
    }

    /// How many bytes the event at the front of `bytes` has.
    #[inline]
    pub fn length(bytes: &[u8]) -> Result<usize, Malformed> {
        let id = bytes.get(layout::ID..layout::ID + 2).ok_or(Malformed)?;
        let layout = crate::registry::layout(u16::from_le_bytes([id[0], id[1]])).ok_or(Malformed)?;
        layout_length(bytes, layout)
    }

    /// Reads an event of a known class.
    #[inline]
    pub fn with(bytes: &'a [u8], schema: &'static Schema, layout: &'static Layout) -> Result<Event<'a>, Malformed> {
        Ok(Event { schema, layout, bytes: &bytes[..layout_length(bytes, layout)?] })
    }

    #[inline]
    fn u64_at(&self, at: usize) -> u64 {
        let mut le = [0; 8];
        le.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_le_bytes(le)
    }
    #[inline]
    fn u32_at(&self, at: usize) -> u32 {
        let mut le = [0; 4];
        le.copy_from_slice(&self.bytes[at..at + 4]);
        u32::from_le_bytes(le)
    }
    #[inline]
    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// Moment of emission, ns of the monotonic clock.
    #[inline]
    pub fn time(&self) -> u64 {
        self.u64_at(0)
    }
    /// Capture bits.
    #[inline]
    pub fn caps(&self) -> u16 {
        self.u16_at(layout::CAP)
    }
    /// Thread.
    #[inline]
    pub fn tid(&self) -> u32 {
        self.u32_at(layout::TID)
    }
    /// Process.
    #[inline]
    pub fn pid(&self) -> u32 {
        self.u32_at(layout::PID)
    }
    /// Whether it is a system call.
    #[inline]
    pub fn is_syscall(&self) -> bool {
        self.schema.class == Class::Syscall
    }
    /// Whether it has a start, a result and processors.
    #[inline]
    pub fn is_span(&self) -> bool {
        self.schema.is_span()
    }
    /// Start of the span, ns of the monotonic clock; of a point its time.
    #[inline]
    pub fn start(&self) -> u64 {
        if self.is_span() { self.u64_at(self.layout.start) } else { self.time() }
    }
    /// How long the span took, ns; none for points, and where the start is not known.
    #[inline]
    pub fn duration(&self) -> Option<u64> {
        let known = self.is_span() && self.caps() & layout::CAP_START_UNKNOWN == 0;
        known.then(|| self.time().saturating_sub(self.start()))
    }
    /// Raw result; 0 for points.
    #[inline]
    pub fn ret(&self) -> i64 {
        if self.is_span() { self.u64_at(self.layout.ret) as i64 } else { 0 }
    }
    /// The error number of a call, or of an operation of io_uring, that has failed. The results of other spans are no error numbers.
    #[inline]
    pub fn errno(&self) -> Option<i64> {
        let may_fail = self.is_syscall() || self.is_span() && crate::io_uring::is_operation(self.schema);
        if may_fail && self.caps() & layout::CAP_NO_RESULT == 0 { crate::errno::of_result(self.ret()) } else { None }
    }
    /// Processors at entry and at exit.
    #[inline]
    pub fn cpus(&self) -> (Option<u16>, Option<u16>) {
        let known = |at: usize| Some(self.u16_at(at)).filter(|&c| c != layout::NO_CPU);
        if self.is_span() { (known(self.layout.cpu.0), known(self.layout.cpu.1)) } else { (None, None) }
    }
    /// The value of argument `i`: narrow ones are sign-extended where their type is signed.
    #[inline]
    pub fn arg(&self, i: usize) -> u64 {
        let (off, width) = self.layout.args[i];
        let raw = if width == 8 { self.u64_at(usize::from(off)) } else { u64::from(self.u32_at(usize::from(off))) };
        match self.schema.args[i].ty {
            crate::types::Type::Int(int) => int.fit(raw),
            _ => raw,
        }
    }
    /// All argument values.
    pub fn args(&self) -> [u64; MAX_ARGS] {
        let mut v = [0; MAX_ARGS];
        for (i, v) in v.iter_mut().enumerate().take(self.schema.args.len()) {
            *v = self.arg(i);
        }
        v
    }
    /// Whether nobody knows the arguments: the entry of an execve was not seen, and the thread has the registers of the new program by now.
    pub fn arguments_are_gone(&self) -> bool {
        self.caps() & layout::CAP_START_UNKNOWN != 0
            && self.is_syscall()
            && matches!(self.schema.name, "execve" | "execveat")
            && self.errno().is_none()
            && (0..crate::registry::own_args(self.schema)).all(|i| self.arg(i) == 0)
    }
    /// The type and direction of argument `i`: [`Schema::resolve`] with the event's values; none where nobody knows them.
    #[inline]
    pub fn resolve(&self, i: usize) -> Option<(&'static Type, Dir)> {
        if self.caps() & layout::CAP_START_UNKNOWN != 0
            && self.arguments_are_gone()
            && i < crate::registry::own_args(self.schema)
        {
            return None;
        }
        let arg = &self.schema.args[i];
        // The values of all arguments take longer than all the rest.
        match &arg.ty {
            Type::Switch { .. } => self.schema.resolve(i, &self.args()[..self.schema.args.len()]),
            _ if arg.cond.is_some() => self.schema.resolve(i, &self.args()[..self.schema.args.len()]),
            ty => Some((ty, arg.dir)),
        }
    }
    /// The result's type: [`Schema::ret_type`] with the event's values.
    #[inline]
    pub fn ret_type(&self) -> Ret {
        match self.schema.args.iter().any(|a| matches!(a.ty, Type::Switch { .. })) {
            true => self.schema.ret_type(&self.args()[..self.schema.args.len()]),
            false => self.schema.ret,
        }
    }
    /// The outcome of the read of argument `i`.
    #[inline]
    pub fn cap(&self, i: usize) -> Cap {
        match (i.checked_sub(FIRST_CAPS), self.layout.more_caps) {
            (None, _) => Cap::from_bits((self.caps() >> (2 * i)) as u8),
            (Some(i), Some(at)) => Cap::from_bits((self.u64_at(at) >> (2 * i)) as u8),
            (Some(_), None) => Cap::Whole,
        }
    }
    /// The tail of argument `i` from entry or exit.
    #[inline]
    pub fn tail(&self, i: usize, out: bool) -> Option<Tail<'a>> {
        let at = self.layout.tails.iter().position(|t| usize::from(t.arg) == i && t.out == out)?;
        // Where each tail is depends on the lengths of those before it, of which there are few.
        let (before, shape) = (&self.layout.tails[..at], self.layout.tails[at].shape);
        let mut c = Cursor::new(self.bytes);
        c.take(self.layout.fixed).ok()?;
        before.iter().try_for_each(|t| skip_tail(&mut c, t.shape)).ok()?;
        let from = c.position();
        skip_tail(&mut c, shape).ok()?;
        let raw = &self.bytes[from..c.position()];
        Some(match shape {
            Shape::Str => Tail { shape, n: 0, bytes: &raw[..raw.len() - 1] },
            Shape::Bytes => Tail { shape, n: 0, bytes: &raw[2..] },
            Shape::One(_) => Tail { shape, n: usize::from(raw[0]), bytes: &raw[1..] },
            Shape::Many(_) => Tail { shape, n: usize::from(u16::from_le_bytes([raw[0], raw[1]])), bytes: &raw[2..] },
            Shape::Strv | Shape::Iov | Shape::Msg => Tail { shape, n: 0, bytes: raw },
        })
    }
    /// The bytes of the string or byte tail of the argument `name`; empty where there is none.
    pub fn bytes_of(&self, name: &str) -> &'a [u8] {
        let tail = self.schema.arg(name).and_then(|i| self.tail(i, false).or_else(|| self.tail(i, true)));
        tail.map(|t| t.bytes).unwrap_or_default()
    }
    /// The value of the argument `name`; 0 where there is none.
    pub fn value_of(&self, name: &str) -> u64 {
        self.schema.arg(name).map(|i| self.arg(i)).unwrap_or(0)
    }
}

/// Bytes of the event of a layout at the front of `bytes`.
#[inline]
fn layout_length(bytes: &[u8], layout: &Layout) -> Result<usize, Malformed> {
    // As many as an event has arguments.
    if layout.tails.len() > MAX_ARGS {
        return Err(Malformed);
    }
    let mut c = Cursor::new(bytes);
    c.take(layout.fixed)?;
    layout.tails.iter().try_for_each(|t| skip_tail(&mut c, t.shape))?;
    Ok(c.position())
}

#[inline]
fn skip_tail(c: &mut Cursor<'_>, shape: Shape) -> Result<(), Malformed> {
    match shape {
        Shape::Str => c.cstr().map(drop),
        Shape::Bytes => {
            let n = c.u16()?;
            c.take(usize::from(n)).map(drop)
        }
        Shape::One(size) => match c.u8()? {
            n @ (0 | 1) => c.take(usize::from(n) * usize::from(size)).map(drop),
            _ => Err(Malformed),
        },
        Shape::Many(size) => {
            let n = c.u16()?;
            c.take(usize::from(n) * usize::from(size)).map(drop)
        }
        Shape::Strv => c.strv().map(drop),
        Shape::Iov => c.iov().map(drop),
        Shape::Msg => {
            let n = c.u16()?;
            for _ in 0..n {
                c.msg()?;
            }
            Ok(())
        }
    }
}
