//! `cargo xtask edges`: which crate may use which, which files may use `bpf` and clap, that only `sys`, `agent` and `tracer` may contain unsafe
//! code, and that neither files nor folders use each other in circles.

mod files;
mod scan;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Package, and the packages of this workspace that its normal dependencies may name.
const ALLOWED: &[(&str, &[&str])] = &[
    ("events", &[]),
    ("abi", &[]),
    ("patch", &["abi"]),
    ("symbols", &[]),
    ("sys", &["abi"]),
    ("lang", &["events"]),
    ("order", &[]),
    ("unwind", &[]),
    ("bpf", &["events", "lang", "unwind"]),
    ("ctf", &["events", "order"]),
    ("engine", &["abi", "bpf", "ctf", "events", "lang", "order", "symbols", "sys", "unwind"]),
    ("views", &["events", "lang", "order"]),
    ("kernel", &["bpf", "engine", "events", "lang", "order", "symbols", "sys", "unwind"]),
    ("collector", &["abi", "engine", "events", "lang", "order", "patch", "symbols", "sys", "unwind"]),
    ("unprivileged", &["engine", "events", "lang", "patch", "symbols", "sys", "unwind"]),
    (
        "session",
        &[
            "abi",
            "bpf",
            "collector",
            "ctf",
            "engine",
            "events",
            "kernel",
            "lang",
            "order",
            "sys",
            "unprivileged",
            "unwind",
            "views",
        ],
    ),
    ("trapline", &["ctf", "engine", "events", "lang", "order", "session", "sys", "views"]),
    ("tracer", &[]),
    ("testkit", &[]),
    ("xtask", &[]),
    ("agent", &["abi", "unwind"]),
];

/// Files that alone may use a crate: its name, the package, and what their names, below `src`, begin with.
const ONLY_IN: &[(&str, &str, &[&str])] =
    &[("bpf", "engine", &["slab/", "request/collecting.rs"]), ("clap", "trapline", &["args.rs", "args/"])];

/// The packages that may contain unsafe code.
const UNSAFE: &[&str] = &["sys", "tracer", "agent"];

/// A package of the workspace.
struct Package {
    name: String,
    manifest: String,
    /// Normal dependencies, others than those of this workspace too.
    uses: Vec<String>,
}

pub fn run(args: &[String]) -> Result<()> {
    ensure!(args.is_empty(), "usage: cargo xtask edges");
    let mut packages = packages(&metadata("Cargo.toml")?)?;
    packages.extend(self::packages(&metadata("crates/agent/Cargo.toml")?)?.into_iter().filter(|p| p.name == "agent"));
    let mut wrong = edges(&packages);
    for p in &packages {
        let text = fs::read_to_string(&p.manifest).with_context(|| format!("cannot read {}", p.manifest))?;
        wrong.extend(lints(p, &text));
    }
    let root = fs::read_to_string(crate::root().join("Cargo.toml")).context("cannot read Cargo.toml")?;
    if !has(&root, "[workspace.lints.rust]", "unsafe_code=\"deny\"") {
        wrong.push("Cargo.toml: wants unsafe_code = \"deny\" in [workspace.lints.rust]".into());
    }
    for p in packages.iter().filter(|p| p.manifest.contains("/crates/")) {
        let all = files::Files::read(&Path::new(&p.manifest).with_file_name("src"))?;
        wrong.extend(all.circles().into_iter().map(|circle| format!("crate '{}': {circle}", p.name)));
        for (parent, circle) in all.circles_of_folders() {
            let modules = circle.into_iter().collect::<Vec<_>>().join(", ");
            wrong.push(format!("crate '{}': modules of '{parent}' in a circle: {modules}", p.name));
        }
        for (used, _, places) in ONLY_IN.iter().filter(|(_, package, _)| *package == p.name) {
            let elsewhere = all.that_name(used).filter(|name| !places.iter().any(|place| name.starts_with(place)));
            wrong.extend(elsewhere.map(|name| format!("crate '{}': {name} may not use '{used}'", p.name)));
        }
    }
    if !wrong.is_empty() {
        bail!("edges: {}", wrong.join("; "));
    }
    println!("edges: {} crates use only what they may", packages.len());
    Ok(())
}

