// SPDX-License-Identifier: Apache-2.0
//! Why a TLS connection failed, as a sentence for the log.

use rustls::{AlertDescription, CertificateError, Error};

/// First byte of a TLS record that a peer may send first: alert or handshake.
const FIRST_BYTES: [u8; 2] = [21, 22];

/// Returns the reason. `first` is the first byte that the peer has sent, if it has sent any.
pub fn reason(error: &Error, first: Option<u8>) -> String {
    if first.is_some_and(|byte| !FIRST_BYTES.contains(&byte)) {
        return "the peer sends plain text to an address of TLS; let it use ssl: here, or a plain address"
            .to_owned();
    }
    match error {
        Error::InvalidCertificate(problem) => certificate(problem),
        Error::NoCertificatesPresented => "the peer presents no certificate".to_owned(),
        Error::AlertReceived(alert) => refused(*alert),
        other => format!("TLS: {other}"),
    }
}

fn certificate(problem: &CertificateError) -> String {
    match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the certificate of the peer has expired: {problem}")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the certificate of the peer is not valid yet: {problem}")
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "no authority in tls.ca has issued the certificate of the peer".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the certificate of the peer is not for its address: {problem}")
        }
        other => format!("the certificate of the peer is refused: {other}"),
    }
}

fn refused(alert: AlertDescription) -> String {
    let why = match alert {
        AlertDescription::CertificateExpired => "it has expired",
        AlertDescription::UnknownCA => "the peer does not know its issuer",
        AlertDescription::CertificateRequired => "there is none",
        AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked => "the peer does not accept it",
        other => return format!("the peer ends TLS with the alert {other:?}"),
    };
    format!("the peer refuses the certificate of this switch: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_recognized_by_its_first_byte() {
        let error = Error::General("x".to_owned());
        for first in [4, 1, b'G'] {
            assert!(reason(&error, Some(first)).contains("plain text"));
        }
        for first in [None, Some(21), Some(22)] {
            assert_eq!(reason(&error, first), "TLS: unexpected error: x");
        }
    }

    #[test]
    fn reasons_name_the_side_whose_certificate_is_wrong() {
        let of = |error| reason(&error, Some(22));
        assert!(of(Error::InvalidCertificate(CertificateError::Expired)).contains("the peer has expired"));
        assert!(of(Error::InvalidCertificate(CertificateError::UnknownIssuer)).contains("tls.ca"));
        assert!(of(Error::AlertReceived(AlertDescription::UnknownCA)).contains("certificate of this switch"));
        assert!(of(Error::AlertReceived(AlertDescription::InternalError)).contains("InternalError"));
    }
}
