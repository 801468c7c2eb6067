// SPDX-License-Identifier: Apache-2.0
//! Sessions with a device over a pipe that loses, repeats, reorders, damages and forges datagrams.
#![allow(clippy::unwrap_used, clippy::panic)]

use device::command::PpuCommand;
use device::emulator::{DeviceAgent, Emulator};
use device::session::{DeviceEvent, DeviceSession, DeviceTimes, PACKETS_UNANSWERED_MAX, READS_MAX};
use device::{ActionWord, Body, DeviceMessage, OutputKind, TernaryKey};
use fastrand::Rng;
use flow::Nanos;

const UP: DeviceEvent = DeviceEvent::Up { ppus: 2, entries: 16 };

/// A pipe in which a datagram takes up to 3 ms.
struct Pipe {
    rng: Rng,
    /// Share of damaged ways, of 100.
    bad: u8,
    /// Datagrams with their time of arrival, and whether they go to the device.
    flying: Vec<(u64, bool, Vec<u8>)>,
    /// All datagrams to the device so far.
    seen: Vec<Vec<u8>>,
    forged: u64,
}

impl Pipe {
    fn new(seed: u64, bad: u8) -> Self {
        Self { rng: Rng::with_seed(seed), bad, flying: Vec::new(), seen: Vec::new(), forged: 0 }
    }

    fn send(&mut self, now: u64, to_device: bool, datagram: Vec<u8>) {
        let delay = |rng: &mut Rng| now + rng.u64(0..3_000_000);
        if to_device {
            self.seen.push(datagram.clone());
        }
        if self.rng.u8(0..100) >= self.bad {
            let at = delay(&mut self.rng);
            return self.flying.push((at, to_device, datagram));
        }
        match self.rng.u8(0..4) {
            0 => {}
            1 => {
                for _ in 0..3 {
                    let at = delay(&mut self.rng);
                    self.flying.push((at, to_device, datagram.clone()));
                }
            }
            2 => {
                let mut damaged = datagram;
                damaged.truncate(self.rng.usize(0..damaged.len()));
                let at = delay(&mut self.rng);
                self.flying.push((at, to_device, damaged));
            }
            // A copy that arrives long after the others.
            _ => self.flying.push((now + 40_000_000, to_device, datagram)),
        }
    }
}

struct World {
    session: DeviceSession,
    agent: DeviceAgent,
    pipe: Pipe,
    now: u64,
    events: Vec<DeviceEvent>,
}

impl World {
    fn new(seed: u64, bad: u8) -> Self {
        Self {
            session: DeviceSession::new(DeviceTimes::default(), seed as u32),
            agent: DeviceAgent::new(Emulator::new(2, 16)),
            pipe: Pipe::new(seed, bad),
            now: 1,
            events: Vec::new(),
        }
    }

    /// Passes 100 us.
    fn step(&mut self) {
        self.now += 100_000;
        self.session.poll(Nanos(self.now));
        while let Some(datagram) = self.session.next_datagram() {
            self.pipe.send(self.now, true, datagram);
        }
        while let Some(datagram) = self.agent.next_datagram() {
            self.pipe.send(self.now, false, datagram);
        }
        let now = self.now;
        let (arrived, flying) = self.pipe.flying.drain(..).partition(|(at, _, _)| *at <= now);
        self.pipe.flying = flying;
        for (_, to_device, datagram) in arrived {
            if to_device {
                self.agent.receive(true, &datagram);
            } else {
                self.session.receive(&datagram, Nanos(now));
            }
        }
        while let Some(event) = self.session.next_event() {
            self.events.push(event);
        }
    }

    fn run(&mut self, ms: u64) {
        (0..ms * 10).for_each(|_| self.step());
    }

    fn run_until_idle(&mut self) {
        for _ in 0..200_000 {
            if self.session.is_up() && self.session.pending() == 0 {
                return;
            }
            self.step();
        }
        panic!("the session does not end: {:?}", self.session);
    }
}

fn write(index: u16, port: u8) -> PpuCommand {
    let action = ActionWord { output: OutputKind::Port, port, ..ActionWord::default() };
    PpuCommand::Write { index, key: TernaryKey::default(), action }
}

