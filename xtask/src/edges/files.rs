//! Circles between the files of a crate, where a file uses another one that reaches it again, and between its folders.
//!
//! A file uses another by `use`, by a path, and by `mod`. A name that a module only hands on counts for the file that has it.
//! A module's children may use it: such an edge counts for nothing.

use super::scan::{Import, Source};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

/// Names that lead to names, at most so many times.
const MOST_STEPS: usize = 16;

struct File {
    /// Below `src`.
    name: String,
    module: Vec<String>,
    source: Source,
}

/// The files of a crate.
pub struct Files {
    files: Vec<File>,
    modules: BTreeMap<Vec<String>, usize>,
}

impl Files {
    /// Those below a directory `src`.
    pub fn read(src: &Path) -> Result<Files> {
        let root = if src.join("lib.rs").exists() { "lib.rs" } else { "main.rs" };
        Files::from(root, |name| {
            let path = src.join(name);
            path.exists()
                .then(|| fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display())))
                .transpose()
        })
    }

    /// All that `mod` leads to from the file `root`.
    fn from(root: &str, text: impl Fn(&str) -> Result<Option<String>>) -> Result<Files> {
        let mut all = Files { files: Vec::new(), modules: BTreeMap::new() };
        let mut next = VecDeque::from([(Vec::new(), vec![root.to_string()])]);
        while let Some((module, names)) = next.pop_front() {
            let mut found = None;
            for name in names {
                if let Some(text) = text(&name)? {
                    found = Some((name, text));
                    break;
                }
            }
            let (name, text) = found.with_context(|| format!("no file for the module {}", module.join("::")))?;
            let source = Source::of(&text);
            for child in &source.children {
                let module: Vec<String> = module.iter().chain([child]).cloned().collect();
                let path = module.join("/");
                next.push_back((module, vec![format!("{path}.rs"), format!("{path}/mod.rs")]));
            }
            all.modules.insert(module.clone(), all.files.len());
            all.files.push(File { name, module, source });
        }
        Ok(all)
    }

    /// Each circle, as `a.rs -> b.rs -> a.rs`: of each edge that is part of one, the shortest.
    pub fn circles(&self) -> Vec<String> {
        let edges: Vec<BTreeSet<usize>> = (0..self.files.len()).map(|f| self.uses(f)).collect();
        let mut circles = BTreeSet::new();
        for (from, to) in edges.iter().enumerate().flat_map(|(from, to)| to.iter().map(move |t| (from, *t))) {
            if let Some(mut circle) = way(&edges, to, from) {
                let first = circle.iter().enumerate().min_by_key(|(_, f)| &self.files[**f].name).map_or(0, |(i, _)| i);
                circle.rotate_left(first);
                circles.insert(circle);
            }
        }
        let names = |c: Vec<usize>| {
            let names: Vec<&str> = c.iter().chain(c.first()).map(|f| self.files[*f].name.as_str()).collect();
            names.join(" -> ")
        };
        circles.into_iter().map(names).collect()
    }

    /// Modules of one parent that use each other in circles, with all that is below them: the parent (empty for the crate's root) and the
    /// modules of each circle. What a parent's own file uses counts for nothing.
    pub fn circles_of_folders(&self) -> Vec<(String, BTreeSet<String>)> {
        let uses: Vec<BTreeSet<usize>> = (0..self.files.len()).map(|f| self.uses(f)).collect();
        let parents: BTreeSet<&[String]> = self.modules.keys().filter_map(|m| Some(m.split_last()?.1)).collect();
        let mut circles = Vec::new();
        for parent in parents {
            let below = |file: usize| self.files[file].module.strip_prefix(parent)?.first().cloned();
            let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for (file, used) in uses.iter().enumerate() {
                let Some(from) = below(file) else { continue };
                let others = used.iter().filter_map(|to| below(*to)).filter(|to| *to != from);
                edges.entry(from.clone()).or_default().extend(others);
            }
            let reached: BTreeMap<&String, BTreeSet<&String>> = edges.keys().map(|m| (m, reach(&edges, m))).collect();
            let mut seen = BTreeSet::new();
            for (module, from_it) in &reached {
                let circle = || from_it.iter().filter(|o| reached[**o].contains(module)).map(|o| (*o).clone());
                if from_it.contains(module) && seen.insert(*module) {
                    let circle: BTreeSet<String> = circle().collect();
                    seen.extend(edges.keys().filter(|m| circle.contains(*m)));
                    circles.push((parent.join("::"), circle));
                }
            }
        }
        circles
    }

    /// The files that name another crate.
    pub fn that_name<'a>(&'a self, other: &'a str) -> impl Iterator<Item = &'a str> {
        let is = move |path: &[String]| path.first().is_some_and(|first| first == other);
        let names = move |f: &&File| {
            f.source.imports.iter().any(|i| is(&i.path)) || f.source.paths.iter().any(|(_, path)| is(path))
        };
        self.files.iter().filter(names).map(|f| f.name.as_str())
    }

    /// The files that one uses, but for its parent.
    fn uses(&self, file: usize) -> BTreeSet<usize> {
        let File { module, source, .. } = &self.files[file];
        let mut used = BTreeSet::new();
        let children = source.children.iter().map(|c| module.iter().chain([c]).cloned().collect::<Vec<_>>());
        used.extend(children.filter_map(|m| self.modules.get(&m).copied()));
        for Import { scope, path, name } in &source.imports {
            let target = self.resolve(file, scope, path, MOST_STEPS);
            used.extend(target);
            if let (Some(target), None) = (target, name) {
                let names = self.files[target].source.imports.iter().filter_map(|i| i.name.as_ref());
                let mentioned = names.filter(|n| source.words.contains(*n));
                let module = &self.files[target].module;
                used.extend(mentioned.filter_map(|n| self.walk(module.clone(), std::slice::from_ref(n), MOST_STEPS)));
            }
        }
        used.extend(source.paths.iter().filter_map(|(scope, path)| self.resolve(file, scope, path, MOST_STEPS)));
        used.remove(&file);
        if let Some((_, parent)) = module.split_last() {
            used.retain(|f| self.files[*f].module != parent);
        }
        used
    }

    /// The file that has what a path in `file` names; none for another crate's.
    fn resolve(&self, file: usize, scope: &[String], path: &[String], steps: usize) -> Option<usize> {
        let steps = steps.checked_sub(1)?;
        let File { module, source, .. } = &self.files[file];
        let (first, rest) = path.split_first()?;
        let mut here = module.iter().chain(scope).cloned().collect::<Vec<_>>();
        match first.as_str() {
            "crate" => self.walk(Vec::new(), rest, steps),
            "self" => self.walk(here, rest, steps),
            "super" => {
                let ups = path.iter().take_while(|s| *s == "super").count();
                here.truncate(here.len().saturating_sub(ups));
                self.walk(here, &path[ups..], steps)
            }
            _ => {
                let child: Vec<String> = module.iter().chain([first]).cloned().collect();
                if self.modules.contains_key(&child) {
                    return self.walk(child, rest, steps);
                }
                let named = source.imports.iter().filter(|i| i.name.as_ref() == Some(first) && i.path != path);
                let far = |i: &Import| [&i.path[..], rest].concat();
                let mut found = named.filter_map(|i| self.resolve(file, &i.scope, &far(i), steps));
                found.next().or_else(|| self.by_glob(file, path, steps))
            }
        }
    }

    /// What a path names whose first name comes from a glob in `file`.
    fn by_glob(&self, file: usize, path: &[String], steps: usize) -> Option<usize> {
        let globs = self.files[file].source.imports.iter().filter(|i| i.name.is_none() && i.path != path);
        globs.filter_map(|i| self.resolve(file, &i.scope, &i.path, steps)).filter(|f| *f != file).find_map(|f| {
            let File { module, source, .. } = &self.files[f];
            let known = source.items.contains(&path[0])
                || source.children.contains(&path[0])
                || source.imports.iter().any(|i| i.name.as_ref() == Some(&path[0]));
            if known { self.walk(module.clone(), path, steps) } else { self.by_glob(f, path, steps.checked_sub(1)?) }
        })
    }

    /// The file that has what `path` names from `module` on.
    fn walk(&self, mut module: Vec<String>, path: &[String], steps: usize) -> Option<usize> {
        for (i, name) in path.iter().enumerate() {
            module.push(name.clone());
            if self.modules.contains_key(&module) {
                continue;
            }
            module.pop();
            let file = self.file(&module)?;
            let File { module: own, source, .. } = &self.files[file];
            if source.items.contains(name) || *own != module {
                return Some(file);
            }
            let handed_on = source.imports.iter().find(|s| s.name.as_ref() == Some(name));
            return match handed_on {
                Some(import) => {
                    let far = [&import.path[..], &path[i + 1..]].concat();
                    self.resolve(file, &import.scope, &far, steps).or(Some(file))
                }
                None => self.by_glob(file, &path[i..], steps).or(Some(file)),
            };
        }
        self.file(&module)
    }

    /// The file that a module is in.
    fn file(&self, module: &[String]) -> Option<usize> {
        (0..=module.len()).rev().find_map(|n| self.modules.get(&module[..n]).copied())
    }
}

