//! Socket addresses and control messages, by family (`include/uapi/linux/{un,in,in6,netlink,if_packet}.h`, 6.18).

use crate::generated::flags;
use crate::memory::{self, DEC};
use crate::sink::{Group, Sink, Text};
use crate::types::{Fmt, Int};
use std::net::{Ipv4Addr, Ipv6Addr};

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const AF_NETLINK: u16 = 16;
const AF_PACKET: u16 = 17;

const FAMILY: Int = Int { size: 2, signed: false, fmt: Fmt::Enum(&flags::T_AF) };
const BE16: Int = Int { size: 2, signed: false, fmt: Fmt::Be16 };
const BE32: Int = Int { size: 4, signed: false, fmt: Fmt::Be32 };
const U32: Int = Int { size: 4, signed: false, fmt: Fmt::Dec };

fn at(b: &[u8], from: usize, n: usize) -> &[u8] {
    b.get(from..(from + n).min(b.len())).unwrap_or_default()
}

/// Shows the address in `b`.
pub fn walk(b: &[u8], sink: &mut dyn Sink) {
    if b.len() < 2 {
        return sink.text(b, false, Text::Buf);
    }
    let family = u16::from_le_bytes([b[0], b[1]]);
    sink.open(Group::Struct);
    sink.field("sa_family");
    sink.int(family.into(), &FAMILY);
    match family {
        AF_UNIX if b.len() == 2 => {}
        AF_UNIX => {
            sink.field("sun_path");
            let path = &b[2..];
            if path[0] == 0 {
                sink.text(path, false, Text::Path);
            } else {
                let end = path.iter().position(|&c| c == 0).unwrap_or(path.len());
                sink.text(&path[..end], false, Text::Path);
            }
        }
        AF_INET if b.len() >= 8 => {
            sink.field("sin_port");
            sink.int(BE16.read(&b[2..4]), &BE16);
            sink.field("sin_addr");
            sink.inet(AF_INET, &Ipv4Addr::new(b[4], b[5], b[6], b[7]).to_string(), "");
        }
        AF_INET6 if b.len() >= 24 => inet6(b, sink),
        AF_NETLINK if b.len() >= 12 => {
            sink.field("nl_pid");
            sink.int(U32.read(&b[4..8]), &U32);
            sink.field("nl_groups");
            sink.symbol(&format!("{:08x}", U32.read(&b[8..12])));
        }
        AF_PACKET if b.len() >= 12 => packet(b, sink),
        _ if b.len() > 2 => {
            sink.field("sa_data");
            sink.text(&b[2..], false, Text::Buf);
        }
        _ => {}
    }
    sink.close(Group::Struct, false);
}

fn inet6(b: &[u8], sink: &mut dyn Sink) {
    sink.field("sin6_port");
    sink.int(BE16.read(&b[2..4]), &BE16);
    sink.field("sin6_flowinfo");
    sink.int(BE32.read(&b[4..8]), &BE32);
    let mut a = [0; 16];
    a.copy_from_slice(&b[8..24]);
    sink.field("");
    sink.inet(AF_INET6, &Ipv6Addr::from(a).to_string(), "sin6_addr");
    if b.len() >= 28 {
        sink.field("sin6_scope_id");
        sink.int(U32.read(&b[24..28]), &U32);
    }
}

fn packet(b: &[u8], sink: &mut dyn Sink) {
    let proto = Int { size: 2, signed: false, fmt: Fmt::Enum(&flags::T_ETH_P_BE) };
    sink.field("sll_protocol");
    sink.int(proto.read(&b[2..4]), &proto);
    sink.field("sll_ifindex");
    sink.int(U32.read(&b[4..8]), &U32);
    sink.field("sll_hatype");
    sink.int(U32.read(&b[8..10]), &Int { size: 2, signed: false, fmt: Fmt::Enum(&flags::T_ARPHRD) });
    sink.field("sll_pkttype");
    sink.int(b[10].into(), &Int { size: 1, signed: false, fmt: Fmt::Enum(&flags::T_PACKET_TYPE) });
    sink.field("sll_halen");
    sink.int(b[11].into(), &DEC);
    if b[11] > 0 {
        sink.field("sll_addr");
        sink.text(at(b, 12, usize::from(b[11])), false, Text::Buf);
    }
}

/// Shows control messages: `struct cmsghdr { size_t len; int level; int type; }`, data, padding to 8
/// (`include/linux/socket.h`).
pub fn control(b: &[u8], more: bool, sink: &mut dyn Sink) {
    const SOL_SOCKET: u32 = 1;
    sink.open(Group::Array);
    for (level, kind, data) in control_messages(b) {
        sink.item();
        sink.open(Group::Struct);
        sink.field("cmsg_len");
        sink.int(16 + data.len() as u64, &DEC);
        sink.field("cmsg_level");
        sink.int(level.into(), &Int { size: 4, signed: false, fmt: Fmt::Enum(&flags::T_SOL) });
        sink.field("cmsg_type");
        let types = if level == SOL_SOCKET { Fmt::Enum(&flags::T_SCM) } else { Fmt::Hex };
        sink.int(kind.into(), &Int { size: 4, signed: false, fmt: types });
        if !data.is_empty() {
            sink.field("cmsg_data");
            control_data(level, kind, data, sink);
        }
        sink.close(Group::Struct, false);
    }
    sink.close(Group::Array, more);
}

