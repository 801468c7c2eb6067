// SPDX-License-Identifier: Apache-2.0
//! Endpoints of connections to controllers: TCP addresses and unix sockets.

use crate::address::{AddressError, socket_address};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Longest path of a unix socket on Linux, in bytes.
const PATH_BYTES: usize = 107;

/// Protocol of a connection to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionProtocol {
    /// OpenFlow 1.3.
    OpenFlow,
    /// POF.
    Pof,
}

impl fmt::Display for ConnectionProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenFlow => "OpenFlow",
            Self::Pof => "POF",
        })
    }
}

/// Endpoint to listen on or to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// IP address and TCP port.
    Tcp(SocketAddr),
    /// IP address and TCP port of TLS connections.
    Ssl(SocketAddr),
    /// Path of a unix socket.
    Unix(PathBuf),
}

impl Endpoint {
    /// Returns the IP address and the port, if the endpoint has them.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) | Self::Ssl(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Returns whether both cannot listen at the same time.
    #[must_use]
    pub fn excludes(&self, other: &Self) -> bool {
        match (self.address(), other.address()) {
            (Some(one), Some(other)) => one == other && one.port() != 0,
            _ => self == other && self.address().is_none(),
        }
    }
}

/// Writes `IP:PORT`, `ssl:IP:PORT` or `unix:PATH`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Ssl(address) => write!(f, "ssl:{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Checks the path of a unix socket. Error messages suggest the path `example`.
pub fn socket_path(text: &str, example: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.len() > PATH_BYTES || text.contains('\0') {
        return Err(format!(
            "\"{}\" is not a socket path; a path has 1 to {PATH_BYTES} bytes, such as \"{example}\"",
            text.replace('\0', "\\0")
        ));
    }
    Ok(text.into())
}

/// Parses `IP:PORT`, `ssl:IP:PORT` or `unix:PATH`.
pub fn listen_address(text: &str) -> Result<Endpoint, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return socket_path(path, "/run/shunt/s1.mgmt").map(Endpoint::Unix);
    }
    let address = match text.strip_prefix("ssl:") {
        Some(address) => socket_address(address, None).map(Endpoint::Ssl),
        None => socket_address(text, None).map(Endpoint::Tcp),
    };
    address.map_err(|error| match error {
        AddressError::Form => format!(
            "\"{text}\" is not a listen address; write IP:PORT, ssl:IP:PORT or unix:PATH, such as \
             \"127.0.0.1:6654\", \"ssl:[::1]:6654\" or \"unix:/run/shunt/s1.mgmt\""
        ),
        other => format!("\"{text}\" {other}"),
    })
}

/// Parses `tcp:IP[:PORT]`, `ssl:IP[:PORT]` or `unix:PATH` of an OpenFlow controller. IANA assigned the
/// default port 6653.
pub fn openflow_controller(text: &str) -> Result<Endpoint, String> {
    controller(text, 6_653)
}

/// Parses `tcp:IP[:PORT]`, `ssl:IP[:PORT]` or `unix:PATH` of a POF controller. Public switches have the
/// default port 6633.
pub fn pof_controller(text: &str) -> Result<Endpoint, String> {
    controller(text, 6_633)
}

fn controller(text: &str, port: u16) -> Result<Endpoint, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return socket_path(path, "/run/controller.sock").map(Endpoint::Unix);
    }
    let (address, is_tls) = match text.strip_prefix("ssl:") {
        Some(address) => (address, true),
        None => (text.strip_prefix("tcp:").unwrap_or_default(), false),
    };
    let endpoint = if is_tls { Endpoint::Ssl } else { Endpoint::Tcp };
    socket_address(address, Some(port)).map(endpoint).map_err(|error| match error {
        AddressError::Form => format!(
            "\"{text}\" is not a controller address; write tcp:IP:PORT, ssl:IP:PORT or unix:PATH, such as \
             \"tcp:127.0.0.1:{port}\", \"ssl:[::1]:{port}\" or \"unix:/run/controller.sock\""
        ),
        other => format!("\"{text}\" {other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_without_a_port_gets_the_port_of_its_protocol() {
        let controller = openflow_controller;
        assert_eq!(pof_controller("tcp:10.0.0.1"), Ok(Endpoint::Tcp(([10, 0, 0, 1], 6_633).into())));
        assert_eq!(controller("tcp:10.0.0.1"), Ok(Endpoint::Tcp(([10, 0, 0, 1], 6_653).into())));
        assert_eq!(controller("tcp:[::1]:6633"), Ok(Endpoint::Tcp("[::1]:6633".parse().unwrap())));
        assert_eq!(controller("tcp:[::1]"), Ok(Endpoint::Tcp("[::1]:6653".parse().unwrap())));
        assert_eq!(controller("ssl:[fe80::1%7]"), Ok(Endpoint::Ssl("[fe80::1%7]:6653".parse().unwrap())));
        assert!(controller("tcp:[fe80::1]").unwrap_err().starts_with("\"tcp:[fe80::1]\" is link-local"));
        assert!(listen_address("[::1%lo]:1").unwrap_err().contains("write [::1]"));
        for wrong in [
            "",
            "tcp:",
            "10.0.0.1:6653",
            "tcp:host:1",
            "ssl:",
            "pssl:10.0.0.1:6653",
            "/run/c.sock",
            "punix:/x",
        ] {
            assert!(
                controller(wrong).unwrap_err().contains("tcp:IP:PORT, ssl:IP:PORT or unix:PATH"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn addresses_of_tls_have_the_prefix_ssl() {
        let endpoint = Endpoint::Ssl("[::1]:6653".parse().unwrap());
        assert_eq!(openflow_controller("ssl:[::1]:6653"), Ok(endpoint.clone()));
        assert_eq!(listen_address("ssl:[::1]:6653"), Ok(endpoint.clone()));
        assert_eq!(endpoint.to_string(), "ssl:[::1]:6653");
        assert_eq!(pof_controller("ssl:10.0.0.1"), Ok(Endpoint::Ssl(([10, 0, 0, 1], 6_633).into())));
        assert!(endpoint.excludes(&Endpoint::Tcp("[::1]:6653".parse().unwrap())));
        let any = |port| Endpoint::Ssl(([127, 0, 0, 1], port).into());
        assert!(!any(0).excludes(&any(0)) && !any(1).excludes(&any(2)));
    }

    #[test]
    fn a_socket_path_has_1_to_107_bytes() {
        for read in [openflow_controller, pof_controller, listen_address] {
            assert_eq!(read("unix:/run/a.sock"), Ok(Endpoint::Unix("/run/a.sock".into())));
            assert_eq!(read("unix:a").unwrap().to_string(), "unix:a");
            let longest = "x".repeat(PATH_BYTES);
            assert!(read(&format!("unix:{longest}")).is_ok());
            for wrong in ["", "a\0b", &format!("{longest}x")] {
                let problem = read(&format!("unix:{wrong}")).unwrap_err();
                assert!(problem.contains("1 to 107 bytes, such as \"/run/"), "{problem}");
            }
        }
        assert!(listen_address("tcp:1.2.3.4:5").unwrap_err().contains("IP:PORT, ssl:IP:PORT or unix:PATH"));
    }
}
