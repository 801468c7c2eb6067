// SPDX-License-Identifier: Apache-2.0
//! Compiles flow tables to programs of the device, entry by entry.
//!
//! Begin with [`Compiler::apply`]. The module [`plan`](mod@plan) translates one entry, with
//! [`conditions`] for its match and [`edits`] for its actions. [`space`] and [`positions`] find slices and
//! places. [`facts`] and [`codes`] keep what entries have in common. What the device cannot do is a
//! [`CompileError`]. [`Compiler::check`] asks for it without a change.

pub mod action_set;
mod check;
pub mod codes;
pub mod conditions;
pub mod edits;
pub mod error;
pub mod facts;
pub mod layout;
pub mod plan;
pub mod positions;
pub mod primitives;
pub mod space;

use std::collections::BTreeMap;
use std::sync::Arc;

use flow::{EntryChange, EntryId, FlowEntry, Instructions, TableId};

use crate::action::{ActionWord, OutputKind};
use crate::command::PpuCommand;
use crate::key::{KEY_SLICES, KeySlice};
use check::Trial;
use codes::SenderCodes;
use conditions::Conditions;
use facts::FactCounts;
use plan::{Facts, Plan, PlannedRow, plan, tag_of_table};
use positions::{Rank, TcamRow};
use space::PpuSpace;

pub use error::CompileError;
pub use layout::PpuLayout;

/// First tag of the edits that PPUs behind a head execute. Smaller tags are those of tables.
const FIRST_EDIT_TAG: u8 = 64;

/// A command and the number of its PPU.
pub type DeviceCommand = (u8, PpuCommand);

/// An entry in the device.
#[derive(Clone, Debug)]
struct Installed {
    entry: Arc<FlowEntry>,
    facts: Facts,
    sequence: u64,
    version: u32,
    rows: Vec<InstalledRow>,
    /// Number that the device reports with packets for the controller.
    code: Option<u8>,
    metadata: u64,
    bypass: Option<(usize, usize)>,
}

#[derive(Clone, Debug)]
struct InstalledRow {
    conditions: Conditions,
    word: ActionWord,
    /// Tag of the edits in later PPUs.
    tag: Option<u8>,
}

/// Words of later PPUs, for packets with a tag.
#[derive(Clone, Debug)]
struct LaterEdits {
    ppu: usize,
    words: Vec<ActionWord>,
    users: usize,
}

impl LaterEdits {
    fn is_same(&self, ppu: usize, words: &[ActionWord]) -> bool {
        self.ppu == ppu && self.words == words
    }
}

impl Installed {
    /// Returns whether the rows of a plan differ from the installed ones at most in their words.
    fn is_alike(&self, new: &Plan) -> bool {
        self.code.is_some() == new.to_controller
            && self.bypass == new.bypass
            && self.rows.len() == new.rows.len()
            && self.rows.iter().zip(&new.rows).all(|(old, new)| old.conditions == new.conditions)
            && self.rows.iter().all(|row| row.tag.is_none())
            && new.rows.iter().all(|row| row.rest.is_empty())
    }
}

/// What packets see while commands are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Each packet is forwarded as before all changes or as after them.
    Seamless,
    /// The device cannot have the new entries beside those that they replace. A packet may miss both.
    Gap,
}

/// Sender of a packet for the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Table of the entry.
    pub table: TableId,
    /// ID of the entry. If the entry was removed, another one may have the ID.
    pub entry: EntryId,
    /// The entry, as it was when it got the number that the packet carries, or was last modified.
    pub flow: Arc<FlowEntry>,
    /// Metadata register, if the entry knows it; otherwise 0.
    pub metadata: u64,
}

/// Compiler with the state of the device as its commands leave it.
#[derive(Clone, Debug)]
pub struct Compiler {
    layout: PpuLayout,
    /// Shared with a trial, as entries are, so that a clone costs little.
    ppus: Vec<Arc<PpuSpace>>,
    entries: BTreeMap<EntryId, Arc<Installed>>,
    facts: FactCounts,
    /// Number of entries added so far.
    sequence: u64,
    later: BTreeMap<u8, LaterEdits>,
    /// Number of entries whose packets pass a head with a tag of a table.
    passing: BTreeMap<(usize, u8), usize>,
    /// Numbers of entries that send to the controller, by table.
    codes: Vec<SenderCodes>,
    commands: Vec<DeviceCommand>,
    /// The last check of changes that needed a clone.
    trial: Option<Box<Trial>>,
}

