//! What the programs capture, written into maps: a row per call, and the ops of switches by selector.

use bpf::capture_row::{self as rows, Limits, NO_ROW, OP, ROW};
use bpf::rows_at_exit;
use engine::plan::Plan;
use engine::request::select::Calls;
use events::generated::X86_64;
use events::registry::by_number;
use events::schema::{Dir, Schema};
use events::types::{Switch, Type};
use std::io;
use std::sync::atomic::Ordering;
use sys::bpf::map::{MMAPABLE, Map};

/// Bytes of a key of a switch: number, argument, selector.
const KEY: usize = 16;
/// Ops of entry and exit.
const VALUE: usize = 2 * OP as usize;

/// The empty maps of rows and of switches.
pub fn make(plan: &Plan) -> io::Result<(Map, Map)> {
    let rows = Map::array("trapline_rows", ROW as u32, X86_64.len() as u32, MMAPABLE)?;
    let seen = switched(plan);
    let wanted = (0..X86_64.len() as u64).filter_map(by_number).filter(|s| seen.contains(s));
    let count: usize = wanted.flat_map(switches).map(|(_, _, table)| table.cases.len() + 1).sum();
    let switches = Map::hash("trapline_switch", KEY as u32, VALUE as u32, count.max(1) as u32, 0)?;
    Ok((rows, switches))
}

/// The calls whose switches are needed: those of a named session may be any.
fn switched(plan: &Plan) -> Calls {
    if plan.named { Calls::all() } else { plan.seen_calls() }
}

/// How much is captured of a call.
fn limits(plan: &Plan, call: &Schema) -> Limits {
    let bytes = |n: usize| n.min(u32::MAX as usize) as u32;
    let (string, text) = (bytes(plan.limits.string), if plan.evaluates(call) { bytes(plan.limits.text) } else { 0 });
    Limits { string, text, verbose: plan.limits.verbose, keep: plan.limits.keep.of(call) }
}

/// The row of a call.
fn row(plan: &Plan, call: &'static Schema, wanted: bool) -> [u8; ROW] {
    let make = if plan.no_duration { rows_at_exit::row } else { rows::row };
    make(plan.class_of(call), wanted, limits(plan, call))
}

/// The kinds of ops that the wanted calls have; none where any call may become wanted.
pub fn kinds(plan: &Plan) -> Option<u32> {
    let seen = plan.seen_calls();
    let wanted = (0..X86_64.len() as u64).filter_map(by_number).filter(|s| seen.contains(s));
    let row = |s| row(plan, s, true);
    (!plan.named).then(|| wanted.fold(0, |mask, s| mask | rows::kinds(&row(s))))
}

/// Writes the rows of all calls, and the switches of those that the plan wants.
pub fn fill(plan: &Plan, rows: &Map, switches: &Map) -> io::Result<()> {
    let (seen, switched) = (plan.seen_calls(), switched(plan));
    // Written through a mapping: no system call per row.
    let words = rows.mmap()?;
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for nr in 0..X86_64.len() {
        let mut row = [0u8; ROW];
        match by_number(nr as u64) {
            Some(s) => {
                row = self::row(plan, s, seen.contains(s));
                if switched.contains(s) {
                    switch_ops(plan, s, nr as u32, &mut keys, &mut values);
                }
            }
            None => row[rows::FLAGS as usize..][..2].copy_from_slice(&NO_ROW.to_le_bytes()),
        }
        for (i, word) in row.chunks_exact(8).enumerate() {
            if let (Some(to), Ok(bytes)) = (words.word(nr * ROW + 8 * i), word.try_into()) {
                to.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
            }
        }
    }
    switches.update_all(&keys, &values)
}

/// The arguments of `s` that a switch decides: number, place in the switch's types, switch.
fn switches(s: &'static Schema) -> impl Iterator<Item = (u8, u8, &'static Switch)> {
    s.args.iter().zip(0..).filter_map(|(a, i)| match a.ty {
        Type::Switch { table, nth, .. } => Some((i, nth, table)),
        _ => None,
    })
}

/// Keys and ops of every argument of `s` that a switch decides.
fn switch_ops(plan: &Plan, s: &'static Schema, nr: u32, keys: &mut Vec<u8>, values: &mut Vec<u8>) {
    let limits = limits(plan, s);
    for (i, nth, table) in switches(s) {
        let mut add = |selector: u64, types: &'static [Option<(Type, Dir)>]| {
            let Some((ty, dir)) = types.get(usize::from(nth)).copied().flatten() else { return };
            for out in [false, true] {
                values.extend(match plan.no_duration {
                    true => rows_at_exit::switch_op(s, i, &ty, dir, out, limits),
                    false => rows::switch_op(s, i, &ty, dir, out, limits).bytes(),
                });
            }
            keys.extend(rows::switch_key(nr, i, selector));
        };
        add(u64::MAX, table.default.args);
        for case in table.cases {
            add(case.key, case.types.args);
        }
    }
}
