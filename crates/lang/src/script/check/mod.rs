//! From the tree to a typed program: names get values, types are inferred, every mistake gets its place.
//!
//! All clauses are walked until the types of variables and maps no longer change. A walk reads the types of the one before, and those
//! that it has found itself; the last walk, of which nothing changes, gives the program and the mistakes.
//!
//! Invariant: what a script means does not depend on the order of its clauses.

mod call;
mod collect;
mod expr;
mod leaf;
mod memory;
mod operators;
mod print;
mod statement;
mod stmt;
mod text;
mod typing;

use super::ast;
use super::attach::Point;
use super::cdecl::{Declarations, Struct};
use super::config::Config;
use super::ir::{self, Expr, Kind};
use super::parse::Parameters;
use super::types::{MAX_WEIGHT, Slot, Space, Type};
use crate::diag::{Code, Diagnostic, Severity, Span};
use crate::near::did_you_mean;
use crate::tokens::Result;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is said of a value that something else may be the reason of.
const UNKNOWN: &str = "the type of this is not known";
/// This many messages are shown of one script.
const MAX_REPORTED: usize = 20;
/// So often clauses are walked. Types become wider only, each by few steps.
const MAX_ROUNDS: usize = 32;
/// So much a clause may read of an event.
const MAX_LEAVES: usize = 1024;

/// What is known of the system that a script is for.
pub trait World {
    /// The named arguments of a probe; None: nothing is known of them.
    fn args(&self, point: &Point) -> Option<Vec<(String, Type)>>;

    /// The type of every argument of a probe whose arguments are known only when it is reached.
    fn late(&self, _point: &Point) -> Option<Type> {
        None
    }

    /// The type of a probe's result.
    fn retval(&self, _point: &Point) -> Option<Type> {
        None
    }

    /// A structure of the kernel.
    fn structure(&self, _name: &str) -> Option<Struct> {
        None
    }

    /// A type of the kernel by its name.
    fn typedef(&self, _name: &str) -> Option<Type> {
        None
    }

    /// The values that a name has in enumerations of the kernel, with the names of these, which may be empty.
    fn enumerators(&self, _name: &str) -> Vec<(String, i64)> {
        Vec::new()
    }

    /// The process that is traced, where that is known already.
    fn child(&self) -> Option<u32> {
        None
    }

    /// Whether a process is started, and `cpid` is known then.
    fn starts(&self) -> bool {
        false
    }

    /// Whether the events are those of several traces: their processes and threads may have equal numbers.
    fn is_several(&self) -> bool {
        false
    }

    /// The address of a symbol of the kernel.
    fn kernel_symbol(&self, _name: &str) -> Option<u64> {
        None
    }

    /// The number of the control group whose directory this is.
    fn cgroup(&self, _path: &str) -> Option<u64> {
        None
    }

    /// How large what a symbol names is, in the file of a probe that is at one place there.
    fn symbol(&self, _point: &Point, _name: &str) -> Option<u64> {
        None
    }
}

/// A world of which only this is known.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The arguments of probes, by their full names.
    pub args: BTreeMap<String, Vec<(String, Type)>>,
    /// Structures of the kernel, by their names.
    pub structures: BTreeMap<String, Struct>,
    /// Names that enumerations of the kernel have.
    pub enumerators: BTreeMap<String, Vec<(String, i64)>>,
    /// The events are those of several traces.
    pub is_several: bool,
}

impl World for Known {
    fn is_several(&self) -> bool {
        self.is_several
    }

    fn args(&self, point: &Point) -> Option<Vec<(String, Type)>> {
        self.args.get(&point.name()).cloned()
    }

    fn structure(&self, name: &str) -> Option<Struct> {
        self.structures.get(name).cloned()
    }

    fn enumerators(&self, name: &str) -> Vec<(String, i64)> {
        self.enumerators.get(name).cloned().unwrap_or_default()
    }
}