fn random_command(rng: &mut Rng) -> PpuCommand {
    let index = rng.u16(0..4);
    match rng.u8(0..3) {
        0 => PpuCommand::Remove { index },
        _ => write(index, rng.u8(1..200)),
    }
}

/// Compares the tables of two devices.
fn assert_equal_tables(a: &Emulator, b: &Emulator, what: &str) {
    for ppu in 0..2 {
        for index in 0..16 {
            let [a, b] = [a, b].map(|device| device.entry(ppu, index).unwrap());
            assert_eq!((a.valid, a.key, a.action), (b.valid, b.key, b.action), "{what}, {ppu} {index}");
        }
    }
}

#[test]
fn commands_are_executed_once_and_in_order_over_a_bad_pipe() {
    let (mut repeated, mut refused) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::with_seed(seed);
        let mut world = World::new(seed, [0, 10, 30, 50][seed as usize % 4]);
        // With half of the datagrams damaged, a session never ends by chance.
        let config = DeviceTimes { tries: 60, ..DeviceTimes::default() };
        world.session = DeviceSession::new(config, seed as u32);
        world.run_until_idle();
        let mut wanted = Emulator::new(2, 16);
        for number in 0..80 {
            let (ppu, command) = (rng.u8(0..2), random_command(&mut rng));
            wanted.execute(ppu, &command);
            world.session.execute(ppu, command);
            if rng.u8(0..20) == 0 {
                let forged = Body::FlowMod { ppu: 0, command: write(9, 9) };
                let forged = DeviceMessage { id: rng.u32(..), body: forged };
                world.agent.receive(false, &forged.encode().unwrap());
                world.pipe.forged += 1;
                let noise: Vec<u8> = (0..rng.usize(0..80)).map(|_| rng.u8(..)).collect();
                world.session.receive(&noise, Nanos(world.now));
            }
            // Sometimes, several commands wait.
            if rng.bool() {
                world.run_until_idle();
                assert_equal_tables(&world.agent.device, &wanted, &format!("seed {seed}, command {number}"));
            }
        }
        world.run_until_idle();
        // Late copies arrive.
        world.run(60);
        assert_equal_tables(&world.agent.device, &wanted, &format!("seed {seed}"));
        let executed =
            world.events.iter().filter(|event| matches!(event, DeviceEvent::Executed { done: true }));
        assert_eq!(executed.count(), 80);
        repeated += world.session.counters().repeated;
        refused += world.agent.refused;
        assert!(world.agent.refused >= world.pipe.forged);
    }
    assert!(repeated > 200 && refused > 100, "{repeated} repeated, {refused} refused");
}

#[test]
fn replayed_datagrams_of_a_whole_session_change_nothing() {
    let mut world = World::new(3, 0);
    world.run_until_idle();
    for round in 0..20 {
        world.session.execute(0, write(round % 4, round as u8));
    }
    world.session.execute(1, PpuCommand::Remove { index: 1 });
    world.run_until_idle();
    let before: Vec<_> = (0..16).map(|index| world.agent.device.entry(0, index)).collect();
    let seen = world.pipe.seen.clone();
    for datagram in &seen {
        world.agent.receive(true, datagram);
    }
    for datagram in seen.iter().rev() {
        world.agent.receive(true, datagram);
    }
    let after: Vec<_> = (0..16).map(|index| world.agent.device.entry(0, index)).collect();
    assert_eq!(before, after);
    // The session goes on.
    world.session.execute(0, write(7, 7));
    world.run_until_idle();
    assert!(world.agent.device.entry(0, 7).unwrap().valid);
}

