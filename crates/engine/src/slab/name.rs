//! Names of caches as names of directories.
//!
//! bpffs refuses names with a dot, and a cache may be called anything. A byte that is neither letter, digit, `_` nor `-` becomes `=XX`.
//! No encoded name ends in `~`, which marks what is not whole.

/// The name of a directory.
pub fn encode(name: &str) -> String {
    let mut out = String::new();
    for b in name.bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => out.push(char::from(b)),
            _ => out.push_str(&format!("={b:02x}")),
        }
    }
    out
}

/// The name of the cache; none where no cache has that directory.
pub fn decode(dir: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), dir.as_bytes());
    while let Some((b, after)) = rest.split_first() {
        rest = after;
        match b {
            b'=' => {
                let hex = std::str::from_utf8(rest.get(..2)?).ok()?;
                bytes.push(u8::from_str_radix(hex, 16).ok()?);
                rest = &rest[2..];
            }
            b => bytes.push(*b),
        }
    }
    String::from_utf8(bytes).ok().filter(|name| encode(name) == dir && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_return() {
        for name in ["filp", "kmalloc-64", "a.b", "ext4(1:2)", "x=y", "..", "a/b", "ö"] {
            let dir = encode(name);
            assert!(dir.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-=".contains(&b)), "{dir}");
            assert_eq!(decode(&dir).as_deref(), Some(name));
        }
        for dir in ["", "a.b", "filp~", "=4", "=zz", "=61", "x="] {
            assert_eq!(decode(dir), None, "{dir}");
        }
    }
}