/// What is known of a map.
#[derive(Clone, Debug, Default, PartialEq)]
struct MapInfo {
    /// The parts of its key; None: nobody has used it yet.
    key: Option<Vec<Slot>>,
    value: Slot,
    /// Where its key, and its value, got their types.
    key_span: Span,
    span: Span,
    assigned: bool,
    /// Something is assigned to it, if only by mistake.
    tried: bool,
}

/// What a walk finds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Found {
    maps: BTreeMap<String, MapInfo>,
    /// By clause, in the order of their declarations.
    vars: Vec<Vec<Variable>>,
    /// Variables, by clause, that are used outside of the block where they are assigned first: old scripts know no blocks.
    hoisted: BTreeSet<(usize, String)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Variable {
    slot: Slot,
    span: Span,
    /// It has a value, or a type.
    assigned: bool,
}

struct Checker<'c> {
    script: &'c ast::Script,
    params: &'c Parameters,
    world: &'c dyn World,
    config: Config,
    declarations: Declarations,
    before: Found,
    now: Found,
    /// The maps that the walk before has found, by name.
    indexes: HashMap<String, usize>,
    /// This is the last walk.
    last: bool,
    messages: Vec<Diagnostic>,
    sites: Vec<ir::Site>,
    /// Whose addresses it names.
    symbols: Vec<Space>,
    // Of the clause that is walked:
    clause: usize,
    points: &'c [Point],
    /// Names and numbers of variables, by block.
    scopes: Vec<HashMap<String, usize>>,
    /// Names in blocks that have ended, without those of `let`.
    ended: BTreeSet<String>,
    leaves: Vec<ir::Leaf>,
    /// The maps that it uses.
    used: RefCell<BTreeSet<usize>>,
    /// The variables that expressions change.
    stepped: BTreeSet<usize>,
    /// The maps at whose values strings are read, and how.
    texts: BTreeMap<usize, (Space, u32)>,
    loops: usize,
}

pub(super) fn check(
    script: &ast::Script,
    params: &Parameters,
    world: &dyn World,
    warnings: Vec<Diagnostic>,
) -> std::result::Result<ir::Program, Vec<Diagnostic>> {
    let config = Config::of(&script.config, &params.config).map_err(|e| vec![e])?;
    let mut c = Checker {
        script,
        params,
        world,
        config,
        declarations: script.declarations.clone(),
        before: Found::default(),
        now: Found::default(),
        indexes: HashMap::new(),
        last: false,
        messages: warnings,
        sites: Vec::new(),
        clause: 0,
        points: &[],
        scopes: Vec::new(),
        ended: BTreeSet::new(),
        leaves: Vec::new(),
        used: RefCell::default(),
        stepped: BTreeSet::new(),
        texts: BTreeMap::new(),
        loops: 0,
        symbols: Vec::new(),
    };
    for round in 0.. {
        c.walk();
        let settled = c.now == c.before;
        c.before = std::mem::take(&mut c.now);
        if settled {
            break;
        }
        if round == MAX_ROUNDS {
            let e = Diagnostic::new(
                Code::TooLarge,
                Span::default(),
                "the types of maps depend on each other in too long a chain",
            );
            return Err(vec![e.hint("give one of them its type with a cast: @a = (uint64)…")]);
        }
    }
    c.last = true;
    let clauses = c.walk();
    let maps = c.finish_maps();
    c.without_consequences();
    if c.messages.iter().any(|m| m.severity == Severity::Error) {
        c.messages.sort_by_key(|m| m.severity == Severity::Warning);
        c.messages.truncate(MAX_REPORTED);
        return Err(c.messages);
    }
    c.messages.truncate(MAX_REPORTED);
    let (sites, config, symbols) = (c.sites, c.config, c.symbols);
    let (declarations, warnings) = (c.declarations, c.messages);
    Ok(ir::Program { clauses, maps, sites, config, hoisted: Vec::new(), declarations, symbols, warnings })
}

