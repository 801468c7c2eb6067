// SPDX-License-Identifier: Apache-2.0
//! Actions (OpenFlow 1.3, section 7.2.5): type 16 bits, length 16 bits (a multiple of 8 bytes), content.

use crate::bytes::{Put, Reader};
use crate::edit;
use crate::error::{self, DecodeError};
use crate::experimenter;
use crate::nicira;
use crate::oxm::{self, Tlv};
use flow::action::{KeyHeader, PolkaHeader, SetField, TfHeader};
use flow::{Action, Field, GroupId, PortNo, QueueId};

const OUTPUT: u16 = 0;
const COPY_TTL_OUT: u16 = 11;
const COPY_TTL_IN: u16 = 12;
const SET_MPLS_TTL: u16 = 15;
const DEC_MPLS_TTL: u16 = 16;
const PUSH_VLAN: u16 = 17;
const POP_VLAN: u16 = 18;
const PUSH_MPLS: u16 = 19;
const POP_MPLS: u16 = 20;
const SET_QUEUE: u16 = 21;
const GROUP: u16 = 22;
const SET_NW_TTL: u16 = 23;
const DEC_NW_TTL: u16 = 24;
const SET_FIELD: u16 = 25;
const PUSH_PBB: u16 = 26;
const POP_PBB: u16 = 27;
const EXPERIMENTER: u16 = 0xffff;

/// Length of an action's type and length fields in bytes.
const HEADER_BYTES: usize = 4;

/// Decodes the remaining bytes of the reader as a list of actions.
pub(crate) fn decode_list(r: &mut Reader<'_>) -> Result<Vec<Action>, DecodeError> {
    // An action has at least 8 bytes.
    let mut actions = Vec::with_capacity(r.remaining() / 8);
    while !r.is_empty() {
        actions.push(decode(r)?);
    }
    Ok(actions)
}

fn decode(r: &mut Reader<'_>) -> Result<Action, DecodeError> {
    // A truncated header is reported as a wrong length of an action.
    let mut header = r.part(HEADER_BYTES, "an action's header", error::ACTION_BAD_LEN)?;
    let (kind, length) = (header.u16()?, usize::from(header.u16()?));
    if length < 8 || length % 8 != 0 {
        return error::ACTION_BAD_LEN.says(format!(
            "action of type {kind} has length {length}; it must be a multiple of 8, and at least 8"
        ));
    }
    let mut body = r.part(length - HEADER_BYTES, "an action", error::ACTION_BAD_LEN)?;
    let action = decode_body(kind, &mut body)?;
    body.end()?;
    Ok(action)
}

fn decode_body(kind: u16, r: &mut Reader<'_>) -> Result<Action, DecodeError> {
    let bare = |r: &mut Reader<'_>, action| r.skip(4).map(|()| action);
    match kind {
        OUTPUT => {
            let (port, max_len) = (r.u32()?, r.u16()?);
            r.skip(6)?;
            Ok(Action::Output { port: PortNo(port), max_len })
        }
        COPY_TTL_OUT => bare(r, Action::CopyTtlOut),
        COPY_TTL_IN => bare(r, Action::CopyTtlIn),
        SET_MPLS_TTL => byte(r).map(Action::SetMplsTtl),
        DEC_MPLS_TTL => bare(r, Action::DecMplsTtl),
        PUSH_VLAN => ethertype(r).map(Action::PushVlan),
        POP_VLAN => bare(r, Action::PopVlan),
        PUSH_MPLS => ethertype(r).map(Action::PushMpls),
        POP_MPLS => ethertype(r).map(Action::PopMpls),
        SET_QUEUE => r.u32().map(QueueId).map(Action::SetQueue),
        GROUP => r.u32().map(GroupId).map(Action::Group),
        SET_NW_TTL => byte(r).map(Action::SetNwTtl),
        DEC_NW_TTL => bare(r, Action::DecNwTtl),
        SET_FIELD => set_field(r, false),
        PUSH_PBB => ethertype(r).map(Action::PushPbb),
        POP_PBB => bare(r, Action::PopPbb),
        EXPERIMENTER => experimenter(r),
        _ => error::ACTION_BAD_TYPE.says(format!("action type {kind} is not known in OpenFlow 1.3")),
    }
}

