// SPDX-License-Identifier: Apache-2.0
//! Changes of the outermost VLAN tag of a frame that NORMAL sends. They are made in the bytes of one copy, so
//! the packet itself stays as it is.

use crate::tags::FRAME_BYTES_MIN;
use flow::DropReason;
use frame::Frame;

/// Offset of the tag in the frame.
const TAG_AT: usize = 12;
/// Offset of the control information, which contains the VLAN ID.
const TCI_AT: usize = TAG_AT + 2;
const TAG_BYTES: usize = 4;
/// TPID of the tags that are added.
const TPID: u16 = 0x8100;
/// Bits of the VLAN ID in the control information.
const VID: u16 = 0x0fff;

/// What happens to the outermost VLAN tag of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retag {
    /// The frame stays as it is.
    Keep,
    /// A tag with this VLAN ID and priority 0 is added.
    Push(u16),
    /// The tag gets this VLAN ID. The frame has a tag.
    Set(u16),
    /// The tag is removed. The frame has a tag.
    Pop,
}

impl Retag {
    /// Changes a frame. A frame that becomes too short for Ethernet is padded.
    ///
    /// # Errors
    /// Returns `NoHeadroom` if the frame has too little headroom, and `MissingVlan` if it is too short to
    /// have a tag. The frame is then as it was.
    pub fn apply(self, frame: &mut Frame) -> Result<(), DropReason> {
        match self {
            Self::Keep => Ok(()),
            Self::Push(vid) => {
                if !frame.insert(TAG_AT, TAG_BYTES) {
                    return Err(DropReason::NoHeadroom);
                }
                let bytes = frame.bytes_mut();
                bytes[TAG_AT..TCI_AT].copy_from_slice(&TPID.to_be_bytes());
                bytes[TCI_AT..TCI_AT + 2].copy_from_slice(&(vid & VID).to_be_bytes());
                Ok(())
            }
            Self::Set(vid) => {
                let Some([first, second]) = frame.bytes_mut().get_mut(TCI_AT..TCI_AT + 2) else {
                    return Err(DropReason::MissingVlan);
                };
                let tci = u16::from_be_bytes([*first, *second]) & !VID | vid & VID;
                [*first, *second] = tci.to_be_bytes();
                Ok(())
            }
            Self::Pop => {
                if !frame.remove(TAG_AT, TAG_BYTES) {
                    return Err(DropReason::MissingVlan);
                }
                // The bytes of the tag are now part of the headroom, so there is space.
                if frame.pad_into_headroom(FRAME_BYTES_MIN) { Ok(()) } else { Err(DropReason::NoHeadroom) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(tag: Option<u16>, len: usize) -> Frame {
        let mut bytes: Vec<u8> = (0..12).collect();
        if let Some(tci) = tag {
            bytes.extend([0x88, 0xa8]);
            bytes.extend(tci.to_be_bytes());
        }
        bytes.extend([0x08, 0x06]);
        bytes.resize(len, 0x55);
        Frame::from_bytes(&bytes)
    }

    fn after(retag: Retag, mut frame: Frame) -> Vec<u8> {
        retag.apply(&mut frame).unwrap();
        frame.bytes().to_vec()
    }

    #[test]
    fn a_tag_is_added_with_the_usual_tpid() {
        let bytes = after(Retag::Push(0x123), frame(None, 60));
        assert_eq!(bytes[..18], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x81, 0, 0x01, 0x23, 8, 6]);
        assert_eq!(bytes.len(), 64);
        assert_eq!(after(Retag::Pop, Frame::from_bytes(&bytes)), frame(None, 60).bytes());
    }

    #[test]
    fn a_tag_keeps_its_tpid_and_priority() {
        let bytes = after(Retag::Set(7), frame(Some(0xe123), 64));
        assert_eq!(bytes, frame(Some(0xe007), 64).bytes());
    }

    #[test]
    fn a_short_frame_is_padded_without_its_tag() {
        let bytes = after(Retag::Pop, frame(Some(5), 60));
        assert_eq!((bytes.len(), &bytes[56..]), (60, &[0; 4][..]));
        assert_eq!(bytes[..56], frame(None, 56).bytes()[..]);
    }

    #[test]
    fn a_frame_without_headroom_stays_as_it_is() {
        let mut full = frame(None, 60);
        while full.insert(0, 4) {}
        let before = full.bytes().to_vec();
        assert_eq!(Retag::Push(1).apply(&mut full), Err(DropReason::NoHeadroom));
        assert_eq!(full.bytes(), before);
    }
}