#[test]
fn a_device_that_vanishes_is_reported_and_greeted_again() {
    let mut world = World::new(1, 0);
    world.run_until_idle();
    assert_eq!(world.events, [UP]);
    let kept = world.agent.clone();
    // The device restarts: it executes nothing before a Hello.
    world.agent = DeviceAgent::new(Emulator::new(2, 16));
    world.session.execute(0, write(1, 1));
    world.run(1_500);
    assert_eq!(world.events, [UP, DeviceEvent::Down, UP]);
    assert!(!world.agent.device.entry(0, 1).unwrap().valid, "a void request is not executed later");
    assert!(world.agent.refused >= 5);

    // The daemon restarts with an older ID: the device's state stays, and its last ID is continued.
    world.agent = kept;
    world.session = DeviceSession::new(DeviceTimes::default(), 0x8000_0001);
    world.events.clear();
    world.run_until_idle();
    world.session.execute(0, write(2, 2));
    world.session.read(0, 2);
    world.session.ask_stats();
    world.run_until_idle();
    assert_eq!(world.events[..2], [UP, DeviceEvent::Executed { done: true }]);
    let DeviceEvent::Entry(state) = &world.events[2] else { panic!("{:?}", world.events) };
    assert!(state.valid && state.action.port == 2);
    assert!(matches!(&world.events[3], DeviceEvent::Stats(counters) if counters.len() == 29 + 4 * 6));
}

#[test]
fn an_idle_session_sends_echoes_and_repeats_what_is_lost() {
    let mut world = World::new(9, 0);
    world.run_until_idle();
    world.pipe.seen.clear();
    world.run(2_100);
    let echoes = world.pipe.seen.len();
    assert!((3..=5).contains(&echoes), "{echoes}");
    assert_eq!(world.events, [UP]);
    // A command that the device does not have is refused.
    world.session.execute(7, write(0, 0));
    world.run_until_idle();
    assert_eq!(world.events.last(), Some(&DeviceEvent::Executed { done: false }));
}

#[test]
fn packets_pass_in_both_directions() {
    let mut world = World::new(5, 0);
    world.agent.receive_frame(4, &[0; 60]);
    world.run_until_idle();
    let to_controller = ActionWord { output: OutputKind::Controller, port: 33, ..ActionWord::default() };
    let command = PpuCommand::Write { index: 0, key: TernaryKey::default(), action: to_controller };
    world.session.execute(1, command);
    world.run_until_idle();
    world.agent.receive_frame(4, &[6; 60]);
    world.session.packet_out(2, false, vec![8; 60]);
    world.session.packet_out(3, true, vec![9; 60]);
    world.run(10);
    assert_eq!(world.agent.next_frame(), Some((2, vec![8; 60])));
    assert_eq!(world.agent.next_frame(), None);
    let packets: Vec<_> =
        world.events.iter().filter(|event| matches!(event, DeviceEvent::PacketIn { .. })).collect();
    let packet = |port, byte| DeviceEvent::PacketIn { port, ppu: 1, code: 33, frame: vec![byte; 60] };
    assert_eq!(packets.len(), 2);
    assert!(packets.contains(&&packet(4, 6)) && packets.contains(&&packet(3, 9)));
}

