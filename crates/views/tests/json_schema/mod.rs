//! Validates JSON by the part of JSON Schema (2020-12) that trapline's own schemas use. Any other keyword is an error, so that nothing is
//! overlooked.

use serde_json::{Map, Value};

/// Keywords that say nothing about what is valid.
const WORDS: [&str; 6] = ["$schema", "$defs", "title", "description", "x-unit", "then"];

/// Why a value is not valid by a schema, and where; none: it is valid.
pub fn invalid(document: &Value, value: &Value) -> Option<String> {
    Validator { document }.check(document, value, "").err()
}

struct Validator<'d> {
    document: &'d Value,
}

impl<'d> Validator<'d> {
    fn check(&self, schema: &'d Value, value: &Value, at: &str) -> Result<(), String> {
        match schema {
            Value::Bool(true) => Ok(()),
            Value::Object(keywords) => {
                keywords.iter().try_for_each(|(word, of)| self.keyword((word, of), keywords, value, at))
            }
            _ => Err(format!("{at}: no schema: {schema}")),
        }
    }

    fn holds(&self, schema: &'d Value, value: &Value, at: &str) -> bool {
        self.check(schema, value, at).is_ok()
    }

    fn keyword(
        &self,
        (word, of): (&str, &'d Value),
        schema: &'d Map<String, Value>,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let wrong = |holds: bool| if holds { Ok(()) } else { Err(format!("{at}: {value} is not {word} {of}")) };
        let list = || of.as_array().into_iter().flatten();
        match word {
            _ if WORDS.contains(&word) => Ok(()),
            "const" => wrong(value == of),
            "type" if of.is_array() => wrong(list().any(|ty| is_of(ty, value))),
            "type" => wrong(is_of(of, value)),
            "pattern" => wrong(value.as_str().is_none_or(|text| matches(of.as_str().unwrap_or_default(), text))),
            "required" => {
                let has = |name: &Value| value.get(name.as_str().unwrap_or_default()).is_some();
                wrong(!value.is_object() || list().all(has))
            }
            "properties" => of.as_object().into_iter().flatten().try_for_each(|(name, schema)| {
                value.get(name).map_or(Ok(()), |member| self.check(schema, member, &format!("{at}/{name}")))
            }),
            "items" => {
                let mut items = value.as_array().into_iter().flatten().enumerate();
                items.try_for_each(|(i, item)| self.check(of, item, &format!("{at}/{i}")))
            }
            "anyOf" => wrong(list().any(|schema| self.holds(schema, value, at))),
            "allOf" => list().try_for_each(|schema| self.check(schema, value, at)),
            "not" => wrong(!self.holds(of, value, at)),
            "if" if self.holds(of, value, at) => schema.get("then").map_or(Ok(()), |then| self.check(then, value, at)),
            "if" => Ok(()),
            "$ref" => {
                let name = of.as_str().and_then(|of| of.strip_prefix('#')).unwrap_or_default();
                let target = self.document.pointer(name).ok_or_else(|| format!("{at}: nothing at {of}"))?;
                self.check(target, value, at)
            }
            _ => Err(format!("{at}: unknown keyword {word}")),
        }
    }
}

fn is_of(ty: &Value, value: &Value) -> bool {
    match ty.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        _ => false,
    }
}

/// Patterns are a beginning, and characters of one set up to the end: `^0x[0-9a-f]+$`.
fn matches(pattern: &str, text: &str) -> bool {
    let parts = pattern.strip_prefix('^').and_then(|p| p.strip_suffix("]+$")).and_then(|p| p.split_once('['));
    let Some((begin, set)) = parts else { return false };
    let in_set = |c: char| match set {
        "0-9a-f" => c.is_ascii_digit() || ('a'..='f').contains(&c),
        "0-7" => ('0'..='7').contains(&c),
        _ => false,
    };
    text.strip_prefix(begin).is_some_and(|rest| !rest.is_empty() && rest.chars().all(in_set))
}
