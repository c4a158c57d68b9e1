//! One run of a clause: expressions and statements of the program, over an event.

use super::speculation::{Printed, Speculations};
use super::{Datum, Event, Failure, Fault, Host, Memory};
use crate::diag::Span;
use crate::ir::Reader;
use crate::script::ir::{Clause, Column, Equal, Expr, Int, Kind, Place, Program, Speculate, Stmt, What, Writing};
use crate::script::library;
use crate::script::maps::{self, Held, Row, Store};
use crate::script::time;
use crate::script::types::{Aggregate, Space, Type};
use crate::script::value::{Text, Value, with_length};
use events::event::Cap;
use events::message::Cursor;
use std::collections::BTreeMap;

/// Below it there is no memory: the kernel gives the first page to nobody.
const LOWEST: u64 = 4096;
/// So many strings of an array are read.
const MAX_STRINGS: usize = 16;

/// Why an expression has no value.
pub(super) enum Stop {
    /// Something is not known.
    Unknown,
    /// A block in it has left the loop, or the clause.
    Leave(Next),
}

type Result<T> = std::result::Result<T, Stop>;

/// Where a statement leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Go,
    Break,
    Continue,
    Return,
}

/// What a clause has read of the event.
pub(super) enum Leaf<'r> {
    /// The event's own.
    Of(Datum<'r>),
    /// What was read of memory.
    Read(Value),
}

pub(super) struct Run<'r> {
    pub program: &'r Program,
    pub clause: &'r Clause,
    pub stores: &'r mut [Store],
    pub faults: &'r mut BTreeMap<(Fault, usize, usize), u64>,
    pub bad_reads: &'r mut u64,
    pub random: &'r mut u64,
    pub exit: &'r mut Option<i32>,
    pub vars: &'r mut Vec<Option<Value>>,
    pub key: Vec<u8>,
    pub leaves: Vec<Leaf<'r>>,
    pub rounds: u32,
    pub speculations: &'r mut Speculations,
    /// The speculation that keeps what is printed.
    pub speculating: Option<u64>,
    pub event: &'r dyn Event,
    pub host: &'r mut dyn Host,
}

impl<'r> Run<'r> {
    /// Whether the predicate held, and the body ran.
    pub fn clause(&mut self) -> Result<bool> {
        let c = self.clause;
        self.fetch(c.predicate_leaves)?;
        if let Some(p) = &c.predicate
            && !p.eval(self)?
        {
            return Ok(false);
        }
        self.fetch(c.leaves.len())?;
        self.stmts(&c.body)?;
        Ok(true)
    }

    /// Adds what was collected for its only statement, where the predicate holds.
    pub fn collected(&mut self, held: Held) -> Result<bool> {
        let c = self.clause;
        self.fetch(c.leaves.len())?;
        if let Some(p) = &c.predicate
            && !p.eval(self)?
        {
            return Ok(false);
        }
        if let Some(Stmt::Collect(m, key, ..) | Stmt::Change(Place::Map(m, key), ..)) = c.body.first() {
            let ty = &self.program.maps[*m].value;
            self.with_key(key, |run, key| {
                if let Some(at) = run.stores[*m].at(key, || Held::new(ty)) {
                    at.join(ty, held);
                }
            })?;
        }
        Ok(true)
    }

    /// Takes what the clause reads of the event, so that all of it is known before anything happens.
    fn fetch(&mut self, up_to: usize) -> Result<()> {
        for (i, leaf) in self.clause.leaves.iter().enumerate().take(up_to).skip(self.leaves.len()) {
            let clause = self.clause;
            let found = match (self.event.leaf(i, leaf), &leaf.what) {
                (Some(datum), _) => Leaf::Of(datum),
                (None, _) if clause.idle.contains(&i) => Leaf::Of(Datum::Int(0)),
                // Who has memory itself is asked for that, where the address is known.
                (None, What::Memory(n))
                    if clause.idle.iter().all(|i| self.event.leaf(*i, &clause.leaves[*i]).is_some()) =>
                {
                    let program = self.program;
                    Leaf::Read(self.any(&program.hoisted.get(*n).ok_or(Stop::Unknown)?.expr)?)
                }
                (None, _) => return Err(Stop::Unknown),
            };
            self.leaves.push(found);
        }
        Ok(())
    }

