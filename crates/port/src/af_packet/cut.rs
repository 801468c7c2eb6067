// SPDX-License-Identifier: Apache-2.0
//! Sends super-frames in segments if the kernel would not find their headers.

use crate::offload;
use crate::sys::{SEND_BATCH, SendBatch, VNET_BYTES};
use frame::Frame;
use std::io;
use std::os::fd::BorrowedFd;
use wire::segment::Segments;

/// Size of the buffer for the segments of one system call: a super-frame and its repeated headers.
const BUFFER_BYTES: usize = 128 * 1024;

/// Buffer for segments, allocated once.
pub(super) struct Cutter {
    buffer: Box<[u8]>,
    lens: [usize; SEND_BATCH],
}

impl Cutter {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), lens: [0; SEND_BATCH] }
    }

    /// Sends all segments of `frame`, up to the first error. Returns `EINVAL` if the frame cannot be
    /// segmented.
    pub(super) fn send(
        &mut self,
        frame: &Frame,
        batch: &mut SendBatch,
        socket: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mut segments = offload::segments(frame)
            .filter(|segments| segments.segment_len_max() <= BUFFER_BYTES)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        while segments.remaining() > 0 {
            let count = self.write(&mut segments);
            let mut packets = lengths_to_slices(&self.buffer, &self.lens[..count]);
            let mut left = count;
            while left > 0 {
                let sent = batch.send(socket, packets.clone().map(|bytes| ([0; VNET_BYTES], bytes)))?;
                packets.nth(sent - 1);
                left -= sent;
            }
        }
        Ok(())
    }

    /// Writes as many segments as one system call sends. Returns their number.
    fn write(&mut self, segments: &mut Segments<'_>) -> usize {
        let mut at = 0;
        let mut count = 0;
        while count < SEND_BATCH {
            let Some(len) = segments.write_next(&mut self.buffer[at..]) else { break };
            self.lens[count] = len;
            at += len;
            count += 1;
        }
        count
    }
}

/// Returns the consecutive slices of these lengths in `buffer`.
fn lengths_to_slices<'a>(mut buffer: &'a [u8], lens: &'a [usize]) -> impl Iterator<Item = &'a [u8]> + Clone {
    lens.iter().map(move |len| {
        let (slice, rest) = buffer.split_at(*len);
        buffer = rest;
        slice
    })
}
