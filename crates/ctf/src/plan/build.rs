//! From the model to the [plan](super): alignments, slots, roles.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Class, Int, Kind, Labels, Length, NONE, Node, Place, Plan, PlanError, Role, StreamPlan};
use crate::identifiers::{self, clip};
use crate::model::{Clock, Encoding, EventClass, Field, IntType, Metadata, StreamClass, StructType, Type};

/// Deepest nesting that is read: that of fields, and the struct that they are in.
const MAX_DEPTH: usize = crate::model::MAX_DEPTH + 1;

const HEADER_ROLES: &[(&str, Role)] =
    &[("magic", Role::Magic), ("stream_id", Role::StreamId), ("stream_instance_id", Role::StreamInstance)];
const CONTEXT_ROLES: &[(&str, Role)] = &[
    ("timestamp_begin", Role::Begin),
    ("timestamp_end", Role::End),
    ("content_size", Role::ContentSize),
    ("packet_size", Role::PacketSize),
    ("events_discarded", Role::Discarded),
    ("packet_seq_num", Role::Sequence),
];

impl Plan {
    /// Makes the metadata ready.
    ///
    /// # Errors
    /// Lengths and tags that are not found before their use or have the wrong type, and sizes that cannot be.
    pub fn new(metadata: &Metadata) -> Result<Plan, PlanError> {
        let mut b = Builder::new(&metadata.clocks);
        let fail = |place| move |message| PlanError { place, message };
        let packet_header = b.root(0, metadata.packet_header.as_ref()).map_err(fail(Place::Trace))?;
        b.roles(packet_header, HEADER_ROLES);
        let mut streams = HashMap::new();
        for (i, class) in metadata.streams.iter().enumerate() {
            let stream = b.stream(i, class)?;
            streams.insert(class.id, Arc::new(stream));
        }
        Ok(Plan {
            nodes: b.nodes,
            slots: b.slots as usize,
            packet_header,
            streams,
            clocks: metadata.clocks.clone(),
            uuid: metadata.uuid,
        })
    }
}

/// Nodes being made, and what their paths can refer to.
struct Builder<'m> {
    pub nodes: Vec<Node>,
    pub slots: u32,
    roots: [Option<u32>; 6],
    /// Which of the scopes is being built.
    current: usize,
    /// Structs being built, outermost first: the names and nodes of the fields so far.
    stack: Vec<Vec<(&'m str, u32)>>,
    clocks: &'m [Clock],
    depth: usize,
    /// Steps of searching that are left: metadata is not to make them many.
    work: usize,
}

/// Steps of searching that reading metadata may take.
const MAX_WORK: usize = 1 << 26;

