//! Descriptors that operations of io_uring make and close.
//!
//! Files of a ring's own table (`file_index`, direct descriptors) are no descriptors of the process: they have no names here.

use super::FdTable;
use events::event::Event;
use events::io_uring::PREFIX;
use events::layout::CAP_NO_RESULT;

/// The operation, if it has succeeded, and is about a descriptor of the process.
fn done<'n>(ev: &Event<'n>) -> Option<&'n str> {
    let is_done = ev.caps() & CAP_NO_RESULT == 0 && ev.ret() >= 0 && ev.value_of("file_index") == 0;
    ev.schema.name.strip_prefix(PREFIX).filter(|_| is_done)
}

impl FdTable {
    /// Learns what an operation makes known.
    pub(super) fn operation(&mut self, ev: &Event<'_>) {
        let fd = ev.ret() as i32;
        match done(ev) {
            Some("openat" | "openat2") => self.opened(ev, fd),
            Some("accept" | "socket") => self.learn(ev.pid(), fd, b"socket:[?]".to_vec()),
            _ => {}
        }
    }

    /// Forgets what an operation ends.
    pub(super) fn operation_ended(&mut self, ev: &Event<'_>) {
        self.keep_made();
        if done(ev) == Some("close") {
            self.close(ev.pid(), ev.value_of("fd") as i32);
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
}
