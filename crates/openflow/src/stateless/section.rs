// SPDX-License-Identifier: Apache-2.0
//! Sections of a stateless configuration. A section consists of its type (16 bits), its length (16 bits), its
//! content, and zeros to a multiple of 8 bytes. The length does not include the zeros.

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use flow::stateless::{Arithmetic, Bank, Gate, GateFlag, Gates, Label, NodeId, StatelessSection, TagTypes};
use flow::{PortNo, port_no};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::num::NonZeroU32;

const TYPES: u16 = 1;
const TRUSTED: u16 = 2;
const MTU: u16 = 3;
const BANK: u16 = 4;
const POLKA: u16 = 5;
const GATES: u16 = 6;

/// Length of a section's type and length fields in bytes.
pub(super) const HEADER_BYTES: usize = 4;
/// Length in bytes of a bank before its labels.
pub(super) const BANK_HEAD_BYTES: usize = 12;

type Decoded<T> = Result<T, DecodeError>;

/// Decodes the remaining bytes of the reader as sections. Each section may occur only once.
pub(super) fn decode_list(r: &mut Reader<'_>) -> Decoded<Vec<StatelessSection>> {
    let mut sections: Vec<StatelessSection> = Vec::new();
    while !r.is_empty() {
        let section = decode(r)?;
        // The list has at most seven sections, so a linear search suffices.
        if sections.iter().any(|other| place(other) == place(&section)) {
            return refused(format!("section {} occurs twice", name(place(&section).0)));
        }
        sections.push(section);
    }
    Ok(sections)
}

/// Returns what identifies a section: its type and, for a bank, its epoch.
fn place(section: &StatelessSection) -> (u16, u8) {
    match section {
        StatelessSection::Types(_) => (TYPES, 0),
        StatelessSection::Trusted(_) => (TRUSTED, 0),
        StatelessSection::MtuBytes(_) => (MTU, 0),
        StatelessSection::Bank(epoch, _) => (BANK, *epoch),
        StatelessSection::Polka(_) => (POLKA, 0),
        StatelessSection::Gates(_) => (GATES, 0),
    }
}

fn name(kind: u16) -> &'static str {
    match kind {
        TYPES => "types",
        TRUSTED => "trusted",
        MTU => "mtu",
        BANK => "bank",
        POLKA => "polka",
        _ => "gates",
    }
}

/// Refuses an invalid configuration.
fn refused<T>(problem: String) -> Decoded<T> {
    error::STATELESS_BAD_CONFIG.says(problem)
}

fn decode(r: &mut Reader<'_>) -> Decoded<StatelessSection> {
    let mut header = r.part(HEADER_BYTES, "a section's header", error::BAD_LEN)?;
    let (kind, length) = (header.u16()?, usize::from(header.u16()?));
    let Some(content) = length.checked_sub(HEADER_BYTES) else {
        return error::BAD_LEN
            .says(format!("section of type {kind} has length {length}; its header alone has 4"));
    };
    if !(TYPES..=GATES).contains(&kind) {
        return error::BAD_EXP_TYPE.says(format!("section type {kind} is unknown; types are 1 to {GATES}"));
    }
    let mut body = r.part(content, name(kind), error::BAD_LEN)?;
    r.skip(length.next_multiple_of(8) - length)?;
    let section = match kind {
        TYPES => StatelessSection::Types(types(&mut body)?),
        TRUSTED => StatelessSection::Trusted(trusted(&mut body)?),
        MTU => StatelessSection::MtuBytes(mtu(&mut body)?),
        BANK => {
            let (epoch, bank) = bank(&mut body)?;
            if epoch > 1 {
                return refused(format!("a bank of epoch {epoch}; epochs are 0 and 1"));
            }
            StatelessSection::Bank(epoch, bank)
        }
        POLKA => {
            let (epoch, bank) = bank(&mut body)?;
            if epoch != 0 {
                return refused(format!("PolKA of epoch {epoch}; PolKA has no epochs, so use 0"));
            }
            StatelessSection::Polka(bank)
        }
        _ => StatelessSection::Gates(gates(&mut body)?),
    };
    body.end()?;
    Ok(section)
}

fn types(r: &mut Reader<'_>) -> Decoded<TagTypes> {
    Ok(TagTypes { keyflow: r.u16()?, polka: r.u16()?, tf: r.u16()?, tf_wide: r.u16()? })
}

fn trusted(r: &mut Reader<'_>) -> Decoded<BTreeSet<PortNo>> {
    let mut ports = BTreeSet::new();
    while !r.is_empty() {
        let port = r.u32()?;
        once(ports.insert(PortNo(port)), "port", port)?;
    }
    Ok(ports)
}

fn mtu(r: &mut Reader<'_>) -> Decoded<BTreeMap<PortNo, usize>> {
    let mut ports = BTreeMap::new();
    while !r.is_empty() {
        let (port, bytes) = (r.u32()?, r.u32()?);
        once(ports.insert(PortNo(port), bytes as usize).is_none(), "port", port)?;
    }
    Ok(ports)
}

