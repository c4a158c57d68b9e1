//! `cargo xtask bloat [BINARY]`: what the bytes of the shipped binary are: sections, then code by crate, then the largest kinds of generic
//! code. BINARY is one with symbols; without it, the profile `dist` is built with them.
//!
//! Code of the standard library counts for the crate of its first type parameter that is not the standard library's own: what a crate
//! instantiates is its own choice.

use crate::lab;
use crate::test::cargo;
use anyhow::{Context, Result, ensure};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// Rows of each table.
const ROWS: usize = 30;
/// The standard library, and what only it uses.
const STD: [&str; 9] =
    ["std", "core", "alloc", "hashbrown", "addr2line", "compiler_builtins", "gimli_std", "dyn", "mut"];

pub fn run(args: &[String]) -> Result<()> {
    let binary = match args {
        [] => build()?,
        [file] if !file.starts_with('-') => PathBuf::from(file),
        _ => anyhow::bail!("usage: cargo xtask bloat [BINARY]"),
    };
    let binary = binary.to_str().context("a path that is not UTF-8")?;
    println!("{binary}");
    let sections = lab::said("size", &["-A", "-d", binary]);
    let loaded = sections.lines().filter_map(section).filter(|(name, _)| !name.starts_with(".debug"));
    table("section", loaded.collect());
    let symbols = lab::said("nm", &["-S", "-C", "--defined-only", binary]);
    let all: Vec<(&str, u64)> = symbols.lines().filter_map(symbol).collect();
    ensure!(!all.is_empty(), "{binary} has no symbols");
    table("code of", sums(all.iter().map(|(name, size)| (owner(name).to_string(), *size))));
    table("function, all copies", sums(all.iter().map(|(name, size)| (without_parameters(name), *size))));
    Ok(())
}

/// The profile `dist`, with symbols.
fn build() -> Result<PathBuf> {
    let mut build = Command::new(cargo());
    build.args(["build", "--quiet", "--locked", "--profile", "dist", "--config", "profile.dist.strip=\"none\""]);
    lab::run(build.arg("--target-dir").arg(lab::target().join("bloat")).current_dir(crate::root()))?;
    Ok(lab::target().join("bloat/dist/trapline"))
}

/// A line of `size -A`: a section that takes room in the file.
fn section(line: &str) -> Option<(String, u64)> {
    let mut words = line.split_whitespace();
    let (name, size) = (words.next()?, words.next()?.parse().ok()?);
    (name.starts_with('.') && !name.ends_with("bss")).then(|| (name.to_string(), size))
}

/// A line of `nm -S -C`: a function, with its size.
fn symbol(line: &str) -> Option<(&str, u64)> {
    let mut words = line.splitn(4, ' ');
    let (_, size, kind, name) = (words.next()?, words.next()?, words.next()?, words.next()?);
    matches!(kind, "t" | "T" | "w" | "W").then_some(())?;
    Some((name, u64::from_str_radix(size, 16).ok()?))
}

/// The crate that a function belongs to: the first in its name that is not the standard library.
fn owner(name: &str) -> &str {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut crates = name.match_indices("::").filter_map(|(at, _)| {
        let path = &name[..at];
        let start = path.rfind(|c| !word(c)).map_or(0, |i| i + 1);
        // The first part of a path: nothing that a path goes on from lies before it.
        let first = !name[..start].ends_with("::") && start < at;
        first.then(|| &path[start..])
    });
    let own = |c: &&str| !STD.contains(c) && c.starts_with(|c: char| c.is_ascii_lowercase());
    crates.find(own).unwrap_or("std")
}

/// A name without what is in angle brackets, and without the hash at its end.
fn without_parameters(name: &str) -> String {
    let mut depth = 0_usize;
    let mut short = String::new();
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => short.push(c),
            _ => {}
        }
    }
    match short.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 => path.to_string(),
        _ => short,
    }
}

fn sums(all: impl Iterator<Item = (String, u64)>) -> Vec<(String, u64)> {
    let mut sums = BTreeMap::<String, u64>::new();
    all.for_each(|(name, size)| *sums.entry(name).or_default() += size);
    sums.into_iter().collect()
}

fn table(title: &str, mut rows: Vec<(String, u64)>) {
    let sum: u64 = rows.iter().map(|r| r.1).sum();
    rows.sort_by_key(|r| Reverse(r.1));
    println!("\n{:>10}  {title}", "bytes");
    rows.iter()
        .take(ROWS)
        .for_each(|(name, size)| println!("{size:>10}  {}", name.chars().take(100).collect::<String>()));
    println!("{sum:>10}  in all");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_code_belongs_to_the_crate_of_its_parameter() {
        assert_eq!(owner("engine::pipeline::pump::Pump::turn"), "engine");
        assert_eq!(
            owner("<alloc::vec::Vec<T> as alloc::vec::spec::From<T, core::iter::Map<views::text::X>>>::from_iter"),
            "views"
        );
        assert_eq!(owner("core::fmt::write"), "std");
    }

    #[test]
    fn lines_of_size_and_nm_are_read() {
        assert_eq!(section(".text   123   456"), Some((".text".to_string(), 123)));
        assert_eq!(section("Total   123"), None);
        assert_eq!(symbol("0000 00000010 t a::b<c d>::e"), Some(("a::b<c d>::e", 16)));
        assert_eq!(without_parameters("a::b<c<d>>::e::h0123456789abcdef"), "a::b::e");
    }
}
