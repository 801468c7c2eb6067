// SPDX-License-Identifier: Apache-2.0
//! IP addresses with ports, as all control connections use them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Reason why a text is refused as an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// The text is not an address with a port.
    Form,
    /// A link-local address has no interface.
    NoScope(Ipv6Addr),
    /// An address that is not link-local has an interface.
    NeedlessScope(Ipv6Addr),
    /// The interface of a link-local address does not exist.
    NoInterface(String),
}

/// Writes the mistake and the expected form. The text follows the name of the setting in a message.
impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("is not an address; write IP:PORT or [IPV6]:PORT"),
            Self::NoScope(ip) => {
                write!(f, "is link-local, so it needs an interface; write [{ip}%eth0] with its name or index")
            }
            Self::NeedlessScope(ip) => {
                write!(f, "has an interface, which only link-local addresses (fe80::/10) have; write [{ip}]")
            }
            Self::NoInterface(name) => {
                write!(
                    f,
                    "has the interface \"{name}\", which does not exist; create it, or name another one"
                )
            }
        }
    }
}

/// Parses `IP:PORT`, `[IPV6]:PORT` or `[IPV6%INTERFACE]:PORT`. With a default port, `:PORT` may be missing,
/// and then the brackets too. A link-local address needs the name or the index of its interface, which must
/// exist.
pub fn socket_address(text: &str, default_port: Option<u16>) -> Result<SocketAddr, AddressError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(AddressError::Form)?;
            let port = if after.is_empty() { default_port } else { after.strip_prefix(':').and_then(port) };
            return v6(host, port.ok_or(AddressError::Form)?);
        }
        None => match text.split_once(':') {
            Some((host, after)) if !after.contains(':') => (host, port(after)),
            _ => (text, default_port),
        },
    };
    let port = port.ok_or(AddressError::Form)?;
    match host.parse::<Ipv4Addr>() {
        Ok(ip) => Ok(SocketAddr::new(IpAddr::V4(ip), port)),
        Err(_) => v6(host, port),
    }
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Parses an IPv6 address, after which `%` and an interface may follow.
fn v6(host: &str, port: u16) -> Result<SocketAddr, AddressError> {
    let (ip, scope) = match host.split_once('%') {
        Some((ip, scope)) => (ip, Some(scope)),
        None => (host, None),
    };
    let ip: Ipv6Addr = ip.parse().map_err(|_| AddressError::Form)?;
    let scope_id = match scope {
        None if ip.is_unicast_link_local() => return Err(AddressError::NoScope(ip)),
        None => 0,
        Some(_) if !ip.is_unicast_link_local() => return Err(AddressError::NeedlessScope(ip)),
        Some(scope) => index(scope).ok_or_else(|| AddressError::NoInterface(scope.to_owned()))?,
    };
    Ok(SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope_id)))
}

/// Returns the index of an interface. `scope` is its name, or the index itself.
fn index(scope: &str) -> Option<u32> {
    if scope.bytes().all(|byte| byte.is_ascii_digit()) {
        return scope.parse().ok().filter(|index| *index != 0);
    }
    port::interface_index(scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_are_parsed() {
        for (text, expected) in [
            ("127.0.0.1:6653", "127.0.0.1:6653"),
            ("[::1]:6653", "[::1]:6653"),
            ("[2001:db8::7]:0", "[2001:db8::7]:0"),
            ("10.0.0.1", "10.0.0.1:99"),
            ("::1", "[::1]:99"),
            ("[::1]", "[::1]:99"),
            ("[fe80::1%3]:5", "[fe80::1%3]:5"),
            ("fe80::1%3", "[fe80::1%3]:99"),
        ] {
            assert_eq!(
                socket_address(text, Some(99)).map(|it| it.to_string()),
                Ok(expected.to_owned()),
                "{text}"
            );
        }
        let lo = port::interface_index("lo").unwrap();
        let address = socket_address("[fe80::1%lo]:5", None).unwrap();
        assert_eq!(address.to_string(), format!("[fe80::1%{lo}]:5"));
    }

    #[test]
    fn other_texts_are_refused_with_a_reason() {
        for text in [
            "",
            ":",
            "1.2.3.4",
            "::1",
            "[::1]",
            "[::1]6653",
            "[::1]:",
            "[::1",
            "[1.2.3.4]:5",
            "host:1",
            "1.2.3.4:+5",
            "1.2.3.4:65536",
            "[::1]:5:6",
            "::1:5",
        ] {
            assert_eq!(socket_address(text, None), Err(AddressError::Form), "{text}");
        }
        for (text, part) in [
            ("[fe80::1]:5", "write [fe80::1%eth0] with its name or index"),
            ("[::1%lo]:5", "only link-local addresses (fe80::/10) have; write [::1]"),
            ("[fe80::1%nosuch0]:5", "the interface \"nosuch0\", which does not exist"),
            ("[fe80::1%]:5", "the interface \"\", which does not exist"),
            ("[fe80::1%0]:5", "the interface \"0\", which does not exist"),
        ] {
            let error = socket_address(text, None).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
