//! Calls whose only capture is the stack of the process, which every backend can take: events have its id.

use crate::enabling::CallCaptures;
use crate::error::{Error, Result};
use events::dynamic::{self, Field};
use events::registry;
use events::types::{Fmt, Int, Type};

/// The field.
const USTACK: &str = events::stacks::FIELDS[1];

/// Whether a call captures the stack of the process, and nothing else.
pub fn is_all(captures: &CallCaptures) -> bool {
    let schema = captures.schema;
    matches!(&schema.args[registry::own_args(schema)..], [one] if one.name == USTACK)
}

/// The classes of such calls with the ids of their stacks.
///
/// # Errors
/// There are too many classes.
pub fn classes(all: &[CallCaptures]) -> Result<Vec<CallCaptures>> {
    let field = Field { name: USTACK.into(), ty: Type::Int(Int { size: 8, signed: false, fmt: Fmt::Stack }) };
    let class = |c: &CallCaptures| {
        let call = registry::by_id(c.schema.base).unwrap_or(c.schema);
        let schema = dynamic::with_captures(call, std::slice::from_ref(&field));
        let schema = schema.map_err(|e| Error::failed(call.probe(), e.to_string(), "select fewer calls"))?;
        Ok(CallCaptures { schema, ..c.clone() })
    };
    all.iter().map(class).collect()
}
