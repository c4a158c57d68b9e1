//! Descriptors that operations of io_uring make and close: those of the process, and files of a ring's own table (`file_index`, direct
//! descriptors), which are none ([`super::rings`]).

use super::FdTable;
use events::event::Event;
use events::io_uring::PREFIX;
use events::layout::CAP_NO_RESULT;

/// The operation, if it has succeeded.
fn done<'n>(ev: &Event<'n>) -> Option<&'n str> {
    let is_done = ev.caps() & CAP_NO_RESULT == 0 && ev.ret() >= 0;
    ev.schema.name.strip_prefix(PREFIX).filter(|_| is_done)
}

/// Whether it is about a file of the ring's own table.
fn is_direct(ev: &Event<'_>) -> bool {
    ev.value_of("file_index") != 0
}

impl FdTable {
    /// Learns what an operation makes known.
    pub(super) fn operation(&mut self, ev: &Event<'_>) {
        self.rings.operation(ev);
        let fd = ev.ret() as i32;
        match done(ev) {
            Some(operation) if is_direct(ev) => self.direct(ev, operation),
            Some("openat" | "openat2") => self.opened(ev, fd),
            Some("accept" | "socket") => self.learn(ev.pid(), fd, b"socket:[?]".to_vec()),
            Some("fixed_fd_install") => {
                if let Some(name) = self.rings.file(ev.value_of("registered") as i32).cloned() {
                    self.make(ev.pid(), fd, name, false);
                }
            }
            _ => {}
        }
    }

