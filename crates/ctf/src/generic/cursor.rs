//! Values out of bits.

use super::value::Value;
use crate::model::ByteOrder;
use crate::plan::{Int, Kind, Length, NONE, Node, Plan, ROLES, Role};

/// Most values in one event: 1 Mi. Bytes and text count as one.
const MAX_VALUES: u64 = 1 << 20;

/// Why there is no value, and where.
#[derive(Debug)]
pub(super) struct Fault {
    /// Bit of the packet.
    pub bit: u64,
    /// What is wrong. Empty if the data ends.
    pub message: Option<String>,
}

/// What has been read and is needed for what is read next: lengths, tags, times.
#[derive(Debug)]
pub(super) struct State {
    slots: Vec<i128>,
    roles: [Option<u64>; ROLES],
    /// Values of the clocks.
    pub clocks: Vec<u64>,
    /// The clock that an event's header has moved first.
    pub moved: Option<usize>,
    /// Whether integers that are mapped to clocks move these.
    pub moves: bool,
    budget: u64,
    /// Values that the packet may still have. Values that take no space would otherwise make a small packet a long work.
    left: u64,
}

impl State {
    pub fn new(plan: &Plan) -> State {
        State {
            slots: vec![0; plan.slots],
            roles: [None; ROLES],
            clocks: vec![0; plan.clocks.len()],
            moved: None,
            moves: false,
            budget: 0,
            left: 0,
        }
    }

    /// Before a packet of this many bits.
    pub fn packet(&mut self, bits: u64) {
        self.left = bits.saturating_mul(16).saturating_add(4096);
    }

    /// Before a packet's header or an event.
    pub fn begin(&mut self) {
        self.budget = MAX_VALUES;
        self.moved = None;
    }

    pub fn role(&self, role: Role) -> Option<u64> {
        self.roles[role as usize]
    }

    pub fn forget(&mut self, roles: &[Role]) {
        for role in roles {
            self.roles[*role as usize] = None;
        }
    }

    /// Moves a clock to a time of which the low bits are known.
    pub fn advance(&mut self, clock: usize, low: u64, size: u32) {
        let value = &mut self.clocks[clock];
        if size >= 64 {
            *value = low;
            return;
        }
        let mask = (1u64 << size) - 1;
        let mut next = (*value & !mask) | (low & mask);
        if low & mask < *value & mask {
            next = next.wrapping_add(1 << size);
        }
        *value = next;
    }
}

/// A place in a packet.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pub plan: &'a Plan,
    pub state: &'a mut State,
    pub data: &'a [u8],
    /// In bits from the start of the packet.
    pub at: u64,
    /// Where what may be read ends, in bits; not after the data.
    pub end: u64,
}