impl Compiler {
    /// Returns a compiler for an empty device. Each table begins with an entry that drops all packets.
    #[must_use]
    pub fn new(layout: PpuLayout) -> Self {
        let ppus = (0..layout.ppus() as u8).map(|number| PpuSpace::new(number, layout.entries()));
        let mut made = Self {
            ppus: ppus.map(Arc::new).collect(),
            codes: vec![SenderCodes::default(); layout.tables()],
            layout,
            entries: BTreeMap::new(),
            facts: FactCounts::default(),
            sequence: 0,
            later: BTreeMap::new(),
            passing: BTreeMap::new(),
            commands: Vec::new(),
            trial: None,
        };
        let drop = ActionWord { output: OutputKind::Discard, last: true, ..ActionWord::default() };
        for ppu in 0..made.ppus.len() {
            // Other PPUs pass on what hits no other row.
            let is_head = made.layout.table(ppu).is_some();
            let command = made.space(ppu).begin(if is_head { drop } else { ActionWord::default() });
            made.commands.extend(command.map(|command| (ppu as u8, command)));
        }
        made
    }

    fn space(&mut self, ppu: usize) -> &mut PpuSpace {
        Arc::make_mut(&mut self.ppus[ppu])
    }

    /// Takes the commands that the device must execute in this order.
    pub fn take_commands(&mut self) -> Vec<DeviceCommand> {
        std::mem::take(&mut self.commands)
    }

    /// Returns the layout of the tables.
    #[must_use]
    pub fn layout(&self) -> &PpuLayout {
        &self.layout
    }

    /// Returns the rows of an entry: PPU and index.
    #[must_use]
    pub fn places(&self, id: EntryId) -> Vec<(u8, u16)> {
        let Some(installed) = self.entries.get(&id) else { return Vec::new() };
        let Some(head) = self.layout.head(installed.facts.table) else { return Vec::new() };
        let rows = (0..installed.rows.len()).map(|part| rank(installed, part));
        let indices = rows.filter_map(|rank| self.ppus[head].rows().index(rank));
        indices.map(|index| (head as u8, index as u16)).collect()
    }

    /// Returns the wanted slices of a PPU.
    #[must_use]
    pub fn slices(&self, ppu: u8) -> Option<[KeySlice; KEY_SLICES]> {
        self.ppus.get(usize::from(ppu)).map(|space| space.slices())
    }

    /// Returns a row.
    #[must_use]
    pub fn installed_row(&self, ppu: u8, index: u16) -> Option<&TcamRow> {
        self.ppus.get(usize::from(ppu))?.rows().row(index)
    }

    /// Returns the entry to which a row belongs.
    #[must_use]
    pub fn owner(&self, ppu: u8, index: u16) -> Option<EntryId> {
        self.ppus.get(usize::from(ppu))?.rows().row(index)?.owner
    }

