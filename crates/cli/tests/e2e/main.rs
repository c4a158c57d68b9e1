//! End to end: the built `trapline` over the C programs of `tests/programs`, as root and as an unprivileged user.
//!
//! One file per topic. No test asserts a time; where something takes time, it is polled for. A test that cannot run says
//! so with [`lab::skip`].

mod accounting;
mod alone;
mod attach;
mod babeltrace;
mod bad_input;
mod calls;
mod captures;
mod command;
mod copied_stacks;
mod crash;
mod death;
mod debuginfod;
mod drain;
mod ending;
mod follow;
mod format;
mod functions;
mod graph;
mod in_flight;
mod keep;
mod kernel;
mod kernel_shows;
mod lab;
mod limits;
mod list;
mod odd_files;
mod old_traces;
mod options;
mod output;
mod planted;
mod probes;
mod processes;
mod profile;
mod record;
mod repair;
mod report;
mod report_probes;
mod returns;
mod rights;
mod selection;
mod session_access;
mod session_set;
mod sessions;
mod signals;
mod stacks;
mod terminal;
mod trace;
mod tracefs;
mod unwinding;
mod views;
mod wheres;
mod whole;
mod whole_machine;
