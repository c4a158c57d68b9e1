//! `thread_checker`: calls of functions by threads that may not call them.

use super::{BuiltIn, Call, Choice, MAIN, Results};

const FLAGS: usize = 1;
/// The first of the two words of each pattern.
const PATTERNS: [usize; 3] = [2, 4, 6];

pub struct Tracer;

impl BuiltIn for Tracer {
    const NAME: &'static str = "thread_checker";
    const ABOUT: &'static str = "calls of functions by threads that may not call them";
    const RESULTS: Results = Results::Violations;
    const OPTIONS: [Choice; 8] = {
        use Choice::{Flags, Thread, Unused};
        [Unused, Flags, Thread, Thread, Thread, Thread, Thread, Thread]
    };

    #[inline(always)]
    fn at_entry(call: &impl Call) -> bool {
        let main_may = call.option(FLAGS) & MAIN != 0;
        !(main_may && call.is_main() || is_named(call))
    }
}

/// Whether a pattern is that of the thread's name.
fn is_named(call: &impl Call) -> bool {
    let name = call.thread_name();
    PATTERNS.iter().any(|first| {
        let mut pattern = [0u8; 16];
        let words = [call.option(*first), call.option(*first + 1)];
        pattern.chunks_exact_mut(8).zip(words).for_each(|(to, w)| to.copy_from_slice(&w.to_le_bytes()));
        words != [0, 0] && crate::pattern::matches(&pattern, &name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::Called;
    use super::*;

    fn word(text: &[u8; 8]) -> u64 {
        u64::from_le_bytes(*text)
    }

    #[test]
    fn threads_that_are_not_named_break_the_rule() {
        let options = [0, 0, 0, 0, 0, 0, word(b"worker-*"), 0];
        let named = |main, name: &[u8; 16]| Tracer::at_entry(&Called { options, main, name: *name });
        assert!(!named(false, b"worker-1\0\0\0\0\0\0\0\0"));
        assert!(named(false, b"other\0\0\0\0\0\0\0\0\0\0\0"));
        assert!(named(true, b"other\0\0\0\0\0\0\0\0\0\0\0"), "main is not named");
        let main = Called { options: [0, MAIN, 0, 0, 0, 0, 0, 0], main: true, ..Called::default() };
        assert!(!Tracer::at_entry(&main));
        assert!(Tracer::at_entry(&Called { main: false, ..main }));
    }
}