fn byte(r: &mut Reader<'_>) -> Result<u8, DecodeError> {
    let byte = r.u8()?;
    r.skip(3)?;
    Ok(byte)
}

fn ethertype(r: &mut Reader<'_>) -> Result<u16, DecodeError> {
    let ethertype = r.u16()?;
    r.skip(2)?;
    Ok(ethertype)
}

/// Reads an OXM field and the padding that ends the action.
fn set_field(r: &mut Reader<'_>, mask_allowed: bool) -> Result<Action, DecodeError> {
    match oxm::decode(r, oxm::IN_SET_FIELD)? {
        Tlv::Index(_) => error::ACTION_BAD_SET_TYPE.says("set_field cannot write an entry's index"),
        Tlv::Field { condition, masked } => {
            let is_slice = matches!(condition.field, Field::Slice(_));
            if masked && !mask_allowed && !is_slice {
                return error::ACTION_BAD_SET_ARGUMENT.says(format!(
                    "set_field of {} has a mask; OpenFlow 1.3 writes whole fields",
                    condition.field
                ));
            }
            if r.remaining() >= 8 {
                return error::ACTION_BAD_LEN.says(format!(
                    "set_field has {} bytes after its field; the maximum is 7 bytes of padding",
                    r.remaining()
                ));
            }
            r.rest();
            Ok(Action::SetField(SetField {
                field: condition.field,
                value: condition.value,
                mask: condition.mask,
            }))
        }
    }
}

fn experimenter(r: &mut Reader<'_>) -> Result<Action, DecodeError> {
    let id = r.u32()?;
    if id != experimenter::EXPERIMENTER && id != experimenter::NICIRA {
        return error::ACTION_BAD_EXPERIMENTER.says(format!("actions of experimenter {id:#x} are not known"));
    }
    let subtype = r.u16()?;
    match (id, subtype) {
        (experimenter::NICIRA, experimenter::action::NICIRA_REG_LOAD2) => set_field(r, true),
        (experimenter::NICIRA, experimenter::action::NICIRA_REG_LOAD) => nicira::reg_load(r),
        (experimenter::EXPERIMENTER, experimenter::action::PUSH_KEY) => {
            let (hops, epoch, length) = (r.u8()?, r.u8()?, r.u16()?);
            r.skip(2)?;
            let key: Box<[u8]> = r.take(length.into())?.into();
            pad_end(r);
            Ok(Action::PushKey(KeyHeader { key, hops, epoch }))
        }
        (experimenter::EXPERIMENTER, experimenter::action::PUSH_POLKA) => {
            let ttl = r.u8()?;
            r.skip(5)?;
            Ok(Action::PushPolka(PolkaHeader { key: r.u128()?, ttl }))
        }
        (experimenter::EXPERIMENTER, experimenter::action::POP_KEY) => r.skip(6).map(|()| Action::PopKey),
        (experimenter::EXPERIMENTER, experimenter::action::POP_TF) => r.skip(6).map(|()| Action::PopTf),
        (experimenter::EXPERIMENTER, experimenter::action::PUSH_TF) => tf_header(r).map(Action::PushTf),
        (experimenter::EXPERIMENTER, experimenter::action::PUSH_TF_WIDE) => {
            tf_header(r).map(Action::PushTfWide)
        }
        (experimenter::EXPERIMENTER, subtype) if edit::is_edit(subtype) => {
            edit::decode(subtype, r).map(Action::Edit)
        }
        _ => error::ACTION_BAD_EXP_TYPE
            .says(format!("action {subtype} of experimenter {id:#x} is not known here")),
    }
}

/// Skips up to 7 bytes of padding. The caller refuses longer padding.
fn pad_end(r: &mut Reader<'_>) {
    if r.remaining() < 8 {
        r.rest();
    }
}

