//! What became of the functions of a file: `--explain`.

/// A file whose functions were to be traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Its path in the process that had it first.
    pub path: String,
    /// Functions that were asked for, by all their names.
    pub functions: usize,
    /// Of these, names of functions that get a patch.
    pub patched: usize,
    /// Why the others get none, the most frequent reason first, and the demangled names of the functions.
    pub refused: Vec<(String, Vec<String>)>,
    /// Why nothing of the file is patched, if so.
    pub left_alone: Option<String>,
}

impl PlannedFile {
    /// In lines, with this many names of functions for each reason.
    pub fn lines(&self, names: usize) -> Vec<String> {
        let PlannedFile { path, functions, patched, .. } = self;
        if let Some(why) = &self.left_alone {
            return vec![format!("functions: {path}: left alone: {why}")];
        }
        let mut lines = vec![format!("functions: {path}: {patched} of {functions} can be traced")];
        for (why, all) in &self.refused {
            let shown = &all[..all.len().min(names)];
            let more = if all.len() > shown.len() { ", …" } else { "" };
            lines.push(format!("  not traced: {}: {why}: {}{more}", all.len(), shown.join(", ")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_each_reason_with_examples() {
        let names = |n: usize| (0..n).map(|i| format!("f{i}")).collect::<Vec<_>>();
        let file = PlannedFile {
            path: "/x".into(),
            functions: 10,
            patched: 5,
            refused: vec![("a loop".into(), names(4)), ("cold".into(), names(1))],
            left_alone: None,
        };
        let want = [
            "functions: /x: 5 of 10 can be traced",
            "  not traced: 4: a loop: f0, f1, f2, …",
            "  not traced: 1: cold: f0",
        ];
        assert_eq!(file.lines(3), want);
        assert!(file.lines(usize::MAX)[1].ends_with("f3"));
        let alone = PlannedFile { left_alone: Some("a JIT".into()), ..file };
        assert_eq!(alone.lines(3), ["functions: /x: left alone: a JIT"]);
    }
}
