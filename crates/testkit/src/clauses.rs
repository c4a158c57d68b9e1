//! Random clauses of scripts that collect in maps.
//!
//! Types are kept apart: numbers are made of numbers, truth of comparisons. What the checker refuses nevertheless is for the caller to skip.

use crate::Random;

/// The arguments of the probe `tracepoint:t:p`: one of each type (bytes, signed), and an address.
pub const ARGS: [(&str, u8, bool); 9] = [
    ("a", 1, true),
    ("b", 1, false),
    ("c", 2, true),
    ("d", 2, false),
    ("e", 4, true),
    ("f", 4, false),
    ("g", 8, true),
    ("h", 8, false),
    ("p", 8, false),
];

const TYPES: [&str; 8] = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"];

/// What maps hold: how a value is added, with a number where a `#` stands.
const HELD: [&str; 15] = [
    "= count()",
    "= sum(#)",
    "= min(#)",
    "= max(#)",
    "= avg(#)",
    "= stats(#)",
    "= hist(#)",
    "= hist(#, 2)",
    "= lhist(#, 0, 100, 10)",
    "= lhist(#, -7, 20, 6)",
    "= lhist(#, -9000000000, 9000000000, 4000000000)",
    "++",
    "--",
    "+= (int64)#",
    "-= (int64)#",
];

/// A number that is often a special one.
pub fn word(r: &mut Random) -> u64 {
    let edges =
        [62, 63, 64, 65, 0x7f, 0x80, 0xffff, 0x8000_0000, 0xffff_ffff, i64::MIN as u64, i64::MAX as u64, u64::MAX];
    match r.index(5) {
        0 => r.below(5),
        1 => r.of(&edges),
        2 => r.next() as i32 as u64,
        3 => r.next() >> r.index(64),
        _ => r.next(),
    }
}

/// What scripts are made of.
struct Writer<'r> {
    r: &'r mut Random,
    /// Numbers that are the same for all events.
    names: &'r [&'r str],
    /// By map: the parts of its keys, `true` for a name, and which of [`HELD`] is added.
    maps: Vec<(Vec<bool>, Vec<usize>)>,
    /// It has loops.
    loops: bool,
}

/// The most clauses of a script with loops: the verifier goes many ways through those.
const WITH_LOOPS: usize = 3;

/// A script of so many clauses that only collect, at `tracepoint:t:p`. `names` are further numbers that it may use.
pub fn script(r: &mut Random, names: &[&str], clauses: usize) -> String {
    let map = |r: &mut Random| {
        let key = (0..r.index(4)).map(|_| r.index(4) == 0).collect();
        let one = r.index(HELD.len());
        // Those of integers go together.
        let sums = (11..HELD.len()).collect();
        (key, if one < 11 { vec![one] } else { sums })
    };
    let maps = (0..1 + r.index(4)).map(|_| map(r)).collect();
    let most =
        if r.index(2) == 0 { format!("config = {{ max_map_keys = {} }}\n", 1 + r.index(6)) } else { String::new() };
    let mut writer = Writer { r, names, maps, loops: clauses <= WITH_LOOPS };
    let clauses: String = (0..clauses).map(|_| writer.clause()).collect();
    most + &clauses
}

