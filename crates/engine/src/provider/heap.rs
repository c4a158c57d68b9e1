//! `heap:malloc`, `heap:free`, `heap:mmap`, `heap:munmap`: allocations of programs, which the agent in them records.
//!
//! They have no attach point: [`crate::request::heap_enabling::heap_enablings`] takes them out of what is asked for.

use super::{ArgInfo, ArgLocation, ArgType, Encoding, Probe, Provider, Ready, Refusal, word};
use crate::heap::classes::{self, ALL};
use lang::pattern::glob;

/// The provider.
pub struct Heap;

const FORM: &str = "heap:malloc, heap:free, heap:mmap, heap:munmap: allocations of programs, seen by an agent in them";

impl Provider for Heap {
    fn name(&self) -> &'static str {
        "heap"
    }

    fn describe(&self) -> &'static str {
        FORM
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        let short = |name: &'static str| name.strip_prefix(classes::PROVIDER).unwrap_or(name);
        let matching = ALL.iter().filter(|(_, name, _)| glob(pattern.as_bytes(), short(name).as_bytes()));
        let mut found: Vec<Probe> = matching
            .map(|(probe, name, what)| {
                let fields = probe.fields(false).into_iter().filter(|_| details);
                let args = fields.map(|(name, _)| argument(name)).collect();
                let note = if details { (*what).to_string() } else { String::new() };
                Probe { name: (*name).into(), args, note, ..Probe::default() }
            })
            .collect();
        order::by(&mut found, |a, b| a.name.cmp(&b.name));
        match found.is_empty() {
            true => Err(Refusal::nothing("heap", pattern, ALL.iter().map(|p| short(p.1)))),
            false => Ok(found),
        }
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        self.list(pattern, false)?;
        let why = "allocations are recorded from the start of a recording on";
        Err(Refusal::Wrong(why.into(), "name it when the recording starts: 'trapline record -e heap:malloc'".into()))
    }
}

fn argument(name: &str) -> ArgInfo {
    let ty = match name {
        "address" => ArgType { encoding: Encoding::Pointer, ..word("void *", 8, false) },
        _ => word("size_t", 8, false),
    };
    ArgInfo { name: name.into(), ty, location: ArgLocation::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_have_an_address_and_a_size() {
        let all = Heap.list("*", true).unwrap();
        let shown = |p: &Probe| {
            let args: Vec<String> = p.args.iter().map(|a| a.to_string()).collect();
            format!("{}({})", p.name, args.join(", "))
        };
        let shown: Vec<String> = all.iter().map(shown).collect();
        let both = "void *address, size_t size";
        assert_eq!(
            shown,
            [
                "heap:free(void *address)".into(),
                format!("heap:malloc({both})"),
                format!("heap:mmap({both})"),
                format!("heap:munmap({both})")
            ]
        );
        assert_eq!(Heap.list("m*map", false).unwrap().len(), 2);
        assert!(
            matches!(Heap.list("maloc", false), Err(Refusal::Nothing(near)) if near.contains(&"heap:malloc".to_string()))
        );
        assert!(matches!(Heap.ready("malloc"), Err(Refusal::Wrong(..))));
    }
}
