//! The blocks of metadata: `trace`, `env`, `clock`, `stream`, `event`, `callsite`.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::Fault;
use super::attributes::{Attribute, Value, joined};
use super::lexer::{ASSIGN, Pos, Tok};
use super::parser::Parser;
use crate::identifiers::{self, clip};
use crate::model::{ByteOrder, Clock, EnvValue, EventClass, Metadata, StreamClass, StructType, Type};
use crate::plan::{Place, Plan};

/// Most clocks that are taken.
const MAX_CLOCKS: usize = 64;
/// Most stream classes that are taken.
const MAX_STREAMS: usize = 4096;
/// Most structs that describe scopes of one block.
const MAX_SCOPES: usize = 16;

/// What a block contains: attributes by name, and structs by the scope they describe.
#[derive(Default)]
struct Block<'a> {
    attributes: Vec<Attribute<'a>>,
    scopes: Vec<(Cow<'a, str>, StructType)>,
}

impl Block<'_> {
    fn take(&mut self, scope: &str) -> Option<StructType> {
        let at = self.scopes.iter().position(|(name, _)| name == scope)?;
        Some(self.scopes.swap_remove(at).1)
    }
}

/// An event class whose stream may come later.
struct Event {
    class: EventClass,
    id: Option<u64>,
    stream: Option<u64>,
    pos: Pos,
}

struct Stream {
    class: StreamClass,
    id: Option<u64>,
    pos: Pos,
    events: Vec<Pos>,
}

struct Blocks<'a> {
    parser: Parser<'a>,
    trace: Option<Pos>,
    uuid: Option<[u8; 16]>,
    packet_header: Option<StructType>,
    env: Vec<(String, EnvValue)>,
    clocks: Vec<Clock>,
    streams: Vec<Stream>,
    events: Vec<Event>,
}

