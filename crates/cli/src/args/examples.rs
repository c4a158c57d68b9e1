//! Transcripts of each command, option and view: examples.md. The man pages show them, and the tests run them.
//!
//! ```text
//! # COMMAND
//!
//! Text, with `words` as they are typed.
//!
//!     $ COMMAND LINE     run in one directory with those before it; with '&' at the end beside the next ones, which know it as $!
//!     OUTPUT             lines of it, where … is any text
//!
//! <!-- root -->          the next one is run as root only
//! ```

/// The paragraphs and transcripts of a command; those that begin with four blanks are transcripts.
pub fn of(command: &str) -> impl Iterator<Item = &'static str> {
    let of_command = move |part: &&str| part.lines().next() == Some(command);
    let body = all().split("\n# ").find(of_command).and_then(|part| part.split_once('\n')).map_or("", |(_, body)| body);
    body.split("\n\n")
        .map(|block| block.trim_matches('\n'))
        .filter(|block| !block.is_empty() && !block.starts_with("<!--"))
}

fn all() -> &'static str {
    include_str!("../examples.md")
}

#[cfg(test)]
mod tests {
    use super::super::{column, command, complete};
    use super::*;
    use clap::parser::ValueSource;
    use clap::{Arg, ArgMatches, Command};
    use std::collections::BTreeSet;
    use std::ffi::OsString;

    /// What the tests run: the transcripts, and the recipes of the cookbook.
    fn lines() -> Vec<String> {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/COOKBOOK.md"));
        let page = page.expect("docs/COOKBOOK.md");
        let recipes =
            page.split("```sh\n").skip(1).filter_map(|part| part.split_once("```")).flat_map(|(sh, _)| sh.lines());
        let transcripts = all().lines().filter_map(|line| line.strip_prefix("    $ "));
        recipes.chain(transcripts).map(str::to_string).collect()
    }

    /// The command lines of trapline in a line of a shell.
    fn command_lines(line: &str) -> Vec<Vec<OsString>> {
        let mut parts = vec![String::new()];
        let mut quote = None;
        for c in line.chars() {
            quote = match (c, quote) {
                ('\'' | '"', None) => Some(c),
                (c, Some(q)) if c == q => None,
                (_, quote) => quote,
            };
            match (c, quote) {
                (';' | '|' | '&', None) => parts.push(String::new()),
                _ => parts.last_mut().expect("a part").push(c),
            }
        }
        let words = parts.iter().map(|part| complete::words(part.trim()));
        let words = words.map(|words| {
            words
                .into_iter()
                .take_while(|w| !w.trim_start_matches('2').starts_with('>'))
                .skip_while(|w| w != "trapline")
        });
        let pids =
            words.map(|words| words.map(|w| w.replace("$PID", "1").replace("$!", "1").into()).collect::<Vec<_>>());
        pids.filter(|words: &Vec<OsString>| !words.is_empty()).collect()
    }

    /// What there must be an example of: `COMMAND`, `COMMAND OPTION` or `COMMAND --as VIEW`, without what is hidden.
    fn wanted(c: &Command, path: &str, all: &mut BTreeSet<String>) {
        all.insert(path.to_string());
        let shown =
            |a: &&Arg| !a.is_hide_set() && !a.is_positional() && !matches!(a.get_id().as_str(), "help" | "help-all");
        for a in c.get_arguments().filter(shown) {
            all.insert(format!("{path} {}", option(a)));
            let views = a.get_possible_values().into_iter().filter(|_| a.get_id() == "as");
            all.extend(views.map(|view| format!("{path} --as {}", view.get_name())));
        }
        for inner in c.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            wanted(inner, &format!("{path} {}", inner.get_name()), all);
        }
    }

    fn option(a: &Arg) -> String {
        let short = a.get_short().map(|s| format!("-{s}")).unwrap_or_default();
        a.get_long().map_or(short, |long| format!("--{long}"))
    }

    /// What a command line uses.
    fn used(c: &Command, m: &ArgMatches, path: &str, all: &mut BTreeSet<String>) {
        all.insert(path.to_string());
        let given = |a: &&Arg| m.value_source(a.get_id().as_str()) == Some(ValueSource::CommandLine);
        for a in c.get_arguments().filter(given) {
            all.insert(format!("{path} {}", option(a)));
            let views =
                m.try_get_many::<String>("as").ok().flatten().into_iter().flatten().filter(|_| a.get_id() == "as");
            all.extend(views.map(|view| format!("{path} --as {}", view.split('=').next().unwrap_or_default())));
        }
        if let Some((inner, m)) = m.subcommand() {
            let inner = c.find_subcommand(inner).expect("a command");
            used(inner, m, &format!("{path} {}", inner.get_name()), all);
        }
    }

    #[test]
    fn each_command_option_and_view_has_an_example_that_is_run() {
        let mut whole = command();
        whole.build();
        let (mut must, mut has) = (BTreeSet::from(["--help".into(), "--help-all".into()]), BTreeSet::new());
        wanted(&whole, "trapline", &mut must);
        for argv in lines().iter().flat_map(|line| command_lines(line)) {
            let read = whole.clone().try_get_matches_from(&argv);
            let read = column(&argv, &read).map_or(read, |argv| whole.clone().try_get_matches_from(argv));
            match read {
                Ok(m) => used(&whole, &m, "trapline", &mut has),
                // Of help and versions: `trapline trace -V` is one of `trapline trace --version`.
                Err(e) if !e.use_stderr() => {
                    let words: Vec<String> =
                        argv.iter().map(|w| w.to_string_lossy().replace("-V", "--version")).collect();
                    has.extend([words.join(" "), words.last().cloned().unwrap_or_default()]);
                }
                Err(e) => panic!("{argv:?}: {e}"),
            }
        }
        let missing: Vec<&String> = must.difference(&has).collect();
        assert!(missing.is_empty(), "examples.md has no example of {} of {}:\n{missing:#?}", missing.len(), must.len());
    }
}
