//! End to end: the built `trapline` over the C programs of `tests/programs`, as root and as an unprivileged user.
//!
//! One file per topic. No test asserts a time; where something takes time, it is polled for. A test that cannot run says
//! so with [`lab::skip`].

mod attach;
mod bad_input;
mod calls;
mod command;
mod death;
mod format;
mod in_flight;
mod kernel;
mod lab;
mod options;
mod output;
mod processes;
mod selection;
mod signals;
mod terminal;
mod trace;
mod views;
