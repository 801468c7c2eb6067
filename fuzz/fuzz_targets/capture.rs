// SPDX-License-Identifier: Apache-2.0
//! Reads random bytes as a pcap or pcapng file. Reading must terminate. No packet may be longer than the
//! file.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use wire::capture::CaptureReader;

fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = CaptureReader::new(Cursor::new(data.to_vec())) else { return };
    // Every packet or skipped error consumes at least one byte of the file.
    for _ in 0..=data.len() {
        match reader.next_packet() {
            Ok(Some(packet)) => assert!(packet.bytes.len() <= data.len()),
            Ok(None) => return,
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    panic!("reading {} bytes does not end", data.len());
});
