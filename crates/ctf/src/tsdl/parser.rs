//! Types: specifiers, declarators, declarations; attributes, and the values in them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::attributes::{Attribute, Value, alignment};
use super::lexer::{ARROW, ASSIGN, DOTS, Pos, Tok, written};
use super::scope::{Scopes, check_depth, measure, name_cost};
use super::{Fault, MAX_DEPTH};
use crate::identifiers::{self, clip};
use crate::model::{ByteOrder, Encoding, Field, FloatType, IntType, Label, Path, StructType, Type};

/// A place among the tokens, and the types known there.
pub(super) struct Parser<'a> {
    tokens: Vec<(Tok<'a>, Pos)>,
    at: usize,
    depth: usize,
    /// The trace's order of bytes.
    pub order: ByteOrder,
    pub scopes: Scopes,
    /// Clocks that integers are mapped to, and the place of the mapping.
    pub mapped: Vec<(&'a str, Pos)>,
}

/// Words that begin a declaration of types.
fn declares(word: &str) -> bool {
    matches!(word, "typealias" | "typedef" | "struct" | "variant" | "enum")
}

impl<'a> Parser<'a> {
    /// `tokens` end with [`Tok::End`].
    pub fn new(tokens: Vec<(Tok<'a>, Pos)>, order: ByteOrder) -> Parser<'a> {
        Parser { tokens, at: 0, depth: 0, order, scopes: Scopes::new(), mapped: Vec::new() }
    }

    pub fn peek(&self) -> &Tok<'a> {
        &self.tokens[self.at].0
    }
    fn peek_at(&self, ahead: usize) -> &Tok<'a> {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].0
    }
    pub fn pos(&self) -> Pos {
        self.tokens[self.at].1
    }
    /// Goes on, but for the end: that is always there.
    pub fn next(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }
    pub fn fail<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::at(self.pos(), message))
    }
    pub fn accept(&mut self, punctuation: u8) -> bool {
        let found = matches!(self.peek(), Tok::P(p) if *p == punctuation);
        if found {
            self.next();
        }
        found
    }
    pub fn expect(&mut self, punctuation: u8) -> Result<(), Fault> {
        if self.accept(punctuation) {
            return Ok(());
        }
        self.fail(format!("`{}` is expected, not {}", written(punctuation), self.peek().describe()))
    }
    pub fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Tok::Word(w) if *w == word)
    }
    pub fn word(&mut self) -> Result<&'a str, Fault> {
        let Tok::Word(word) = *self.peek() else {
            return self.fail(format!("a name is expected, not {}", self.peek().describe()));
        };
        self.next();
        Ok(word)
    }

    /// The value after `=`.
    pub fn value(&mut self) -> Result<Value<'a>, Fault> {
        if let Tok::Text(text) = self.peek() {
            let mut text = text.clone();
            self.next();
            while let Tok::Text(more) = self.peek() {
                text.to_mut().push_str(more);
                self.next();
            }
            return Ok(Value::Text(text));
        }
        if matches!(self.peek(), Tok::Word(_)) {
            return Ok(Value::Path(self.identifiers()?));
        }
        Ok(Value::Number(self.integer()?))
    }

    /// An integer with its sign.
    pub fn integer(&mut self) -> Result<i128, Fault> {
        let negative = self.accept(b'-');
        if !negative {
            self.accept(b'+');
        }
        match self.peek() {
            Tok::Number(n) => {
                let n = i128::from(*n);
                if negative && n > 1 << 63 {
                    return self.fail(format!("-{n} does not fit into 64 bits"));
                }
                self.next();
                Ok(if negative { -n } else { n })
            }
            other => {
                let message = format!("an integer is expected, not {}", other.describe());
                self.fail(message)
            }
        }
    }

    /// `a.b.c`, each identifier as it is written.
    pub fn identifiers(&mut self) -> Result<Vec<&'a str>, Fault> {
        let mut out = vec![self.word()?];
        while self.accept(b'.') || self.accept(ARROW) {
            if out.len() >= 64 {
                return self.fail("a path of more than 64 names");
            }
            out.push(self.word()?);
        }
        Ok(out)
    }

    /// A path to a field: names without the underscore that keeps them apart from keywords.
    pub fn path(&mut self) -> Result<Vec<String>, Fault> {
        let written = self.identifiers()?;
        let scope = identifiers::scope(&written).map_or(0, |(_, rest)| written.len() - rest.len());
        let strip = |(i, w): (usize, &&str)| if i < scope { w.to_string() } else { identifiers::strip(w).to_string() };
        Ok(written.iter().enumerate().map(strip).collect())
    }

    /// `{ name = value; … }`
    pub fn attributes(&mut self) -> Result<Vec<Attribute<'a>>, Fault> {
        self.expect(b'{')?;
        let mut out = Vec::new();
        while !self.accept(b'}') {
            let name = self.word()?;
            self.expect(b'=')?;
            let pos = self.pos();
            let value = self.value()?;
            self.expect(b';')?;
            out.push(Attribute { name: Cow::Borrowed(name), value, pos });
        }
        Ok(out)
    }

    /// Whether a declaration of types begins here.
    pub fn at_declaration(&self) -> bool {
        matches!(self.peek(), Tok::Word(w) if declares(w))
    }

    /// `typealias …;`, `typedef …;` or `struct NAME { … };`
    pub fn declaration(&mut self) -> Result<(), Fault> {
        if self.is_word("typealias") {
            self.typealias()
        } else if self.is_word("typedef") {
            self.next();
            let ty = self.specifier(true)?;
            loop {
                let pos = self.pos();
                let (name, ty) = self.declarator(ty.clone())?;
                self.declare(pos, name.into(), ty)?;
                if !self.accept(b',') {
                    return self.expect(b';');
                }
            }
        } else {
            self.specifier(false)?;
            self.expect(b';')
        }
    }

    fn typealias(&mut self) -> Result<(), Fault> {
        self.next();
        let ty = self.specifier(false)?;
        let ty = self.dimensions(ty)?;
        self.expect(ASSIGN)?;
        let pos = self.pos();
        let name = self.type_name(false)?;
        self.declare(pos, name.into_owned(), ty)?;
        self.expect(b';')
    }

    fn declare(&mut self, pos: Pos, name: String, ty: Type) -> Result<(), Fault> {
        self.scopes.declare(name, ty).map_err(|m| Fault::at(pos, m))
    }

    /// The words of a type's name. If a field's name follows, the last word is that.
    fn type_name(&mut self, name_follows: bool) -> Result<Cow<'a, str>, Fault> {
        let mut out = Cow::Borrowed(self.word()?);
        loop {
            match self.peek() {
                Tok::Word(w) if !name_follows || matches!(self.peek_at(1), Tok::Word(_) | Tok::P(b'*')) => {
                    if *w != "const" {
                        let out = out.to_mut();
                        out.push(' ');
                        out.push_str(w);
                    }
                }
                Tok::P(b'*') => out.to_mut().push_str(" *"),
                _ => return Ok(out),
            }
            if out.len() > 4096 {
                return self.fail("a type's name of more than 4096 characters");
            }
            self.next();
        }
    }

    /// A type. `name_follows` says that the last of several words is a field's name.
    pub fn specifier(&mut self, name_follows: bool) -> Result<Type, Fault> {
        while self.is_word("const") {
            self.next();
        }
        let pos = self.pos();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(format!("types nested deeper than {MAX_DEPTH} levels"));
        }
        let Tok::Word(word) = *self.peek() else {
            return self.fail(format!("a type is expected, not {}", self.peek().describe()));
        };
        let ty = match word {
            "struct" => self.structure()?,
            "variant" => self.variant()?,
            "enum" => self.enumeration()?,
            "integer" => Type::Int(self.int()?),
            "floating_point" => self.float()?,
            "string" => self.string()?,
            _ => {
                let name = self.type_name(name_follows)?;
                self.scopes.find(&name).map_err(|m| Fault::at(pos, m))?
            }
        };
        self.scopes.spend(1).map_err(|m| Fault::at(pos, m))?;
        self.depth -= 1;
        Ok(ty)
    }

    /// A name and the dimensions after it.
    fn declarator(&mut self, ty: Type) -> Result<(&'a str, Type), Fault> {
        let name = self.word()?;
        Ok((name, self.dimensions(ty)?))
    }

    /// `[4][len]`: arrays and sequences of a type.
    fn dimensions(&mut self, ty: Type) -> Result<Type, Fault> {
        enum Dimension {
            Fixed(u64),
            Field(Path),
        }
        let pos = self.pos();
        let mut all = Vec::new();
        while self.accept(b'[') {
            if matches!(self.peek(), Tok::Word(_)) {
                all.push(Dimension::Field(self.path()?));
            } else {
                let pos = self.pos();
                let n = u64::try_from(self.integer()?).map_err(|_| Fault::at(pos, "a length is not negative"))?;
                all.push(Dimension::Fixed(n));
            }
            self.expect(b']')?;
            if all.len() > MAX_DEPTH {
                return self.fail(format!("more than {MAX_DEPTH} dimensions"));
            }
        }
        let dimensioned = !all.is_empty();
        let ty = all.into_iter().rev().fold(ty, |ty, dimension| match dimension {
            Dimension::Fixed(n) => Type::Array(Box::new(ty), n),
            Dimension::Field(path) => Type::Sequence(Box::new(ty), path),
        });
        if dimensioned {
            check_depth(measure(&ty).1).map_err(|m| Fault::at(pos, m))?;
        }
        Ok(ty)
    }

    /// `{ TYPE a, b[3]; … }` of a struct or variant, in a scope of its own.
    fn fields(&mut self) -> Result<Vec<Field>, Fault> {
        self.expect(b'{')?;
        self.scopes.push();
        let mut out: Vec<Field> = Vec::new();
        let mut names = BTreeSet::new();
        while !self.accept(b'}') {
            if self.is_word("typealias") || self.is_word("typedef") {
                self.declaration()?;
                continue;
            }
            let compound = self.at_declaration();
            let ty = self.specifier(true)?;
            if compound && self.accept(b';') {
                continue;
            }
            loop {
                let pos = self.pos();
                let (name, ty) = self.declarator(ty.clone())?;
                let (cost, depth) = measure(&ty);
                let name = identifiers::strip(name);
                check_depth(depth).map_err(|m| Fault::at(pos, m))?;
                self.scopes.spend(cost + name_cost(name)).map_err(|m| Fault::at(pos, m))?;
                if !names.insert(name) {
                    return Err(Fault::at(pos, format!("there are two fields `{}`", clip(name))));
                }
                out.push(Field { name: name.into(), ty });
                if !self.accept(b',') {
                    break;
                }
            }
            self.expect(b';')?;
        }
        self.scopes.pop();
        Ok(out)
    }

    /// The name after a keyword, if there is one.
    fn tag_name(&mut self) -> Option<&'a str> {
        match *self.peek() {
            Tok::Word(w) => {
                self.next();
                Some(w)
            }
            _ => None,
        }
    }

    fn structure(&mut self) -> Result<Type, Fault> {
        let pos = self.pos();
        self.next();
        let name = if self.is_word("align") { None } else { self.tag_name() };
        if !matches!(self.peek(), Tok::P(b'{')) {
            let Some(name) = name else { return self.fail("a struct has a name or fields") };
            return self.scopes.find(&format!("struct {name}")).map_err(|m| Fault::at(pos, m));
        }
        let fields = self.fields()?;
        let mut align = 1;
        if self.is_word("align") {
            self.next();
            self.expect(b'(')?;
            let pos = self.pos();
            let n = self.integer()?;
            if !alignment(n) {
                return Err(Fault::at(pos, "an alignment is a power of two up to 65536"));
            }
            align = n as u32;
            self.expect(b')')?;
        }
        let ty = Type::Struct(StructType { align, fields });
        self.named(pos, "struct", name, &ty)?;
        Ok(ty)
    }

    fn named(&mut self, pos: Pos, keyword: &str, name: Option<&str>, ty: &Type) -> Result<(), Fault> {
        match name {
            Some(name) => self.declare(pos, format!("{keyword} {name}"), ty.clone()),
            None => Ok(()),
        }
    }

    fn variant(&mut self) -> Result<Type, Fault> {
        let pos = self.pos();
        self.next();
        let name = self.tag_name();
        let mut tag = Vec::new();
        if self.accept(b'<') {
            tag = self.path()?;
            self.expect(b'>')?;
        }
        if matches!(self.peek(), Tok::P(b'{')) {
            let options = self.fields()?;
            self.named(pos, "variant", name, &Type::Variant(Vec::new(), options.clone()))?;
            return Ok(Type::Variant(tag, options));
        }
        let Some(name) = name else { return self.fail("a variant has a name or options") };
        match self.scopes.find(&format!("variant {name}")).map_err(|m| Fault::at(pos, m))? {
            Type::Variant(_, options) => Ok(Type::Variant(tag, options)),
            other => Ok(other),
        }
    }

    fn enumeration(&mut self) -> Result<Type, Fault> {
        let pos = self.pos();
        self.next();
        let name = self.tag_name();
        let base = if self.accept(b':') {
            Some(self.specifier(false)?)
        } else if matches!(self.peek(), Tok::P(b'{')) {
            Some(
                self.scopes
                    .find("int")
                    .map_err(|_| Fault::at(pos, "an enumeration needs `: TYPE` where `int` is not declared"))?,
            )
        } else {
            None
        };
        if !matches!(self.peek(), Tok::P(b'{')) {
            let Some(name) = name else { return self.fail("an enumeration has a name or labels") };
            return self.scopes.find(&format!("enum {name}")).map_err(|m| Fault::at(pos, m));
        }
        let Some(Type::Int(int)) = base else { return Err(Fault::at(pos, "an enumeration is made of an integer")) };
        let labels = self.labels()?;
        let ty = Type::Enum(int, labels);
        self.named(pos, "enum", name, &ty)?;
        Ok(ty)
    }

    /// `{ A, B = 3, C = 1 ... 5, "quoted" = 2 }`
    fn labels(&mut self) -> Result<Vec<Label>, Fault> {
        self.expect(b'{')?;
        let mut out = Vec::new();
        let mut following: i128 = 0;
        while !self.accept(b'}') {
            let pos = self.pos();
            let name = match self.peek() {
                Tok::Word(w) => (*w).to_string(),
                Tok::Text(w) => w.to_string(),
                other => return self.fail(format!("a label is expected, not {}", other.describe())),
            };
            self.next();
            let (mut first, mut last) = (following, following);
            if self.accept(b'=') {
                first = self.integer()?;
                last = if self.accept(DOTS) { self.integer()? } else { first };
            }
            if last < first {
                return Err(Fault::at(pos, format!("the range of label `{}` is empty", clip(&name))));
            }
            self.scopes.spend(name_cost(&name)).map_err(|m| Fault::at(pos, m))?;
            out.push(Label { name, first, last });
            following = last + 1;
            if !self.accept(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        Ok(out)
    }

    fn int(&mut self) -> Result<IntType, Fault> {
        let pos = self.pos();
        self.next();
        let mut int = IntType { align: 0, order: self.order, ..IntType::unsigned(0) };
        for a in self.attributes()? {
            match &*a.name {
                "size" => int.size = a.u32(1, 64)?,
                "align" => int.align = a.alignment()?,
                "signed" => int.signed = a.truth()?,
                "byte_order" => int.order = a.order(Some(self.order))?,
                "base" => int.base = a.base()?,
                "encoding" => int.encoding = a.encoding()?,
                "map" => {
                    let clock = a.clock()?;
                    self.mapped.push((clock, a.pos));
                    int.clock = Some(clock.into());
                }
                _ => {}
            }
        }
        if int.size == 0 {
            return Err(Fault::at(pos, "an integer needs a `size`"));
        }
        if int.align == 0 {
            int.align = if int.size.is_multiple_of(8) { 8 } else { 1 };
        }
        Ok(int)
    }

    fn float(&mut self) -> Result<Type, Fault> {
        let pos = self.pos();
        self.next();
        let mut float = FloatType { exp: 0, mant: 0, align: 0, order: self.order };
        for a in self.attributes()? {
            match &*a.name {
                "exp_dig" => float.exp = a.u32(1, 63)?,
                "mant_dig" => float.mant = a.u32(1, 63)?,
                "align" => float.align = a.alignment()?,
                "byte_order" => float.order = a.order(Some(self.order))?,
                _ => {}
            }
        }
        if !matches!((float.exp, float.mant), (8, 24) | (11, 53)) {
            return Err(Fault::at(pos, "a floating point number has exp_dig 8 and mant_dig 24, or 11 and 53"));
        }
        if float.align == 0 {
            float.align = 8;
        }
        Ok(Type::Float(float))
    }

    fn string(&mut self) -> Result<Type, Fault> {
        self.next();
        let mut encoding = Encoding::Utf8;
        if matches!(self.peek(), Tok::P(b'{')) {
            for a in self.attributes()? {
                if a.name == "encoding" {
                    encoding = a.encoding()?;
                }
            }
        }
        Ok(Type::Str(encoding))
    }
}