    /// Forgets what an operation ends.
    pub(super) fn operation_ended(&mut self, ev: &Event<'_>) {
        self.keep_made();
        match done(ev) {
            Some("close") if !is_direct(ev) => self.close(ev.pid(), ev.value_of("fd") as i32),
            Some(operation) => self.direct_ended(ev, operation),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::dynamic::{self, Field};
    use events::encode::{self, Fixed};
    use events::io_uring;
    use events::layout::Layout;
    use events::names::{AT_FDCWD, Names};

    /// Shows an operation of process 7 to the table.
    fn show(table: &mut FdTable, name: &str, values: &[(&str, i64)], path: &[u8], ret: i64) {
        let field = |field: &str| Field { name: field.into(), ty: io_uring::field(name, field).unwrap() };
        let fields: Vec<Field> = io_uring::names(name).into_iter().map(field).collect();
        let schema = dynamic::span(&format!("{PREFIX}{name}"), &fields).unwrap();
        let mut words = vec![0; fields.len()];
        values.iter().for_each(|(field, value)| words[schema.arg(field).unwrap()] = *value as u64);
        let mut bytes = Vec::new();
        // Its path is whole.
        let fixed =
            Fixed { time: 2, start: 1, pid: 7, tid: 7, ret, cap: 1 << (2 * io_uring::ADDRESS), ..Fixed::default() };
        encode::fixed(&mut bytes, schema, &Layout::of(schema), &fixed, &words);
        encode::str_tail(&mut bytes, path);
        let ev = Event::parse(&bytes).unwrap();
        table.before(&ev);
        table.after(&ev);
    }

    #[test]
    fn operations_make_and_close_descriptors() {
        let mut table = FdTable::default();
        table.enable();
        let cwd = ("fd", i64::from(AT_FDCWD));
        show(&mut table, "openat", &[cwd, ("addr", 1)], b"/etc/hosts", 5);
        show(&mut table, "openat", &[("dfd", 5), ("filename", 1)], b"x", 6);
        show(&mut table, "openat", &[cwd, ("addr", 1)], b"/nowhere", -2);
        // Number 0 of the ring's own table.
        show(&mut table, "openat", &[cwd, ("addr", 1), ("file_index", 1)], b"/direct", 0);
        show(&mut table, "accept", &[("fd", 3)], b"", 8);
        let path = |table: &FdTable, fd| table.fd(7, fd).map(|name| String::from_utf8_lossy(&name.path).into_owned());
        assert_eq!(
            [5, 6, 8, 0].map(|fd| path(&table, fd).unwrap_or_default()),
            ["/etc/hosts", "/etc/hosts/x", "socket:[?]", ""]
        );
        show(&mut table, "close", &[("fd", 5), ("file_index", 1)], b"", 0);
        assert!(path(&table, 5).is_some());
        show(&mut table, "close", &[("fd", 5)], b"", 0);
        assert_eq!(path(&table, 5), None);
    }

    /// Shows a call of process 7, and what it was given in memory by its third argument.
    fn call(table: &mut FdTable, name: &str, values: &[u64], memory: &[u8], ret: i64) {
        let schema = events::registry::by_name(name).unwrap();
        let layout = events::registry::layout(schema.id).unwrap();
        let mut bytes = Vec::new();
        let fixed = Fixed { time: 9, start: 1, pid: 7, tid: 7, ret, cap: 1 << 4, ..Fixed::default() };
        encode::fixed(&mut bytes, schema, layout, &fixed, values);
        layout.tails.iter().for_each(|tail| match tail.shape {
            events::layout::Shape::Bytes => encode::bytes_tail(&mut bytes, if tail.out { b"" } else { memory }),
            _ => bytes.push(0),
        });
        let ev = Event::parse(&bytes).unwrap();
        table.before(&ev);
        table.after(&ev);
    }

    fn registered(table: &FdTable, index: i32) -> String {
        table.registered(index).map(|name| String::from_utf8_lossy(&name.path).into_owned()).unwrap_or_default()
    }

    #[test]
    fn files_that_a_ring_has_registered_have_names() {
        let mut table = FdTable::default();
        table.enable();
        let cwd = ("fd", i64::from(AT_FDCWD));
        show(&mut table, "openat", &[cwd, ("addr", 1)], b"/etc/hosts", 5);
        call(&mut table, "io_uring_setup", &[8, 0], b"", 4);
        let files: Vec<u8> = [-1i32, 5].iter().flat_map(|fd| fd.to_le_bytes()).collect();
        call(&mut table, "io_uring_register", &[4, 2, 1, 2], &files, 0);
        let of = |ring: i64| [("fd", -1), ("registered", 1), ("ring", ring)];
        show(&mut table, "read", &of(100), b"", 7);
        assert_eq!([0, 1, 2, -1].map(|index| registered(&table, index)), ["", "/etc/hosts", "", ""]);
        // The operation before began within a call that has named the ring: another ring of the process changes nothing.
        call(&mut table, "io_uring_enter", &[4, 1, 1, 1, 0, 0], b"", 1);
        call(&mut table, "io_uring_setup", &[8, 0], b"", 6);
        show(&mut table, "read", &of(100), b"", 7);
        assert_eq!(registered(&table, 1), "/etc/hosts");
        show(&mut table, "read", &of(200), b"", 7);
        assert_eq!(registered(&table, 1), "");
        // Opened into the ring's table, at an index that is given, and at one that the kernel has chosen; and closed there.
        let into = |index: i64| [cwd, ("addr", 1), ("file_index", index), ("ring", 100)];
        show(&mut table, "openat", &into(3), b"/given", 0);
        show(&mut table, "openat", &into(0xffff_ffff), b"/chosen", 9);
        assert_eq!([2, 9].map(|index| registered(&table, index)), ["/given", "/chosen"]);
        show(&mut table, "close", &[("file_index", 3), ("ring", 100)], b"", 0);
        assert_eq!([2, 9].map(|index| registered(&table, index)), ["", "/chosen"]);
        // Other files in their places, of which nothing is known.
        call(&mut table, "io_uring_register", &[4, 6, 1, 1], b"", 1);
        assert_eq!([1, 9].map(|index| registered(&table, index)), ["", ""]);
        show(&mut table, "openat", &into(1), b"/again", 0);
        assert_eq!(registered(&table, 0), "/again");
        call(&mut table, "close", &[4], b"", 0);
        show(&mut table, "read", &of(100), b"", 7);
        assert_eq!(registered(&table, 0), "");
    }
}
