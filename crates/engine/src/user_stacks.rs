//! Calls whose only capture is the stack of the process, which every backend can take.

use crate::enabling::CallCaptures;
use events::registry;

/// The field.
const USTACK: &str = events::stacks::FIELDS[1];

/// Whether a call captures the stack of the process, and nothing else.
pub fn is_all(captures: &CallCaptures) -> bool {
    let schema = captures.schema;
    matches!(&schema.args[registry::own_args(schema)..], [one] if one.name == USTACK)
}