    fn fault(&mut self, fault: Fault, span: Span) {
        *self.faults.entry((fault, span.start, span.end)).or_default() += 1;
    }

    /// A map has no room for a key.
    fn is_full(&mut self) {
        self.host.failed(Failure::Update, self.clause.span);
    }

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

    // Statements.

    fn stmts(&mut self, list: &[Stmt]) -> Result<Next> {
        for s in list {
            match self.stmt(s) {
                Ok(Next::Go) => {}
                Ok(next) | Err(Stop::Leave(next)) => return Ok(next),
                Err(unknown) => return Err(unknown),
            }
        }
        Ok(Next::Go)
    }

    /// One more round of a loop. None: the loop ends; with whether the run does.
    fn round(&mut self, body: &[Stmt], span: Span) -> Result<Option<Next>> {
        if self.rounds == 0 {
            self.fault(Fault::TooManyRounds, span);
            return Ok(Some(Next::Return));
        }
        self.rounds -= 1;
        Ok(match self.stmts(body)? {
            Next::Go | Next::Continue => None,
            Next::Break => Some(Next::Go),
            Next::Return => Some(Next::Return),
        })
    }

    fn stmt(&mut self, s: &Stmt) -> Result<Next> {
        match s {
            Stmt::Eval(e) => drop(self.any(e)?),
            Stmt::Set(Place::Var(i), e) => self.vars[*i] = Some(self.any(e)?),
            Stmt::Set(Place::Map(m, key), e) => {
                let v = self.any(e)?;
                self.with_key(key, |run, key| match run.stores[*m].at(key, || Held::Value(Value::Int(0))) {
                    Some(held) => *held = Held::Value(v),
                    None => run.is_full(),
                })?;
            }
            Stmt::Change(place, op, e) => {
                let amount = e.eval(self)?;
                if let Some(at) = op.counted(amount) {
                    self.by_zero(at);
                }
                self.change(place, |old| op.apply(old, amount))?;
            }
            Stmt::Collect(m, key, aggregate, e, weight) => {
                let v = e.as_ref().map_or(Ok(0), |e| e.eval(self))?;
                let weight = weight.as_ref().map_or(Ok(1), |e| e.eval(self))?;
                let weight = u64::try_from(weight).unwrap_or(0);
                let map = &self.program.maps[*m];
                // What the map has become over all clauses, such as signed, is what counts.
                let aggregate = if let Type::Aggregate(a) = map.value { a } else { *aggregate };
                self.with_key(key, |run, key| match run.stores[*m].at(key, || Held::new(&map.value)) {
                    Some(held) => held.collect(aggregate, v, weight),
                    None => run.is_full(),
                })?;
            }
            Stmt::If(arms, otherwise) => {
                for (c, body) in arms {
                    if c.eval(self)? {
                        return self.stmts(body);
                    }
                }
                return self.stmts(otherwise);
            }
            Stmt::While(c, body, span) => {
                while c.eval(self)? {
                    if let Some(next) = self.round(body, *span)? {
                        return Ok(next);
                    }
                }
            }
            Stmt::Repeat(n, body) => {
                for _ in 0..*n {
                    if let Some(next) = self.round(body, self.clause.span)? {
                        return Ok(next);
                    }
                }
            }
            Stmt::Range(var, from, to, body, span) => {
                let (from, to) = (from.eval(self)?, to.eval(self)?);
                for i in from..to {
                    self.vars[*var] = Some(Value::Int(i));
                    if let Some(next) = self.round(body, *span)? {
                        return Ok(next);
                    }
                }
            }
            Stmt::Each(var, m, body) => return self.each(*var, *m, body),
            Stmt::Block(body) => return self.stmts(body),
            Stmt::Function(body) => {
                let next = self.stmts(body)?;
                // Of the whole clause: by exit(), or because there were too many rounds.
                if next == Next::Return && (self.exit.is_some() || self.rounds == 0) {
                    return Ok(next);
                }
            }
            Stmt::Break => return Ok(Next::Break),
            Stmt::Continue => return Ok(Next::Continue),
            Stmt::Return => return Ok(Next::Return),
            Stmt::Exit(code) => {
                let code = code.as_ref().map_or(Ok(0), |e| e.eval(self))?;
                self.exit.get_or_insert(code as i32);
                return Ok(Next::Return);
            }
            other => self.print(other)?,
        }
        Ok(Next::Go)
    }

