//! What people ask, and what must be known: topics.md. The first screen, help and the man pages take their examples and texts from it.
//!
//! ```text
//! # NAME: TITLE          a question, if it ends with '?': its first example is the answer on the first screen
//!
//!     COMMAND  # WHAT    an example, of the command that it begins with
//!
//! Text, with `words` as they are typed.
//! ```

/// Something that `trapline help NAME` explains.
pub struct Topic {
    /// What it is asked for by.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// What it says.
    pub blocks: Vec<Block>,
}

/// A part of a topic.
pub enum Block {
    /// A paragraph, with words in backquotes.
    Text(String),
    /// Lines that are typed.
    Examples(Vec<Example>),
}

/// A command line, and what it shows.
#[derive(Clone, Copy)]
pub struct Example {
    /// What is typed.
    pub line: &'static str,
    /// What for; may be empty.
    pub what: &'static str,
}

impl Topic {
    /// Whether it is a question.
    pub fn is_question(&self) -> bool {
        self.title.ends_with('?')
    }

    /// Its examples.
    pub fn examples(&self) -> impl Iterator<Item = Example> + '_ {
        let of = |block: &Block| if let Block::Examples(all) = block { all.clone() } else { Vec::new() };
        self.blocks.iter().flat_map(of)
    }
}

impl Example {
    /// Whether it uses this command of trapline.
    pub fn is_of(&self, command: &str) -> bool {
        self.line.split(' ').nth(1) == Some(command)
    }
}

/// All topics: the questions first.
pub fn all() -> Vec<Topic> {
    include_str!("../topics.md").split("\n# ").filter_map(topic).collect()
}

fn topic(text: &'static str) -> Option<Topic> {
    let (head, body) = text.split_once('\n')?;
    let (name, title) = head.trim_start_matches("# ").split_once(": ")?;
    let blocks = body.split("\n\n").map(|part| part.trim_matches('\n')).filter(|part| !part.is_empty()).map(block);
    Some(Topic { name, title, blocks: blocks.collect() })
}

fn block(text: &'static str) -> Block {
    if !text.starts_with("    ") {
        return Block::Text(text.replace('\n', " "));
    }
    let example = |line: &'static str| {
        let (line, what) = line.split_once("  # ").unwrap_or((line, ""));
        Example { line, what }
    };
    Block::Examples(text.lines().map(|line| example(line.trim())).collect())
}

/// The examples of a command.
pub fn examples(command: &str) -> Vec<Example> {
    all().iter().flat_map(Topic::examples).filter(|e| e.is_of(command)).collect()
}

/// The other commands in the answers to questions that this command answers too.
pub fn related(command: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for topic in all().iter().filter(|t| t.is_question() && t.examples().any(|e| e.is_of(command))) {
        for other in topic.examples().filter_map(|e| e.line.split(' ').nth(1)) {
            if other != command && !found.contains(&other) {
                found.push(other);
            }
        }
    }
    found
}

/// Examples, with what they show in a column of its own.
pub fn lined_up(examples: &[Example]) -> String {
    let width = examples.iter().map(|e| e.line.chars().count()).max().unwrap_or(0);
    let line = |e: &Example| format!("  {:width$}  {}", e.line, e.what).trim_end().to_string() + "\n";
    examples.iter().map(line).collect()
}
