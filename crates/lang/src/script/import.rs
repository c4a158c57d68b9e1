//! `import "FILE";`: what other files have becomes a part of the script's text, in front of it, with lines that say where they are from.

use crate::diag::Span;

/// The imports of a text: lines that begin with the word. Where each is, and the file that it names.
pub fn find(text: &str) -> Vec<(Span, String)> {
    let (mut out, mut at, mut comment) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let begun = comment;
        // A comment that begins in this line may end in another.
        let mut rest = line;
        while let Some(next) = rest.find(if comment { "*/" } else { "/*" }) {
            if !comment && rest[..next].contains("//") {
                break;
            }
            comment = !comment;
            rest = &rest[next + 2..];
        }
        let words = line.trim_start();
        let Some(behind) = words.strip_prefix("import").filter(|_| !begun) else { continue };
        let Some((file, rest)) = behind.trim_start().strip_prefix('"').and_then(|b| b.split_once('"')) else {
            continue;
        };
        let first = start + line.len() - words.len();
        let end = start + line.len() - rest.len() + usize::from(rest.starts_with(';'));
        out.push((Span { start: first, end }, file.to_owned()));
    }
    out
}

/// The text without its imports, whose places are blank.
pub fn without(text: &str) -> String {
    let mut out = text.to_owned();
    for (span, _) in find(text) {
        out.replace_range(span.start..span.end, &" ".repeat(span.end - span.start));
    }
    out
}

/// The texts of several files, one behind the other: the script's own is the last.
pub fn join(files: &[(String, String)]) -> String {
    let part = |(name, text): &(String, String)| format!("#line 1 \"{}\"\n{text}", name.replace(['\n', '\r'], "?"));
    files.iter().map(part).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_lines_of_their_own() {
        let text = "/* x\nimport \"no.bt\"; */\nimport \"a.bt\";\n  import\t\"b c.h\" // d\nprint(\"import\"); import \"no\";\n";
        let found = find(text);
        assert_eq!(found.iter().map(|f| f.1.as_str()).collect::<Vec<_>>(), ["a.bt", "b c.h"]);
        assert_eq!(found.iter().map(|f| f.0.of(text)).collect::<Vec<_>>(), ["import \"a.bt\";", "import\t\"b c.h\""]);
        assert_eq!(without(text).len(), text.len());
        assert!(find(&without(text)).is_empty());
    }
}
