//! Structures of the running kernel, from its BTF, as scripts see them.

use lang::ast::Cast;
use lang::script::cdecl::{Member, Struct};
use lang::script::types::{Space, Type};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use sys::btf::{KernelBtf, Kind, Shape};

/// What structures without a name are called, before their number in the kernel's BTF.
const NAMELESS: &str = "(nameless) ";
/// How many levels of pointers and arrays a type may have.
const DEPTH: usize = 8;

/// The types of the kernel; nothing is read before somebody asks.
#[derive(Default)]
pub struct KernelTypes {
    btf: OnceCell<Option<KernelBtf>>,
    /// Names of enumerations that somebody has asked for.
    enumerators: RefCell<HashMap<String, Vec<(String, i64)>>>,
}

impl KernelTypes {
    fn btf(&self) -> Option<&KernelBtf> {
        self.btf.get_or_init(|| KernelBtf::kernel().ok()).as_ref()
    }

    /// The values that a name has in enumerations.
    pub fn enumerators(&self, name: &str) -> Vec<(String, i64)> {
        let find = || self.btf().map(|btf| btf.enumerators(name)).unwrap_or_default();
        self.enumerators.borrow_mut().entry(name.into()).or_insert_with(find).clone()
    }

    /// A structure or a union.
    pub fn structure(&self, name: &str) -> Option<Struct> {
        let btf = self.btf()?;
        let tagged = btf.find(Kind::Struct, name).or_else(|| btf.find(Kind::Union, name));
        // `atomic_t` is the name of a structure that has none.
        let typedef = || btf.find(Kind::Typedef, name).filter(|id| btf.shape(*id) == Shape::Struct(name.into()));
        let nameless = || name.strip_prefix(NAMELESS)?.parse().ok();
        let id = tagged.or_else(typedef).or_else(nameless)?;
        let members = btf.parts(id).into_iter().filter_map(|part| {
            let ty = type_of(btf, part.id, DEPTH)?;
            if part.width == 0 {
                return Some(Member { name: part.name, ty, offset: (part.bit / 8).into(), bits: None });
            }
            let unit = 8 * btf.size(part.id)?;
            let shift = part.bit.checked_rem(unit)?;
            let bits = Some((u8::try_from(shift).ok()?, u8::try_from(part.width).ok()?));
            Some(Member { name: part.name, ty, offset: ((part.bit - shift) / 8).into(), bits })
        });
        Some(Struct { size: btf.size(id)?.into(), align: 8, members: members.collect(), depth: 1 })
    }

    /// A type by the name of a typedef.
    pub fn typedef(&self, name: &str) -> Option<Type> {
        let btf = self.btf()?;
        type_of(btf, btf.find(Kind::Typedef, name)?, DEPTH)
    }
}

/// A type; None: scripts have none like it.
fn type_of(btf: &KernelBtf, id: u32, depth: usize) -> Option<Type> {
    let depth = depth.checked_sub(1)?;
    Some(match btf.shape(id) {
        Shape::Int(size @ (1 | 2 | 4 | 8), signed) => Type::Int(Cast { size: size as u8, signed }),
        Shape::Pointer(to) => {
            let to = if to == 0 { None } else { type_of(btf, to, depth) };
            Type::Pointer(Box::new(to.unwrap_or_default()), Space::Kernel)
        }
        Shape::Array(of, n) => Type::Array(Box::new(type_of(btf, of, depth)?), n.into()),
        Shape::Struct(name) if !name.is_empty() => Type::Struct(name),
        Shape::Struct(_) => Type::Struct(format!("{NAMELESS}{}", btf.strip(id)?)),
        _ => return None,
    })
}

/// The type that a C declaration of a pointer points to: `struct task_struct *`.
pub fn pointee(c: &str) -> Option<Type> {
    let words = c.strip_suffix('*')?.trim().trim_start_matches("const ").trim_end_matches(" const");
    let name = words.strip_prefix("struct ").or_else(|| words.strip_prefix("union "))?;
    name.chars().all(|c| c.is_alphanumeric() || c == '_').then(|| Type::Struct(name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_to_structures_have_names() {
        assert_eq!(pointee("struct task_struct *"), Some(Type::Struct("task_struct".into())));
        assert_eq!(pointee("const struct path *"), Some(Type::Struct("path".into())));
        assert_eq!((pointee("char *"), pointee("struct a **"), pointee("int")), (None, None, None));
    }

    #[test]
    fn the_kernel_s_structures_are_known() {
        let types = KernelTypes::default();
        let Some(task) = types.structure("task_struct") else {
            return testkit::skip("btf", "a kernel without BTF");
        };
        let member = |name: &str| task.members.iter().find(|m| m.name == name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(member("pid").ty, Type::int(4, true));
        assert_eq!(member("comm").ty, Type::Array(Box::new(Type::int(1, true)), 16));
        assert!(
            matches!(&member("real_parent").ty, Type::Pointer(of, Space::Kernel) if **of == Type::Struct("task_struct".into()))
        );
        assert!(member("in_execve").bits.is_some_and(|(_, width)| width == 1));
        assert!(types.structure("atomic_t").is_some_and(|s| s.members[0].name == "counter"));
        let address = types.structure("in6_addr").expect("a structure");
        let Type::Struct(inner) = &address.members[0].ty else { panic!("{:?}", address.members) };
        assert!(types.structure(inner).is_some_and(|s| s.members.iter().any(|m| m.name == "u6_addr8")));
        assert_eq!(types.typedef("pid_t"), Some(Type::int(4, true)));
        assert!(types.structure("no_such_structure").is_none());
        assert_eq!(types.enumerators("PIDTYPE_PID"), [("pid_type".to_string(), 0)]);
        assert_eq!(types.enumerators("no_such_name"), []);
    }
}