impl<'c> Checker<'c> {
    /// All clauses, once.
    fn walk(&mut self) -> Vec<ir::Clause> {
        self.now = Found { hoisted: self.before.hoisted.clone(), ..Found::default() };
        self.indexes = self.before.maps.keys().enumerate().map(|(i, name)| (name.clone(), i)).collect();
        self.sites.clear();
        self.texts.clear();
        self.script.clauses.iter().enumerate().map(|(i, clause)| self.walk_clause(i, clause)).collect()
    }

    fn walk_clause(&mut self, index: usize, clause: &'c ast::Clause) -> ir::Clause {
        (self.clause, self.points) = (index, &clause.points);
        self.now.vars.push(Vec::new());
        self.scopes = vec![HashMap::new()];
        self.leaves.clear();
        self.used.borrow_mut().clear();
        self.stepped.clear();
        self.ended.clear();
        let predicate = clause.predicate.as_ref().and_then(|e| {
            let truth = self.truth_of(e);
            self.keep(truth)
        });
        let predicate_leaves = self.leaves.len();
        let body = self.stmts(&clause.body);
        let vars = self.now.vars[index].iter().map(|v| v.slot.ty()).collect();
        let leaves = std::mem::take(&mut self.leaves);
        let maps = std::mem::take(self.used.get_mut()).into_iter().collect();
        let stepped = std::mem::take(&mut self.stepped).into_iter().collect();
        let (points, span) = (clause.points.clone(), clause.span);
        let idle = Vec::new();
        ir::Clause { points, predicate, body, vars, leaves, predicate_leaves, idle, maps, stepped, span }
    }

    /// Mistakes that may follow from others are shown where there are no others.
    fn without_consequences(&mut self) {
        let is_error = |m: &Diagnostic| m.severity == Severity::Error;
        if self.messages.iter().any(|m| is_error(m) && m.message != UNKNOWN) {
            self.messages.retain(|m| m.message != UNKNOWN);
        }
    }

    /// Notes a mistake, if this is the walk of which they are shown.
    fn keep<T>(&mut self, r: Result<T>) -> Option<T> {
        match r {
            Ok(v) => Some(v),
            Err(e) => {
                if self.last && self.messages.len() < 8 * MAX_REPORTED {
                    self.messages.push(e);
                }
                None
            }
        }
    }