    /// Returns the wanted rows of a PPU by index.
    pub fn rows(&self, ppu: u8) -> impl Iterator<Item = PpuCommand> + '_ {
        let space = self.ppus.get(usize::from(ppu));
        space.into_iter().flat_map(|space| {
            space.rows().rows().map(|(index, row)| PpuCommand::Write {
                index,
                key: row.key,
                action: row.action,
            })
        })
    }

    /// Returns who sent a packet to the controller. The entry may have been removed meanwhile.
    #[must_use]
    pub fn sender(&self, ppu: u8, code: u8) -> Option<Sender> {
        let table = self.layout.table(ppu.into())?;
        let (flow, metadata) = self.codes.get(table)?.sender(code)?;
        let (entry, flow) = (flow.id, Arc::clone(flow));
        Some(Sender { table: TableId(table as u8), entry, flow, metadata: *metadata })
    }

    /// Executes changes as a whole, or none of them. Directly behind [`Self::check`] of the same changes, it
    /// takes what the check has found.
    ///
    /// # Errors
    /// The device cannot execute one of the entries.
    pub fn apply(&mut self, changes: &[EntryChange]) -> Result<Transition, CompileError> {
        if let Some(trial) = self.trial.take().filter(|trial| trial.is_of(changes)) {
            return Ok(self.take(*trial));
        }
        let is_removal = |change: &EntryChange| matches!(change, EntryChange::Remove { .. });
        if changes.len() < 2 || changes.iter().all(is_removal) {
            self.free_unused();
            // Removals are never refused.
            return changes.iter().try_for_each(|change| self.change(change)).map(|()| Transition::Seamless);
        }
        let trial = self.attempt(changes)?;
        Ok(self.take(trial))
    }

    /// Executes all changes that the device can execute, in their order. Returns the positions of the others,
    /// whose entries remain as they were.
    pub fn apply_forced(&mut self, changes: &[EntryChange]) -> Vec<(usize, CompileError)> {
        if self.apply(changes).is_ok() {
            return Vec::new();
        }
        self.free_unused();
        let mut refused = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            refused.extend(self.change(change).err().map(|error| (at, error)));
        }
        refused
    }

    fn change(&mut self, change: &EntryChange) -> Result<(), CompileError> {
        match change {
            EntryChange::Add(entry) => {
                let plan = plan(entry, &self.layout)?;
                self.sequence += 1;
                self.install(entry, plan, self.sequence, 0)
            }
            EntryChange::Modify { id, instructions, .. } => self.modify(*id, instructions),
            EntryChange::Remove { id, .. } => {
                if let Some(installed) = self.entries.remove(id) {
                    self.uninstall(&installed);
                }
                Ok(())
            }
        }
    }

    fn modify(&mut self, id: EntryId, instructions: &Arc<Instructions>) -> Result<(), CompileError> {
        let Some(old) = self.entries.get(&id).cloned() else { return Ok(()) };
        if old.entry.instructions == *instructions {
            return Ok(());
        }
        let entry = Arc::new(FlowEntry { instructions: Arc::clone(instructions), ..(*old.entry).clone() });
        let new = plan(&entry, &self.layout)?;
        if !old.is_alike(&new) {
            self.install(&entry, new, old.sequence, old.version + 1)?;
            self.uninstall(&old);
            return Ok(());
        }
        self.facts.check(Some(&old.facts), &new.facts, self.layout.tables())?;
        self.facts.remove(&old.facts);
        self.facts.add(new.facts);
        let head = self.layout.head(new.facts.table).unwrap_or(0);
        let mut made = Installed { entry, facts: new.facts, metadata: new.metadata, ..(*old).clone() };
        for part in 0..made.rows.len() {
            let word = with_code(new.rows[part].word, made.code);
            made.rows[part].word = word;
            let command = self.space(head).act(rank(&made, part), word);
            self.commands.extend(command.map(|command| (head as u8, command)));
        }
        if let Some(code) = made.code {
            self.codes[made.facts.table].set(code, &made.entry, made.metadata);
        }
        self.entries.insert(id, Arc::new(made));
        Ok(())
    }

    /// Installs the rows of an entry. Rows of an older version stay.
    fn install(
        &mut self,
        entry: &Arc<FlowEntry>,
        plan: Plan,
        sequence: u64,
        version: u32,
    ) -> Result<(), CompileError> {
        let old = self.entries.get(&entry.id).map(|old| old.facts);
        self.facts.check(old.as_ref(), &plan.facts, self.layout.tables())?;
        let table = plan.facts.table;
        let head = self.layout.head(table).ok_or(CompileError::NoTable(entry.table))?;
        self.ppus[head].check(plan.rows.iter().map(|row| &row.conditions))?;
        let code = plan.to_controller.then(|| self.codes[table].next()).transpose()?;
        if let Some(bypass) = plan.bypass {
            self.pass(bypass)?;
        }
        let mut rows = Vec::new();
        for row in &plan.rows {
            match self.row(row, head, code) {
                Ok(row) => rows.push(row),
                Err(refusal) => {
                    // Rows for tags are harmless without packets that have the tag.
                    rows.iter().for_each(|row| self.release(row));
                    self.unpass(plan.bypass);
                    return Err(refusal);
                }
            }
        }
        let made = Installed {
            entry: Arc::clone(entry),
            facts: plan.facts,
            sequence,
            version,
            rows,
            code,
            metadata: plan.metadata,
            bypass: plan.bypass,
        };
        // From the first row on: a packet that hits none of the new rows hits what it hit before.
        for (part, row) in made.rows.iter().enumerate() {
            self.insert(head, (rank(&made, part), Some(entry.id)), &row.conditions, row.word);
        }
        if let Some(code) = code {
            self.codes[table].set(code, entry, made.metadata);
        }
        self.facts.add(made.facts);
        self.entries.insert(entry.id, Arc::new(made));
        Ok(())
    }

    /// Installs the later edits of a row, and completes its word.
    fn row(&mut self, row: &PlannedRow, head: usize, code: Option<u8>) -> Result<InstalledRow, CompileError> {
        let mut word = with_code(row.word, code);
        let mut tag = None;
        if !row.rest.is_empty() {
            let found = self.later_edits(head + 1, &row.rest)?;
            word.metadata = Some(u16::from(found) << 8 | u16::from(row.user));
            tag = Some(found);
        }
        // The rows of later edits may need the same slices or places.
        self.ppus[head].check(std::iter::once(&row.conditions))?;
        Ok(InstalledRow { conditions: row.conditions.clone(), word, tag })
    }

    /// Removes the rows of an entry, the last one first: otherwise, its packets would hit later rows.
    fn uninstall(&mut self, old: &Installed) {
        let Some(head) = self.layout.head(old.facts.table) else { return };
        for (part, row) in old.rows.iter().enumerate().rev() {
            let command = self.space(head).remove(rank(old, part), &row.conditions);
            self.commands.extend(command.map(|command| (head as u8, command)));
        }
        old.rows.iter().for_each(|row| self.release(row));
        self.unpass(old.bypass);
        self.facts.remove(&old.facts);
        if let Some(code) = old.code {
            self.codes[old.facts.table].free(code);
        }
    }

    fn insert(
        &mut self,
        ppu: usize,
        place: (Rank, Option<EntryId>),
        conditions: &Conditions,
        word: ActionWord,
    ) {
        let commands = self.space(ppu).insert(place, conditions, word);
        self.commands.extend(commands.into_iter().map(|command| (ppu as u8, command)));
    }

    /// Returns the tag of edits in later PPUs, which are installed if there are none with these words.
    fn later_edits(&mut self, ppu: usize, words: &[ActionWord]) -> Result<u8, CompileError> {
        let found = self.later.iter_mut().find(|(_, later)| later.is_same(ppu, words));
        if let Some((tag, later)) = found {
            later.users += 1;
            return Ok(*tag);
        }
        let mut tags = FIRST_EDIT_TAG..=u8::MAX;
        let tag =
            tags.find(|tag| !self.later.contains_key(tag)).ok_or(CompileError::NumbersUsed("later edits"))?;
        let mut conditions = Conditions::default();
        conditions.program_tag(tag);
        for at in ppu..ppu + words.len() {
            self.ppus[at].check(std::iter::once(&conditions))?;
        }
        for (at, word) in words.iter().enumerate() {
            self.insert(ppu + at, (tag_rank(tag), None), &conditions, *word);
        }
        self.later.insert(tag, LaterEdits { ppu, words: words.to_vec(), users: 1 });
        Ok(tag)
    }

    fn release(&mut self, row: &InstalledRow) {
        if let Some(later) = row.tag.and_then(|tag| self.later.get_mut(&tag)) {
            later.users -= 1;
        }
    }

    /// Lets packets with the tag of a table pass the heads before it.
    fn pass(&mut self, (table, from): (usize, usize)) -> Result<(), CompileError> {
        let tag = tag_of_table(table) as u8;
        let Some(until) = self.layout.head(table) else { return Ok(()) };
        let mut conditions = Conditions::default();
        conditions.program_tag(tag);
        let heads: Vec<usize> = self.layout.heads_in(from..until).collect();
        for head in heads.iter().filter(|head| !self.passing.contains_key(&(**head, tag))) {
            self.ppus[*head].check(std::iter::once(&conditions))?;
        }
        for head in heads {
            if !self.passing.contains_key(&(head, tag)) {
                self.insert(head, (tag_rank(tag), None), &conditions, ActionWord::default());
            }
            *self.passing.entry((head, tag)).or_default() += 1;
        }
        Ok(())
    }

    fn unpass(&mut self, bypass: Option<(usize, usize)>) {
        let Some((table, from)) = bypass else { return };
        let Some(until) = self.layout.head(table) else { return };
        for head in self.layout.heads_in(from..until) {
            if let Some(count) = self.passing.get_mut(&(head, tag_of_table(table) as u8)) {
                *count -= 1;
            }
        }
    }

    /// Removes rows for tags that no entry writes any more. This happens at the next change, so that no
    /// packet with the tag is in the pipeline.
    fn free_unused(&mut self) {
        let later: Vec<u8> =
            self.later.iter().filter(|(_, later)| later.users == 0).map(|(tag, _)| *tag).collect();
        for tag in later {
            if let Some(later) = self.later.remove(&tag) {
                (later.ppu..later.ppu + later.words.len()).for_each(|ppu| self.remove_tag(ppu, tag));
            }
        }
        let passing: Vec<(usize, u8)> =
            self.passing.iter().filter(|(_, count)| **count == 0).map(|(place, _)| *place).collect();
        for (head, tag) in passing {
            self.passing.remove(&(head, tag));
            self.remove_tag(head, tag);
        }
    }

    fn remove_tag(&mut self, ppu: usize, tag: u8) {
        let mut conditions = Conditions::default();
        conditions.program_tag(tag);
        let command = self.space(ppu).remove(tag_rank(tag), &conditions);
        self.commands.extend(command.map(|command| (ppu as u8, command)));
    }
}

/// Adds the number that the device reports to the controller.
fn with_code(word: ActionWord, code: Option<u8>) -> ActionWord {
    match code {
        Some(port) if word.output == OutputKind::Controller => ActionWord { port, ..word },
        _ => word,
    }
}

fn rank(installed: &Installed, part: usize) -> Rank {
    Rank {
        class: 1,
        priority: !installed.entry.priority,
        sequence: installed.sequence,
        version: !installed.version,
        part: part as u32,
    }
}

fn tag_rank(tag: u8) -> Rank {
    Rank { class: 0, priority: tag.into(), sequence: 0, version: 0, part: 0 }
}