impl<'m> Builder<'m> {
    pub fn new(clocks: &'m [Clock]) -> Builder<'m> {
        Builder {
            nodes: Vec::new(),
            slots: 0,
            roots: [None; 6],
            current: 0,
            stack: Vec::new(),
            clocks,
            depth: 0,
            work: MAX_WORK,
        }
    }

    fn work(&mut self, steps: usize) -> Result<(), String> {
        self.work = self.work.checked_sub(steps).ok_or("the metadata refers to fields too often")?;
        Ok(())
    }

    pub fn stream(&mut self, index: usize, class: &'m StreamClass) -> Result<StreamPlan, PlanError> {
        let fail = |place| move |message| PlanError { place, message };
        self.roots[1..].fill(None);
        let place = Place::Stream(index);
        let packet_context = self.root(1, class.packet_context.as_ref()).map_err(fail(place))?;
        self.roles(packet_context, CONTEXT_ROLES);
        let event_header = self.root(2, class.event_header.as_ref()).map_err(fail(place))?;
        if let Some(header) = event_header {
            self.event_ids(header);
        }
        let event_context = self.root(3, class.event_context.as_ref()).map_err(fail(place))?;
        let mut events = HashMap::new();
        for (j, event) in class.events.iter().enumerate() {
            let made = self.event(event).map_err(fail(Place::Event(index, j)))?;
            events.insert(event.id, Arc::new(made));
        }
        let default = event_header.and_then(|h| self.first_clock(h));
        let of = |name| self.child(packet_context, name);
        let timed = |int: Option<Int>| {
            let int = int?;
            let clock = if int.clock == NONE { default? } else { int.clock };
            Some((clock as usize, int.size))
        };
        Ok(StreamPlan {
            packet_context,
            event_header,
            event_context,
            events,
            begin: timed(of("timestamp_begin")),
            end: timed(of("timestamp_end")),
            discarded_size: of("events_discarded").map_or(64, |i| i.size),
            sequence_size: of("packet_seq_num").map_or(64, |i| i.size),
        })
    }

    fn event(&mut self, event: &'m EventClass) -> Result<Class, String> {
        let named = |m: String| format!("event `{}`: {m}", event.name.escape_debug());
        self.roots[4..].fill(None);
        let context = self.root(4, event.context.as_ref()).map_err(named)?;
        let fields = self.root(5, event.fields.as_ref()).map_err(named)?;
        Ok(Class { id: event.id, name: event.name.clone(), loglevel: event.loglevel, context, fields })
    }

    pub fn root(&mut self, scope: usize, ty: Option<&'m StructType>) -> Result<Option<u32>, String> {
        self.current = scope;
        self.stack.clear();
        let node = ty.map(|s| self.structure(s)).transpose()?;
        self.roots[scope] = node;
        Ok(node)
    }

    fn push(&mut self, align: u32, min: u64, kind: Kind) -> Result<u32, String> {
        if !align.is_power_of_two() {
            return Err(format!("an alignment of {align} bits"));
        }
        let index = u32::try_from(self.nodes.len()).ok().filter(|i| *i != NONE).ok_or("too many types")?;
        self.nodes.push(Node { align: u64::from(align), min, kind });
        Ok(index)
    }

    fn structure(&mut self, ty: &'m StructType) -> Result<u32, String> {
        self.stack.push(Vec::new());
        let mut align = ty.align.max(1);
        let mut min = 0u64;
        for field in &ty.fields {
            let node = self.field(field)?;
            align = align.max(self.nodes[node as usize].align as u32);
            min = min.saturating_add(self.nodes[node as usize].min);
            if let Some(frame) = self.stack.last_mut() {
                frame.push((&field.name, node));
            }
        }
        let frame = self.stack.pop().unwrap_or_default();
        let names = ty.fields.iter().map(|f| f.name.clone()).collect();
        self.push(align, min, Kind::Struct(names, frame.into_iter().map(|f| f.1).collect()))
    }

    fn field(&mut self, field: &'m Field) -> Result<u32, String> {
        self.ty(&field.ty).map_err(|m| {
            let name = clip(&field.name);
            if m.len() > 400 { m } else { format!("`{name}`: {m}") }
        })
    }

    fn ty(&mut self, ty: &'m Type) -> Result<u32, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("types nested deeper than {MAX_DEPTH} levels"));
        }
        let node = match ty {
            Type::Int(i) => {
                let int = self.int(i)?;
                self.push(i.align, u64::from(i.size), Kind::Int(int))
            }
            Type::Enum(i, labels) => {
                let int = self.int(i)?;
                self.push(i.align, u64::from(i.size), Kind::Enum(int, Labels::new(labels)))
            }
            Type::Float(f) => match (f.exp, f.mant) {
                (8, 24) => self.push(f.align, 32, Kind::Float(32, f.order)),
                (11, 53) => self.push(f.align, 64, Kind::Float(64, f.order)),
                (exp, mant) => Err(format!("a floating point number of {exp} and {mant} bits")),
            },
            Type::Str(_) => self.push(8, 8, Kind::Str),
            Type::Struct(s) => self.structure(s),
            Type::Array(element, n) => self.array(element, Length::Fixed(*n)),
            Type::Sequence(element, path) => {
                let (slot, _) = self.find(path)?;
                self.array(element, Length::Slot(slot))
            }
            Type::Variant(tag, options) => self.variant(tag, options),
        }?;
        self.depth -= 1;
        Ok(node)
    }

    fn int(&self, i: &IntType) -> Result<Int, String> {
        if !(1..=64).contains(&i.size) {
            return Err(format!("an integer of {} bits", i.size));
        }
        let clock = match &i.clock {
            None => NONE,
            Some(name) => match self.clocks.iter().position(|c| c.name == *name) {
                Some(at) => at as u32,
                None => return Err(format!("there is no clock `{}`", clip(name))),
            },
        };
        Ok(Int { size: i.size, signed: i.signed, order: i.order, base: i.base, slot: NONE, role: NONE, clock })
    }

    fn array(&mut self, element: &'m Type, length: Length) -> Result<u32, String> {
        let fixed = if let Length::Fixed(n) = length { n } else { 0 };
        if let Type::Int(i) = element {
            let text = i.encoding != Encoding::None;
            if i.size == 8 && i.align <= 8 && (text || !i.signed) {
                return self.push(i.align, fixed.saturating_mul(8), Kind::Bytes(length, text, i.base, i.order));
            }
        }
        let element = self.ty(element)?;
        let Node { align, min, .. } = self.nodes[element as usize];
        self.push(align as u32, min.saturating_mul(fixed), Kind::Array(element, length))
    }

