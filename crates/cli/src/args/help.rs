//! Help: the first screen, `--help` and `--help-all`, and `trapline help TOPIC`.

use super::topics::{self, Block, Example, Topic};
use super::{command, groups};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use engine::{Error, Result};
use lang::near::nearest;
use session::output::{print, to_stdout};

/// The width of lines of text.
const WIDTH: usize = 100;

/// How many questions the first screen has.
const QUESTIONS: usize = 10;

/// `--help-all`, of every command.
pub fn help_all() -> Arg {
    Arg::new("help-all").long("help-all").action(ArgAction::HelpShort).global(true).help("Print all options")
}

/// What is shown where nothing is asked: which question leads to which command.
pub fn first_screen() -> String {
    let ask = |t: Topic| t.examples().next().map(|e| Example { line: t.title, what: e.line });
    let questions: Vec<Example> = topics::all().into_iter().filter_map(ask).take(QUESTIONS).collect();
    topics::lined_up(&questions) + "More answers and topics: trapline help. All commands: trapline --help\n"
}

/// The whole command line as help and man pages show it: with headings, or only with what is used often.
pub fn dressed(all: bool) -> Command {
    let mut whole = command();
    whole.build();
    // Without a command it prints what --help does.
    whole.mut_subcommands(|c| dress(c, all)).mut_arg("help-all", |a| a.hide(true))
}

fn dress(c: Command, all: bool) -> Command {
    let name = c.get_name().to_string();
    let c = c.mut_subcommands(|inner| dress(inner, all));
    if all {
        return c.mut_args(|a| match groups::heading(a.get_id().as_str()) {
            Some(heading) if !a.is_positional() => a.help_heading(heading),
            _ => a,
        });
    }
    let width = c.get_arguments().filter(|a| shown(&name, a)).map(width).max().unwrap_or(0);
    let c = c.mut_args(|a| match a.get_help() {
        _ if !shown(&name, &a) => a.hide(true),
        Some(text) if groups::has_more(&name) => {
            let lines = groups::lines(a.get_id().as_str());
            let text = clauses(&text.to_string(), lines * WIDTH.saturating_sub(width + 9));
            a.help(text).hide_possible_values(true)
        }
        _ => a,
    });
    if !groups::has_more(&name) {
        return c;
    }
    let fits = |e: &Example| e.line.len() < 50 && e.line.len().max(40) + e.what.len() + 4 <= WIDTH;
    let examples: Vec<Example> = topics::examples(&name).into_iter().filter(fits).take(3).collect();
    let more = format!("All options: trapline {name} --help-all. The manual: trapline man {name}");
    c.after_help(format!("Examples:\n{}\n{more}", topics::lined_up(&examples)))
}

/// Whether an argument is in the help of what is used often. What a command traces stands in its usage.
fn shown(command: &str, a: &Arg) -> bool {
    let is_help = matches!(a.get_id().as_str(), "help" | "help-all" | "version");
    !a.is_hide_set()
        && !is_help
        && groups::is_often(command, a.get_id().as_str())
        && (!a.is_positional() || a.get_help().is_some())
}

/// How many columns an option's name and value take.
fn width(a: &Arg) -> usize {
    let value: usize = a.get_value_names().into_iter().flatten().map(|v| v.len() + 3).sum();
    let equals = if a.is_require_equals_set() { 3 } else { 0 };
    a.get_long().map_or(0, |l| l.len() + 2) + if a.get_action().takes_values() { value + equals } else { 0 }
}

/// Of a text that is too long, the clauses that fit.
fn clauses(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    // Not between brackets, and not before some that the text goes on behind.
    let is_whole = |at: usize| text[..at].matches('(').count() == text[..at].matches(')').count();
    let goes_on = |at: usize| text[at..].starts_with(" (") && !text.ends_with(')');
    let fits = |at: &usize| text[..*at].chars().count() <= width && is_whole(*at) && !goes_on(*at);
    let end =
        |marks: &[&str]| marks.iter().flat_map(|mark| text.match_indices(mark)).map(|(at, _)| at).filter(fits).max();
    end(&["; ", ". "]).or_else(|| end(&[", ", " ("])).map_or(text, |at| &text[..at]).to_string()
}

