// SPDX-License-Identifier: Apache-2.0
//! Translates one flow entry to rows, without regard to the space in the device.

use flow::{Action, FlowEntry, Next, PortNo, port_no};

use crate::action::{ActionWord, OutputKind};
use crate::compile::action_set::in_order;
use crate::compile::conditions::Conditions;
use crate::compile::edits::EditList;
use crate::compile::error::CompileError;
use crate::compile::layout::PpuLayout;

/// What other entries must know of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Facts {
    /// Number of the entry's table.
    pub table: usize,
    /// Number of the next table.
    pub next: Option<usize>,
    /// Whether the action set gets an output.
    pub set_output: bool,
    /// Whether an apply-actions list has an output.
    pub apply_output: bool,
    /// Whether the action set is cleared.
    pub clear: bool,
    /// Bytes that the entry inserts.
    pub inserted: u16,
    /// Bytes that the entry removes.
    pub removed: u16,
}

/// A row of the entry.
#[derive(Clone, Debug)]
pub struct PlannedRow {
    /// Conditions on the packet.
    pub conditions: Conditions,
    /// Word of the table's PPU. Its metadata is complete only with the tag of `rest`.
    pub word: ActionWord,
    /// Words of the following PPUs.
    pub rest: Vec<ActionWord>,
    /// Known user metadata behind the entry.
    pub user: u8,
}

/// Rows of an entry, in the order of their precedence.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What other entries must know.
    pub facts: Facts,
    /// Rows.
    pub rows: Vec<PlannedRow>,
    /// Whether packets go to the controller.
    pub to_controller: bool,
    /// Metadata register of packets that go to the controller, as far as it is known.
    pub metadata: u64,
    /// Next table whose tag the rows write, and first PPU behind the entry's words. Packets pass the tables
    /// between them.
    pub bypass: Option<(usize, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Out {
    Port(u8),
    Ingress,
    Controller,
}

fn output(action: &Action) -> Result<Option<Out>, CompileError> {
    let Action::Output { port, .. } = *action else { return Ok(None) };
    match port {
        port_no::IN_PORT => Ok(Some(Out::Ingress)),
        port_no::CONTROLLER => Ok(Some(Out::Controller)),
        PortNo(1..=0xff) => Ok(Some(Out::Port(port.0 as u8))),
        _ => Err(CompileError::OutPort(port)),
    }
}

/// Returns the only output of a list, and its position.
fn only_output(actions: &[Action]) -> Result<Option<(usize, Out)>, CompileError> {
    let mut found = None;
    for (at, action) in actions.iter().enumerate() {
        if let Some(out) = output(action)? {
            if found.is_some() {
                return Err(CompileError::Outputs("a list has two outputs"));
            }
            found = Some((at, out));
        }
    }
    Ok(found)
}

/// Value of the metadata byte behind an entry: written, and known.
fn metadata(entry: &FlowEntry, conditions: &Conditions) -> Result<(Option<u8>, Option<u8>), CompileError> {
    let (value, mask) = conditions.metadata();
    let old = match (entry.table.0, mask) {
        (0, _) => Some(0),
        (_, 0xff) => Some(value),
        _ => None,
    };
    let Some((value, mask)) = entry.instructions.metadata else { return Ok((None, old)) };
    if value & mask & !0xff != 0 {
        return Err(CompileError::Metadata);
    }
    let (value, mask) = ((value & mask) as u8, mask as u8);
    let new = match old {
        _ if mask == 0xff => value,
        _ if mask == 0 => return Ok((None, old)),
        Some(old) => old & !mask | value,
        None => return Err(CompileError::MetadataMask),
    };
    Ok((Some(new), Some(new)))
}

/// Translates an entry.
///
/// # Errors
/// The device cannot execute the entry, whatever space it has.
pub fn plan(entry: &FlowEntry, layout: &PpuLayout) -> Result<Plan, CompileError> {
    let table = usize::from(entry.table.0);
    let head = layout.head(table).ok_or(CompileError::NoTable(entry.table))?;
    let instructions = &entry.instructions;
    if instructions.meter.is_some() {
        return Err(CompileError::Instruction("meter"));
    }
    let next = match instructions.next {
        None => None,
        Some(Next::Table(next)) => {
            let number = usize::from(next.0);
            let place =
                layout.head(number).filter(|_| number > table).ok_or(CompileError::NoNextTable(next))?;
            Some((number, place))
        }
        Some(Next::Direct { .. }) => return Err(CompileError::Instruction("goto to an index of a table")),
    };
    let conditions = Conditions::of(&entry.matching, table == 0)?;
    let (apply, write) = (&instructions.apply, in_order(&instructions.write));
    let applied = only_output(apply)?;
    let set = only_output(&write)?;
    if applied.is_some() && (next.is_some() || set.is_some()) {
        return Err(CompileError::Outputs("an output of apply_actions must be the last one of the packet"));
    }
    let out = applied.or(set).map(|(_, out)| out);
    if out == Some(Out::Controller) && next.is_some() {
        return Err(CompileError::Outputs("the controller is an output of the last table only"));
    }
    let drops = out.is_none() && next.is_none() && (table == 0 || instructions.clear);

    let edits = EditList::new(&conditions);
    let mut edits = if table == 0 { edits } else { edits.in_later_table() };
    if !drops {
        // Nobody sees what actions do after the output.
        let end = applied.map_or(apply.len(), |(at, _)| at);
        apply[..end].iter().try_for_each(|action| edits.add(action))?;
    }
    let set_edits = write.iter().filter(|action| !matches!(action, Action::Output { .. }));
    if next.is_some() && set_edits.clone().next().is_some() {
        return Err(CompileError::Instruction("write_actions of edits before another table"));
    }
    if !drops && applied.is_none() {
        set_edits.cloned().try_for_each(|action| edits.add(&action))?;
    }
    if edits.writes_tos && next.is_some() {
        return Err(CompileError::SetField(flow::Field::IpDscp));
    }

    let (written, known) = metadata(entry, &conditions)?;
    let mut made = Plan {
        facts: Facts {
            table,
            next: next.map(|(number, _)| number),
            set_output: set.is_some(),
            apply_output: applied.is_some(),
            clear: instructions.clear,
            inserted: edits.inserted,
            removed: edits.removed,
        },
        rows: Vec::new(),
        to_controller: out == Some(Out::Controller),
        metadata: known.unwrap_or(0).into(),
        bypass: None,
    };
    let finish = Finish { head, next, out, drops, clear: instructions.clear, written, known, layout };
    for variant in edits.variants() {
        let mut conditions = conditions.clone();
        conditions.join(&variant.conditions);
        if conditions.never {
            continue;
        }
        let (row, bypass) = finish.row(conditions, variant.words)?;
        made.rows.push(row);
        made.bypass = made.bypass.or(bypass);
    }
    Ok(made)
}

/// Completes the words of a variant.
struct Finish<'a> {
    head: usize,
    next: Option<(usize, usize)>,
    out: Option<Out>,
    drops: bool,
    clear: bool,
    written: Option<u8>,
    known: Option<u8>,
    layout: &'a PpuLayout,
}