/// The metadata in the tokens.
pub(super) fn metadata(tokens: Vec<(Tok<'_>, Pos)>) -> Result<Metadata, Fault> {
    let order = byte_order(&tokens)?;
    let mut blocks = Blocks {
        parser: Parser::new(tokens, order),
        trace: None,
        uuid: None,
        packet_header: None,
        env: Vec::new(),
        clocks: Vec::new(),
        streams: Vec::new(),
        events: Vec::new(),
    };
    while *blocks.parser.peek() != Tok::End {
        blocks.block()?;
    }
    blocks.finish()
}

/// The trace's order of bytes, which types before the trace block depend on.
fn byte_order(tokens: &[(Tok<'_>, Pos)]) -> Result<ByteOrder, Fault> {
    let mut depth = 0usize;
    let mut in_trace = false;
    for (i, (token, _)) in tokens.iter().enumerate() {
        let ahead = |n: usize| tokens.get(i + n).map(|(t, _)| t);
        match token {
            Tok::P(b'{') => depth += 1,
            Tok::P(b'}') => {
                depth = depth.saturating_sub(1);
                in_trace &= depth > 0;
            }
            Tok::Word(w) if *w == "trace" && depth == 0 && ahead(1) == Some(&Tok::P(b'{')) => in_trace = true,
            Tok::Word(w) if *w == "byte_order" && in_trace && depth == 1 && ahead(1) == Some(&Tok::P(b'=')) => {
                if let Some((Tok::Word(order), pos)) = tokens.get(i + 2) {
                    let value = Value::Path(vec![*order]);
                    return Attribute { name: Cow::Borrowed(w), value, pos: *pos }.order(None);
                }
            }
            _ => {}
        }
    }
    Err(Fault::start("there is no trace block with a `byte_order`"))
}

impl<'a> Blocks<'a> {
    fn block(&mut self) -> Result<(), Fault> {
        let pos = self.parser.pos();
        if self.parser.accept(b';') {
            return Ok(());
        }
        if self.parser.at_declaration() {
            return self.parser.declaration();
        }
        let word = self.parser.word()?;
        match word {
            "trace" => self.trace(pos),
            "env" => self.env(),
            "clock" => self.clock(pos),
            "stream" => self.stream(pos),
            "event" => self.event(pos),
            "callsite" => self.entries().map(drop),
            _ => Err(Fault::at(pos, format!("`{}` begins neither a block nor a declaration", clip(word)))),
        }?;
        self.parser.accept(b';');
        Ok(())
    }

    /// `{ name = value; scope := struct { … }; … }`
    fn entries(&mut self) -> Result<Block<'a>, Fault> {
        let p = &mut self.parser;
        let mut block = Block::default();
        p.expect(b'{')?;
        p.scopes.push();
        while !p.accept(b'}') {
            if p.at_declaration() {
                p.declaration()?;
                continue;
            }
            let pos = p.pos();
            let name = joined(&p.identifiers()?);
            if p.accept(ASSIGN) {
                let Type::Struct(ty) = p.specifier(false)? else {
                    return Err(Fault::at(pos, format!("`{}` is a struct", clip(&name))));
                };
                if block.scopes.iter().any(|(n, _)| *n == name) {
                    return Err(Fault::at(pos, format!("`{}` is given twice", clip(&name))));
                }
                if block.scopes.len() >= MAX_SCOPES {
                    return Err(Fault::at(pos, format!("more than {MAX_SCOPES} structs in a block")));
                }
                block.scopes.push((name, ty));
            } else {
                p.expect(b'=')?;
                let pos = p.pos();
                let value = p.value()?;
                block.attributes.push(Attribute { name, value, pos });
            }
            p.expect(b';')?;
        }
        p.scopes.pop();
        Ok(block)
    }

    fn trace(&mut self, pos: Pos) -> Result<(), Fault> {
        if self.trace.replace(pos).is_some() {
            return Err(Fault::at(pos, "there are two trace blocks"));
        }
        let mut block = self.entries()?;
        for a in &block.attributes {
            match &*a.name {
                "major" => drop(a.number(1, 1)?),
                "minor" => drop(a.number(0, 8)?),
                "uuid" => self.uuid = Some(a.uuid()?),
                _ => {}
            }
        }
        self.packet_header = block.take("packet.header");
        Ok(())
    }

    fn env(&mut self) -> Result<(), Fault> {
        for a in self.entries()?.attributes {
            let value = match a.value {
                Value::Number(n) => i64::try_from(n).map_or_else(|_| EnvValue::Str(n.to_string()), EnvValue::Int),
                Value::Text(s) => EnvValue::Str(s.into_owned()),
                Value::Path(p) => EnvValue::Str(p.join(".")),
            };
            self.env.push((identifiers::strip(&a.name).to_string(), value));
        }
        Ok(())
    }

    fn clock(&mut self, pos: Pos) -> Result<(), Fault> {
        let mut clock = Clock {
            name: String::new(),
            uuid: None,
            description: String::new(),
            freq: 1_000_000_000,
            precision: 0,
            offset_s: 0,
            offset: 0,
            absolute: false,
        };
        for a in self.entries()?.attributes {
            match &*a.name {
                "name" => clock.name = a.word()?.into_owned(),
                "uuid" => clock.uuid = Some(a.uuid()?),
                "description" => clock.description = a.word()?.into_owned(),
                "freq" => clock.freq = a.number(1, u64::MAX.into())? as u64,
                "precision" => clock.precision = a.u64()?,
                "offset_s" => clock.offset_s = a.i64()?,
                "offset" => clock.offset = a.i64()?,
                "absolute" => clock.absolute = a.truth()?,
                _ => {}
            }
        }
        if clock.name.is_empty() {
            return Err(Fault::at(pos, "a clock needs a `name`"));
        }
        if self.clocks.iter().any(|c| c.name == clock.name) {
            return Err(Fault::at(pos, format!("there are two clocks `{}`", clip(&clock.name))));
        }
        if self.clocks.len() >= MAX_CLOCKS {
            return Err(Fault::at(pos, format!("more than {MAX_CLOCKS} clocks")));
        }
        self.clocks.push(clock);
        Ok(())
    }

    fn stream(&mut self, pos: Pos) -> Result<(), Fault> {
        let mut block = self.entries()?;
        let mut id = None;
        for a in block.attributes.iter().filter(|a| a.name == "id") {
            id = Some(a.u64()?);
        }
        if self.streams.iter().any(|s| s.id == id || s.id.is_none() || id.is_none()) {
            return Err(Fault::at(pos, "streams of one trace need different `id`s"));
        }
        if self.streams.len() >= MAX_STREAMS {
            return Err(Fault::at(pos, format!("more than {MAX_STREAMS} streams")));
        }
        let class = StreamClass {
            id: id.unwrap_or(0),
            packet_context: block.take("packet.context"),
            event_header: block.take("event.header"),
            event_context: block.take("event.context"),
            events: Vec::new(),
        };
        self.streams.push(Stream { class, id, pos, events: Vec::new() });
        Ok(())
    }

    fn event(&mut self, pos: Pos) -> Result<(), Fault> {
        let mut block = self.entries()?;
        let (mut id, mut stream, mut name, mut loglevel) = (None, None, None, None);
        for a in &block.attributes {
            match &*a.name {
                "id" => id = Some(a.u64()?),
                "stream_id" => stream = Some(a.u64()?),
                "name" => name = Some(a.word()?.into_owned()),
                "loglevel" => loglevel = Some(a.i64()?),
                _ => {}
            }
        }
        let Some(name) = name else { return Err(Fault::at(pos, "an event needs a `name`")) };
        let context = block.take("context");
        let class = EventClass { id: id.unwrap_or(0), name, loglevel, context, fields: block.take("fields") };
        self.events.push(Event { class, id, stream, pos });
        Ok(())
    }

    fn finish(mut self) -> Result<Metadata, Fault> {
        if let Some((clock, pos)) =
            self.parser.mapped.iter().find(|(clock, _)| !self.clocks.iter().any(|c| c.name == *clock))
        {
            return Err(Fault::at(*pos, format!("there is no clock `{}`", clip(clock))));
        }
        self.assign_events()?;
        let places: Vec<(Pos, Vec<Pos>)> = self.streams.iter().map(|s| (s.pos, s.events.clone())).collect();
        let start = self.trace.unwrap_or(Pos::START);
        let metadata = Metadata {
            order: self.parser.order,
            uuid: self.uuid,
            packet_header: self.packet_header,
            env: self.env,
            clocks: self.clocks,
            streams: self.streams.into_iter().map(|s| s.class).collect(),
        };
        // What can be read of a trace is known now: paths that lead nowhere are mistakes of the metadata.
        if let Err(e) = Plan::new(&metadata) {
            let pos = match e.place {
                Place::Trace => start,
                Place::Stream(i) => places.get(i).map_or(start, |p| p.0),
                Place::Event(i, j) => places.get(i).and_then(|p| p.1.get(j).copied()).unwrap_or(start),
            };
            return Err(Fault::at(pos, e.message));
        }
        Ok(metadata)
    }

    /// Puts every event class into its stream class.
    fn assign_events(&mut self) -> Result<(), Fault> {
        let events = std::mem::take(&mut self.events);
        if self.streams.is_empty()
            && let Some(first) = events.iter().find(|e| e.stream.unwrap_or(0) == 0)
        {
            self.streams.push(Stream { class: StreamClass::default(), id: None, pos: first.pos, events: Vec::new() });
        }
        let by_id: HashMap<u64, usize> = self.streams.iter().enumerate().map(|(i, s)| (s.class.id, i)).collect();
        let mut ids = HashSet::new();
        for event in events {
            let at = match event.stream {
                Some(id) => by_id.get(&id).copied(),
                None if self.streams.len() == 1 => Some(0),
                None => None,
            };
            let Some(at) = at else {
                let which = event.stream.map_or("its `stream_id`".into(), |id| format!("`stream_id = {id}`"));
                let name = clip(&event.class.name);
                return Err(Fault::at(event.pos, format!("event `{name}`: there is no stream for {which}")));
            };
            if !ids.insert((at, event.class.id)) {
                let hint = if event.id.is_none() { ", which is the default" } else { "" };
                let message = format!("two events of a stream have the id {}{hint}", event.class.id);
                return Err(Fault::at(event.pos, message));
            }
            self.streams[at].events.push(event.pos);
            self.streams[at].class.events.push(event.class);
        }
        Ok(())
    }
}