    fn variant(&mut self, tag: &[String], options: &'m [Field]) -> Result<u32, String> {
        let (slot, tag_node) = self.find(tag)?;
        let count = match &self.nodes[tag_node as usize].kind {
            Kind::Enum(_, labels) => labels.ranges.len(),
            _ => 0,
        };
        self.work(32 * (count + options.len()))?;
        let Kind::Enum(_, labels) = &self.nodes[tag_node as usize].kind else {
            return Err(format!("the tag `{}` is not an enumeration", clip(&tag.join("."))));
        };
        let by_name: HashMap<&str, usize> = options.iter().enumerate().map(|(i, f)| (f.name.as_str(), i)).collect();
        let option = |label: &str| by_name.get(label).or_else(|| by_name.get(identifiers::strip(label))).copied();
        let choices: Vec<_> = labels.ranges.iter().filter_map(|r| Some((r.0, r.1, option(&r.2)?))).collect();
        let nodes = options.iter().map(|f| self.field(f)).collect::<Result<Vec<u32>, String>>()?;
        let min = nodes.iter().map(|n| self.nodes[*n as usize].min).min().unwrap_or(0);
        let names = options.iter().map(|f| f.name.clone()).collect();
        self.push(1, min, Kind::Variant(slot, choices, names, nodes))
    }

    /// The slot and the node of the integer at a path, which must have been read before.
    fn find(&mut self, path: &[String]) -> Result<(u32, u32), String> {
        let open: usize = self.stack.iter().map(Vec::len).sum();
        let before: usize = self.roots.iter().flatten().map(|root| self.members(*root)).sum();
        self.work(open + before + 16)?;
        let missing = || format!("there is no field `{}` before it", clip(&path.join(".")));
        let start = match identifiers::scope(path) {
            Some((scope, rest)) if scope == self.current => self.in_frame(0, rest),
            Some((scope, rest)) => self.roots[scope].map(|root| (root, rest)),
            None => {
                let own = (0..self.stack.len()).rev().find_map(|frame| self.in_frame(frame, path));
                own.or_else(|| (0..self.current).rev().find_map(|scope| self.in_root(scope, path)))
            }
        };
        let (mut node, mut rest) = start.ok_or_else(missing)?;
        while let Some((name, more)) = rest.split_first() {
            self.work(self.members(node))?;
            node = self.member(node, name).ok_or_else(missing)?;
            rest = more;
        }
        let (Kind::Int(int) | Kind::Enum(int, _)) = &mut self.nodes[node as usize].kind else {
            return Err(format!("`{}` is not an integer", clip(&path.join("."))));
        };
        if int.slot == NONE {
            int.slot = self.slots;
            self.slots += 1;
        }
        Ok((int.slot, node))
    }

    fn in_frame<'p>(&self, frame: usize, path: &'p [String]) -> Option<(u32, &'p [String])> {
        let (name, rest) = path.split_first()?;
        let (_, node) = self.stack.get(frame)?.iter().rev().find(|(n, _)| n == name)?;
        Some((*node, rest))
    }

    fn in_root<'p>(&self, scope: usize, path: &'p [String]) -> Option<(u32, &'p [String])> {
        let (name, rest) = path.split_first()?;
        Some((self.member(self.roots[scope]?, name)?, rest))
    }

    fn members(&self, node: u32) -> usize {
        if let Kind::Struct(names, _) = &self.nodes[node as usize].kind { names.len() } else { 0 }
    }

    fn member(&self, node: u32, name: &str) -> Option<u32> {
        match &self.nodes[node as usize].kind {
            Kind::Struct(names, nodes) => Some(nodes[names.iter().position(|n| n == name)?]),
            _ => None,
        }
    }

    fn child(&self, root: Option<u32>, name: &str) -> Option<Int> {
        match self.nodes[self.member(root?, name)? as usize].kind {
            Kind::Int(int) | Kind::Enum(int, _) => Some(int),
            _ => None,
        }
    }

    /// Marks the fields of a root that steer the reader.
    pub fn roles(&mut self, root: Option<u32>, roles: &[(&str, Role)]) {
        let Some(root) = root else { return };
        for (name, role) in roles {
            if let Some(node) = self.member(root, name) {
                self.mark(node, *role);
            }
        }
    }

    fn mark(&mut self, node: u32, role: Role) {
        if let Kind::Int(int) | Kind::Enum(int, _) = &mut self.nodes[node as usize].kind {
            int.role = role as u32;
        }
    }

    /// Marks all fields of an event header that are named `id`: the last one that is read counts.
    fn event_ids(&mut self, node: u32) {
        let inner: Vec<(bool, u32)> = match &self.nodes[node as usize].kind {
            Kind::Struct(names, nodes) | Kind::Variant(_, _, names, nodes) => {
                names.iter().zip(nodes).map(|(name, node)| (name == "id", *node)).collect()
            }
            _ => return,
        };
        for (is_id, node) in inner {
            if is_id {
                self.mark(node, Role::EventId);
            }
            self.event_ids(node);
        }
    }

    fn first_clock(&self, node: u32) -> Option<u32> {
        match &self.nodes[node as usize].kind {
            Kind::Int(int) | Kind::Enum(int, _) => Some(int.clock).filter(|c| *c != NONE),
            Kind::Struct(_, nodes) | Kind::Variant(_, _, _, nodes) => nodes.iter().find_map(|n| self.first_clock(*n)),
            _ => None,
        }
    }
}
