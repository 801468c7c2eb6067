// SPDX-License-Identifier: Apache-2.0
//! rtnetlink messages about interfaces. Layout: linux/netlink.h `struct nlmsghdr`, linux/rtnetlink.h `struct
//! ifinfomsg` and `struct rtattr`, linux/if_link.h `IFLA_*`; integers in native byte order.

/// Length in bytes of `struct nlmsghdr` and of `struct ifinfomsg`.
const HEADER_BYTES: usize = 16;
const INFO_BYTES: usize = 16;
/// Alignment of messages and attributes in bytes.
const ALIGN: usize = 4;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_CARRIER_DOWN_COUNT: u16 = 48;

/// Interface flags that libc does not define on all systems: carrier, and a carrier that cannot be used yet
/// (as with IEEE 802.1X).
const IFF_LOWER_UP: u32 = 1 << 16;
const IFF_DORMANT: u32 = 1 << 17;

/// A message about an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The interface exists and is new or has changed.
    Is(State),
    /// The interface with this index was removed.
    Gone(i32),
    /// The query with this number failed: there is no such interface.
    Refused(u32),
}

/// State of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) index: i32,
    pub(super) name: String,
    /// The interface is up, has a carrier, and may be used.
    pub(super) up: bool,
    /// Number of times that the interface has lost its carrier, even if the kernel merges several changes
    /// into one report. `None` before Linux 4.16.
    pub(super) downs: Option<u32>,
    pub(super) mac: Option<[u8; 6]>,
}

/// Returns the `N` bytes at offset `at`, or `None` if fewer bytes follow.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_ne_bytes)
}

/// Returns a query for the interface `name`; `number` identifies the answer.
pub(super) fn question(name: &str, number: u32) -> Vec<u8> {
    let attribute_len = 4 + name.len() + 1;
    let len = HEADER_BYTES + INFO_BYTES + attribute_len.next_multiple_of(ALIGN);
    let mut bytes = Vec::with_capacity(len);
    bytes.extend((len as u32).to_ne_bytes());
    bytes.extend(libc::RTM_GETLINK.to_ne_bytes());
    bytes.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    bytes.extend(number.to_ne_bytes());
    bytes.resize(HEADER_BYTES + INFO_BYTES, 0);
    bytes.extend((attribute_len as u16).to_ne_bytes());
    bytes.extend(IFLA_IFNAME.to_ne_bytes());
    bytes.extend(name.as_bytes());
    bytes.resize(len, 0);
    bytes
}

/// Returns the messages about interfaces in a datagram. Stops at the first damaged or truncated message.
pub(super) fn messages(mut datagram: &[u8]) -> Vec<Message> {
    let mut found = Vec::new();
    while let Some(len) = word(datagram, 0) {
        let len = len as usize;
        let Some(body) = datagram.get(HEADER_BYTES..len) else { break };
        found.extend(message(datagram, body));
        datagram = datagram.get(len.next_multiple_of(ALIGN)..).unwrap_or_default();
    }
    found
}

fn message(header: &[u8], body: &[u8]) -> Option<Message> {
    const ERROR: u16 = libc::NLMSG_ERROR as u16;
    match u16::from_ne_bytes(array(header, 4)?) {
        libc::RTM_NEWLINK => state(body).map(Message::Is),
        libc::RTM_DELLINK => Some(Message::Gone(i32::from_ne_bytes(array(body, 4)?))),
        ERROR if word(body, 0)? != 0 => Some(Message::Refused(word(header, 8)?)),
        _ => None,
    }
}

fn state(body: &[u8]) -> Option<State> {
    let index = i32::from_ne_bytes(array(body, 4)?);
    let flags = word(body, 8)?;
    let running = libc::IFF_UP as u32 | IFF_LOWER_UP;
    let up = flags & (running | IFF_DORMANT) == running;
    let mut state = State { index, name: String::new(), up, downs: None, mac: None };
    let mut rest = body.get(INFO_BYTES..)?;
    while let Some(len) = array(rest, 0).map(u16::from_ne_bytes) {
        let Some(value) = rest.get(4..usize::from(len)) else { break };
        match u16::from_ne_bytes(array(rest, 2)?) {
            IFLA_IFNAME => {
                let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
                state.name = String::from_utf8_lossy(name).into_owned();
            }
            IFLA_ADDRESS => state.mac = value.try_into().ok(),
            IFLA_CARRIER_DOWN_COUNT => state.downs = word(value, 0),
            _ => {}
        }
        rest = rest.get(usize::from(len).next_multiple_of(ALIGN)..).unwrap_or_default();
    }
    Some(state)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
        bytes
    }

    fn datagram(kind: u16, number: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(number.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes
    }

    fn info(index: i32, flags: u32) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(index.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes
    }

    /// Returns a message as the kernel sends it.
    pub fn is(index: i32, name: &str, flags: u32, downs: u32) -> Vec<u8> {
        let mut body = info(index, flags);
        body.extend(attribute(IFLA_IFNAME, &[name.as_bytes(), &[0]].concat()));
        body.extend(attribute(99, b"unknown"));
        body.extend(attribute(IFLA_ADDRESS, &[2, 0, 0, 0, 0, 9]));
        body.extend(attribute(IFLA_CARRIER_DOWN_COUNT, &downs.to_ne_bytes()));
        datagram(libc::RTM_NEWLINK, 0, &body)
    }

    #[test]
    fn messages_are_read_one_after_the_other() {
        let up = libc::IFF_UP as u32 | IFF_LOWER_UP;
        let mut bytes = is(7, "veth0", up, 3);
        bytes.extend(datagram(libc::RTM_DELLINK, 0, &info(8, 0)));
        bytes.extend(datagram(libc::NLMSG_ERROR as u16, 5, &(-19_i32).to_ne_bytes()));
        bytes.extend(datagram(libc::NLMSG_DONE as u16, 0, &[]));
        let mac = Some([2, 0, 0, 0, 0, 9]);
        let state = State { index: 7, name: "veth0".into(), up: true, downs: Some(3), mac };
        assert_eq!(messages(&bytes), [Message::Is(state), Message::Gone(8), Message::Refused(5)]);
    }

    #[test]
    fn an_interface_is_up_if_it_has_a_carrier_and_may_be_used() {
        let up = |flags| matches!(&messages(&is(1, "a", flags, 0))[..], [Message::Is(state)] if state.up);
        let is_up = libc::IFF_UP as u32;
        assert!(up(is_up | IFF_LOWER_UP));
        // The kernel sets this flag later.
        assert!(up(is_up | IFF_LOWER_UP | libc::IFF_RUNNING as u32));
        assert!(!up(is_up) && !up(IFF_LOWER_UP) && !up(is_up | IFF_LOWER_UP | IFF_DORMANT));
    }

    #[test]
    fn damaged_messages_are_ignored() {
        let whole = is(7, "veth0", 0, 3);
        for len in 0..whole.len() {
            messages(&whole[..len]);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 3, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                messages(&damaged);
            }
        }
    }

    #[test]
    fn a_question_names_its_interface() {
        let bytes = question("veth0", 9);
        assert_eq!((bytes.len(), word(&bytes, 0), word(&bytes, 8)), (44, Some(44), Some(9)));
        assert_eq!(bytes.get(36..42), Some(&b"veth0\0"[..]));
    }
}
