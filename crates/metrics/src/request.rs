// SPDX-License-Identifier: Apache-2.0
//! The requests that the server understands, and the heads of its responses.

use httparse::{EMPTY_HEADER, Error, Request, Status};

/// Maximum length of a request's head in bytes.
pub const HEAD_BYTES: usize = 8 * 1_024;
/// Maximum number of header fields of a request.
const HEADERS: usize = 64;
/// Path of the metrics.
const PATH: &str = "/metrics";

/// What the server does about the bytes that a client has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The head of the request is not complete.
    Incomplete,
    /// The client asks for the metrics, or only for the head of the response.
    Metrics {
        /// Whether the response has a body.
        with_body: bool,
    },
    /// The request is refused with this status and this sentence.
    Refused(&'static str, &'static str),
}

/// Parses the head of a request. A body is never read.
pub fn parse(bytes: &[u8]) -> Parsed {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(Status::Complete(length)) if length <= HEAD_BYTES => {
            answer(request.method.unwrap_or_default(), request.path.unwrap_or_default())
        }
        Err(Error::TooManyHeaders) => too_large(),
        Err(_) => Parsed::Refused("400 Bad Request", "this is not a request of HTTP/1.0 or HTTP/1.1"),
        Ok(_) if bytes.len() >= HEAD_BYTES => too_large(),
        Ok(_) => Parsed::Incomplete,
    }
}

fn too_large() -> Parsed {
    Parsed::Refused(
        "431 Request Header Fields Too Large",
        "the head of a request has at most 8192 bytes and 64 fields",
    )
}

fn answer(method: &str, target: &str) -> Parsed {
    let path = target.split('?').next().unwrap_or_default();
    match method {
        "GET" | "HEAD" if path == PATH => Parsed::Metrics { with_body: method == "GET" },
        "GET" | "HEAD" => Parsed::Refused("404 Not Found", "the metrics are at /metrics"),
        _ => Parsed::Refused("405 Method Not Allowed", "use GET or HEAD"),
    }
}

/// Returns the head of a response. The server closes every connection after the response.
pub fn head(status: &str, content_type: &str, length: usize) -> String {
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(bytes: &[u8]) -> &'static str {
        match parse(bytes) {
            Parsed::Refused(status, _) => &status[..3],
            Parsed::Metrics { .. } => "200",
            Parsed::Incomplete => "",
        }
    }

    #[test]
    fn a_request_is_complete_with_its_empty_line() {
        let whole = b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n";
        assert_eq!(parse(whole), Parsed::Metrics { with_body: true });
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), Parsed::Incomplete, "{length}");
        }
        assert_eq!(parse(b"HEAD /metrics HTTP/1.0\r\n\r\n"), Parsed::Metrics { with_body: false });
    }

    #[test]
    fn other_requests_are_refused() {
        assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), "404");
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd"), "405");
        assert_eq!(status(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), "400");
        assert_eq!(status(b"GET /metrics HTTP/9.9\r\n\r\n"), "400");
        assert_eq!(status(&[&b"GET /metrics HTTP/1.1\r\nA: "[..], &[b'a'; HEAD_BYTES]].concat()), "431");
        let fields = "a: b\r\n".repeat(HEADERS + 1);
        assert_eq!(status(format!("GET /metrics HTTP/1.1\r\n{fields}\r\n").as_bytes()), "431");
        let long = format!("GET /metrics HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(HEAD_BYTES));
        assert_eq!(status(long.as_bytes()), "431");
    }
}