impl Cursor<'_> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { bit: self.at, message: Some(message.into()) })
    }

    fn align(&mut self, align: u64) {
        self.at = (self.at + align - 1) & !(align - 1);
    }

    /// Takes this many bits. Returns where they begin.
    fn take(&mut self, bits: u64) -> Result<u64, Fault> {
        let at = self.at;
        match at.checked_add(bits) {
            Some(next) if next <= self.end => {
                self.at = next;
                Ok(at)
            }
            _ => Err(Fault { bit: at, message: None }),
        }
    }

    fn spend(&mut self, values: u64) -> Result<(), Fault> {
        let (Some(budget), Some(left)) = (self.state.budget.checked_sub(values), self.state.left.checked_sub(values))
        else {
            return self.fail(if self.state.budget < values {
                format!("more than {MAX_VALUES} values in an event")
            } else {
                "more values than a packet of this size can have".into()
            });
        };
        (self.state.budget, self.state.left) = (budget, left);
        Ok(())
    }

    /// The value of a node.
    pub fn value(&mut self, index: u32) -> Result<Value, Fault> {
        let plan = self.plan;
        let Node { align, kind, .. } = plan.node(index);
        self.align(*align);
        match kind {
            Kind::Int(int) => {
                let bits = self.int(int)?;
                Ok(if int.signed {
                    Value::Signed(sign(bits, int.size), int.base, int.size)
                } else {
                    Value::Unsigned(bits, int.base)
                })
            }
            Kind::Enum(int, labels) => {
                let bits = self.int(int)?;
                let value = number(bits, int);
                Ok(Value::Enum(value, labels.of(value)))
            }
            Kind::Float(size, order) => {
                let at = self.take(u64::from(*size))?;
                let bits = bits(self.data, at, *size, *order);
                Ok(Value::Float(if *size == 32 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }))
            }
            Kind::Str => self.string(),
            Kind::Struct(names, nodes) => {
                self.spend(nodes.len() as u64)?;
                let mut values = Vec::with_capacity(nodes.len());
                for node in nodes {
                    values.push(self.value(*node)?);
                }
                Ok(Value::Struct(names.clone(), values))
            }
            Kind::Bytes(length, text, base, order) => {
                let mut bytes = self.bytes(*length, *order)?;
                if !text {
                    return Ok(Value::Bytes(bytes, *base));
                }
                if let Some(nul) = bytes.iter().position(|b| *b == 0) {
                    bytes.truncate(nul);
                }
                Ok(Value::Text(bytes))
            }
            Kind::Array(element, length) => self.array(*element, *length),
            Kind::Variant(slot, choices, names, options) => {
                let tag = self.state.slots[*slot as usize];
                let Some((.., option)) = choices.iter().find(|c| (c.0..=c.1).contains(&tag)) else {
                    return self.fail(format!("the tag {tag} chooses no option of the variant"));
                };
                self.spend(1)?;
                Ok(Value::Variant(names.clone(), *option, Box::new(self.value(options[*option])?)))
            }
        }
    }

    /// The bits of an integer, which may be a length, a tag, a time.
    fn int(&mut self, int: &Int) -> Result<u64, Fault> {
        let at = self.take(u64::from(int.size))?;
        let bits = bits(self.data, at, int.size, int.order);
        if int.slot != NONE {
            self.state.slots[int.slot as usize] = number(bits, int);
        }
        if int.role != NONE {
            self.state.roles[int.role as usize] = Some(bits);
        }
        if int.clock != NONE && self.state.moves {
            let clock = int.clock as usize;
            self.state.advance(clock, bits, int.size);
            self.state.moved.get_or_insert(clock);
        }
        Ok(bits)
    }

    fn string(&mut self) -> Result<Value, Fault> {
        let from = (self.at / 8) as usize;
        let to = (self.end / 8) as usize;
        match self.data[from.min(to)..to].iter().position(|b| *b == 0) {
            Some(length) => {
                self.at += 8 * (length as u64 + 1);
                Ok(Value::Text(self.data[from..from + length].to_vec()))
            }
            None => Err(Fault { bit: self.at, message: None }),
        }
    }

    fn length(&self, length: Length) -> Result<u64, Fault> {
        match length {
            Length::Fixed(n) => Ok(n),
            Length::Slot(slot) => match u64::try_from(self.state.slots[slot as usize]) {
                Ok(n) => Ok(n),
                Err(_) => self.fail("the length of a sequence is negative"),
            },
        }
    }

    fn bytes(&mut self, length: Length, order: ByteOrder) -> Result<Vec<u8>, Fault> {
        let n = self.length(length)?;
        let at = self.take(n.saturating_mul(8))?;
        let data = &self.data[(at / 8) as usize..];
        if at % 8 == 0 {
            return Ok(data[..n as usize].to_vec());
        }
        Ok((0..n).map(|i| bits(self.data, at + 8 * i, 8, order) as u8).collect())
    }

    fn array(&mut self, element: u32, length: Length) -> Result<Value, Fault> {
        let n = self.length(length)?;
        // A length that the packet cannot contain is refused before memory is allocated for it.
        let least = self.plan.node(element).min.saturating_mul(n);
        if least > self.end.saturating_sub(self.at) {
            return Err(Fault { bit: self.at, message: None });
        }
        self.spend(n)?;
        let mut values = Vec::with_capacity(n.min(4096) as usize);
        for _ in 0..n {
            values.push(self.value(element)?);
        }
        Ok(Value::Array(values))
    }
}

/// An integer's value from its bits.
fn number(bits: u64, int: &Int) -> i128 {
    if int.signed { i128::from(sign(bits, int.size)) } else { i128::from(bits) }
}

fn sign(bits: u64, size: u32) -> i64 {
    let unused = 64 - size;
    ((bits << unused) as i64) >> unused
}

/// This many bits (1 to 64) from a bit on. Little endian: the first bit is the lowest of its byte and of the number. Big endian:
/// the first bit is the highest of both.
pub(super) fn bits(data: &[u8], at: u64, size: u32, order: ByteOrder) -> u64 {
    let (first, shift) = ((at / 8) as usize, (at % 8) as u32);
    let bytes = (shift + size).div_ceil(8) as usize;
    let data = &data[first..first + bytes];
    if shift == 0 && size == 64 {
        let mut all = [0; 8];
        all.copy_from_slice(data);
        return if order == ByteOrder::Little { u64::from_le_bytes(all) } else { u64::from_be_bytes(all) };
    }
    let mut all = [0; 16];
    let wide = match order {
        ByteOrder::Little => {
            all[..bytes].copy_from_slice(data);
            u128::from_le_bytes(all) >> shift
        }
        ByteOrder::Big => {
            all[16 - bytes..].copy_from_slice(data);
            u128::from_be_bytes(all) >> (bytes as u32 * 8 - shift - size)
        }
    };
    (wide as u64) & (u64::MAX >> (64 - size))
}
