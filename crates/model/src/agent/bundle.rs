// SPDX-License-Identifier: Apache-2.0
//! Bundles: changes that take effect together, or not at all.

use super::context::Refusal;
use crate::changes::Change;
use openflow::RequestHead;
use openflow::bundle::{FLAG_ATOMIC, FLAG_ORDERED, code};
use std::collections::BTreeMap;

/// Maximum number of open bundles per channel.
const BUNDLES: usize = 16;
/// Maximum number of messages in the open bundles of all channels.
pub(super) const MESSAGES: usize = 1_000_000;
/// Maximum size in bytes of the messages in all open bundles, as received. It is enough for a million
/// ordinary flow-mods. Decoded messages take up to about six times this size.
pub(super) const BYTES: usize = 192 * 1_024 * 1_024;

/// Number and size of the messages in uncommitted bundles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub messages: usize,
    pub bytes: usize,
}

impl Size {
    /// Returns the sum of both sizes.
    pub fn plus(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }

    /// Returns this size less `other`, but at least 0.
    pub fn minus(self, other: Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(other.messages),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// Origin of a message in a bundle, for an ERROR about the message.
#[derive(Debug)]
pub struct Origin {
    /// Transaction ID of the message.
    pub xid: u32,
    /// First bytes of the message.
    pub head: RequestHead,
}

/// Changes that wait for their commit.
#[derive(Debug)]
pub struct Bundle {
    flags: u16,
    pub closed: bool,
    pub size: Size,
    /// Origin of each change.
    pub origins: Vec<Origin>,
    pub changes: Vec<Change>,
}

/// The bundles of a channel, by bundle ID.
#[derive(Debug, Default)]
pub struct Bundles(BTreeMap<u32, Bundle>);

impl Bundles {
    /// Returns the total size of the channel's bundles.
    pub fn size(&self) -> Size {
        self.0.values().fold(Size::default(), |sum, bundle| sum.plus(bundle.size))
    }

    /// Returns whether there is a bundle with this ID, even if it is closed.
    pub fn is_open(&self, id: u32) -> bool {
        self.0.contains_key(&id)
    }

    /// Opens a bundle.
    pub fn open(&mut self, id: u32, flags: u16) -> Result<(), Refusal> {
        if flags & !(FLAG_ATOMIC | FLAG_ORDERED) != 0 {
            return Err(Refusal::new(code::BAD_FLAGS, format!("bundle flags {flags:#x}; 1 and 2 are known")));
        }
        if self.0.contains_key(&id) {
            return Err(Refusal::new(code::BUNDLE_EXIST, format!("bundle {id:#x} is open already")));
        }
        if self.0.len() >= BUNDLES {
            return Err(Refusal::new(
                code::OUT_OF_BUNDLES,
                format!("{BUNDLES} bundles are open, which is the maximum"),
            ));
        }
        let (size, origins, changes) = Default::default();
        self.0.insert(id, Bundle { flags, closed: false, size, origins, changes });
        Ok(())
    }

    /// Returns the bundle with this ID, if it was opened with these flags.
    pub fn get(&mut self, id: u32, flags: u16) -> Result<&mut Bundle, Refusal> {
        match self.0.get_mut(&id) {
            None => Err(Refusal::new(code::BAD_ID, format!("there is no bundle {id:#x}; open it first"))),
            Some(bundle) if bundle.flags != flags => Err(Refusal::new(
                code::BAD_FLAGS,
                format!("bundle {id:#x} was opened with flags {:#x}, not {flags:#x}", bundle.flags),
            )),
            Some(bundle) => Ok(bundle),
        }
    }

    /// Removes a bundle.
    pub fn take(&mut self, id: u32) -> Option<Bundle> {
        self.0.remove(&id)
    }
}
