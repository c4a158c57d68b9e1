//! The man pages, made of the commands and of the topics.

use super::groups;
use super::help::dressed;
use super::topics::{self, Block, Example, Topic};
use clap::{Arg, Command};
use engine::{Error, Result};
use lang::near::nearest;
use session::output::to_stdout;
use std::path::Path;
use std::process::Stdio;

/// `trapline man [PAGE]`: the page, formatted where it goes to a terminal; with a directory, all pages as files in it.
pub fn man(page: Option<&str>, dir: Option<&Path>) -> Result<u8> {
    let whole = dressed(true);
    if let Some(dir) = dir {
        let failed =
            |e: std::io::Error| Error::failed(dir.display().to_string(), e.to_string(), "give a directory of yours");
        std::fs::create_dir_all(dir).map_err(failed)?;
        for (name, text) in all(&whole) {
            std::fs::write(dir.join(name), text).map_err(failed)?;
        }
        return Ok(0);
    }
    let name = page.unwrap_or_default().trim_start_matches("trapline-");
    let text = match commands(&whole).find(|c| c.get_name() == name) {
        Some(c) => of_command(c),
        None if matches!(name, "" | "trapline") => of_all(&whole),
        None => {
            let near = nearest(name, commands(&whole).map(Command::get_name)).join(" or ");
            return Err(Error::usage(format!("man {name}"), "no such page", format!("did you mean {near}?")));
        }
    };
    show(text.as_bytes())
}

/// All pages, with the names of their files.
fn all(whole: &Command) -> Vec<(String, String)> {
    let pages = commands(whole).map(|c| (format!("trapline-{}.1", c.get_name()), of_command(c)));
    std::iter::once(("trapline.1".to_string(), of_all(whole))).chain(pages).collect()
}

/// The commands that have a page.
fn commands(whole: &Command) -> impl Iterator<Item = &Command> {
    whole.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help")
}

/// On a terminal man(1) shows it, if it is there.
fn show(text: &[u8]) -> Result<u8> {
    if sys::process::is_terminal(&std::io::stdout())
        && let Ok(mut man) = std::process::Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn()
    {
        if let Some(mut to) = man.stdin.take() {
            // A reader who leaves before the end has seen enough.
            let _ = std::io::Write::write_all(&mut to, text);
        }
        if man.wait().is_ok_and(|status| status.success()) {
            return Ok(0);
        }
    }
    to_stdout(text)
}

/// trapline(1): the questions, the commands and the topics.
fn of_all(whole: &Command) -> String {
    let mut out = head("trapline", whole);
    let topics = topics::all();
    out += ".SH EXAMPLES\n";
    for topic in topics.iter().filter(|t| t.is_question()) {
        out += &format!(".SS \"{}\"\n", escaped(topic.title));
        blocks(topic, &mut out);
    }
    out += ".SH COMMANDS\n";
    for c in commands(whole) {
        let about = c.get_about().map(ToString::to_string).unwrap_or_default();
        out += &format!(".TP\n\\fBtrapline\\-{}\\fR(1)\n{}\n", escaped(c.get_name()), text(&about));
    }
    for topic in topics.iter().filter(|t| !t.is_question()) {
        out += &format!(".SH \"{}\"\n", escaped(&topic.title.to_uppercase()));
        blocks(topic, &mut out);
    }
    out += ".SH \"SEE ALSO\"\n";
    let pages: Vec<String> = commands(whole).map(|c| format!("trapline-{}", c.get_name())).collect();
    see(pages.iter().map(String::as_str).chain(["strace", "perf", "babeltrace2"]), &mut out);
    out
}

/// The page of a command.
fn of_command(c: &Command) -> String {
    let name = c.get_name();
    let mut out = head(&format!("trapline-{name}"), c);
    out += ".SH EXAMPLES\n";
    examples(&topics::examples(name), &mut out);
    out += ".SH DESCRIPTION\n";
    description(c, &mut out);
    if c.get_arguments().any(|a| !a.is_hide_set()) {
        out += ".SH OPTIONS\n";
        options(c, &mut out);
    }
    for inner in c.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
        let title = format!("{name} {}", inner.get_name()).to_uppercase();
        out += &format!(".SH \"{}\"\n", escaped(&title));
        synopsis(inner, &mut out);
        out += ".PP\n";
        description(inner, &mut out);
        options(
            &inner.clone().mut_args(|a| if a.get_help_heading() == Some("Help") { a.hide(true) } else { a }),
            &mut out,
        );
    }
    transcripts(name, &mut out);
    for topic in topics::all().iter().filter(|t| matches!(t.name, "status" | "places")) {
        out += &format!(".SH \"{}\"\n", escaped(&topic.title.to_uppercase()));
        blocks(topic, &mut out);
    }
    out += ".SH \"SEE ALSO\"\n";
    let related: Vec<String> = topics::related(name).iter().map(|other| format!("trapline-{other}")).collect();
    see(std::iter::once("trapline").chain(related.iter().map(String::as_str)), &mut out);
    out
}