/// The order of requests and packets, and how many reads are under way together.
#[test]
fn packets_follow_the_commands_before_them_and_reads_overlap() {
    let mut session = DeviceSession::new(DeviceTimes::default(), 7);
    let mut agent = DeviceAgent::new(Emulator::new(2, 16));
    let mut now = Nanos(1);
    session.poll(now);
    let sent = |session: &mut DeviceSession| -> Vec<DeviceMessage> {
        std::iter::from_fn(|| session.next_datagram())
            .map(|one| DeviceMessage::decode(&one).unwrap())
            .collect()
    };
    let answer =
        |session: &mut DeviceSession, agent: &mut DeviceAgent, messages: &[DeviceMessage], now: Nanos| {
            messages.iter().for_each(|message| agent.receive(true, &message.encode().unwrap()));
            let answers: Vec<Vec<u8>> = std::iter::from_fn(|| agent.next_datagram()).collect();
            // The last answer arrives first.
            answers.iter().rev().for_each(|datagram| session.receive(datagram, now));
            session.poll(now);
        };
    let hello = sent(&mut session);
    answer(&mut session, &mut agent, &hello, now);
    session.execute(0, write(1, 1));
    session.packet_out(2, false, vec![8; 60]);
    session.execute(0, write(2, 2));
    (0..20).for_each(|index| session.read(0, index % 16));
    session.packet_out(3, false, vec![9; 60]);
    session.execute(0, write(3, 3));
    session.poll(now);
    // One command is under way, and the packet waits for it.
    let first = sent(&mut session);
    assert!(matches!(&first[..], [DeviceMessage { body: Body::FlowMod { .. }, .. }]), "{first:?}");
    answer(&mut session, &mut agent, &first, now);
    let next = sent(&mut session);
    let [packet, command] = &next[..] else { panic!("{next:?}") };
    assert!(matches!((&packet.body, &command.body), (Body::PacketOut { port: 2, .. }, Body::FlowMod { .. })));
    answer(&mut session, &mut agent, &next, now);
    let reads = sent(&mut session);
    assert_eq!(reads.len(), READS_MAX);
    assert!(reads.iter().all(|message| matches!(message.body, Body::FlowRequest { .. })));
    // A lost answer holds back the events behind it, and only this read is repeated.
    answer(&mut session, &mut agent, &reads[1..], now);
    let events = |session: &mut DeviceSession| std::iter::from_fn(|| session.next_event()).count();
    assert_eq!(events(&mut session), 3, "Up and two commands");
    assert_eq!(sent(&mut session).len(), 0);
    now.0 += 25_000_000;
    session.poll(now);
    let again = sent(&mut session);
    assert_eq!(again, reads[..1]);
    answer(&mut session, &mut agent, &again, now);
    let rest = sent(&mut session);
    assert_eq!(rest.len(), 5, "four reads and the packet");
    assert!(matches!(rest[4].body, Body::PacketOut { port: 3, .. }));
    let indices = std::iter::from_fn(|| session.next_event()).map(|event| match event {
        DeviceEvent::Entry(state) => state.index,
        other => panic!("{other:?}"),
    });
    assert!(indices.eq(0..16), "in the order of the requests");
    answer(&mut session, &mut agent, &rest, now);
    assert!(matches!(&sent(&mut session)[..], [DeviceMessage { body: Body::FlowMod { .. }, .. }]));
}

/// A socket's buffer holds a limited number of datagrams, and the system discards further ones.
#[test]
fn a_burst_of_packets_does_not_overflow_the_sockets_buffer() {
    const PACKETS: u16 = 400;
    let mut session = DeviceSession::new(DeviceTimes::default(), 7);
    let mut agent = DeviceAgent::new(Emulator::new(2, 16));
    let (mut now, mut in_buffer_max, mut left) = (Nanos(1), 0, Vec::new());
    let mut executed = false;
    let exchange = |session: &mut DeviceSession, agent: &mut DeviceAgent, now: Nanos| {
        session.poll(now);
        let datagrams: Vec<_> = std::iter::from_fn(|| session.next_datagram()).collect();
        let packets = datagrams.iter().filter_map(|datagram| DeviceMessage::decode(datagram).ok());
        let packets = packets.filter(|message| matches!(message.body, Body::PacketOut { .. })).count();
        datagrams.iter().for_each(|datagram| agent.receive(true, datagram));
        while let Some(reply) = agent.next_datagram() {
            session.receive(&reply, now);
        }
        packets
    };
    exchange(&mut session, &mut agent, now);
    assert!(session.is_up());
    for number in 0..PACKETS {
        let mut frame = vec![0; 60];
        frame[20..22].copy_from_slice(&number.to_be_bytes());
        session.packet_out(1, false, frame);
        if number % 3 == 0 {
            session.read(0, 3);
        }
    }
    session.execute(0, PpuCommand::Remove { index: 3 });
    for _ in 0..PACKETS {
        now.0 += 100_000;
        in_buffer_max = in_buffer_max.max(exchange(&mut session, &mut agent, now));
        while let Some((port, frame)) = agent.next_frame() {
            assert_eq!(port, 1);
            left.push(u16::from_be_bytes([frame[20], frame[21]]));
        }
        while let Some(event) = session.next_event() {
            executed |= event == DeviceEvent::Executed { done: true };
        }
    }
    assert_eq!(left, (0..PACKETS).collect::<Vec<_>>());
    assert!(executed, "the command behind the packets was executed");
    assert!(in_buffer_max <= PACKETS_UNANSWERED_MAX, "{in_buffer_max} packets at once");
    assert_eq!((session.pending(), session.counters().unsent), (0, 0));
}