    /// A round for each pair that the map has at the start.
    fn each(&mut self, var: usize, m: usize, body: &[Stmt]) -> Result<Next> {
        let map = &self.program.maps[m];
        let value = if let Type::Aggregate(a) = &map.value { a.value() } else { map.value.clone() };
        let pair = |(key, held): (&[u8], &Held)| {
            let mut key = maps::parts(key, &map.key);
            let key = if key.len() == 1 { key.remove(0) } else { Value::Tuple(key) };
            Value::Tuple(vec![key, held.read(&value)])
        };
        let pairs: Vec<Value> = self.stores[m].pairs().into_iter().map(pair).collect();
        for pair in pairs {
            self.vars[var] = Some(pair);
            if let Some(next) = self.round(body, self.clause.span)? {
                return Ok(next);
            }
        }
        Ok(Next::Go)
    }

    /// Prints, or keeps it for a speculation.
    fn show(&mut self, printed: Printed) {
        match self.speculating {
            Some(number) => self.speculations.keep(number, printed),
            None => printed.show(self.program, self.host),
        }
    }

    /// Maps side by side: a line for each key that one of them has, in the order of the first one's values.
    fn print_all(&mut self, maps: &[usize], site: usize, columns: &[Column]) {
        let Some(first) = maps.first().map(|m| &self.program.maps[*m]) else { return };
        let mut all: BTreeMap<&[u8], ()> = BTreeMap::new();
        maps.iter().for_each(|m| all.extend(self.stores[*m].pairs().into_iter().map(|(key, _)| (key, ()))));
        let held = |m: usize, key: &[u8]| {
            let map = &self.program.maps[m];
            self.stores[m].get(key).cloned().unwrap_or_else(|| Held::new(&map.value))
        };
        let mut rows: Vec<(Row, &[u8])> = Vec::new();
        for key in all.into_keys() {
            rows.push((Row { key: maps::parts(key, &first.key), held: held(maps[0], key) }, key));
        }
        rows.sort_by(|a, b| maps::order(first, &a.0, &b.0));
        let value = |row: &(Row, &[u8]), column: &Column| match column {
            Column::Key(i) => row.0.key.get(*i).cloned().unwrap_or(Value::Int(0)),
            Column::Map(i) => {
                let ty = &self.program.maps[maps[*i]].value;
                held(maps[*i], row.1).read(&if let Type::Aggregate(a) = ty { a.value() } else { ty.clone() })
            }
        };
        let lines: Vec<Vec<Value>> = rows.iter().map(|r| columns.iter().map(|c| value(r, c)).collect()).collect();
        lines.into_iter().for_each(|args| self.show(Printed::Write(Writing::Printf, site, args)));
    }