/// `trapline help [TOPIC]`: a topic, or the `--help` of a command.
pub fn help(words: &[String]) -> Result<u8> {
    let all = topics::all();
    let Some(name) = words.first() else { return to_stdout(index(&all).as_bytes()) };
    let argv = ["trapline"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
    match dressed(false).try_get_matches_from(argv) {
        Err(shown) if shown.kind() == ErrorKind::DisplayHelp => return print(shown.print()),
        _ => {}
    }
    match all.iter().find(|t| t.name == name && words.len() == 1) {
        Some(topic) => to_stdout(page(topic).as_bytes()),
        None => {
            let whole = command();
            let known = all.iter().map(|t| t.name).chain(whole.get_subcommands().map(Command::get_name));
            let near = nearest(name, known).join(" or ");
            let what = format!("help {}", words.join(" "));
            Err(Error::usage(what, "no such topic or command", format!("did you mean {near}?")))
        }
    }
}

/// What there is to ask for.
fn index(all: &[Topic]) -> String {
    let list = |title: &str, rows: Vec<Example>| format!("{title}\n{}\n", topics::lined_up(&rows));
    let of = |questions: bool| -> Vec<Example> {
        let those = all.iter().filter(|t| t.is_question() == questions);
        those.map(|t| Example { line: t.name, what: t.title }).collect()
    };
    list("trapline help QUESTION:", of(true))
        + &list("trapline help TOPIC:", of(false))
        + "trapline help COMMAND is COMMAND --help; trapline --help lists the commands; 'trapline man' has everything.\n"
}

/// A topic on the terminal.
fn page(topic: &Topic) -> String {
    let mut out = topic.title.to_string() + "\n";
    for block in &topic.blocks {
        out += "\n";
        match block {
            Block::Text(text) => fill(&text.replace('`', ""), &mut out),
            Block::Examples(all) => out += &topics::lined_up(all),
        }
    }
    out
}

/// Breaks a paragraph into lines.
fn fill(text: &str, out: &mut String) {
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        let (between, start) = match column {
            0 => ("", 0),
            n if n + 1 + length > WIDTH => ("\n", 0),
            n => (" ", n + 1),
        };
        out.push_str(between);
        out.push_str(word);
        column = start + length;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(c: &Command, visit: &mut dyn FnMut(&Command)) {
        visit(c);
        c.get_subcommands().for_each(|inner| each(inner, visit));
    }

    #[test]
    fn short_helps_are_short() {
        let mut whole = dressed(false).term_width(WIDTH);
        whole.build();
        each(&whole, &mut |c| {
            let text = c.clone().term_width(WIDTH).render_help().to_string();
            assert!(text.lines().count() <= 31, "{} lines:\n{text}", text.lines().count());
        });
    }

    #[test]
    fn each_option_has_a_heading() {
        let check = &mut |c: &Command| {
            for a in c.get_arguments().filter(|a| !a.is_positional()) {
                let id = a.get_id();
                assert!(a.get_help_heading().is_some(), "{} {id}: put it below a heading in groups.rs", c.get_name());
            }
        };
        dressed(true).get_subcommands().for_each(|c| each(c, check));
    }

    #[test]
    fn each_command_has_an_example_that_it_understands() {
        let mut whole = command();
        whole.build();
        for c in whole.get_subcommands().filter(|c| c.get_name() != "help" && !c.is_hide_set()) {
            assert!(!topics::examples(c.get_name()).is_empty(), "topics.md has no example of {}", c.get_name());
        }
        for example in topics::all().iter().flat_map(|t| t.examples().collect::<Vec<_>>()) {
            let line = example.line.replace("PID", "1");
            let words = super::super::complete::words(&line);
            assert_eq!(words[0], "trapline", "{line}");
            let words: Vec<_> = words.iter().map(std::ffi::OsString::from).collect();
            command()
                .try_get_matches_from(super::super::with_run(&words).iter())
                .unwrap_or_else(|e| panic!("{line}: {e}"));
        }
    }

    #[test]
    fn a_topic_has_a_name_of_its_own() {
        let (all, whole) = (topics::all(), command());
        for topic in &all {
            assert!(whole.find_subcommand(topic.name).is_none(), "{} is a command", topic.name);
            assert_eq!(all.iter().filter(|t| t.name == topic.name).count(), 1, "{}", topic.name);
            assert!(!topic.blocks.is_empty() && (!topic.is_question() || topic.examples().next().is_some()));
        }
        assert_eq!(first_screen().lines().count(), 11);
        assert!(first_screen().lines().all(|l| l.chars().count() <= 80), "{}", first_screen());
    }

    #[test]
    fn long_texts_end_with_a_clause() {
        assert_eq!(clauses("Attach to a process; several: -p 1. Ctrl-C", 36), "Attach to a process; several: -p 1");
        assert_eq!(clauses("Attach to a process, or several", 25), "Attach to a process");
        assert_eq!(clauses("No clause in it", 5), "No clause in it");
    }
}
