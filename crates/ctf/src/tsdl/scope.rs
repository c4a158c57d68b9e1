//! Names of types, and what their uses cost.

use std::collections::HashMap;

use super::{MAX_DEPTH, MAX_TYPES};
use crate::identifiers::clip;
use crate::model::{Field, Type};

/// A type that has a name.
#[derive(Clone, Debug)]
struct Entry {
    ty: Type,
    cost: usize,
    depth: usize,
}

/// Types by name, innermost scope last. Names of structs, variants and enumerations have their keyword before them.
#[derive(Debug)]
pub(super) struct Scopes {
    stack: Vec<HashMap<String, Entry>>,
    spent: usize,
}

impl Scopes {
    pub fn new() -> Scopes {
        Scopes { stack: vec![HashMap::new()], spent: 0 }
    }
    pub fn push(&mut self) {
        self.stack.push(HashMap::new());
    }
    pub fn pop(&mut self) {
        self.stack.pop();
    }

    /// Gives a type a name in the innermost scope.
    pub fn declare(&mut self, name: String, ty: Type) -> Result<(), String> {
        let (cost, depth) = measure(&ty);
        self.spend(cost)?;
        check_depth(depth)?;
        let fresh = self.stack.last_mut().is_some_and(|s| s.insert(name.clone(), Entry { ty, cost, depth }).is_none());
        if fresh { Ok(()) } else { Err(format!("`{}` is declared twice", clip(&name))) }
    }

    /// The type of that name.
    pub fn find(&mut self, name: &str) -> Result<Type, String> {
        let Some(entry) = self.stack.iter().rev().find_map(|scope| scope.get(name)) else {
            return Err(format!("there is no type `{}`", clip(name)));
        };
        let (ty, cost, depth) = (&entry.ty, entry.cost, entry.depth + self.stack.len());
        check_depth(depth)?;
        if self.spent + cost > MAX_TYPES {
            return Err(too_many());
        }
        let ty = ty.clone();
        self.spent += cost;
        Ok(ty)
    }

    /// Counts types that were made.
    pub fn spend(&mut self, cost: usize) -> Result<(), String> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > MAX_TYPES { Err(too_many()) } else { Ok(()) }
    }
}

fn too_many() -> String {
    format!("more than {MAX_TYPES} types")
}

/// Whether a type of that depth is taken.
pub(super) fn check_depth(depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH { Err(format!("types nested deeper than {MAX_DEPTH} levels")) } else { Ok(()) }
}

/// What a name costs: long ones more.
pub(super) fn name_cost(name: &str) -> usize {
    1 + name.len() / 64
}

/// How many types, fields and labels a type consists of, and how deeply they are nested.
pub(super) fn measure(ty: &Type) -> (usize, usize) {
    let all = |fields: &[Field]| {
        fields.iter().fold((1, 0), |(cost, depth), f| {
            let (c, d) = measure(&f.ty);
            (cost + c + name_cost(&f.name), depth.max(d))
        })
    };
    let words = |path: &[String]| path.iter().map(|w| name_cost(w)).sum::<usize>();
    let (cost, depth) = match ty {
        Type::Int(_) | Type::Float(_) | Type::Str(_) => (1, 0),
        Type::Enum(_, labels) => (1 + labels.iter().map(|l| name_cost(&l.name)).sum::<usize>(), 0),
        Type::Struct(s) => all(&s.fields),
        Type::Array(e, _) => {
            let (cost, depth) = measure(e);
            (cost + 1, depth)
        }
        Type::Sequence(e, path) => {
            let (cost, depth) = measure(e);
            (cost + 1 + words(path), depth)
        }
        Type::Variant(path, options) => {
            let (cost, depth) = all(options);
            (cost + words(path), depth)
        }
    };
    (cost, depth + 1)
}
