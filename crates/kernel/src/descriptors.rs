//! Names of descriptors that the programs have read from the kernel's structures: where those have what, and how a name is made
//! of it.
//!
//! Invariant: a name is what `readlink /proc/PID/fd/N` would have said when the call ended. What it cannot be made of is left
//! out; the table of descriptors then infers a name from the call.

use bpf::btf_offsets::{Names, Sockets};
use bpf::syscalls::raw::{self, socket as at};
use engine::own_events;
use events::generated::P_FD;
use sys::btf::KernelBtf;

/// Magic numbers of file systems whose files have made-up names (`include/uapi/linux/magic.h`, and of their own sources).
mod magic {
    pub const SOCKETS: u64 = 0x534f_434b;
    pub const PIPES: u64 = 0x5049_5045;
    pub const ANONYMOUS: u64 = 0x0904_1934;
    pub const PIDS: u64 = 0x5049_4446;
    pub const MEMORY: u64 = 0x0102_1994;
    pub const HUGE_PAGES: u64 = 0x9584_58f6;
}

/// The kernel's structs that [`names`] reads.
pub const TYPES: &[&str] = &[
    "path",
    "files_struct",
    "fdtable",
    "file",
    "fs_struct",
    "dentry",
    "dentry_operations",
    "inode",
    "super_block",
    "mount",
];
/// The structs that it reads for the ends of sockets.
pub const SOCKET_TYPES: &[&str] = &["socket", "sock", "sock_common", "netlink_sock", "unix_sock", "unix_address"];

/// Where this kernel keeps what descriptors are; none where its type information does not say. `details`: the ends of sockets too.
pub fn names(btf: &KernelBtf, details: bool) -> Option<Names> {
    let of = |what: &str, path: &[&str]| {
        btf.field_of(what, path).filter(|f| f.loads.is_empty()).and_then(|f| i32::try_from(f.offset).ok())
    };
    let path = [of("path", &["mnt"])?, of("path", &["dentry"])?];
    // They are read as a pair.
    if path != [0, 8] {
        return None;
    }
    let dentry = |path: &[&str]| of("dentry", path);
    Some(Names {
        files: [of("task_struct", &["files"])?, of("files_struct", &["fdt"])?],
        fdtable: [of("fdtable", &["max_fds"])?, of("fdtable", &["close_on_exec"])?, of("fdtable", &["fd"])?],
        file: [of("file", &["f_path"])?, of("file", &["private_data"])?],
        path,
        fs: [of("task_struct", &["fs"])?, of("fs_struct", &["pwd"])?],
        dentry: [
            dentry(&["d_parent"])?,
            dentry(&["d_name", "name"])?,
            dentry(&["d_inode"])?,
            dentry(&["d_sb"])?,
            dentry(&["d_op"])?,
            dentry(&["d_hash", "pprev"])?,
        ],
        dname: of("dentry_operations", &["d_dname"])?,
        inode: [of("inode", &["i_ino"])?, of("inode", &["i_rdev"])?, of("inode", &["i_mode"])?],
        magic: of("super_block", &["s_magic"])?,
        mount: [
            of("mount", &["mnt"])?,
            of("mount", &["mnt", "mnt_root"])?,
            of("mount", &["mnt_parent"])?,
            of("mount", &["mnt_mountpoint"])?,
        ],
        sockets: if details { sockets(&of) } else { None },
    })
}

fn sockets(of: &impl Fn(&str, &[&str]) -> Option<i32>) -> Option<Sockets> {
    let common = |name: &str| of("sock_common", &[name]);
    let v6 = || Some([common("skc_v6_daddr")?, common("skc_v6_rcv_saddr")?]);
    let unix = || Some([of("unix_sock", &["addr"])?, of("unix_address", &["len"])?, of("unix_address", &["name"])?]);
    Some(Sockets {
        socket: [of("socket", &["sk"])?, of("socket", &["type"])?],
        protocol: of("sock", &["sk_protocol"])?,
        common: [
            common("skc_family")?,
            common("skc_state")?,
            common("skc_num")?,
            common("skc_dport")?,
            common("skc_daddr")?,
            common("skc_rcv_saddr")?,
        ],
        v6: v6(),
        netlink: of("netlink_sock", &["portid"]),
        unix: unix(),
    })
}

/// Whether an event of a ring is a descriptor whose name is to be made.
pub fn is_raw(event: &[u8]) -> bool {
    event.get(8..10) == Some(&P_FD.id.to_le_bytes()[..])
}

/// The `process:fd` event of a record; `None` where its name cannot be made.
pub fn event(record: &[u8], details: bool) -> Option<Vec<u8>> {
    let layout = events::registry::layout(P_FD.id)?;
    let word = |at: usize| Some(u32::from_le_bytes(record.get(at..at + 4)?.try_into().ok()?));
    let time = u64::from_le_bytes(record.get(..8)?.try_into().ok()?);
    let who = (word(16)?, word(12)?);
    let arg = |name: &str| word(layout.args[P_FD.arg(name)?].0.into());
    let (fd, flags) = (arg("fd")?, arg("flags")?);
    let raw = Raw(record.get(layout.fixed..)?);
    let path = raw.path()?;
    let detail = if details { raw.detail() } else { String::new() };
    let args = [0, 0, fd as i32 as u64, flags.into()];
    Some(own_events::process(&P_FD, time, who, &args, &[&path, detail.as_bytes()]))
}

