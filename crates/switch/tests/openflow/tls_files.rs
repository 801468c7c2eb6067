// SPDX-License-Identifier: Apache-2.0
//! Certificates for tests of TLS, and peers that use them.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType,
    date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An authority that issues certificates. Its files are removed on drop.
pub struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

/// Files of a certificate, its key, and the authority of peers.
#[derive(Clone)]
pub struct Files {
    pub certificate: PathBuf,
    pub private_key: PathBuf,
    pub ca: PathBuf,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("shunt-tls-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        fs::write(folder.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    /// Issues a certificate for this address.
    pub fn issue(&self, name: &str, address: &str) -> Files {
        self.issue_until(name, address, 2100)
    }

    /// Issues a certificate that is valid from 2000 to this year.
    pub fn issue_until(&self, name: &str, address: &str, year: i32) -> Files {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names.push(SanType::IpAddress(address.parse::<IpAddr>().unwrap()));
        (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(year, 1, 1));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let file = |end: &str| self.folder.join(format!("{name}.{end}"));
        fs::write(file("pem"), certificate.pem()).unwrap();
        fs::write(file("key"), key.serialize_pem()).unwrap();
        Files { certificate: file("pem"), private_key: file("key"), ca: self.folder.join("ca.pem") }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

fn certificates(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path).unwrap().map(Result::unwrap).collect()
}

impl Files {
    /// Returns the section of a datapath's configuration.
    pub fn section(&self) -> String {
        let Self { certificate, private_key, ca } = self;
        format!("[datapath.tls]\ncertificate = {certificate:?}\nprivate_key = {private_key:?}\nca = {ca:?}\n")
    }

    /// Returns the options of Open vSwitch's tools.
    pub fn options(&self) -> [String; 3] {
        [
            format!("--private-key={}", self.private_key.display()),
            format!("--certificate={}", self.certificate.display()),
            format!("--ca-cert={}", self.ca.display()),
        ]
    }

    /// Replaces the contents of these files by those of others.
    pub fn replace_by(&self, other: &Self) {
        let pairs = [
            (&other.certificate, &self.certificate),
            (&other.private_key, &self.private_key),
            (&other.ca, &self.ca),
        ];
        for (from, to) in pairs {
            fs::copy(from, to).unwrap();
        }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        certificates(&self.ca).into_iter().for_each(|authority| roots.add(authority).unwrap());
        Arc::new(roots)
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_file(&self.private_key).unwrap()
    }

    /// Connects to a switch, with or without a certificate. The handshake takes place with the first data.
    pub fn connect(
        &self,
        address: SocketAddr,
        with_certificate: bool,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config =
            config.with_safe_default_protocol_versions().unwrap().with_root_certificates(self.roots());
        let config = match with_certificate {
            true => config.with_client_auth_cert(certificates(&self.certificate), self.key()).unwrap(),
            false => config.with_no_client_auth(),
        };
        let name = ServerName::IpAddress(address.ip().into());
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(crate::lab::LONG)).unwrap();
        StreamOwned::new(session, stream)
    }

    /// Begins TLS on a connection that a switch has opened.
    pub fn serve(&self, stream: TcpStream) -> StreamOwned<ServerConnection, TcpStream> {
        stream.set_read_timeout(Some(crate::lab::LONG)).unwrap();
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(self.roots(), Arc::clone(&provider)).build().unwrap();
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_client_cert_verifier(verifier);
        let config = config.with_single_cert(certificates(&self.certificate), self.key()).unwrap();
        StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), stream)
    }
}