impl Finish<'_> {
    fn row(
        &self,
        conditions: Conditions,
        mut words: Vec<ActionWord>,
    ) -> Result<(PlannedRow, Option<(usize, usize)>), CompileError> {
        let discard = ActionWord { output: OutputKind::Discard, last: true, ..ActionWord::default() };
        if self.drops || words.is_empty() {
            return Ok((PlannedRow { conditions, word: discard, rest: Vec::new(), user: 0 }, None));
        }
        let available = self.next.map_or(self.layout.ppus(), |(_, place)| place) - self.head;
        if words.len() > available {
            return Err(CompileError::TooManyEdits { needed: words.len(), available });
        }
        let first = &mut words[0];
        match self.out {
            Some(Out::Port(port)) => (first.output, first.port) = (OutputKind::Port, port),
            Some(Out::Ingress) => (first.output, first.to_ingress) = (OutputKind::Port, true),
            Some(Out::Controller) => first.output = OutputKind::Controller,
            None => {}
        }
        let after = self.head + words.len();
        let passes = self.next.filter(|(_, place)| self.layout.has_head(after..*place));
        let user = match (self.next, self.known) {
            (Some(_), None) if passes.is_some() || words.len() > 1 => return Err(CompileError::MetadataMask),
            (_, known) => known.unwrap_or(0),
        };
        if self.next.is_some() {
            words[0].metadata = self.written.map(u16::from);
        }
        let last = words.len() - 1;
        if let Some((number, _)) = passes {
            words[last].metadata = Some(tag_of_table(number) << 8 | u16::from(user));
        }
        words[last].last = self.next.is_none();
        debug_assert!(!self.clear || self.out.is_some() || self.next.is_some());
        let rest = words.split_off(1);
        let bypass = passes.map(|(number, _)| (number, after));
        Ok((PlannedRow { conditions, word: words[0], rest, user }, bypass))
    }
}

/// Tag of packets that pass the tables before this one.
#[must_use]
pub fn tag_of_table(table: usize) -> u16 {
    table as u16
}
