//! A script that is being typed: what may stand at its end.

use super::attach::{self, Point};
use crate::lex::Lexer;

/// What may stand at the end of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A probe, which begins here.
    Probe(usize),
    /// A value, a function or a map, whose name begins here, and the probes of the clause.
    Value(usize, Vec<Point>),
    /// The name of an argument of these probes, or of the value it is part of, which begins here: after `args.`.
    Argument(usize, Vec<Point>),
}

/// Where in the script a text ends; None: in a string or a comment.
pub fn place(text: &str) -> Option<Place> {
    let (mut depth, mut clause, mut in_predicate) = (0usize, 0usize, false);
    // The probes of the clause, once its predicate or body has begun.
    let mut probes: Option<&str> = None;
    let mut chars = text.char_indices().peekable();
    let mut before = ' ';
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => loop {
                match chars.next()?.1 {
                    '\\' => drop(chars.next()?),
                    '"' => break,
                    _ => {}
                }
            },
            '/' if chars.peek().is_some_and(|n| n.1 == '*') => {
                let end = at + 2 + text.get(at + 2..)?.find("*/")? + 2;
                while chars.next_if(|n| n.0 < end).is_some() {}
            }
            '/' if chars.peek().is_some_and(|n| n.1 == '/') => while chars.next()?.1 != '\n' {},
            // Others are in paths.
            '/' if depth == 0 && !in_predicate && (before.is_whitespace() || before == '/') => {
                probes = Some(text.get(clause..at)?);
                in_predicate = true;
            }
            '{' => {
                probes = probes.or(text.get(clause..at));
                (depth, in_predicate) = (depth + 1, false);
            }
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    (probes, clause) = (None, at + 1);
                }
            }
            _ => {}
        }
        before = c;
    }
    let Some(probes) = probes else {
        let at = text.rfind(|c: char| c.is_whitespace() || matches!(c, ',' | '}')).map_or(0, |at| at + 1);
        return Some(Place::Probe(at.max(clause)));
    };
    let points = points(probes);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '@' || c == '$';
    let at = text.rfind(|c: char| !is_name(c)).map_or(0, |at| at + text[at..].chars().next().map_or(0, char::len_utf8));
    let of_args = |dot: &str| text[..at].strip_suffix(dot).is_some_and(|t| t.ends_with("args"));
    Some(if of_args(".") || of_args("->") { Place::Argument(at, points) } else { Place::Value(at, points) })
}

/// The probes of a list, as far as they are some.
fn points(text: &str) -> Vec<Point> {
    let text = format!("{text} {{");
    let mut lexer = Lexer { text: &text, at: 0, script: true };
    attach::points(&mut lexer, &[]).map_or_else(|_| Vec::new(), |found| found.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(points: &[Point]) -> Vec<String> {
        points.iter().map(Point::name).collect()
    }

    #[test]
    fn probes_stand_before_clauses() {
        for (text, at) in [
            ("", 0),
            ("tracepoint:sched:sched_sw", 0),
            ("begin, uprobe:/bin/sh:ma", 7),
            ("begin { @ = 1; } sys", 17),
            ("begin { if (1) { } }sys", 20),
            ("// a { comment\nsyscall:", 15),
            ("/* { */ i", 8),
        ] {
            assert_eq!(place(text), Some(Place::Probe(at)), "{text}");
        }
    }

    #[test]
    fn values_and_arguments_know_the_probes_of_their_clause() {
        let text = "begin { } syscall:read, syscall:write /args.co";
        let Some(Place::Argument(44, points)) = place(text) else { panic!("{:?}", place(text)) };
        assert_eq!(names(&points), ["syscall:read", "syscall:write"]);
        for text in ["kprobe:f /pi", "kprobe:f { printf(\"%s {\", com", "kprobe:f /arg0 \\/ 2 > 1/ { if (pid) { @[u"] {
            let Some(Place::Value(at, points)) = place(text) else { panic!("{text}") };
            assert_eq!((names(&points), at > 9), (vec!["kprobe:f".to_string()], true), "{text}");
        }
        assert!(matches!(place("kprobe:f { $x = args->a"), Some(Place::Argument(22, _))));
    }

    #[test]
    fn nothing_is_known_in_strings_and_comments() {
        for text in ["begin { printf(\"a", "begin // x", "begin /* x"] {
            assert_eq!(place(text), None, "{text}");
        }
    }

    #[test]
    fn any_text_has_an_end() {
        let text = "uprobe:/a:b /x[\"y\\\"\"]/ { args.é @$ } // ä\n é{";
        for (at, _) in text.char_indices() {
            if let Some(Place::Probe(at) | Place::Value(at, _) | Place::Argument(at, _)) = place(&text[..at]) {
                assert!(text.is_char_boundary(at));
            }
        }
    }
}