    fn print(&mut self, s: &Stmt) -> Result<()> {
        match s {
            Stmt::PrintAll(maps, site, columns) => self.print_all(maps, *site, columns),
            Stmt::Speculate(how, number) => {
                let number = number.eval(self)? as u64;
                if *how == Speculate::Begin {
                    self.speculating = Some(number);
                    return Ok(());
                }
                if self.speculating == Some(number) {
                    self.speculating = None;
                }
                let kept = self.speculations.end(number, *how);
                kept.iter().for_each(|printed| printed.show(self.program, self.host));
            }
            Stmt::Write(writing, site, args) => {
                let args = args.iter().map(|e| self.any(e)).collect::<Result<Vec<_>>>()?;
                self.show(Printed::Write(*writing, *site, args));
            }
            Stmt::Print(e) => {
                let value = self.any(e)?;
                let own = matches!(e.kind, Kind::Text(_));
                self.show(Printed::Value(e.ty.clone(), value, own));
            }
            Stmt::PrintMap(m, top, div) => {
                let top = top.as_ref().map_or(Ok(0), |e| e.eval(self))?;
                let div = div.as_ref().map_or(Ok(1), |e| e.eval(self))?;
                let map = &self.program.maps[*m];
                let mut rows = self.stores[*m].rows(map, usize::try_from(top).unwrap_or(0));
                if rows.is_empty() && map.key.is_empty() {
                    rows.push(Row { key: Vec::new(), held: Held::new(&map.value) });
                }
                self.show(Printed::Map(*m, rows, div));
            }
            Stmt::PrintKey(m, key) => {
                let map = &self.program.maps[*m];
                let (held, key) = self.with_key(key, |run, key| {
                    let held = run.stores[*m].get(key).cloned().unwrap_or_else(|| Held::new(&map.value));
                    (held, maps::parts(key, &map.key))
                })?;
                self.show(Printed::Map(*m, vec![Row { key, held }], 1));
            }
            Stmt::Unwatch(address) => {
                let address = address.eval(self)? as u64;
                self.host.unwatch(address);
            }
            Stmt::Clear(m) => {
                let had = self.stores[*m].len() > 0;
                self.stores[*m].clear();
                self.keep_count(*m, had);
            }
            Stmt::Zero(m) => self.stores[*m].zero(&self.program.maps[*m].value),
            Stmt::Time(format) => {
                let wall = self.host.wall(None);
                self.show(Printed::Time(time::format(format, wall)));
            }
            Stmt::Join(e, separator) => {
                let list = match self.any(e)? {
                    Value::Tuple(list) => list,
                    one => vec![one],
                };
                let list: Vec<&[u8]> = list.iter().map(Value::chars).collect();
                let joined = list.join(&separator[..]);
                self.show(Printed::Join(joined));
            }
            _ => {}
        }
        Ok(())
    }

    /// The strings of an array of addresses that ends with a null one.
    fn strings(&mut self, array: &Int, space: Space) -> Result<Value> {
        let array = array.eval(self)? as u64;
        let mut out = Vec::new();
        for i in 0..MAX_STRINGS as u64 {
            let address = match self.memory(space, array.wrapping_add(8 * i), 8) {
                Memory::Bytes(b) => Value::read(&b, &Type::UINT).int() as u64,
                Memory::Fault => 0,
                Memory::Unknown => return Err(Stop::Unknown),
            };
            if address == 0 {
                break;
            }
            match self.text(space, address, self.program.config.max_strlen as usize) {
                Memory::Bytes(b) => out.push(Value::text(b)),
                Memory::Fault => *self.bad_reads += 1,
                Memory::Unknown => return Err(Stop::Unknown),
            }
        }
        Ok(Value::Tuple(out))
    }

    // Maps.

    /// A count without keys that was taken away goes on from zero.
    fn keep_count(&mut self, m: usize, had: bool) {
        let map = &self.program.maps[m];
        if had && map.key.is_empty() && map.value == Type::Aggregate(Aggregate::Count) {
            self.stores[m].at(&[], || Held::new(&map.value));
        }
    }

