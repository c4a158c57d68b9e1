//! A row of a table of views. Each table is beside the `mod`s of its views (docs/HOWTO_ADD_VIEW.md).

/// A row.
#[derive(Clone, Copy)]
pub struct Row<M> {
    /// Its name in `--as`.
    pub name: &'static str,
    /// Its name in the commands that have views of this sort only.
    pub short: &'static str,
    /// What it shows, in a line.
    pub help: &'static str,
    /// What is written.
    pub form: Form,
    /// How it is made.
    pub make: M,
}

/// What a view writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text for people.
    Text,
    /// JSON, and other formats of lines for programs.
    Data,
    /// A picture.
    Svg,
    /// Bytes that no terminal shows; and what opens them.
    Binary(&'static str),
    /// A directory of files.
    Directory,
}

impl<M: Copy> Row<M> {
    /// A view that has one name in all commands.
    pub const fn new(name: &'static str, form: Form, help: &'static str, make: M) -> Row<M> {
        Row { name, short: name, help, form, make }
    }

    /// With another name in the commands that have views of this sort only.
    pub const fn short(self, short: &'static str) -> Row<M> {
        Row { short, ..self }
    }
}