/// What is reached along the edges, in one step or more.
fn reach<'a>(edges: &'a BTreeMap<String, BTreeSet<String>>, from: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&String> = edges[from].iter().collect();
    while let Some(at) = next.pop() {
        if found.insert(at) {
            next.extend(edges.get(at).into_iter().flatten());
        }
    }
    found
}

/// The shortest way along the edges, both ends included.
fn way(edges: &[BTreeSet<usize>], from: usize, to: usize) -> Option<Vec<usize>> {
    let mut before = BTreeMap::from([(from, from)]);
    let mut next = VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        if at == to {
            let mut way = vec![to];
            while way[way.len() - 1] != from {
                way.push(before[&way[way.len() - 1]]);
            }
            way.reverse();
            return Some(way);
        }
        for to in &edges[at] {
            if !before.contains_key(to) {
                before.insert(*to, at);
                next.push_back(*to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let text = |name: &str| Ok(files.iter().find(|(n, _)| *n == name).map(|(_, t)| (*t).to_string()));
        Files::from("lib.rs", text).unwrap().circles()
    }

    #[test]
    fn two_files_that_use_each_other_are_a_circle() {
        let a = ("a.rs", "use crate::b::B; pub struct A;");
        assert_eq!(circles(&[("lib.rs", "mod a; mod b;"), a, ("b.rs", "pub struct B;")]), [""; 0]);
        let b = ("b.rs", "pub struct B(super::a::A);");
        assert_eq!(circles(&[("lib.rs", "mod a; mod b;"), a, b]), ["a.rs -> b.rs -> a.rs"]);
    }

    #[test]
    fn a_parent_and_its_children_may_use_each_other() {
        let lib = ("lib.rs", "mod a; pub struct Top; use a::b::c;");
        let a = ("a/mod.rs", "pub mod b; pub use b::c; use crate::Top;");
        assert_eq!(circles(&[lib, a, ("a/b.rs", "use super::*; pub fn c() {}")]), [""; 0]);
        let through = ("a/b.rs", "use crate::Top; pub fn c() {}");
        assert_eq!(
            circles(&[lib, a, through]),
            ["a/b.rs -> lib.rs -> a/b.rs", "a/b.rs -> lib.rs -> a/mod.rs -> a/b.rs"]
        );
    }

    #[test]
    fn names_that_are_handed_on_count_for_the_file_that_has_them() {
        let lib = ("lib.rs", "pub mod a; pub mod x; pub mod y;");
        let a = ("a/mod.rs", "mod b; mod c; pub use b::B; pub use c::*;");
        let b = ("a/b.rs", "pub struct B;");
        let c = ("a/c.rs", "pub struct C(crate::x::X);");
        let x = |text| circles(&[lib, a, b, c, ("x.rs", text), ("y.rs", "pub use crate::a::C as D;")]);
        assert_eq!(x("use crate::a::B; pub struct X;"), [""; 0]);
        assert_eq!(x("use crate::a::C; pub struct X;"), ["a/c.rs -> x.rs -> a/c.rs"]);
        assert_eq!(x("use crate::y; pub struct X(y::D);")[0], "a/c.rs -> x.rs -> a/c.rs");
    }

    #[test]
    fn what_a_glob_brings_in_counts_where_it_is_mentioned() {
        let lib = ("lib.rs", "pub mod a; pub mod x;");
        let a = ("a/mod.rs", "mod b; use crate::x::{f, g};");
        let used = |b| circles(&[lib, a, ("a/b.rs", b), ("x.rs", "use crate::a::b::B; pub fn f() {} pub fn g() {}")]);
        assert_eq!(used("use super::*; struct B;"), ["a/b.rs -> x.rs -> a/b.rs"; 0]);
        assert_eq!(used("use super::*; struct B; fn h() { f() }"), ["a/b.rs -> x.rs -> a/b.rs"]);
    }

    #[test]
    fn folders_that_use_each_other_are_a_circle_where_files_are_none() {
        let files = |c| {
            let files = [
                ("lib.rs", "mod a; mod b; mod d;"),
                ("a/mod.rs", "mod c; mod e;"),
                ("a/c.rs", c),
                ("a/e.rs", "pub struct E;"),
                ("b.rs", "use crate::a::e::E; pub struct B;"),
                ("d.rs", "use crate::b::B;"),
            ];
            let text = |name: &str| Ok(files.iter().find(|(n, _)| *n == name).map(|(_, t)| (*t).to_string()));
            Files::from("lib.rs", text).unwrap()
        };
        assert_eq!(files("pub struct C;").circles_of_folders(), []);
        let all = files("use crate::b::B;");
        assert_eq!(all.circles(), [""; 0]);
        assert_eq!(all.circles_of_folders(), [(String::new(), BTreeSet::from(["a".to_string(), "b".into()]))]);
    }

    #[test]
    fn files_that_name_a_crate_are_found() {
        let text = |name: &str| {
            let files =
                [("lib.rs", "mod a; mod b;"), ("a.rs", "use clap::Arg;"), ("b.rs", "fn f(m: &clap::ArgMatches) {}")];
            Ok(files.iter().find(|(n, _)| *n == name).map(|(_, t)| (*t).to_string()))
        };
        let all = Files::from("lib.rs", text).unwrap();
        assert_eq!(
            (all.that_name("clap").collect::<Vec<_>>(), all.that_name("bpf").count()),
            (vec!["a.rs", "b.rs"], 0)
        );
    }

    #[test]
    fn files_of_tests_are_left_out() {
        let lib = ("lib.rs", "pub mod a; #[cfg(test)] mod tests;");
        assert_eq!(circles(&[lib, ("a.rs", "#[cfg(test)] mod tests { use crate::tests::x; }")]), [""; 0]);
    }
}
