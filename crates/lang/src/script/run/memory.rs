//! What a clause reads of memory.

use super::Memory;
use super::exec::{Result, Run, Stop};
use crate::script::ir::Int;
use crate::script::types::{Space, Type};
use crate::script::value::{Text, Value};
use events::event::Cap;
use events::message::Cursor;

/// This many strings of an array are read.
const MAX_STRINGS: usize = 16;
/// Below it there is no memory: the kernel gives the first page to nobody.
const LOWEST: u64 = 4096;

impl Run<'_> {
    /// The strings of an array of addresses that ends with a null one.
    pub(super) fn strings(&mut self, array: &Int, space: Space) -> Result<Value> {
        let array = array.eval(self)? as u64;
        let mut out = Vec::new();
        for i in 0..MAX_STRINGS as u64 {
            let address = match self.memory(space, array.wrapping_add(8 * i), 8) {
                Memory::Bytes(b) => Value::read(&b, &Type::UINT).int() as u64,
                Memory::Fault => 0,
                Memory::Unknown => return Err(Stop::Unknown),
            };
            if address == 0 {
                break;
            }
            match self.text(space, address, self.program.config.max_strlen as usize) {
                Memory::Bytes(b) => out.push(Value::text(b)),
                Memory::Fault => *self.bad_reads += 1,
                Memory::Unknown => return Err(Stop::Unknown),
            }
        }
        Ok(Value::Tuple(out))
    }

    pub(super) fn size(&self, ty: &Type) -> usize {
        self.program.declarations.size(ty).map_or(0, |s| s.0 as usize)
    }

    /// What is in memory. Nobody has memory at the lowest addresses.
    pub(super) fn memory(&self, space: Space, address: u64, length: usize) -> Memory {
        if address < LOWEST { Memory::Fault } else { self.event.memory(space, address, length) }
    }

    pub(super) fn text(&self, space: Space, address: u64, most: usize) -> Memory {
        if address < LOWEST { Memory::Fault } else { self.event.text(space, address, most) }
    }

    /// What is at an address; 0 where there is nothing.
    pub(super) fn load(&mut self, address: &Int, space: Space, ty: &Type) -> Result<Value> {
        let address = address.eval(self)? as u64;
        match self.memory(space, address, self.size(ty)) {
            Memory::Bytes(b) => Ok(Value::read(&b, ty)),
            Memory::Fault => {
                *self.bad_reads += 1;
                Ok(Value::zero(ty))
            }
            Memory::Unknown => Err(Stop::Unknown),
        }
    }

    pub(super) fn text_at(&mut self, address: &Int, space: Space, length: &Int) -> Result<Value> {
        let max = self.program.config.max_strlen as usize;
        // The length has room for a NUL.
        let most = usize::try_from(length.eval(self)?).unwrap_or(0).saturating_sub(1).min(max);
        // What was kept with the address.
        let address = match address {
            Int::Value(kept) => match self.any(kept)? {
                Value::At(_, Text { mut bytes, cut }) => {
                    let cut = cut || bytes.len() > most && most == max;
                    bytes.truncate(most);
                    return Ok(Value::Text(Text { bytes, cut }));
                }
                other => other.int() as u64,
            },
            address => address.eval(self)? as u64,
        };
        match self.text(space, address, most) {
            Memory::Bytes(mut bytes) => {
                let cut = bytes.len() > most && most == max;
                bytes.truncate(most);
                Ok(Value::Text(Text { bytes, cut }))
            }
            Memory::Fault => {
                *self.bad_reads += 1;
                Ok(Value::text(""))
            }
            Memory::Unknown => Err(Stop::Unknown),
        }
    }
}

/// The strings of an array, as events have them.
pub(super) fn array(bytes: &[u8]) -> Value {
    let all = Cursor::new(bytes).strv().ok().map(|all| all.iter().take(MAX_STRINGS).map(text_of).collect());
    Value::Tuple(all.unwrap_or_default())
}

fn text_of((_, cap, bytes): (u64, Cap, &[u8])) -> Value {
    Value::Text(Text { bytes: bytes.to_vec(), cut: cap == Cap::Cut })
}