fn bank(r: &mut Reader<'_>) -> Decoded<(u8, Option<Bank>)> {
    let (epoch, arithmetic, present) = (r.u8()?, r.u8()?, r.u8()?);
    r.skip(1)?;
    let (modulus, count) = (r.u32()?, r.u32()?);
    if !is_present(present)? {
        return Ok((epoch, None));
    }
    let arithmetic = match arithmetic {
        0 => Arithmetic::Integer,
        1 => Arithmetic::Polynomial,
        _ => return refused(format!("arithmetic {arithmetic}; it must be 0 (integers) or 1 (polynomials)")),
    };
    let Some(id) = NodeId::new(arithmetic, modulus) else {
        return refused(format!("ID {modulus} has too few residues for ports; the minimum is 2"));
    };
    let (mut labels, mut backups) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..count {
        let label = r.u32()?;
        let target = match PortNo(r.u32()?) {
            port_no::TABLE => Label::Tables,
            port => Label::Port(port),
        };
        once(labels.insert(label, target).is_none(), "label", label)?;
    }
    while !r.is_empty() {
        let port = PortNo(r.u32()?);
        once(backups.insert(port, PortNo(r.u32()?)).is_none(), "the backup of port", port)?;
    }
    Ok((epoch, Some(Bank { id, labels, backups })))
}

fn gates(r: &mut Reader<'_>) -> Decoded<Option<Gates>> {
    let present = r.u8()?;
    r.skip(3)?;
    let (down_d, up_d, external_d, server_gate_max) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
    if !is_present(present)? {
        return Ok(None);
    }
    let mut ports = BTreeMap::new();
    while !r.is_empty() {
        let (port, number, flag) = (r.u32()?, r.u32()?, r.u8()?);
        r.skip(3)?;
        let Some(number) = NonZeroU32::new(number) else {
            return refused(format!("port {port} has gate 0; gates are numbered from 1"));
        };
        let flag = match flag {
            0 => GateFlag::None,
            1 => GateFlag::Server,
            2 => GateFlag::External,
            3 => GateFlag::Assists,
            _ => return refused(format!("the gate of port {port} has flag {flag}; flags are 0 to 3")),
        };
        once(ports.insert(PortNo(port), Gate { number, flag }).is_none(), "the gate of port", port)?;
    }
    Ok(Some(Gates { down_d, up_d, external_d, server_gate_max, ports }))
}

fn is_present(present: u8) -> Decoded<bool> {
    match present {
        0 => Ok(false),
        1 => Ok(true),
        _ => refused(format!("present is {present}; it must be 0 (absent) or 1 (present)")),
    }
}

fn once(is_new: bool, what: &str, number: impl Display) -> Decoded<()> {
    if is_new { Ok(()) } else { refused(format!("{what} {number} is given twice")) }
}

pub(super) fn encode(section: &StatelessSection, out: &mut Vec<u8>) {
    let start = out.len();
    out.put_u16(place(section).0);
    out.put_u16(0);
    match section {
        StatelessSection::Types(t) => {
            [t.keyflow, t.polka, t.tf, t.tf_wide].into_iter().for_each(|one| out.put_u16(one))
        }
        StatelessSection::Trusted(ports) => ports.iter().for_each(|port| out.put_u32(port.0)),
        StatelessSection::MtuBytes(ports) => {
            for (port, bytes) in ports {
                out.put_u32(port.0);
                // No port carries longer packets, so a greater value means no limit.
                out.put_u32(u32::try_from(*bytes).unwrap_or(u32::MAX));
            }
        }
        StatelessSection::Bank(epoch, bank) => put_bank(*epoch, bank.as_ref(), out),
        StatelessSection::Polka(bank) => put_bank(0, bank.as_ref(), out),
        StatelessSection::Gates(gates) => put_gates(gates.as_ref(), out),
    }
    out.patch_length(start + 2, start);
    out.pad8(start);
}

fn put_bank(epoch: u8, bank: Option<&Bank>, out: &mut Vec<u8>) {
    let Some(Bank { id, labels, backups }) = bank else {
        out.put_u8(epoch);
        out.zeros(BANK_HEAD_BYTES - 1);
        return;
    };
    let arithmetic = match id.arithmetic() {
        Arithmetic::Integer => 0,
        Arithmetic::Polynomial => 1,
    };
    out.put(&[epoch, arithmetic, 1, 0]);
    out.put_u32(id.modulus());
    out.put_u32(u32::try_from(labels.len()).unwrap_or(u32::MAX));
    for (label, target) in labels {
        out.put_u32(*label);
        out.put_u32(match target {
            Label::Tables => port_no::TABLE.0,
            Label::Port(port) => port.0,
        });
    }
    for (port, backup) in backups {
        out.put_u32(port.0);
        out.put_u32(backup.0);
    }
}

fn put_gates(gates: Option<&Gates>, out: &mut Vec<u8>) {
    out.put(&[u8::from(gates.is_some()), 0, 0, 0]);
    let Some(gates) = gates else {
        out.zeros(16);
        return;
    };
    let Gates { down_d, up_d, external_d, server_gate_max, ports } = gates;
    [down_d, up_d, external_d, server_gate_max].into_iter().for_each(|number| out.put_u32(*number));
    for (port, gate) in ports {
        out.put_u32(port.0);
        out.put_u32(gate.number.get());
        out.put_u8(match gate.flag {
            GateFlag::None => 0,
            GateFlag::Server => 1,
            GateFlag::External => 2,
            GateFlag::Assists => 3,
        });
        out.zeros(3);
    }
}
