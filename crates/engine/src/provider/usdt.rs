//! `usdt:PATH:PROVIDER:NAME`: static probes that a program or library was built with.

use super::pattern::is_pattern;
use super::uprobe::{at_sites, open, split_path};
use super::{ArgInfo, ArgType, Form, Place, Probe, Provider, Ready, Refusal, Site, glob, join};
use std::path::Path;
use std::sync::Arc;
use symbols::usdt::{self, Static};

/// The provider.
pub struct Usdt;

const FORM: &str = "usdt:PATH:PROVIDER:NAME: a static probe of a program or library";

impl Provider for Usdt {
    fn name(&self) -> &'static str {
        "usdt"
    }

    fn describe(&self) -> &'static str {
        FORM
    }

    fn is_enumerable(&self) -> bool {
        false
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        let (path, words) = split_path(pattern, 2, FORM)?;
        let (path, elf) = open(&path)?;
        let mut all = usdt::of(&elf);
        if all.is_empty() {
            let why = format!("{}: no static probes in it", path.display());
            return Err(Refusal::Closed(why, "name another file, or use uprobe".into()));
        }
        all.sort_by(|a, b| (&a.provider, &a.name, a.offset).cmp(&(&b.provider, &b.name, b.offset)));
        let wanted = |s: &&Static| {
            glob(words[0].as_bytes(), s.provider.as_bytes()) && glob(words[1].as_bytes(), s.name.as_bytes())
        };
        let shared: Arc<Path> = path.as_path().into();
        let mut found: Vec<Probe> = Vec::new();
        for s in all.iter().filter(wanted) {
            let args = if details { arguments(s) } else { Vec::new() };
            let note = if s.semaphore == 0 { "" } else { "with a semaphore" };
            let places = s.args.iter().map(|a| Place::Operand(a.at.clone())).collect();
            let site = Site { path: shared.clone(), offset: s.offset, counter: s.semaphore, places };
            join(&mut found, Probe { name: full(&path, s), args, note: note.into(), sites: vec![site] });
        }
        if found.is_empty() {
            let names: Vec<String> = all.iter().map(|s| format!("{}:{}", s.provider, s.name)).collect();
            let wanted = words.join(":");
            let mut near =
                Refusal::nothing(&format!("usdt:{}", path.display()), &wanted, names.iter().map(String::as_str));
            if let Refusal::Nothing(near) = &mut near {
                near.dedup();
            }
            return Err(near);
        }
        Ok(found)
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let tolerant = is_pattern(pattern);
        Ok(self.list(pattern, true)?.into_iter().flat_map(|probe| at_sites(probe, false, tolerant)).collect())
    }
}

fn full(path: &Path, s: &Static) -> String {
    format!("usdt:{}:{}:{}", path.display(), s.provider, s.name)
}

/// As the first place says; each site has its own places.
fn arguments(s: &Static) -> Vec<ArgInfo> {
    let arg = |(i, a): (usize, &usdt::Arg)| {
        let form = if a.float { Form::Float } else { Form::Int };
        let ty = ArgType { c: a.to_string(), size: a.size.into(), signed: a.signed, form };
        ArgInfo { name: format!("arg{i}"), ty, place: Place::Operand(a.at.clone()) }
    };
    s.args.iter().enumerate().map(arg).collect()
}