impl Writer<'_> {
    fn clause(&mut self) -> String {
        let with_vars = self.r.index(3) > 0;
        let predicate = match self.r.index(2) {
            0 => format!("/{}/ ", self.truth(2, false)),
            _ => String::new(),
        };
        let vars = if with_vars { "$v = (int64)args.g; $w = args.h; $n = args.a; " } else { "" };
        let body = self.statements(2, with_vars);
        format!("tracepoint:t:p {predicate}{{ {vars}{body}}}\n")
    }

    fn statements(&mut self, depth: usize, vars: bool) -> String {
        (0..1 + self.r.index(3)).map(|_| self.statement(depth, vars)).collect()
    }

    fn statement(&mut self, depth: usize, vars: bool) -> String {
        match self.r.index(12) {
            10 | 11 if depth > 0 && vars && self.loops => self.rounds(depth),
            0 | 1 if depth > 0 => {
                let mut out = format!("if ({}) {{ {}}} ", self.truth(2, vars), self.statements(depth - 1, vars));
                if self.r.index(3) == 0 {
                    let (cond, list) = (self.truth(1, vars), self.statements(depth - 1, vars));
                    out += &format!("else if ({cond}) {{ {list}}} ");
                }
                if self.r.index(2) == 0 {
                    out += &format!("else {{ {}}} ", self.statements(depth - 1, vars));
                }
                out
            }
            2 if vars => format!("$v = (int64){}; ", self.number(3, vars)),
            3 if vars => format!("$n = (int8){}; ", self.number(2, vars)),
            4 if vars => self.r.of(&["$v++; ", "--$w; ", "$n++; ", "$n--; "]).into(),
            5 if vars => {
                format!("$v {} (int64){}; ", self.r.of(&["+=", "-=", "*=", "/=", "^=", ">>="]), self.number(1, vars))
            }
            _ => self.collect(vars),
        }
    }

    /// A loop of few rounds, which may be left.
    fn rounds(&mut self, depth: usize) -> String {
        let mut body = self.statements(depth - 1, true);
        if self.r.index(2) == 0 {
            let (cond, way) = (self.truth(1, true), self.r.of(&["break", "continue", "return"]));
            body = format!("{body}if ({cond}) {{ {way}; }} {}", self.statements(depth - 1, true));
        }
        match self.r.index(3) {
            0 => format!("unroll({}) {{ {body}}} ", 1 + self.r.index(5)),
            // A number of its own ends it.
            1 => format!("$k{depth} = (int64)0; while ($k{depth}++ < {}) {{ {body}}} ", self.r.index(6)),
            _ => {
                let from = self.r.index(5) as i64 - 2;
                let to = match self.r.index(3) {
                    0 => format!("((int64){} & 7)", self.number(1, true)),
                    _ => (from + self.r.index(7) as i64).to_string(),
                };
                format!("for ($i{depth} : {from}..{to}) {{ $v += $i{depth}; {body}}} ")
            }
        }
    }

    fn collect(&mut self, vars: bool) -> String {
        let nth = self.r.index(self.maps.len());
        let (key, held) = self.maps[nth].clone();
        let key: Vec<String> = key.iter().map(|name| if *name { "comm".into() } else { self.part(vars) }).collect();
        let key = if key.is_empty() { String::new() } else { format!("[{}]", key.join(", ")) };
        let how = HELD[self.r.of(&held)];
        let how = if how.contains('#') { how.replace('#', &self.number(2, vars)) } else { how.into() };
        format!("@m{nth}{key} {how}; ")
    }

    /// A part of a key: of few values, or of many.
    fn part(&mut self, vars: bool) -> String {
        match self.r.index(3) {
            0 => format!("(int64){}", self.number(1, vars)),
            _ => format!("(int64)({} & 3)", self.number(1, vars)),
        }
    }

    fn number(&mut self, depth: usize, vars: bool) -> String {
        if depth == 0 || self.r.index(5) == 0 {
            return match self.r.index(6) {
                0 => word(self.r).to_string(),
                1 => format!("(-{})", self.r.index(70)),
                2 if vars => self.r.of(&["$v", "$w", "$n", "$v++", "--$w", "$n++"]).into(),
                3 if !self.names.is_empty() => self.r.of(self.names).into(),
                _ => format!("args.{}", self.r.of(&ARGS).0),
            };
        }
        let a = self.number(depth - 1, vars);
        match self.r.index(16) {
            0 => format!("({} {a})", self.r.of(&["-", "~"])),
            1 | 2 => format!("(({}){a})", self.r.of(&TYPES)),
            3 => format!("({} ? (int64){a} : (int64){})", self.truth(1, vars), self.number(depth - 1, vars)),
            4 => format!("((int64)({}))", self.truth(1, vars)),
            5 => format!("(*uptr(({} *)(args.p + {})))", self.r.of(&TYPES), self.r.index(24)),
            // Nothing is there.
            6 => format!("(*{}(({} *)(uint8){a}))", self.r.of(&["uptr", "kptr"]), self.r.of(&TYPES)),
            _ => {
                let op = self.r.of(&["+", "-", "*", "/", "%", "/", "%", "&", "|", "^", "<<", ">>", "<<", ">>"]);
                format!("({a} {op} {})", self.number(depth - 1, vars))
            }
        }
    }

    fn truth(&mut self, depth: usize, vars: bool) -> String {
        match self.r.index(5) {
            0 if depth > 0 => {
                let op = self.r.of(&["&&", "||"]);
                format!("({} {op} {})", self.truth(depth - 1, vars), self.truth(depth - 1, vars))
            }
            1 if depth > 0 => format!("(!{})", self.truth(depth - 1, vars)),
            _ => {
                let op = self.r.of(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({} {op} {})", self.number(depth, vars), self.number(depth, vars))
            }
        }
    }
}