    /// A hint with the name that may be meant: many walks have mistakes, the last one shows the first of them.
    fn near<'a>(&self, prefix: &str, name: &str, all: impl Iterator<Item = &'a str>) -> Option<String> {
        (self.last && self.messages.len() < MAX_REPORTED).then(|| did_you_mean(prefix, name, all)).flatten()
    }

    fn warn(&mut self, d: Diagnostic) {
        if self.last && self.messages.len() < 8 * MAX_REPORTED {
            self.messages.push(d);
        }
    }

    /// The maps of the program, in the order of their names.
    fn finish_maps(&mut self) -> Vec<ir::Map> {
        let maps = std::mem::take(&mut self.now.maps);
        let names: Vec<&str> = maps.iter().filter(|(_, m)| m.tried).map(|(n, _)| n.as_str()).collect();
        for d in &self.script.maps {
            if !maps.contains_key(&d.name) {
                let warning =
                    Diagnostic::warning(Code::Variable, d.span, format!("'@{}' is declared and never used", d.name));
                self.messages.push(warning);
            }
        }
        let wrong = self.messages.iter().any(|m| m.severity == Severity::Error);
        let declared: HashMap<&str, &ast::MapDeclaration> =
            self.script.maps.iter().map(|d| (d.name.as_str(), d)).collect();
        let mut out = Vec::new();
        for (name, m) in &maps {
            let (key, value) = (m.key.iter().flatten().map(Slot::ty).collect::<Vec<_>>(), m.value.ty());
            if !m.tried {
                let e = Diagnostic::new(Code::Variable, m.span, format!("nothing is assigned to '@{name}'"));
                let near = self.near("@", name, names.iter().copied());
                self.messages.push(e.maybe_hint(near));
            } else if value == Type::None && !wrong {
                let e = Diagnostic::new(Code::Type, m.span, format!("the type of '@{name}' cannot be found"));
                self.messages.push(e.hint("give a value of it its type with a cast: (uint64)…"));
            }
            let declared = declared.get(name.as_str());
            let text = self.texts.get(&out.len()).copied();
            out.push(ir::Map {
                text,
                name: name.clone(),
                key,
                value,
                kind: declared.map(|d| d.kind.clone()),
                entries: declared.map_or(self.config.max_map_keys, |d| d.entries),
            });
        }
        out
    }

    // Variables.

    fn block<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(HashMap::new());
        let out = f(self);
        self.scopes.pop();
        out
    }

    fn lookup(&self, name: &str) -> Option<usize> {
        self.scopes.iter().rev().find_map(|s| s.get(name)).copied()
    }

    /// The variable that an assignment means.
    fn assigned(&mut self, name: &str, span: Span) -> usize {
        if let Some(index) = self.lookup(name) {
            return index;
        }
        let index = self.declare(name, Slot::default(), span);
        let block = usize::from(!self.now.hoisted.contains(&(self.clause, name.to_owned())));
        if block == 0 {
            self.scopes[0].insert(name.to_owned(), index);
        } else if self.scopes.len() > 1 {
            self.ended.insert(name.to_owned());
        }
        index
    }

    /// A variable of this block.
    fn declare(&mut self, name: &str, slot: Slot, span: Span) -> usize {
        let vars = &mut self.now.vars[self.clause];
        let assigned = slot.declared.is_some();
        vars.push(Variable { slot, span, assigned });
        let index = vars.len() - 1;
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), index);
        }
        index
    }

    /// What the walk before, and this one so far, have found of it.
    fn var_slot(&self, index: usize) -> Slot {
        let now = &self.now.vars[self.clause][index].slot;
        let before = self.before.vars.get(self.clause).and_then(|v| v.get(index)).map(|v| &v.slot);
        join(before, now)
    }

    fn assign_var(&mut self, name: &str, index: usize, value: &Expr, span: Span) -> Result<()> {
        let flexible = self.flexible(value);
        let var = &mut self.now.vars[self.clause][index];
        if !var.assigned {
            (var.span, var.assigned) = (span, true);
        }
        let first = var.span;
        var.slot.add(&value.ty, flexible).map_err(|c| {
            let shown = name.split('\'').next().unwrap_or_default();
            conflict(&format!("'${shown}'"), &c.holds, &value.ty, span, first, "use another variable, or a cast")
        })
    }

    // Maps.

    fn map_info(&mut self, name: &str, span: Span) -> &mut MapInfo {
        self.now.maps.entry(name.to_owned()).or_insert_with(|| MapInfo { span, ..MapInfo::default() })
    }

    /// Its number in the program.
    fn map_index(&self, name: &str) -> usize {
        let index = self.indexes.get(name).copied().unwrap_or(0);
        self.used.borrow_mut().insert(index);
        index
    }

    fn map_slot(&self, name: &str) -> Slot {
        let now = self.now.maps.get(name).map(|m| m.value.clone()).unwrap_or_default();
        join(self.before.maps.get(name).map(|m| &m.value), &now)
    }

    /// The types of the parts of its key.
    fn map_key(&self, name: &str) -> Vec<Type> {
        let key = |f: &Found| f.maps.get(name).and_then(|m| m.key.clone());
        let slots = key(&self.before).or_else(|| key(&self.now)).unwrap_or_default();
        slots.iter().map(Slot::ty).collect()
    }

    /// Joins a key's types to those of other uses.
    fn use_key(&mut self, name: &str, key: &[Expr], span: Span) -> Result<()> {
        let parts: Vec<(Type, Option<u64>)> = match key {
            [Expr { ty: Type::Tuple(list), .. }] => list.iter().map(|t| (t.clone(), None)).collect(),
            parts => parts.iter().map(|p| (p.ty.clone(), self.flexible(p))).collect(),
        };
        if let Some((t, _)) = parts.iter().find(|p| matches!(p.0, Type::Aggregate(_) | Type::None)) {
            let e = Diagnostic::new(Code::Type, span, format!("a value of type {t} cannot be a key"));
            return Err(e.hint("use one of its members, or its address"));
        }
        let info = self.map_info(name, span);
        let first = info.key_span;
        let Some(slots) = &mut info.key else {
            info.key_span = span;
            let mut slots = vec![Slot::default(); parts.len()];
            // One value fits always.
            let _ = slots.iter_mut().zip(&parts).try_for_each(|(s, (t, f))| s.add(t, *f));
            info.key = Some(slots);
            return Ok(());
        };
        if slots.len() != parts.len() {
            let words = |n: usize| match n {
                0 => "no key".to_owned(),
                1 => "a key of one part".to_owned(),
                n => format!("a key of {n} parts"),
            };
            let message = format!("'@{name}' has {}, and {} is used here", words(slots.len()), words(parts.len()));
            let e = Diagnostic::new(Code::Type, span, message).second(first, "it got its key here");
            return Err(e.hint("all uses of a map have the same key: use another map"));
        }
        for (slot, (ty, flexible)) in slots.iter_mut().zip(&parts) {
            slot.add(ty, *flexible).map_err(|c| {
                conflict(&format!("the key of '@{name}'"), &c.holds, ty, span, first, "use another map, or a cast")
            })?;
        }
        Ok(())
    }

    fn assign_map(&mut self, name: &str, value: &Type, flexible: Option<u64>, span: Span) -> Result<()> {
        let info = self.map_info(name, span);
        if !info.assigned {
            (info.span, info.assigned) = (span, true);
        }
        info.tried = true;
        let first = info.span;
        info.value
            .add(value, flexible)
            .map_err(|c| conflict(&format!("'@{name}'"), &c.holds, value, span, first, "use another map, or a cast"))
    }

    /// The value of a literal without a sign, or of a variable that has such values only.
    fn flexible(&self, e: &Expr) -> Option<u64> {
        match &e.kind {
            Kind::Const(v, true) => Some(*v as u64),
            Kind::Var(i) if *i < self.now.vars[self.clause].len() => self.var_slot(*i).flexible(),
            _ => None,
        }
    }
}

/// A type, if it is not made of too many others.
fn bounded(ty: Type, span: Span) -> Result<Type> {
    if ty.weight() > MAX_WEIGHT {
        let e = Diagnostic::new(
            Code::TooLarge,
            span,
            format!("a value of a type that is made of more than {MAX_WEIGHT} others"),
        );
        return Err(e.hint("use several variables, or a map"));
    }
    Ok(ty)
}

/// What two walks have found, that before maybe not all of it, maybe something else.
fn join(before: Option<&Slot>, now: &Slot) -> Slot {
    match before {
        None => now.clone(),
        Some(before) if now.is_empty() => before.clone(),
        Some(before) => before.with(now).unwrap_or_else(|| now.clone()),
    }
}

fn conflict(what: &str, holds: &Type, ty: &Type, span: Span, first: Span, hint: &str) -> Diagnostic {
    let same_kind = holds.kind() == ty.kind();
    let (holds, new) = if same_kind { (holds.to_string(), ty.to_string()) } else { (holds.kind(), ty.kind()) };
    let e = Diagnostic::new(Code::Type, span, format!("{what} holds {holds}, not {new}"));
    let e = if first == span { e } else { e.second(first, "it got its type here") };
    e.hint(hint)
}
