//! No text makes the parser or the checker panic or hang, and what it says of a text fits that text.

use events::generated::{C_OPENAT, P_EXIT};
use lang::filter::MAX_TEXT;
use proptest::prelude::*;

fn try_it(text: &str) {
    let params = vec!["1".to_owned(), "abc".to_owned(), "\0".to_owned(), "-".repeat(30)];
    for schema in [&C_OPENAT, &P_EXIT] {
        if let Err(e) = lang::filter::parse(text, &params).and_then(|p| p.check(schema)) {
            assert!(e.code.in_filters().is_some(), "{e:?} of {text:?}");
            assert!(e.span.start <= e.span.end && e.span.end <= text.len(), "{e:?} of {text:?}");
            assert!(text.is_char_boundary(e.span.start) && text.is_char_boundary(e.span.end), "{e:?} of {text:?}");
            let (line, block) = (e.line("--where", text), e.block("--where", text));
            assert!(!line.contains(char::is_control), "{line:?}");
            assert!(!block.replace('\n', "").contains(char::is_control), "{block:?}");
        }
    }
}

const TOKENS: &[&str] = &[
    "pid",
    "comm",
    "retval",
    "args.flags",
    "args.filename",
    "args.",
    "args->",
    "args",
    "probe",
    "O_CREAT",
    "ENOENT",
    "startswith",
    "strncmp",
    "str",
    "(",
    ")",
    "(int8)",
    "(uint64)",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    "!",
    "~",
    "?",
    ":",
    ",",
    "\"abc\"",
    "\"",
    "\\",
    "1",
    "0",
    "0x",
    "1e99",
    "1ms",
    "0777",
    "18446744073709551615",
    "$1",
    "$2",
    "$3",
    "$4",
    "$0",
    "$",
    "@",
    "=",
    "++",
    "//",
    "/*",
    "*/",
    "\n",
    "\t",
    "ü",
    "\u{0}",
    "é\u{301}",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, ..ProptestConfig::default() })]

    #[test]
    fn random_text(text in "\\PC{0,60}") {
        try_it(&text);
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        try_it(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn token_soup(tokens in prop::collection::vec(prop::sample::select(TOKENS), 0..40), glue in prop::sample::select(vec!["", " "])) {
        try_it(&tokens.join(glue));
    }

    /// One change to a text that is well formed.
    #[test]
    fn nearly_right(at in 0usize..90, token in prop::sample::select(TOKENS), cut in 0usize..4) {
        let text = "pid == 1 && (startswith(args.filename, \"/etc\") || retval < -ENOENT) && args.flags & O_CREAT";
        let at = at.min(text.len());
        let end = (at + cut).min(text.len());
        try_it(&format!("{}{token}{}", &text[..at], &text[end..]));
    }
}

#[test]
fn one_token_many_times() {
    for token in TOKENS {
        for glue in ["", " || ", "("] {
            let n = MAX_TEXT / (token.len() + glue.len()).max(1);
            try_it(&vec![*token; n].join(glue));
            try_it(&vec![*token; 60].join(glue));
        }
    }
    try_it(&"x".repeat(MAX_TEXT));
    try_it(&"é".repeat(MAX_TEXT));
    try_it(&format!("pid == {}", "9".repeat(MAX_TEXT - 7)));
}