/// Title, name and synopsis.
fn head(name: &str, c: &Command) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let about = c.get_about().map(ToString::to_string).unwrap_or_default();
    let title = escaped(&name.to_uppercase());
    let mut out = format!(".TH {title} 1 \"\" \"trapline {version}\" \"trapline\"\n");
    out += &format!(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n", escaped(name), escaped(&about));
    synopsis(c, &mut out);
    out
}

fn synopsis(c: &Command, out: &mut String) {
    let usage = c.clone().render_usage().to_string();
    *out += ".nf\n";
    for line in usage.trim_start_matches("Usage:").lines() {
        *out += &format!("\\fB{}\\fR\n", escaped(line.trim()));
    }
    *out += ".fi\n";
}

fn description(c: &Command, out: &mut String) {
    let about = c.get_about().map(ToString::to_string).unwrap_or_default();
    *out += &format!("{}.\n", text(&about));
    let more = c.get_after_help().map(ToString::to_string).unwrap_or_default();
    for paragraph in more.split("\n\n").filter(|p| !p.is_empty()) {
        // Examples, or lists.
        let as_it_is = paragraph.contains("\n  ") || paragraph.starts_with("  ");
        let (begin, end) = if as_it_is { (".nf\n", "\n.fi") } else { ("", "") };
        let lines: Vec<String> = paragraph.lines().map(text).collect();
        *out += &format!(".PP\n{begin}{}{end}\n", lines.join("\n"));
    }
}

/// The options, below their headings where there are many.
fn options(c: &Command, out: &mut String) {
    let visible = || c.get_arguments().filter(|a| !a.is_hide_set());
    let named = |a: &&Arg| a.is_positional() && a.get_help().is_some();
    visible().filter(named).for_each(|a| option(a, out));
    let with_headings = visible().count() > 8;
    for heading in groups::headings() {
        let mut those = visible().filter(|a| a.get_help_heading() == Some(heading)).peekable();
        if with_headings && those.peek().is_some() {
            *out += &format!(".SS \"{heading}\"\n");
        }
        those.for_each(|a| option(a, out));
    }
}

/// An option, and what it does.
fn option(a: &Arg, out: &mut String) {
    let short = a.get_short_and_visible_aliases().into_iter().flatten().map(|s| format!("-{s}"));
    let long = a.get_long_and_visible_aliases().into_iter().flatten().map(|l| format!("--{l}"));
    let names: Vec<String> = short.chain(long).map(|name| format!("\\fB{}\\fR", escaped(&name))).collect();
    let values: Vec<&str> = a.get_value_names().into_iter().flatten().map(|v| v.as_str()).collect();
    let values = if a.is_positional() || a.get_action().takes_values() { values.join(" ") } else { String::new() };
    let values = if values.is_empty() { values } else { format!("\\fI{}\\fR", escaped(&values)) };
    let may_lack = a.get_num_args().is_some_and(|n| n.min_values() == 0) && a.get_action().takes_values();
    let between = match (a.is_positional(), a.is_require_equals_set(), values.is_empty()) {
        (true, ..) | (_, _, true) => "",
        (_, true, _) => "=",
        _ => " ",
    };
    let values =
        if may_lack && !a.is_positional() { format!("[{between}{values}]") } else { format!("{between}{values}") };
    let help = a.get_help().map(ToString::to_string).unwrap_or_default();
    let among: Vec<String> = a.get_possible_values().iter().map(|v| v.get_name().to_string()).collect();
    let among = match among.is_empty() || a.is_hide_possible_values_set() || !a.get_action().takes_values() {
        true => String::new(),
        false => format!(" [{}]", among.join(", ")),
    };
    *out += &format!(".TP\n{}{values}\n{}\n", names.join(", "), text(&(help + &among)));
}

