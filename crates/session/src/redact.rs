//! `--redact`: what is refused beside it.

use crate::ask::Ask;
use engine::redact::Redact;
use engine::{Error, Result};
use events::rules::Rules;
use std::sync::Arc;

/// The rules that are asked for; none where nothing is to be replaced.
///
/// # Errors
/// They are none, or something beside them could not keep to them.
pub fn rules(ask: &Ask) -> Result<Option<Arc<dyn Rules>>> {
    let Some(rules) = Redact::parse(&ask.trace.redact)? else { return Ok(None) };
    if ask.trace.follow {
        return Err(Error::usage("--redact", "not of a recording that goes on", "leave out --follow"));
    }
    Ok(Some(rules))
}