fn control_data(level: u32, kind: u32, data: &[u8], sink: &mut dyn Sink) {
    match (level, kind) {
        (1, 1) => {
            sink.open(Group::Array);
            let fd = Int { size: 4, signed: true, fmt: Fmt::Fd };
            for f in data.chunks_exact(4) {
                sink.item();
                sink.int(fd.read(f), &fd);
            }
            sink.close(Group::Array, false);
        }
        (1, 2) if data.len() >= 12 => {
            memory::structure(&crate::generated::structs::S_UCRED, data, sink);
        }
        _ => sink.text(data, false, Text::Buf),
    }
}

/// The control messages in `b`: level, type, data. Stops at the first that does not fit.
pub fn control_messages(b: &[u8]) -> impl Iterator<Item = (u32, u32, &[u8])> {
    let mut at = 0usize;
    std::iter::from_fn(move || {
        let h = b.get(at..at.checked_add(16)?)?;
        let len = usize::try_from(u64::from_le_bytes(h[..8].try_into().ok()?)).ok()?;
        let data = b.get(at + 16..at.checked_add(len)?)?;
        let (level, kind) = (U32.read(&h[8..12]) as u32, U32.read(&h[12..16]) as u32);
        at += len.next_multiple_of(8).max(16);
        Some((level, kind, data))
    })
}

/// An IPv6 address as text; what is shorter is none.
pub fn inet6_text(b: &[u8]) -> String {
    <[u8; 16]>::try_from(b).map_or_else(|_| String::new(), |a| Ipv6Addr::from(a).to_string())
}

/// The IP address of a socket's address, as text.
pub fn text(b: &[u8]) -> Option<String> {
    let family = u16::from_le_bytes([*b.first()?, *b.get(1)?]);
    match family {
        AF_INET => Some(inet4_text(u32::from_le_bytes(b.get(4..8)?.try_into().ok()?).into())),
        AF_INET6 => Some(inet6_text(b.get(8..24)?)),
        _ => None,
    }
}

/// The path of a Unix socket's address; of an abstract one with the NUL that it begins with.
pub fn path(b: &[u8]) -> Option<&[u8]> {
    let (family, path) = b.split_at_checked(2)?;
    (family == AF_UNIX.to_le_bytes()).then_some(path).filter(|path| !path.is_empty())
}

/// Shows an IPv4 address given as the integer that memory holds (network order).
pub fn inet4_text(v: u64) -> String {
    Ipv4Addr::from((v as u32).to_le_bytes()).to_string()
}

/// One end of a socket as `-yy` shows it.
fn end(b: &[u8]) -> Option<String> {
    let port = || u16::from_be_bytes([b[2], b[3]]);
    match u16::from_le_bytes([*b.first()?, *b.get(1)?]) {
        AF_INET if b.len() >= 8 => Some(format!("{}:{}", Ipv4Addr::new(b[4], b[5], b[6], b[7]), port())),
        AF_INET6 if b.len() >= 24 => {
            let a: [u8; 16] = b[8..24].try_into().ok()?;
            Some(format!("[{}]:{}", Ipv6Addr::from(a), port()))
        }
        _ => None,
    }
}

/// What `-yy` says of a socket: `TCP:[127.0.0.1:80->127.0.0.1:4000]`; nothing where its ends are not known.
pub fn describe_socket(domain: i32, kind: i32, protocol: i32, local: &[u8], peer: &[u8]) -> String {
    const STREAM: i32 = 1;
    let v6 = if domain == i32::from(AF_INET6) { "v6" } else { "" };
    let name = match (domain as u16, kind, protocol) {
        (AF_INET | AF_INET6, _, 6) => format!("TCP{v6}"),
        (AF_INET | AF_INET6, _, 17) => format!("UDP{v6}"),
        (AF_INET | AF_INET6, _, _) => format!("RAW{v6}"),
        (AF_UNIX, STREAM, _) => "UNIX-STREAM".into(),
        (AF_UNIX, 2, _) => "UNIX".into(),
        (AF_UNIX, ..) => "UNIX-SEQPACKET".into(),
        (AF_NETLINK, ..) => "NETLINK".into(),
        _ => return String::new(),
    };
    match domain as u16 {
        AF_INET | AF_INET6 => match (end(local), end(peer)) {
            (Some(l), Some(p)) => format!("{name}:[{l}->{p}]"),
            (Some(l), None) if local[2..4] != [0, 0] => format!("{name}:[{l}]"),
            _ => name,
        },
        AF_UNIX => {
            let path = at(local, 2, 126);
            let path = match path.first() {
                Some(0) => format!("@{}", String::from_utf8_lossy(&path[1..])),
                _ => String::from_utf8_lossy(path.split(|&c| c == 0).next().unwrap_or_default()).into_owned(),
            };
            if path.is_empty() { name } else { format!("{name}:[{path:?}]") }
        }
        _ => {
            let table = &flags::T_NETLINK_PROTO;
            let proto = table.name_of(protocol as u64).and_then(|n| n.strip_prefix("NETLINK_"));
            let pid = U32.read(at(local, 4, 4));
            match proto {
                Some(p) => format!("{name}:[{p}:{pid}]"),
                None => format!("{name}:[{protocol}:{pid}]"),
            }
        }
    }
}