/// The part of a record after the fixed one.
struct Raw<'a>(&'a [u8]);

impl Raw<'_> {
    fn number(&self, at: usize, bytes: usize) -> u64 {
        let all = self.0.get(at..at + bytes).unwrap_or_default();
        all.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
    }

    /// The components, leaf first.
    fn components(&self) -> Vec<&[u8]> {
        let text = self.0.get(raw::COMPONENTS..).unwrap_or_default();
        let mut all: Vec<&[u8]> = text.split(|b| *b == 0).collect();
        // Nothing follows the last NUL.
        all.pop();
        all
    }

    fn path(&self) -> Option<Vec<u8>> {
        let bits = self.number(raw::BITS, 2) as u16;
        if bits & raw::WHOLE == 0 {
            return None;
        }
        let (inode, components) = (self.number(raw::INODE, 8), self.components());
        let leaf = || components.first().copied().unwrap_or_default();
        if bits & raw::SPECIAL != 0 {
            return match self.number(raw::MAGIC, 8) {
                magic::SOCKETS => Some(format!("socket:[{inode}]").into_bytes()),
                magic::PIPES => Some(format!("pipe:[{inode}]").into_bytes()),
                magic::ANONYMOUS => Some([b"anon_inode:", leaf()].concat()),
                magic::PIDS => Some(b"anon_inode:[pidfd]".to_vec()),
                magic::MEMORY | magic::HUGE_PAGES => Some([b"/", leaf(), b" (deleted)"].concat()),
                _ => None,
            };
        }
        let mut path: Vec<u8> = components.iter().rev().flat_map(|c| [b"/", *c].concat()).collect();
        if path.is_empty() {
            path.push(b'/');
        }
        if bits & raw::UNLINKED != 0 {
            path.extend_from_slice(b" (deleted)");
        }
        Some(path)
    }

    /// What `-yy` adds: the ends of a socket, the numbers of a device.
    fn detail(&self) -> String {
        const TYPE: u64 = 0o170_000;
        const CHAR: u64 = 0o020_000;
        const BLOCK: u64 = 0o060_000;
        let device = self.number(raw::DEVICE, 4);
        let numbers = || format!("{}:{}", device >> 20, device & 0xf_ffff);
        match self.number(raw::MODE, 2) & TYPE {
            CHAR => format!("char {}", numbers()),
            BLOCK => format!("block {}", numbers()),
            _ if self.socket(at::FAMILY, 2) != 0 => self.ends(),
            _ => String::new(),
        }
    }

    fn socket(&self, field: usize, bytes: usize) -> u64 {
        self.number(raw::SOCKET + field, bytes)
    }

    fn ends(&self) -> String {
        let (domain, kind) = (self.socket(at::FAMILY, 2) as i32, self.socket(at::TYPE, 2) as i32);
        let protocol = self.socket(at::PROTOCOL, 2) as i32;
        let (local, peer) = self.addresses(domain);
        let mut text = events::sockaddr::describe_socket(domain, kind, protocol, &local, &peer);
        if !text.is_empty() && !text.contains(':') {
            // No end is known yet: the inode identifies the socket.
            text = format!("{text}:[{}]", self.number(raw::INODE, 8));
        }
        text
    }

    /// Both addresses as getsockname(2) and getpeername(2) would give them.
    fn addresses(&self, domain: i32) -> (Vec<u8>, Vec<u8>) {
        const AF_UNIX: i32 = 1;
        const AF_INET: i32 = 2;
        const AF_INET6: i32 = 10;
        const AF_NETLINK: i32 = 16;
        // include/net/tcp_states.h
        const TCP_SYN_SENT: u64 = 2;
        const TCP_CLOSE: u64 = 7;
        let bytes =
            |field: usize, n: usize| self.0.get(raw::SOCKET + field..).and_then(|b| b.get(..n)).unwrap_or_default();
        let family = (domain as u16).to_le_bytes();
        let port = (self.socket(at::PORT, 2) as u16).to_be_bytes();
        let connected =
            self.socket(at::PEER_PORT, 2) != 0 && ![TCP_SYN_SENT, TCP_CLOSE].contains(&self.socket(at::STATE, 1));
        let (local, peer) = match domain {
            AF_INET => (
                [&family[..], &port, bytes(at::OWN4, 4), &[0; 8]].concat(),
                [&family[..], bytes(at::PEER_PORT, 2), bytes(at::PEER4, 4), &[0; 8]].concat(),
            ),
            AF_INET6 => (
                [&family[..], &port, &[0; 4], bytes(at::OWN6, 16), &[0; 4]].concat(),
                [&family[..], bytes(at::PEER_PORT, 2), &[0; 4], bytes(at::PEER6, 16), &[0; 4]].concat(),
            ),
            AF_UNIX => (bytes(at::UNIX, (self.socket(at::UNIX_LEN, 4) as usize).min(110)).to_vec(), Vec::new()),
            AF_NETLINK => ([&family[..], &[0; 2], bytes(at::NETLINK, 4), &[0; 4]].concat(), Vec::new()),
            _ => (Vec::new(), Vec::new()),
        };
        (local, if connected { peer } else { Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::Event;

    fn record(bits: u16, magic: u64, components: &[&str]) -> Vec<u8> {
        let layout = events::registry::layout(P_FD.id).expect("a layout");
        let args = [0, 0, 7, 3];
        let fixed = events::encode::Fixed { time: 5, tid: 21, pid: 20, ..Default::default() };
        let mut out = Vec::new();
        events::encode::fixed(&mut out, &P_FD, layout, &fixed, &args);
        let mut tail = vec![0; raw::COMPONENTS];
        tail[raw::INODE..raw::INODE + 8].copy_from_slice(&99u64.to_le_bytes());
        tail[raw::MAGIC..raw::MAGIC + 8].copy_from_slice(&magic.to_le_bytes());
        tail[raw::BITS..raw::BITS + 2].copy_from_slice(&bits.to_le_bytes());
        components.iter().for_each(|c| tail.extend([c.as_bytes(), b"\0"].concat()));
        [out, tail].concat()
    }

    fn name(record: &[u8]) -> Option<String> {
        assert!(is_raw(record));
        let made = event(record, true)?;
        let ev = Event::parse(&made).expect("an event");
        assert_eq!((ev.time(), ev.tid(), ev.pid(), ev.value_of("fd"), ev.value_of("flags")), (5, 21, 20, 7, 3));
        Some(String::from_utf8_lossy(&[ev.bytes_of("path"), b"|", ev.bytes_of("detail")].concat()).into_owned())
    }

    #[test]
    fn components_become_paths() {
        let whole = |bits, components: &[&str]| name(&record(raw::WHOLE | bits, 0xef53, components));
        assert_eq!(whole(0, &["passwd", "etc"]).as_deref(), Some("/etc/passwd|"));
        assert_eq!(whole(0, &[]).as_deref(), Some("/|"));
        assert_eq!(whole(raw::UNLINKED, &["x", "tmp"]).as_deref(), Some("/tmp/x (deleted)|"));
        assert_eq!(name(&record(0, 0xef53, &["x"])), None);
    }

    #[test]
    fn made_up_names() {
        let special = |magic, component: &str| name(&record(raw::WHOLE | raw::SPECIAL, magic, &[component]));
        assert_eq!(special(magic::PIPES, "").as_deref(), Some("pipe:[99]|"));
        assert_eq!(special(magic::SOCKETS, "TCP").as_deref(), Some("socket:[99]|"));
        assert_eq!(special(magic::ANONYMOUS, "[eventpoll]").as_deref(), Some("anon_inode:[eventpoll]|"));
        assert_eq!(special(magic::MEMORY, "memfd:x").as_deref(), Some("/memfd:x (deleted)|"));
        assert_eq!(special(1, "x"), None);
    }

    #[test]
    fn details_of_devices_and_sockets() {
        let mut device = record(raw::WHOLE, 0x0102_1994, &["null", "dev"]);
        let at = device.len() - "null\0dev\0".len() - raw::COMPONENTS;
        device[at + raw::DEVICE..][..4].copy_from_slice(&(1u32 << 20 | 3).to_le_bytes());
        device[at + raw::MODE..][..2].copy_from_slice(&0o020_666u16.to_le_bytes());
        assert_eq!(name(&device).as_deref(), Some("/dev/null|char 1:3"));
        let mut socket = record(raw::WHOLE | raw::SPECIAL, magic::SOCKETS, &["TCP"]);
        let at = socket.len() - "TCP\0".len() - raw::COMPONENTS + raw::SOCKET;
        let mut put = |field: usize, bytes: &[u8]| socket[at + field..][..bytes.len()].copy_from_slice(bytes);
        put(at::TYPE, &[1, 0, 2, 0, 6, 0, 7]);
        let fresh = name(&socket);
        assert_eq!(fresh.as_deref(), Some("socket:[99]|TCP:[99]"));
        let mut put = |field: usize, bytes: &[u8]| socket[at + field..][..bytes.len()].copy_from_slice(bytes);
        put(at::STATE, &[1]);
        put(at::PORT, &80u16.to_le_bytes());
        put(at::PEER_PORT, &443u16.to_be_bytes());
        put(at::OWN4, &[127, 0, 0, 1]);
        put(at::PEER4, &[10, 0, 0, 2]);
        assert_eq!(name(&socket).as_deref(), Some("socket:[99]|TCP:[127.0.0.1:80->10.0.0.2:443]"));
    }

    #[test]
    fn nonsense_is_no_name() {
        for len in 0..300 {
            let _ = event(&record(0xffff, magic::SOCKETS, &["x"; 40])[..len], true);
        }
    }
}
