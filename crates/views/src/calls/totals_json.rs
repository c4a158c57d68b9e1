//! Functions and differences of functions as JSON: an object for each function on a line of its own. docs/GRAPH.md describes it.

use super::Functions;
use super::by_thread::{ByThread, How};
use super::functions::{Row, rows};
use super::sort::Sort;
use super::totals::{Total, Totals};
use crate::write::json as w;

/// Appends the functions of a trace, and how many of its events were lost.
pub fn show(calls: &dyn ByThread, how: &How, out: &mut Vec<u8>) {
    write(&calls.totals(), calls.functions(), how.sort, how.rows.unwrap_or(usize::MAX), out);
    lost(calls.lost().unwrap_or(0), out);
}

/// Appends the functions of a table, in its order.
pub fn write(totals: &Totals, functions: &dyn Functions, sort: Sort, most: usize, out: &mut Vec<u8>) {
    for Row { key, total, .. } in rows(totals, functions, sort).iter().take(most) {
        begin("function", key.function, key.module, out);
        members(total, out);
        out.extend_from_slice(b"}\n");
    }
}

/// Appends an object that says how many events were lost, if any were.
pub fn lost(events: u64, out: &mut Vec<u8>) {
    if events > 0 {
        out.extend_from_slice(b"{\"v\":1,\"type\":\"lost\",\"events\":");
        w::number(out, events);
        out.extend_from_slice(b"}\n");
    }
}

/// Appends the begin of an object about a function, which may have no name.
pub(super) fn begin(kind: &str, function: &str, module: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"v\":1,\"type\":");
    w::string(out, kind);
    w::key(out, "function");
    match function {
        "" => w::null(out),
        name => w::string(out, name),
    }
    if !module.is_empty() {
        w::key(out, "module");
        w::string(out, module);
    }
}

/// Appends what calls add up to, as an object or null where there are none.
pub(super) fn object(total: &Total, out: &mut Vec<u8>) {
    if total.calls == 0 {
        return w::null(out);
    }
    out.push(b'{');
    members(total, out);
    out.push(b'}');
}

fn members(t: &Total, out: &mut Vec<u8>) {
    let all = [
        ("calls", Some(t.calls)),
        ("total_ns", Some(t.total)),
        ("self_ns", Some(t.own)),
        ("min_ns", t.shortest()),
        ("avg_ns", Some(t.average())),
        ("max_ns", Some(t.max)),
    ];
    for (key, n) in all {
        w::key(out, key);
        match n {
            Some(n) => w::number(out, n),
            None => w::null(out),
        }
    }
}
