// SPDX-License-Identifier: Apache-2.0
//! Extraction by byte shuffles must build the same rows as extraction by loads, for any fields and packets.

use super::*;
use fastrand::Rng;
use flow::{PortNo, Slice, SliceBase};
use frame::Frame;
use wire::PacketBuilder;

/// Index of a packet.
#[derive(Clone, Copy)]
struct Index(u16);

impl From<Index> for usize {
    fn from(index: Index) -> Self {
        index.0.into()
    }
}

impl KeyedPacket for PacketData {
    fn data(&self) -> &PacketData {
        self
    }

    fn data_mut(&mut self) -> &mut PacketData {
        self
    }
}

fn packet(rng: &mut Rng) -> Vec<u8> {
    let mut packet = PacketBuilder::ethernet([2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13]);
    for _ in 0..[0, 0, 1, 2, 3][rng.usize(0..5)] {
        packet = packet.vlan(0x8100, rng.u16(..));
    }
    packet = match rng.u8(0..4) {
        0 => packet.ipv4(rng.u32(..).to_be_bytes(), rng.u32(..).to_be_bytes()),
        1 => packet.ethertype(0x88dc),
        _ => packet.ipv6(rng.u128(..).to_be_bytes(), rng.u128(..).to_be_bytes()).tos(rng.u8(..)),
    };
    packet = match rng.u8(0..3) {
        0 => packet.tcp(rng.u16(..), rng.u16(..)),
        1 => packet.udp(rng.u16(..), rng.u16(..)),
        _ => packet,
    };
    let mut bytes = packet.payload(&[0xaa; 40][..rng.usize(0..40)]).build();
    bytes.truncate(rng.usize(14..150));
    bytes
}

fn field(rng: &mut Rng) -> Field {
    let named = [
        Field::EthDst,
        Field::EthSrc,
        Field::EthType,
        Field::IpProto,
        Field::Ipv6Src,
        Field::Ipv6Dst,
        Field::Ipv4Src,
        Field::TcpDst,
        Field::UdpDst,
        Field::InPort,
        Field::Metadata,
        Field::VlanVid,
    ];
    if rng.u8(0..3) > 0 {
        return named[rng.usize(0..named.len())];
    }
    let base = SliceBase::ALL[rng.usize(0..SliceBase::ALL.len())];
    let unit = [1, 8, 8, 8][rng.usize(0..4)];
    let (offset, length) = (rng.u32(0..300) / unit * unit, rng.u32(unit..=64) / unit * unit);
    Slice::new(base, offset, length).map_or(Field::EthDst, Field::Slice)
}

#[test]
fn shuffled_rows_are_loaded_rows() {
    let mut rng = Rng::with_seed(5);
    let (mut shuffled, mut direct, mut rows) = (0, 0, 0);
    for _ in 0..1_000 {
        let mut fields: Vec<Field> = (0..rng.usize(1..7)).map(|_| field(&mut rng)).collect();
        fields.sort_unstable();
        fields.dedup();
        let extractor = Extractor::new(&KeyPlan::new(&fields).unwrap());
        let words = extractor.words();
        let mut packets: Vec<PacketData> = (0..rng.usize(1..70)).map(|_| PacketData::empty()).collect();
        for kept in &mut packets {
            kept.admit(Frame::from_bytes(&packet(&mut rng)), PortNo(rng.u32(..)));
            kept.ext.write_metadata(rng.u64(..), u64::MAX);
        }
        let waiting: Vec<Index> = (0..packets.len() as u16).map(Index).filter(|_| rng.u8(0..4) > 0).collect();
        let room = waiting.len() * words;
        let mut keys = vec![u64::MAX; room + 1];
        let mut mask = vec![0; if rng.bool() { words } else { 0 }];
        mask.fill_with(|| rng.u64(..));
        let mut loaded = vec![0; room];
        packets.iter_mut().for_each(|packet| packet.locate(extractor.depth()));
        extractor.load(&packets, &waiting, &mut loaded);
        packets.iter_mut().for_each(|packet| packet.forget_layers());
        // Parsing deeper than the table needs must not change the rows.
        let depth = [Depth::None, Depth::L2, Depth::L3, Depth::L4][rng.usize(0..4)];
        extractor.extract_masked(&mut packets, &waiting, &mut keys[..room], &mask, depth);
        assert_eq!(keys[room], u64::MAX);
        if !mask.is_empty() {
            loaded.iter_mut().zip(mask.iter().cycle()).for_each(|(word, mask)| *word &= mask);
        }
        assert_eq!(keys[..room], loaded, "{fields:?}");
        shuffled += usize::from(extractor.shuffle.is_some());
        rows += waiting.len();
        if extractor.is_direct {
            packets.iter_mut().for_each(|packet| packet.forget_layers());
            keys.fill(u64::MAX);
            let depth = depth.max(extractor.depth());
            let rows = &mut keys[..room];
            match words {
                1 => extractor.load_direct::<1, _, _>(&mut packets, &waiting, rows, &mask, depth),
                2 => extractor.load_direct::<2, _, _>(&mut packets, &waiting, rows, &mask, depth),
                3 => extractor.load_direct::<3, _, _>(&mut packets, &waiting, rows, &mask, depth),
                _ => continue,
            }
            direct += 1;
            assert_eq!((&keys[..room], keys[room]), (&loaded[..], u64::MAX), "{fields:?}");
        }
    }
    assert!(rows > 5_000 && direct > 50, "{rows} {direct}");
    // On CPUs with the shuffle instruction, most plans whose fields are whole bytes use it.
    assert!(shuffled == 0 || shuffled > 150, "{shuffled}");
}

#[test]
fn slices_are_loaded_from_the_base() {
    let mut rng = Rng::with_seed(6);
    let mut present = 0;
    for _ in 0..2_000 {
        let (base, offset, length) = (rng.u32(0..60), rng.u32(0..300), rng.u32(1..=128));
        let plan = |base, offset| {
            let field = Field::Slice(Slice::new(base, offset, length).unwrap());
            Extractor::new(&KeyPlan::new(&[Field::InPort, field]).unwrap())
        };
        let (moving, fixed) = (plan(SliceBase::Moving, offset), plan(SliceBase::Packet, offset + 8 * base));
        let mut packets = [PacketData::empty(), PacketData::empty()];
        let bytes = packet(&mut rng);
        packets.iter_mut().for_each(|packet| packet.admit(Frame::from_bytes(&bytes), PortNo(7)));
        packets[0].base = base;
        let mut rows = vec![vec![0; moving.words()]; 2];
        moving.extract(&mut packets, &[Index(0)], &mut rows[0]);
        fixed.extract(&mut packets, &[Index(1)], &mut rows[1]);
        assert_eq!(rows[0], rows[1], "slice at {offset} from {base}");
        let end_bits = (offset + 8 * base + length) as usize;
        present += usize::from(end_bits <= 8 * bytes.len());
    }
    assert!(present > 500, "{present}");
}
