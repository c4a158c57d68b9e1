//! Functions of values only.

use super::types::Type;
use super::value::{Text, Value};
use events::generated::flags::T_SIGNAL;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address families of the Internet (include/linux/socket.h).
const AF_INET6: i64 = 10;

/// The result of a function; None: it is none of these.
pub(super) fn call(name: &str, args: &[Value], ty: &Type, max_strlen: usize) -> Option<Value> {
    let int = |i: usize| args.get(i).map_or(0, Value::int);
    let chars = |i: usize| args.get(i).map(Value::chars).unwrap_or_default();
    let text = |t: &str| Value::text(t.as_bytes());
    Some(match name {
        "strlen" => Value::Int(chars(0).len() as i64),
        "strncmp" => Value::Int(compare(chars(0), chars(1), int(2))),
        "memcmp" => Value::Int(memory(args, int(2))),
        "strcontains" => Value::Int(find(chars(0), chars(1)).is_some().into()),
        "startswith" => Value::Int(chars(0).starts_with(chars(1)).into()),
        "strstr" => Value::Int(find(chars(0), chars(1)).map_or(-1, |at| at as i64)),
        "str_concat" => cut([chars(0), chars(1)].concat(), max_strlen),
        "text" => cut(chars(0).to_vec(), max_strlen),
        // The length has room for a NUL.
        "cut" => Value::text(&chars(0)[..chars(0).len().min(int(1).max(1) as usize - 1)]),
        "buf" => {
            let (all, length, padded) = (args[0].bytes(), int(1).max(0), int(2));
            let mut bytes = all[..all.len().min(length as usize)].to_vec();
            bytes.resize(bytes.len().max(length.min(padded) as usize), 0);
            Value::Bytes(bytes)
        }
        "bytes" => {
            let n = int(1).max(0) as usize;
            let mut bytes = match &args[0] {
                Value::Int(v) => v.to_le_bytes().to_vec(),
                v => v.bytes().to_vec(),
            };
            bytes.resize(n, 0);
            Value::Bytes(bytes)
        }
        "bswap" => {
            let size = ty.as_int().map_or(8, |c| c.size);
            Value::Int(((int(0) as u64).swap_bytes() >> (64 - 8 * u32::from(size))) as i64)
        }
        "ntop" => text(&internet(int(0), &args[1])),
        "macaddr" => {
            let bytes = args[0].bytes();
            let byte = |i: usize| format!("{:02X}", bytes.get(i).copied().unwrap_or(0));
            text(&(0..6).map(byte).collect::<Vec<_>>().join(":"))
        }
        "strerror" => match events::errno::lookup(int(0)) {
            Some((_, t)) => text(t),
            None => text(&format!("Unknown error {}", int(0))),
        },
        "signal_name" => text(T_SIGNAL.name_of(int(0) as u64).unwrap_or_default()),
        "syscall_name" => text(events::registry::by_number(int(0) as u64).map_or("unknown", |s| s.name)),
        "ksym" => Value::Int(int(0)),
        _ => return None,
    })
}

fn cut(bytes: Vec<u8>, most: usize) -> Value {
    let cut = bytes.len() > most;
    let mut bytes = bytes;
    bytes.truncate(most);
    Value::Text(Text { bytes, cut })
}

/// C's strncmp, as 0 or not: the peer's results have no order.
fn compare(a: &[u8], b: &[u8], n: i64) -> i64 {
    let n = n.max(0) as usize;
    let (a, b) = (&a[..a.len().min(n)], &b[..b.len().min(n)]);
    i64::from(a != b)
}

/// C's memcmp of what is there of two values.
fn memory(args: &[Value], n: i64) -> i64 {
    let of = |v: &Value| match v {
        Value::Int(v) => v.to_le_bytes().to_vec(),
        v => v.bytes().to_vec(),
    };
    let n = n.max(0) as usize;
    let (a, b) = (of(&args[0]), of(&args[1]));
    let at = |v: &[u8], i: usize| i64::from(v.get(i).copied().unwrap_or(0));
    let longest = n.min(a.len().max(b.len()));
    (0..longest).map(|i| at(&a, i) - at(&b, i)).find(|d| *d != 0).unwrap_or(0)
}

/// Where a string is in another.
fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    text.windows(part.len()).position(|w| w == part)
}

/// An address of the Internet; its bytes are in the network's order.
fn internet(family: i64, address: &Value) -> String {
    let number;
    let bytes = match address {
        Value::Int(v) => {
            number = (*v as u32).to_le_bytes();
            &number[..]
        }
        v => v.bytes(),
    };
    let ip = match family {
        AF_INET6 => <[u8; 16]>::try_from(bytes).ok().map(|b| IpAddr::V6(Ipv6Addr::from(b))),
        _ => bytes.get(..4).and_then(|b| <[u8; 4]>::try_from(b).ok()).map(|b| IpAddr::V4(Ipv4Addr::from(b))),
    };
    ip.map_or_else(String::new, |ip| ip.to_string())
}