    /// The bytes of a key. The buffer is used again, but not by a key within this one.
    fn with_key<T>(&mut self, parts: &[Expr], f: impl FnOnce(&mut Self, &[u8]) -> T) -> Result<T> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        for part in parts {
            self.encode(part, &mut key)?;
        }
        let out = f(self, &key);
        self.key = key;
        Ok(out)
    }

    /// A part of a key, without a copy where it lies in the event.
    fn encode(&mut self, e: &Expr, key: &mut Vec<u8>) -> Result<()> {
        match &e.kind {
            Kind::Leaf(i) => match &self.leaves[*i] {
                Leaf::Of(Datum::Text(b, _) | Datum::Bytes(b)) => with_length(b, key),
                Leaf::Of(Datum::Int(v) | Datum::At(v, ..)) => key.extend_from_slice(&v.to_le_bytes()),
                Leaf::Of(Datum::Of(word, pid)) => Value::Of { word: *word, pid: *pid }.encode(key),
                Leaf::Of(Datum::Strings(b)) => array(b).encode(key),
                Leaf::Read(v) => v.encode(key),
            },
            Kind::Text(b) => with_length(b, key),
            Kind::Tuple(list) => {
                for e in list {
                    self.encode(e, key)?;
                }
            }
            _ => self.any(e)?.encode(key),
        }
        Ok(())
    }

    /// Gives a variable or a map's value another number; the number before.
    fn change(&mut self, place: &Place, new: impl FnOnce(i64) -> i64) -> Result<i64> {
        match place {
            Place::Var(i) => {
                let old = self.vars[*i].as_ref().map_or(0, Value::int);
                let ty = &self.clause.vars[*i];
                self.vars[*i] = Some(Value::Int(within(new(old), ty)));
                Ok(old)
            }
            Place::Map(m, key) => {
                let ty = &self.program.maps[*m].value;
                self.with_key(key, |run, key| match run.stores[*m].at(key, || Held::Value(Value::Int(0))) {
                    Some(held) => {
                        let old = held.read(ty).int();
                        *held = Held::Value(Value::Int(within(new(old), ty)));
                        old
                    }
                    None => {
                        run.is_full();
                        0
                    }
                })
            }
        }
    }

    // Values.

    fn int(&mut self, e: &Expr) -> Result<i64> {
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
            Kind::HasKey(m, key) => self.with_key(key, |run, key| run.stores[*m].get(key).is_some())?.into(),
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
                match self.with_key(key, |run, key| run.stores[*m].get(key).map(|h| h.read(ty)))? {
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
    fn equal(&mut self, a: &Expr, b: &Expr) -> Result<bool> {
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

    fn any(&mut self, e: &Expr) -> Result<Value> {
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
                self.with_key(key, |run, key| run.stores[*m].get(key).map(|h| h.read(ty)))?
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

    fn size(&self, ty: &Type) -> usize {
        self.program.declarations.size(ty).map_or(0, |s| s.0 as usize)
    }

    /// What is in memory. Nobody has memory at the lowest addresses.
    fn memory(&self, space: Space, address: u64, length: usize) -> Memory {
        if address < LOWEST { Memory::Fault } else { self.event.memory(space, address, length) }
    }

    fn text(&self, space: Space, address: u64, most: usize) -> Memory {
        if address < LOWEST { Memory::Fault } else { self.event.text(space, address, most) }
    }

    /// What is at an address; 0 where there is nothing.
    fn load(&mut self, address: &Int, space: Space, ty: &Type) -> Result<Value> {
        let address = address.eval(self)? as u64;
        match self.memory(space, address, self.size(ty)) {
            Memory::Bytes(b) => Ok(Value::read(&b, ty)),
            Memory::Fault => {
                *self.bad_reads += 1;
                Ok(Value::zero(ty))
            }
            Memory::Unknown => Err(Stop::Unknown),
        }
    }

    fn text_at(&mut self, address: &Int, space: Space, length: &Int) -> Result<Value> {
        let max = self.program.config.max_strlen as usize;
        // The length has room for a NUL.
        let most = usize::try_from(length.eval(self)?).unwrap_or(0).saturating_sub(1).min(max);
        // What was kept with the address.
        let address = match address {
            Int::Value(kept) => match self.any(kept)? {
                Value::At(_, Text { mut bytes, cut }) => {
                    let cut = cut || bytes.len() > most && most == max;
                    bytes.truncate(most);
                    return Ok(Value::Text(Text { bytes, cut }));
                }
                other => other.int() as u64,
            },
            address => address.eval(self)? as u64,
        };
        match self.text(space, address, most) {
            Memory::Bytes(mut bytes) => {
                let cut = bytes.len() > most && most == max;
                bytes.truncate(most);
                Ok(Value::Text(Text { bytes, cut }))
            }
            Memory::Fault => {
                *self.bad_reads += 1;
                Ok(Value::text(""))
            }
            Memory::Unknown => Err(Stop::Unknown),
        }
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

/// An integer, cut to its type.
fn within(v: i64, ty: &Type) -> i64 {
    ty.as_int().map_or(v, |c| c.apply(v))
}

/// The strings of an array, as events have them.
fn array(bytes: &[u8]) -> Value {
    let all = Cursor::new(bytes).strv().ok().map(|all| all.iter().take(MAX_STRINGS).map(text_of).collect());
    Value::Tuple(all.unwrap_or_default())
}

fn text_of((_, cap, bytes): (u64, Cap, &[u8])) -> Value {
    Value::Text(Text { bytes: bytes.to_vec(), cut: cap == Cap::Cut })
}
