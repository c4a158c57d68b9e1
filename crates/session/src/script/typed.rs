//! What may stand at the end of a script that is being typed, for completion.

use super::catalogue::Catalogue;
use lang::script::World as _;
use lang::script::attach::{Arguments, PROVIDERS, Point};
use lang::script::table::{self, Class};
use lang::script::typed::{Place, place};

/// What a text goes on with.
pub struct Typed {
    /// Where the name that is typed begins.
    pub at: usize,
    /// It is that of a probe.
    pub is_probe: bool,
    /// The candidates, each with its help text.
    pub names: Vec<(String, String)>,
}

/// What a script may go on with; None: with anything.
pub fn typed(text: &str) -> Option<Typed> {
    let own = |name: &str, what: &str| (name.to_string(), what.to_string());
    Some(match place(text)? {
        Place::Probe(at) => {
            let one = |p: &'static lang::script::attach::Provider| {
                let colon = if p.forms == [""] { "" } else { ":" };
                own(&format!("{}{colon}", p.name), p.help)
            };
            Typed { at, is_probe: true, names: PROVIDERS.iter().filter(|p| p.known).map(one).collect() }
        }
        Place::Argument(at, points) => {
            let names = arguments(&points).into_iter().map(|name| (name, String::new())).collect();
            Typed { at, is_probe: false, names }
        }
        Place::Value(at, points) => {
            let is_there = |r: &&table::Row| !matches!(r.class, Class::Later | Class::Refused);
            let row = |r: &table::Row| {
                let open = if r.class == Class::Value || r.params().next().is_none() { "" } else { "(" };
                own(&format!("{}{open}", r.name), r.help)
            };
            let mut names: Vec<(String, String)> = table::ROWS.iter().filter(is_there).map(row).collect();
            names.extend(arguments(&points).into_iter().map(|name| (format!("args.{name}"), String::new())));
            let numbered =
                |p: &Point| matches!(p.provider.arguments, Arguments::Numbered | Arguments::Both | Arguments::Call);
            if !points.is_empty() && points.iter().all(numbered) {
                names.extend((0..6).map(|n| own(&format!("arg{n}"), "an argument by its number")));
            }
            Typed { at, is_probe: false, names }
        }
    })
}

/// The names of the arguments that all these probes have.
fn arguments(points: &[Point]) -> Vec<String> {
    let Some((first, others)) = points.split_first() else { return Vec::new() };
    let catalogue = Catalogue::new(false, None, None);
    let of = |p: &Point| -> Vec<String> { catalogue.args(p).unwrap_or_default().into_iter().map(|a| a.0).collect() };
    let mut all = of(first);
    for p in others {
        let theirs = of(p);
        all.retain(|name| theirs.contains(name));
    }
    all
}