fn blocks(topic: &Topic, out: &mut String) {
    for (n, block) in topic.blocks.iter().enumerate() {
        match block {
            Block::Text(words) => *out += &format!("{}{}\n", if n == 0 { "" } else { ".PP\n" }, text(words)),
            Block::Examples(all) => examples(all, out),
        }
    }
}

fn examples(all: &[Example], out: &mut String) {
    for e in all {
        match e.what {
            "" => *out += &format!(".PP\n.nf\n\\fB{}\\fR\n.fi\n", escaped(e.line)),
            what => *out += &format!(".TP\n\\fB{}\\fR\n{}\n", escaped(e.line), text(what)),
        }
    }
}

/// The examples of all options, with what they print.
fn transcripts(command: &str, out: &mut String) {
    let mut blocks = super::examples::of(command).peekable();
    if blocks.peek().is_some() {
        *out += ".SH \"EXAMPLES OF ALL OPTIONS\"\nIn what is printed … is any text.\n";
    }
    for block in blocks {
        let lines = block.lines().map(|line| match line.strip_prefix("    ") {
            Some(typed) if typed.starts_with("$ ") => format!("\\fB{}\\fR", escaped(typed)),
            Some(printed) => line_start(printed),
            None => text(line),
        });
        let lines = lines.collect::<Vec<_>>().join("\n");
        *out += &if block.starts_with("    ") { format!(".nf\n{lines}\n.fi\n") } else { format!(".PP\n{lines}\n") };
    }
}

fn see<'a>(pages: impl Iterator<Item = &'a str>, out: &mut String) {
    let pages: Vec<String> = pages.map(|page| format!("\\fB{}\\fR(1)", escaped(page))).collect();
    *out += &format!("{}\n", pages.join(",\n"));
}

/// A text, in which words between backquotes are bold.
fn text(words: &str) -> String {
    let mut out = String::new();
    for (n, part) in words.split('`').enumerate() {
        let part = if n == 0 { line_start(part) } else { escaped(part) };
        out += &if n % 2 == 1 { format!("\\fB{part}\\fR") } else { part };
    }
    out
}

/// The beginning of a line: roff takes dots and quotes there for requests.
fn line_start(part: &str) -> String {
    let request = part.starts_with(['.', '\'']);
    if request { format!("\\&{}", escaped(part)) } else { escaped(part) }
}

/// Characters that are not taken for roff's own.
fn escaped(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    for c in part.chars() {
        match c {
            '\\' => out += "\\e",
            '-' => out += "\\-",
            '\'' => out += "\\(aq",
            '`' => out += "\\(ga",
            '^' => out += "\\(ha",
            '~' => out += "\\(ti",
            '"' => out += "\\(dq",
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_all_commands_and_options_and_are_found_by_their_names() {
        let whole = dressed(true);
        let pages = all(&whole);
        assert!(pages.len() > 10);
        for c in commands(&whole) {
            let name = format!("trapline-{}.1", c.get_name());
            let (_, page) = pages.iter().find(|(n, _)| *n == name).expect("a page");
            let at = |title: &str| page.find(&format!(".SH {title}\n")).unwrap_or_else(|| panic!("{name}: no {title}"));
            let is_typed = |l: &&str| l.starts_with("\\fB$ ");
            let typed = super::super::examples::of(c.get_name()).filter(|b| b.starts_with("    ")).flat_map(str::lines);
            let typed = typed.filter(|l| l.starts_with("    $ ")).count();
            assert_eq!(page.lines().filter(is_typed).count(), typed);
            assert!(at("EXAMPLES") < at("DESCRIPTION") && at("DESCRIPTION") < at("\"EXIT STATUS\""));
            assert!(at("\"EXIT STATUS\"") < at("\"FILES\"") && at("\"FILES\"") < at("\"SEE ALSO\""));
            for a in c.get_arguments().filter(|a| !a.is_hide_set()) {
                let long = a.get_long().map(|l| format!("\\fB{}\\fR", escaped(&format!("--{l}"))));
                assert!(long.is_none_or(|l| page.contains(&l)), "{name}: {}", a.get_id());
            }
        }
    }

    #[test]
    fn texts_are_not_requests() {
        assert_eq!(text(".eh `-x` isn't \\"), "\\&.eh \\fB\\-x\\fR isn\\(aqt \\e");
    }
}
