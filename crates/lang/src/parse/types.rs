//! Names of types: in casts, `sizeof`, `offsetof` and `let`.

use super::Parser;
use crate::ast::{Base, Cast, Expr, Kind, TypeName};
use crate::diag::Span;
use crate::lex::Token;
use crate::tokens::{Result, Tokens};

impl Parser<'_> {
    pub(super) fn size_of(&mut self, start: Span) -> Result<Expr> {
        self.t.expect("(")?;
        let (kind, below) = match self.at_type(0)? {
            true => {
                let ty = self.type_name()?;
                let below = ty.height;
                (Kind::SizeOfType(ty), below)
            }
            false => {
                let e = self.expr()?;
                let below = e.height;
                (Kind::SizeOf(Box::new(e)), below)
            }
        };
        let end = self.t.expect(")")?;
        self.node(kind, start.to(end), below)
    }

    pub(super) fn offset_of(&mut self, start: Span) -> Result<Expr> {
        self.t.expect("(")?;
        let ty = self.type_name()?;
        self.t.expect(",")?;
        let mut path = vec![self.t.name("a member")?.0];
        while self.t.eat(".")? {
            path.push(self.t.name("a member")?.0);
        }
        let end = self.t.expect(")")?;
        let below = ty.height;
        self.node(Kind::OffsetOf(ty, path), start.to(end), below)
    }

    pub(super) fn cast(&mut self) -> Result<Expr> {
        let (_, start) = self.t.next()?;
        let ty = self.type_name()?;
        self.t.expect(")")?;
        self.t.enter()?;
        let e = self.unary()?;
        self.t.leave();
        let (span, below) = (start.to(e.span), e.height.max(ty.height));
        self.node(Kind::Cast(ty, Box::new(e)), span, below)
    }

    /// Whether it is a type of the language, of C, or of the script.
    fn is_type(&self, name: &str) -> bool {
        matches!(name, "bool" | "_Bool" | "void" | "string")
            || Cast::of_c(name).is_some()
            || self.typedefs.contains(name)
    }

    /// Whether a type's name begins `n` tokens from here, and a value cannot.
    pub(super) fn at_type(&mut self, n: usize) -> Result<bool> {
        let Token::Name(name) = self.t.peek_at(n)?.clone() else { return Ok(false) };
        if self.params.is_some() {
            return Ok(Cast::named(&name).is_some() && matches!(self.t.peek_at(n + 1)?, Token::Sym(")")));
        }
        if ["struct", "union", "enum", "typeof", "unsigned", "signed", "long", "short"].contains(&name.as_str()) {
            return Ok(true);
        }
        let mut after = n + 1;
        if self.is_type(&name) {
            return Ok(matches!(self.t.peek_at(after)?, Token::Sym(")" | "*" | "[" | ",") | Token::Name(_)));
        }
        // A name that nobody knows here, followed by stars only: the kernel's type.
        while matches!(self.t.peek_at(after)?, Token::Sym("*")) {
            after += 1;
        }
        let closed = matches!(self.t.peek_at(after)?, Token::Sym(")"));
        let value = matches!(
            self.t.peek_at(after + 1)?,
            Token::Name(_) | Token::Int(_) | Token::Var(_) | Token::Map(_) | Token::Param(_) | Token::Sym("(")
        );
        Ok(closed && (value || after > n + 1))
    }

    /// `struct x *`, `uint8[4]`, `typeof($x)`
    pub(crate) fn type_name(&mut self) -> Result<TypeName> {
        let start = self.t.span()?;
        let first = match self.t.peek()?.clone() {
            Token::Name(n) => n,
            _ => return Err(self.t.unexpected("a type")),
        };
        let base = match first.as_str() {
            "const" | "volatile" => {
                self.t.next()?;
                self.t.enter()?;
                let ty = self.type_name()?;
                self.t.leave();
                return Ok(ty);
            }
            "struct" | "union" => {
                self.t.next()?;
                Base::Struct(self.t.name("the structure's name")?.0)
            }
            "enum" => {
                self.t.next()?;
                Base::Enum(self.t.name("the enumeration's name")?.0)
            }
            "typeof" => {
                self.t.next()?;
                self.t.expect("(")?;
                self.t.enter()?;
                let e = self.expr()?;
                self.t.leave();
                self.t.expect(")")?;
                Base::TypeOf(Box::new(e))
            }
            _ => Base::Named(type_words(&mut self.t)?),
        };
        let (mut pointers, mut arrays) = (0, Vec::new());
        while self.t.eat("*")? {
            pointers += 1;
            if pointers > 8 {
                return Err(self.t.unexpected("a name"));
            }
        }
        let mut end = self.t.span()?;
        while self.t.at("[")? {
            self.t.next()?;
            arrays.push(match self.t.at("]")? {
                true => 0,
                false => self.t.integer("the array's length")?.0,
            });
            end = self.t.expect("]")?;
            if arrays.len() > 8 {
                return Err(self.t.unexpected("')'"));
            }
        }
        let span =
            if arrays.is_empty() { Span { start: start.start, end: end.start.max(start.end) } } else { start.to(end) };
        let height = if let Base::TypeOf(e) = &base { e.height } else { 0 };
        Ok(TypeName { base, pointers, arrays, span, height })
    }
}

/// Words of which the names of C's types are made.
const WORDS: &[&str] = &["unsigned", "signed", "long", "short", "int", "char"];

/// `unsigned long`, `int32`, `size_t`: as many words as belong to it. The words in the order of [`Cast::of_c`].
pub(crate) fn type_words(t: &mut Tokens<'_>) -> Result<String> {
    let (first, _) = t.name("a type")?;
    if !WORDS.contains(&first.as_str()) {
        return Ok(first);
    }
    let mut words = vec![first];
    while let Token::Name(n) = t.peek()? {
        if !WORDS.contains(&n.as_str()) || words.len() > 4 {
            break;
        }
        words.push(t.name("a type")?.0);
    }
    // `long unsigned int` is `unsigned long int`; `signed` says nothing but before `char`.
    words.sort_by_key(|w| (w != "unsigned", w != "signed"));
    if words.len() > 1 && words[0] == "signed" && words[1] != "char" {
        words.remove(0);
    }
    words.sort_by_key(|w| w == "int");
    Ok(words.join(" "))
}
