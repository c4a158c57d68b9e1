//! How many events the filters of the programs rejected.

use super::loaded::Loaded;
use engine::request::expression::Filtered;

/// Reads the counters of the programs. After the last part that has a counter of its own, parts share one.
pub fn count(loaded: &Loaded) -> Filtered {
    let (parts, unknown) = loaded.filtered();
    let used = parts.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1);
    let class = |(nr, n): (u64, u64)| Some((events::registry::by_number(nr)?.id, n));
    let classes = loaded.filtered_calls().into_iter().filter_map(class).collect();
    Filtered { parts: parts[..used].to_vec(), unknown, classes }
}
