// SPDX-License-Identifier: Apache-2.0
//! Names of actions and instructions.

/// Kind of an item after `actions=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Output,
    Controller,
    Enqueue,
    Drop,
    Group,
    SetQueue,
    ModDlSrc,
    ModDlDst,
    ModNwSrc,
    ModNwDst,
    ModNwTos,
    ModNwEcn,
    ModNwTtl,
    ModTpSrc,
    ModTpDst,
    ModVlanVid,
    ModVlanPcp,
    StripVlan,
    PushVlan,
    PopVlan,
    PushMpls,
    PopMpls,
    PushPbb,
    PopPbb,
    SetMplsLabel,
    SetMplsTc,
    SetMplsTtl,
    DecMplsTtl,
    DecTtl,
    CopyTtlIn,
    CopyTtlOut,
    SetField,
    SetTunnel,
    PushKey,
    PushPolka,
    PopKey,
    PushTf,
    PushTfWide,
    PopTf,
    MoveBase,
    AddField,
    DeleteField,
    CutFront,
    ModifyField,
    CopyField,
    CalculateChecksum,
    Meter,
    ApplyActions,
    ClearActions,
    WriteActions,
    WriteMetadata,
    GotoTable,
    GotoDirect,
}

macro_rules! names {
    ($($($text:literal)|+ => $name:ident;)*) => {
        /// Finds an action or instruction by its name in lower case.
        pub(super) fn name(text: &str) -> Option<Name> {
            Some(match text {
                $($($text)|+ => Name::$name,)*
                _ => return None,
            })
        }

        /// Names of all actions, instructions and reserved ports.
        pub(super) const ACTION_NAMES: &[&str] =
            &[$($($text),+,)* "normal", "flood", "all", "local", "in_port"];
    };
}

names! {
    "output" => Output;
    "controller" => Controller;
    "enqueue" => Enqueue;
    "drop" => Drop;
    "group" => Group;
    "set_queue" => SetQueue;
    "mod_dl_src" => ModDlSrc;
    "mod_dl_dst" => ModDlDst;
    "mod_nw_src" => ModNwSrc;
    "mod_nw_dst" => ModNwDst;
    "mod_nw_tos" => ModNwTos;
    "mod_nw_ecn" => ModNwEcn;
    "mod_nw_ttl" => ModNwTtl;
    "mod_tp_src" => ModTpSrc;
    "mod_tp_dst" => ModTpDst;
    "mod_vlan_vid" | "set_vlan_vid" => ModVlanVid;
    "mod_vlan_pcp" | "set_vlan_pcp" => ModVlanPcp;
    "strip_vlan" => StripVlan;
    "push_vlan" => PushVlan;
    "pop_vlan" => PopVlan;
    "push_mpls" => PushMpls;
    "pop_mpls" => PopMpls;
    "push_pbb" => PushPbb;
    "pop_pbb" => PopPbb;
    "set_mpls_label" => SetMplsLabel;
    "set_mpls_tc" => SetMplsTc;
    "set_mpls_ttl" => SetMplsTtl;
    "dec_mpls_ttl" => DecMplsTtl;
    "dec_ttl" => DecTtl;
    "copy_ttl_in" => CopyTtlIn;
    "copy_ttl_out" => CopyTtlOut;
    "set_field" => SetField;
    "set_tunnel" => SetTunnel;
    "push_key" => PushKey;
    "push_polka" => PushPolka;
    "pop_key" => PopKey;
    "push_tf" => PushTf;
    "push_tf_wide" => PushTfWide;
    "pop_tf" => PopTf;
    "move_base" => MoveBase;
    "add_field" => AddField;
    "delete_field" => DeleteField;
    "cut_front" => CutFront;
    "modify_field" => ModifyField;
    "copy_field" => CopyField;
    "calculate_checksum" => CalculateChecksum;
    "meter" => Meter;
    "apply_actions" => ApplyActions;
    "clear_actions" => ClearActions;
    "write_actions" => WriteActions;
    "write_metadata" => WriteMetadata;
    "goto_table" => GotoTable;
    "goto_direct" => GotoDirect;
}

impl Name {
    /// Returns the instruction's position in the execution order. Actions are part of apply-actions.
    pub fn stage(self) -> Stage {
        match self {
            Self::Meter => Stage::Meter,
            Self::ClearActions => Stage::Clear,
            Self::WriteActions => Stage::Write,
            Self::WriteMetadata => Stage::Metadata,
            Self::GotoTable | Self::GotoDirect => Stage::Goto,
            _ => Stage::Apply,
        }
    }
}

/// Execution order of instructions (OpenFlow 1.3, section 5.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Meter,
    Apply,
    Clear,
    Write,
    Metadata,
    Goto,
}

impl Stage {
    /// Returns the instruction's name.
    pub fn text(self) -> &'static str {
        match self {
            Self::Meter => "meter",
            Self::Apply => "the actions",
            Self::Clear => "clear_actions",
            Self::Write => "write_actions",
            Self::Metadata => "write_metadata",
            Self::Goto => "goto_table",
        }
    }
}
