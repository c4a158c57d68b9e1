//! The man page and the completions, made of the same table.

use super::{Rest, command, heap, pack, profile, record, repair, report, slab, trace, tracer};
use ::session::output::to_stdout;
use clap::Command;
use engine::Result;
use std::io::Write;

/// The synopsis and the options of one command.
fn part(title: &str, command: Command, out: &mut Vec<u8>) -> std::io::Result<()> {
    let name = format!("trapline-{}", title.to_lowercase());
    let page = clap_mangen::Man::new(command.display_name(name));
    writeln!(out, ".SH {title}")?;
    page.render_synopsis_section(out)?;
    page.render_options_section(out)
}

/// `trapline man`
pub fn man() -> Result<u8> {
    let mut out = Vec::new();
    let page = clap_mangen::Man::new(command());
    let whole = |name: &'static str, rest: Rest| (name.to_uppercase(), rest(Command::new(name)));
    let parts = [
        whole("trace", trace),
        whole("record", record),
        whole("profile", profile),
        whole("report", report),
        whole("repair", repair),
        whole("pack", pack),
        whole("slab", slab),
        whole("heap", heap::heap),
    ];
    let tracer = tracer(Command::new("tracer"));
    let named = |c: &Command| {
        let name = c.get_name();
        (format!("TRACER {}", name.to_uppercase()), c.clone().bin_name(format!("trapline tracer {name}")))
    };
    let tracers: Vec<(String, Command)> = tracer.get_subcommands().map(named).collect();
    let ok = page
        .render_title(&mut out)
        .and_then(|()| page.render_name_section(&mut out))
        .and_then(|()| page.render_synopsis_section(&mut out))
        .and_then(|()| page.render_description_section(&mut out))
        .and_then(|()| page.render_subcommands_section(&mut out))
        .and_then(|()| parts.into_iter().try_for_each(|(title, command)| part(&title, command, &mut out)))
        .and_then(|()| tracers.into_iter().try_for_each(|(title, command)| part(&title, command, &mut out)))
        .and_then(|()| out.write_all(include_bytes!("../man_tail.roff")));
    ok.map_err(|e| engine::Error::failed("man page", e.to_string(), "see --help"))?;
    to_stdout(&out)
}

/// `trapline completions SHELL`
pub fn completions(shell: clap_complete::Shell) -> Result<u8> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut command(), "trapline", &mut out);
    to_stdout(&out)
}