/// `--no-deps`: the packages of other platforms are not needed and not downloaded.
fn metadata(manifest: &str) -> Result<Value> {
    let out = Command::new(crate::test::cargo())
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--no-deps", "--manifest-path", manifest])
        .current_dir(crate::root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo metadata")?;
    ensure!(out.status.success(), "cargo metadata failed ({})", out.status);
    serde_json::from_slice(&out.stdout).context("cannot read what cargo metadata says")
}

fn packages(metadata: &Value) -> Result<Vec<Package>> {
    let text = |v: &Value, key: &str| {
        v[key].as_str().map(String::from).with_context(|| format!("cargo metadata: a package without {key}"))
    };
    let list = metadata["packages"].as_array().context("cargo metadata: no packages")?;
    list.iter()
        .map(|p| {
            let dependencies = p["dependencies"].as_array().context("cargo metadata: no dependencies")?;
            let uses = dependencies.iter().filter(|d| d["kind"].is_null()).map(|d| text(d, "name"));
            Ok(Package {
                name: text(p, "name")?,
                manifest: text(p, "manifest_path")?,
                uses: uses.collect::<Result<_>>()?,
            })
        })
        .collect()
}

fn edges(packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    for p in packages {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == p.name) else {
            wrong.push(format!("crate '{}' is unknown: add it to ALLOWED in xtask/src/edges.rs", p.name));
            continue;
        };
        let own = |name: &str| packages.iter().any(|q| q.name == name);
        for u in p.uses.iter().filter(|u| own(u) && !allowed.contains(&u.as_str())) {
            wrong.push(format!("crate '{}' may not use '{u}'", p.name));
        }
    }
    wrong
}

/// What is wrong with the lints in the text of a manifest.
fn lints(package: &Package, text: &str) -> Option<String> {
    let fine = UNSAFE.contains(&package.name.as_str()) || has(text, "[lints]", "workspace=true");
    (!fine).then(|| format!("crate '{}' may contain unsafe code: wants [lints] workspace = true", package.name))
}

/// Whether a line is in a section of a TOML text, blanks aside.
fn has(toml: &str, section: &str, line: &str) -> bool {
    let mut here = false;
    toml.lines().map(|l| l.split('#').next().unwrap_or_default().split_whitespace().collect::<String>()).any(|l| {
        if l.starts_with('[') {
            here = l == section;
        }
        here && l == line
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn this_workspace_keeps_its_edges() {
        run(&[]).unwrap();
    }

    #[test]
    fn a_forbidden_edge_and_an_unknown_crate_are_named() {
        let dep = |name: &str, kind: Value| json!({"name": name, "kind": kind});
        let package = |name: &str, uses: Value| json!({"name": name, "manifest_path": "", "dependencies": uses});
        let metadata = json!({"packages": [
            package("views", json!([dep("events", Value::Null), dep("sys", Value::Null), dep("libc", Value::Null)])),
            package("events", json!([dep("sys", json!("dev"))])),
            package("sys", json!([])),
            package("new", json!([])),
        ]});
        let wrong = edges(&packages(&metadata).unwrap());
        let unknown = "crate 'new' is unknown: add it to ALLOWED in xtask/src/edges.rs";
        assert_eq!(wrong, ["crate 'views' may not use 'sys'", unknown]);
    }

    #[test]
    fn only_sys_may_do_without_the_lints() {
        let package = |name: &str| Package { name: name.into(), manifest: String::new(), uses: Vec::new() };
        assert_eq!(lints(&package("views"), "[package]\n[lints] # all\nworkspace = true\n"), None);
        assert_eq!(lints(&package("sys"), "[package]\n"), None);
        for bad in ["[lints]\n[other]\nworkspace = true\n", "[lints]\n# workspace = true\n", ""] {
            assert!(lints(&package("views"), bad).unwrap().contains("'views'"));
        }
    }
}