fn tf_header(r: &mut Reader<'_>) -> Result<TfHeader, DecodeError> {
    let qid = r.u8()?;
    r.skip(1)?;
    let (up, down) = (r.u32()?, r.u16()?);
    r.skip(6)?;
    Ok(TfHeader { qid, up, down })
}

pub(crate) fn encode_list(actions: &[Action], out: &mut Vec<u8>) {
    for action in actions {
        encode(action, out);
    }
}

fn encode(action: &Action, out: &mut Vec<u8>) {
    let start = out.len();
    let header = |out: &mut Vec<u8>, kind: u16| {
        out.put_u16(kind);
        out.put_u16(0);
    };
    let number = |out: &mut Vec<u8>, kind, number: u32| {
        header(out, kind);
        out.put_u32(number);
    };
    let ethertype = |out: &mut Vec<u8>, kind, ethertype: u16| number(out, kind, u32::from(ethertype) << 16);
    let byte = |out: &mut Vec<u8>, kind, byte: u8| number(out, kind, u32::from(byte) << 24);
    let ours = |out: &mut Vec<u8>, subtype: u16| {
        number(out, EXPERIMENTER, experimenter::EXPERIMENTER);
        out.put_u16(subtype);
    };
    match action {
        Action::Output { port, max_len } => {
            number(out, OUTPUT, port.0);
            out.put_u16(*max_len);
            out.zeros(6);
        }
        Action::Group(group) => number(out, GROUP, group.0),
        Action::SetQueue(queue) => number(out, SET_QUEUE, queue.0),
        Action::SetMplsTtl(ttl) => byte(out, SET_MPLS_TTL, *ttl),
        Action::DecMplsTtl => number(out, DEC_MPLS_TTL, 0),
        Action::SetNwTtl(ttl) => byte(out, SET_NW_TTL, *ttl),
        Action::DecNwTtl => number(out, DEC_NW_TTL, 0),
        Action::CopyTtlOut => number(out, COPY_TTL_OUT, 0),
        Action::CopyTtlIn => number(out, COPY_TTL_IN, 0),
        Action::PushVlan(t) => ethertype(out, PUSH_VLAN, *t),
        Action::PopVlan => number(out, POP_VLAN, 0),
        Action::PushMpls(t) => ethertype(out, PUSH_MPLS, *t),
        Action::PopMpls(t) => ethertype(out, POP_MPLS, *t),
        Action::PushPbb(t) => ethertype(out, PUSH_PBB, *t),
        Action::PopPbb => number(out, POP_PBB, 0),
        Action::SetField(SetField { field, value, mask }) => {
            if *mask == field.full_mask() || matches!(field, Field::Slice(_)) {
                header(out, SET_FIELD);
            } else {
                number(out, EXPERIMENTER, experimenter::NICIRA);
                out.put_u16(experimenter::action::NICIRA_REG_LOAD2);
            }
            oxm::encode(out, *field, *value, *mask);
        }
        Action::PushKey(KeyHeader { key, hops, epoch }) => {
            ours(out, experimenter::action::PUSH_KEY);
            out.put(&[*hops, *epoch]);
            out.put_u16(u16::try_from(key.len()).unwrap_or(u16::MAX));
            out.zeros(2);
            out.put(key);
        }
        Action::PushPolka(PolkaHeader { key, ttl }) => {
            ours(out, experimenter::action::PUSH_POLKA);
            out.put(&[*ttl]);
            out.zeros(5);
            out.put(&key.to_be_bytes());
        }
        Action::PopKey => ours(out, experimenter::action::POP_KEY),
        Action::PopTf => ours(out, experimenter::action::POP_TF),
        Action::Edit(edit) => {
            ours(out, edit::subtype(*edit));
            edit::encode(*edit, out);
        }
        Action::PushTf(h) | Action::PushTfWide(h) => {
            let wide = matches!(action, Action::PushTfWide(_));
            ours(out, if wide { experimenter::action::PUSH_TF_WIDE } else { experimenter::action::PUSH_TF });
            out.put(&[h.qid, 0]);
            out.put_u32(h.up);
            out.put_u16(h.down);
        }
    }
    out.pad8(start);
    out.patch_length(start + 2, start);
}
