//! Events of `process:`: begun, and filled by the names of their arguments.

use super::{Emitter, field, reg};
use crate::helper::Helper;
use crate::insn::{Reg, Reg::R0, Size};
use events::Schema;
use events::layout::Layout;

impl Emitter<'_> {
    /// Starts an event of `schema` by the current task in the scratch buffer.
    pub(crate) fn begin(&mut self, schema: &'static Schema, cap: i32) {
        self.event = Some(schema);
        self.call(Helper::KtimeGetNs);
        self.store_event(Size::D, field::TIME, R0);
        self.store_event(Size::H, field::ID, i32::from(schema.id));
        self.store_event(Size::H, field::CAP, cap);
        self.who();
        self.mov(reg::END, Layout::of(schema).fixed as i32);
    }

    /// The place of argument `name` in the event that was begun.
    pub(crate) fn at(&self, name: &str) -> (i16, Size) {
        let found = self.event.and_then(|schema| Some(Layout::of(schema).args[schema.arg(name)?]));
        let (off, width) = found.unwrap_or((0, 4));
        (off as i16, if width == 8 { Size::D } else { Size::W })
    }

    /// Stores argument `name` of the event that was begun.
    pub(crate) fn put(&mut self, name: &str, r: Reg) {
        let (off, size) = self.at(name);
        self.store_event(size, off, r);
    }
}
