//! What a clause prints, or keeps for a speculation.

use super::exec::{Result, Run};
use super::speculation::Printed;
use crate::script::ir::{Column, Kind, Speculate, Stmt, Writing};
use crate::script::maps::{self, Held, Row};
use crate::script::time;
use crate::script::types::Type;
use crate::script::value::Value;
use std::collections::BTreeMap;

impl Run<'_> {
    /// Prints, or keeps it for a speculation.
    fn show(&mut self, printed: Printed) {
        match self.speculating {
            Some(number) => self.speculations.keep(number, printed),
            None => printed.show(self.program, self.host),
        }
    }

    /// Maps side by side: a line for each key that one of them has, in the order of the first one's values.
    fn print_all(&mut self, maps: &[usize], site: usize, columns: &[Column]) {
        let Some(first) = maps.first().map(|m| &self.program.maps[*m]) else { return };
        let mut all: BTreeMap<&[u8], ()> = BTreeMap::new();
        maps.iter().for_each(|m| all.extend(self.stores[*m].pairs().into_iter().map(|(key, _)| (key, ()))));
        let held = |m: usize, key: &[u8]| {
            let map = &self.program.maps[m];
            self.stores[m].get(key).cloned().unwrap_or_else(|| Held::new(&map.value))
        };
        let mut rows: Vec<(Row, &[u8])> = Vec::new();
        for key in all.into_keys() {
            rows.push((Row { key: maps::parts(key, &first.key), held: held(maps[0], key) }, key));
        }
        rows.sort_by(|a, b| maps::order(first, &a.0, &b.0));
        let value = |row: &(Row, &[u8]), column: &Column| match column {
            Column::Key(i) => row.0.key.get(*i).cloned().unwrap_or(Value::Int(0)),
            Column::Map(i) => {
                let ty = &self.program.maps[maps[*i]].value;
                held(maps[*i], row.1).read(&if let Type::Aggregate(a) = ty { a.value() } else { ty.clone() })
            }
        };
        let lines: Vec<Vec<Value>> = rows.iter().map(|r| columns.iter().map(|c| value(r, c)).collect()).collect();
        lines.into_iter().for_each(|args| self.show(Printed::Write(Writing::Printf, site, args)));
    }

    pub(super) fn print(&mut self, s: &Stmt) -> Result<()> {
        match s {
            Stmt::PrintAll(maps, site, columns) => self.print_all(maps, *site, columns),
            Stmt::Speculate(how, number) => {
                let number = number.eval(self)? as u64;
                if *how == Speculate::Begin {
                    self.speculating = Some(number);
                    return Ok(());
                }
                if self.speculating == Some(number) {
                    self.speculating = None;
                }
                let kept = self.speculations.end(number, *how);
                kept.iter().for_each(|printed| printed.show(self.program, self.host));
            }
            Stmt::Write(writing, site, args) => {
                let args = args.iter().map(|e| self.any(e)).collect::<Result<Vec<_>>>()?;
                self.show(Printed::Write(*writing, *site, args));
            }
            Stmt::Print(e) => {
                let value = self.any(e)?;
                let own = matches!(e.kind, Kind::Text(_));
                self.show(Printed::Value(e.ty.clone(), value, own));
            }
            Stmt::PrintMap(m, top, div) => {
                let top = top.as_ref().map_or(Ok(0), |e| e.eval(self))?;
                let div = div.as_ref().map_or(Ok(1), |e| e.eval(self))?;
                let map = &self.program.maps[*m];
                let mut rows = self.stores[*m].rows(map, usize::try_from(top).unwrap_or(0));
                if rows.is_empty() && map.key.is_empty() {
                    rows.push(Row { key: Vec::new(), held: Held::new(&map.value) });
                }
                self.show(Printed::Map(*m, rows, div));
            }
            Stmt::PrintKey(m, key) => {
                let map = &self.program.maps[*m];
                let (held, key) = self.with_key(key, |run, key| {
                    let held = run.stores[*m].get(key).cloned().unwrap_or_else(|| Held::new(&map.value));
                    (held, maps::parts(key, &map.key))
                })?;
                self.show(Printed::Map(*m, vec![Row { key, held }], 1));
            }
            Stmt::Unwatch(address) => {
                let address = address.eval(self)? as u64;
                self.host.unwatch(address);
            }
            Stmt::Clear(m) => {
                let had = self.stores[*m].len() > 0;
                self.stores[*m].clear();
                self.keep_count(*m, had);
            }
            Stmt::Zero(m) => self.stores[*m].zero(&self.program.maps[*m].value),
            Stmt::Time(format) => {
                let wall = self.host.wall(None);
                self.show(Printed::Time(time::format(format, wall)));
            }
            Stmt::Join(e, separator) => {
                let list = match self.any(e)? {
                    Value::Tuple(list) => list,
                    one => vec![one],
                };
                let list: Vec<&[u8]> = list.iter().map(Value::chars).collect();
                let joined = list.join(&separator[..]);
                self.show(Printed::Join(joined));
            }
            _ => {}
        }
        Ok(())
    }
}
