//! Values of expressions.

use super::exec::{Leaf, Next, Result, Run, Stop};
use super::keys::within;
use super::memory::array;
use super::{Datum, Failure, Fault, Memory};
use crate::diag::Span;
use crate::ir::Reader;
use crate::script::ir::{Equal, Expr, Kind};
use crate::script::types::{Space, Type};
use crate::script::value::{Text, Value};
use crate::script::{library, time};

impl Run<'_> {
    /// A value; where there is none, that is said.
    fn told(&mut self, of: &Expr, at: Span) -> Result<Value> {
        let before = *self.bad_reads;
        let has_key = match &of.kind {
            Kind::Map(m, key) => self.with_key(key, |run, key| run.stores[*m].get(key).is_some())?,
            _ => true,
        };
        let value = self.any(of)?;
        let failure = match &of.kind {
            Kind::Delete(..) => (value.int() == 0).then_some(Failure::Delete),
            Kind::Map(..) => (!has_key).then_some(Failure::Lookup),
            Kind::Leaf(i) => self.event.is_fault(*i).then_some(Failure::Read),
            _ => (*self.bad_reads > before).then_some(Failure::Read),
        };
        if let Some(failure) = failure {
            self.host.failed(failure, at);
        }
        Ok(value)
    }

    pub(super) fn int(&mut self, e: &Expr) -> Result<i64> {
        Ok(match &e.kind {
            Kind::Const(v, _) => *v,
            Kind::Leaf(i) => match &self.leaves[*i] {
                Leaf::Of(Datum::Int(v) | Datum::At(v, ..)) => *v,
                Leaf::Of(Datum::Of(word, _)) => *word as i64,
                Leaf::Of(_) => 0,
                Leaf::Read(v) => v.int(),
            },
            Kind::Var(i) => self.vars[*i].as_ref().map_or(0, Value::int),
            Kind::Int(i) => i.eval(self)?,
            Kind::HasKey(m, key) => self.with_key(key, |run, key| run.stores[*m].read(key).is_some())?.into(),
            Kind::Delete(m, key) => {
                let had = self.with_key(key, |run, key| run.stores[*m].remove(key))?;
                self.keep_count(*m, had);
                had.into()
            }
            Kind::Length(m) => self.stores[*m].len() as i64,
            Kind::Kept(address, _) => self.int(address)?,
            Kind::Step { place, by, after } => {
                let old = self.change(place, |v| v.wrapping_add(*by))?;
                if *after { old } else { within(old.wrapping_add(*by), &e.ty) }
            }
            Kind::Find(m, key, var) => {
                let ty = &self.clause.vars[*var];
                match self.with_key(key, |run, key| run.stores[*m].read(key).map(|h| h.read(ty)))? {
                    Some(v) => {
                        self.vars[*var] = Some(v);
                        1
                    }
                    None => 0,
                }
            }
            _ => self.any(e)?.int(),
        })
    }

    /// Strings by their characters, all else by their values.
    pub(super) fn equal(&mut self, a: &Expr, b: &Expr) -> Result<bool> {
        if a.ty.is_text() && b.ty.is_text() {
            // Most comparisons are of a value of the event and a literal.
            if let (Kind::Leaf(i), Kind::Text(t)) = (&a.kind, &b.kind)
                && let Leaf::Of(Datum::Text(s, _)) = self.leaves[*i]
            {
                return Ok(s == &t[..]);
            }
            return Ok(self.any(a)?.chars() == self.any(b)?.chars());
        }
        Ok(self.any(a)? == self.any(b)?)
    }

    pub(super) fn any(&mut self, e: &Expr) -> Result<Value> {
        Ok(match &e.kind {
            Kind::Nothing => Value::Int(0),
            Kind::Text(b) if matches!(e.ty, Type::Str(_)) => Value::text(&b[..]),
            Kind::Text(b) => Value::Bytes(b.clone()),
            Kind::Leaf(i) => match &self.leaves[*i] {
                Leaf::Of(Datum::Int(v)) => Value::Int(*v),
                Leaf::Of(Datum::Text(b, cut)) => Value::Text(Text { bytes: b.to_vec(), cut: *cut }),
                Leaf::Of(Datum::At(v, b, cut)) => Value::At(*v, Text { bytes: b.to_vec(), cut: *cut }),
                Leaf::Of(Datum::Bytes(b)) => Value::Bytes(b.to_vec()),
                Leaf::Of(Datum::Strings(b)) => array(b),
                Leaf::Of(Datum::Of(word, pid)) => Value::Of { word: *word, pid: *pid },
                Leaf::Read(v) => v.clone(),
            },
            Kind::Var(i) => self.vars[*i].clone().unwrap_or_else(|| Value::zero(&e.ty)),
            Kind::Map(m, key) => {
                let ty = &e.ty;
                self.with_key(key, |run, key| run.stores[*m].read(key).map(|h| h.read(ty)))?
                    .unwrap_or_else(|| Value::zero(ty))
            }
            Kind::Choice(c, a, b) => {
                let yes = c.eval(self)?;
                self.any(if yes { a } else { b })?
            }
            Kind::Tuple(list) => Value::Tuple(list.iter().map(|e| self.any(e)).collect::<Result<_>>()?),
            Kind::Part(of, n) => match self.any(of)? {
                Value::Tuple(mut list) if *n < list.len() => list.swap_remove(*n),
                _ => Value::zero(&e.ty),
            },
            Kind::Load(address, space) => self.load(address, *space, &e.ty)?,
            Kind::Piece(of, offset) => {
                let (of, offset) = (self.any(of)?, offset.eval(self)?);
                let size = self.size(&e.ty);
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let bytes = of.bytes().get(start..start.saturating_add(size)).unwrap_or_default();
                Value::read(bytes, &e.ty)
            }
            Kind::TextAt(address, space, length) => self.text_at(address, *space, length)?,
            Kind::Kept(address, text) => {
                let address = self.int(address)?;
                match self.any(text)? {
                    Value::Text(text) => Value::At(address, text),
                    _ => Value::Int(address),
                }
            }
            Kind::Strings(address, space) => self.strings(address, *space)?,
            Kind::Block(stmts, value) => match self.stmts(stmts)? {
                Next::Go => self.any(value)?,
                next => return Err(Stop::Leave(next)),
            },
            Kind::Told(of, at) => self.told(of, *at)?,
            Kind::Call(name, args) => self.call(name, args, &e.ty)?,
            _ => Value::Int(self.int(e)?),
        })
    }

    fn call(&mut self, name: &str, args: &[Expr], ty: &Type) -> Result<Value> {
        match name {
            "speculation" => return Ok(Value::Int(self.speculations.open() as i64)),
            // xorshift64
            "rand" => {
                let mut x = *self.random;
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                *self.random = x;
                return Ok(Value::Int((x >> 32) as i64));
            }
            "usym" => return Ok(Value::Of { word: self.int(&args[0])? as u64, pid: self.event.pid() }),
            "frames" => {
                let stack = self.int(&args[0])? as u64;
                return self.event.frames(stack).map(|n| Value::Int(n as i64)).ok_or(Stop::Unknown);
            }
            "strftime" => {
                let ns = self.int(&args[1])? as u64;
                let wall = self.host.wall(Some(ns));
                let Kind::Text(format) = &args[0].kind else { return Ok(Value::text("")) };
                return Ok(Value::text(time::format(format, wall)));
            }
            "cgroup_path" => {
                let id = self.int(&args[0])? as u64;
                let filter = args.get(1).map(|e| self.any(e)).transpose()?;
                let filter = filter.as_ref().map_or(&b"*"[..], Value::chars);
                return Ok(Value::text(self.host.cgroup_path(id, filter)));
            }
            "buf at" => {
                let (address, n, user) = (self.int(&args[0])? as u64, self.int(&args[1])?, self.int(&args[2])?);
                let n = usize::try_from(n).unwrap_or(0).min(self.program.config.max_strlen as usize);
                let space = if user != 0 { Space::User } else { Space::Kernel };
                return match self.memory(space, address, n) {
                    Memory::Bytes(b) => Ok(Value::Bytes(b)),
                    Memory::Fault => {
                        *self.bad_reads += 1;
                        Ok(Value::Bytes(Vec::new()))
                    }
                    Memory::Unknown => Err(Stop::Unknown),
                };
            }
            _ => {}
        }
        let args = args.iter().map(|e| self.any(e)).collect::<Result<Vec<_>>>()?;
        library::call(name, &args, ty, self.program.config.max_strlen as usize).ok_or(Stop::Unknown)
    }
}

impl Reader<Box<Expr>, Box<Equal>> for Run<'_> {
    type Stop = Stop;

    fn value(&mut self, e: &Box<Expr>) -> Result<i64> {
        self.int(e)
    }

    fn test(&mut self, t: &Box<Equal>) -> Result<bool> {
        self.equal(&t.0, &t.1)
    }

    fn by_zero(&mut self, at: Span) {
        self.fault(Fault::DivisionByZero, at);
    }
}
