//! ELF files as plans need them, read as the collector does.

#![allow(dead_code, reason = "each test uses a part")]

use patch::{Frame, Function, Module, Plan, Refusal, Segment};
use std::collections::HashMap;
use symbols::code_tables::{self, CodeTables};

/// A file.
pub struct File {
    tables: CodeTables,
    pub functions: Vec<Function>,
    pub names: Vec<String>,
    frames: Vec<Frame>,
    pub profilers: Vec<u64>,
}

fn segments(all: &[code_tables::Segment]) -> Vec<Segment<'_>> {
    all.iter().map(|s| Segment { address: s.address, bytes: &s.bytes }).collect()
}

impl File {
    pub fn read(path: &str) -> Option<File> {
        let tables = CodeTables::read(&std::fs::File::open(path).ok()?).ok()?;
        let (mut functions, mut names) = (vec![], vec![]);
        for (number, f) in (0..).zip(&tables.functions) {
            let refusal = Refusal::of_name(&f.name).or(f.indirect.then_some(Refusal::Resolver));
            functions.push(Function { address: f.address, size: f.size, number, refusal });
            names.push(f.name.clone());
        }
        let frame = |(f, is_as_called): &(symbols::frames::Frame, bool)| Frame {
            start: f.start,
            len: f.end - f.start,
            is_as_called: *is_as_called,
        };
        let (frames, profilers) = (tables.frames.iter().map(frame).collect(), tables.profilers.clone());
        Some(File { tables, functions, names, frames, profilers })
    }

    pub fn module<T>(&self, use_it: impl FnOnce(&Module<'_>) -> T) -> T {
        use_it(&Module {
            segments: &segments(&self.tables.code),
            data: &segments(&self.tables.data),
            pointers: &self.tables.pointers,
            is_fixed: self.tables.is_fixed,
            functions: &self.functions,
            frames: &self.frames,
            symbols: &self.tables.labels,
            profilers: &self.profilers,
            captures: false,
            points: &[],
            stops: &[],
            statics: &self.tables.statics,
            hooks: &[],
        })
    }

    /// Address, offset and length of each segment with code.
    pub fn segments(&self) -> impl Iterator<Item = (u64, usize, usize)> {
        self.tables.code.iter().map(|s| (s.address, s.offset as usize, s.bytes.len()))
    }

    pub fn plan(&self) -> Plan {
        self.module(Plan::new)
    }

    pub fn text(&self) -> usize {
        self.tables.code.iter().map(|s| s.bytes.len()).sum()
    }

    /// The bytes at an address.
    pub fn at(&self, address: u64) -> &[u8] {
        let code = &self.tables.code;
        code.iter().find_map(|s| s.bytes.get(address.checked_sub(s.address)? as usize..)).unwrap_or_default()
    }

    /// How often each reason is given.
    pub fn refusals(plan: &Plan) -> HashMap<Refusal, usize> {
        let mut counts = HashMap::new();
        plan.refusals.iter().for_each(|(_, r)| *counts.entry(*r).or_default() += 1);
        counts
    }
}
