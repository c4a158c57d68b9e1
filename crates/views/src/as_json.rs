//! A table as one object of JSON at its end.

use crate::View;
use events::Event;
use events::names::Names;

/// The view.
pub struct AsJson<V> {
    /// The table.
    pub table: V,
    /// Writes it.
    pub write: fn(&V, &mut Vec<u8>),
}

impl<V: View> View for AsJson<V> {
    fn event(&mut self, ev: &Event<'_>, names: &dyn Names, out: &mut Vec<u8>) {
        self.table.event(ev, names, out);
    }
    fn end(&mut self, out: &mut Vec<u8>) {
        (self.write)(&self.table, out);
    }
}
