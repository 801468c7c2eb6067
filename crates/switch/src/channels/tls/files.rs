// SPDX-License-Identifier: Apache-2.0
//! Reads the certificates and keys, and reads them again when their files have changed.

use super::stream::TlsStream;
use super::verifier::IssuerOnly;
use config::TlsFiles;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

/// Maximum buffered output of a connection in bytes, in addition to the output of its channel.
const BUFFER_BYTES: usize = 64 * 1_024;

/// Error of the files of TLS connections.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or has other contents.
    #[error("{}: cannot read {what} of tls.{key}: {problem}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Contents that were expected.
        what: &'static str,
        /// Key of the file in the configuration.
        key: &'static str,
        /// Description of the problem.
        problem: String,
    },
    /// The files do not fit together.
    #[error("{} and {}: {problem}", files.certificate.display(), files.private_key.display())]
    Unfit {
        /// The files.
        files: Box<TlsFiles>,
        /// Description of the problem.
        problem: String,
    },
}

/// What a file was when it was read: device, inode, size and time of the last change in ns.
type Version = Option<(u64, u64, u64, i128)>;

fn version(path: &Path) -> Version {
    let meta = fs::metadata(path).ok()?;
    let changed_ns = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
    Some((meta.dev(), meta.ino(), meta.size(), changed_ns))
}

fn versions(files: &TlsFiles) -> [Version; 3] {
    [&files.certificate, &files.private_key, &files.ca].map(|path| version(path))
}

/// Settings of connections that this switch accepts and opens.
#[derive(Clone)]
struct Loaded {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

/// The files of TLS connections, as last read.
pub struct Tls {
    files: TlsFiles,
    versions: [Version; 3],
    loaded: Loaded,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, or if the files do not fit together.
    pub fn open(files: &TlsFiles) -> Result<Self, TlsError> {
        // The version is taken first: a change during the reading is noticed at the next connection.
        let versions = versions(files);
        Ok(Self { versions, loaded: load(files)?, files: files.clone() })
    }

    /// Reads the files again if they have changed. New connections then use the new files, and connections
    /// that exist are not affected. If the new files cannot be used, the ones in use remain in use.
    ///
    /// # Errors
    ///
    /// Returns the problem of the new files, once for each change.
    pub fn refresh(&mut self) -> Result<bool, TlsError> {
        let now = versions(&self.files);
        if now == self.versions {
            return Ok(false);
        }
        self.versions = now;
        self.loaded = load(&self.files)?;
        Ok(true)
    }

    /// Begins TLS on a connection that was accepted.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection cannot be made non-blocking, or if there is no memory for TLS.
    pub fn accept(&self, stream: TcpStream) -> io::Result<TlsStream> {
        let mut session = ServerConnection::new(Arc::clone(&self.loaded.server)).map_err(io::Error::other)?;
        session.set_buffer_limit(Some(BUFFER_BYTES));
        TlsStream::new(stream, session.into())
    }

    /// Begins TLS on a connection to a controller.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection cannot be made non-blocking, or if there is no memory for TLS.
    pub fn connect(&self, stream: TcpStream, address: SocketAddr) -> io::Result<TlsStream> {
        let name = ServerName::IpAddress(address.ip().into());
        let session = ClientConnection::new(Arc::clone(&self.loaded.client), name);
        let mut session = session.map_err(io::Error::other)?;
        session.set_buffer_limit(Some(BUFFER_BYTES));
        TlsStream::new(stream, session.into())
    }
}

fn certificates(path: &Path, key: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let fails =
        |problem: String| TlsError::File { path: path.into(), what: "the certificates", key, problem };
    let read = CertificateDer::pem_file_iter(path).map_err(|error| fails(error.to_string()))?;
    let all: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| fails(error.to_string()))?;
    if all.is_empty() { Err(fails("it has no PEM section CERTIFICATE".to_owned())) } else { Ok(all) }
}

fn load(files: &TlsFiles) -> Result<Loaded, TlsError> {
    let unfit = |problem: String| TlsError::Unfit { files: Box::new(files.clone()), problem };
    let provider = Arc::new(ring::default_provider());
    let chain = certificates(&files.certificate, "certificate")?;
    let key = PrivateKeyDer::from_pem_file(&files.private_key).map_err(|error| TlsError::File {
        path: files.private_key.clone(),
        what: "the key",
        key: "private_key",
        problem: error.to_string(),
    })?;
    let mut roots = RootCertStore::empty();
    for authority in certificates(&files.ca, "ca")? {
        roots.add(authority).map_err(|error| TlsError::File {
            path: files.ca.clone(),
            what: "the certificates",
            key: "ca",
            problem: error.to_string(),
        })?;
    }
    let roots = Arc::new(roots);
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider)).build();
    let verifier = verifier.map_err(|error| unfit(error.to_string()))?;
    let server =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let mut server = server
        .map(|server| server.with_client_cert_verifier(verifier))
        .and_then(|server| server.with_single_cert(chain.clone(), key.clone_key()))
        .map_err(|error| unfit(error.to_string()))?;
    // A resumed session would not verify the certificate of the peer again.
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    let client = client(files, &provider, roots, chain, key).map_err(|error| unfit(error.to_string()))?;
    Ok(Loaded { server: Arc::new(server), client: Arc::new(client) })
}

fn client(
    files: &TlsFiles,
    provider: &Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, rustls::Error> {
    let client =
        ClientConfig::builder_with_provider(Arc::clone(provider)).with_safe_default_protocol_versions()?;
    let client = if files.check_address {
        client.with_root_certificates(roots)
    } else {
        let verifier = IssuerOnly::new(roots, provider.signature_verification_algorithms);
        client.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
    };
    let mut client = client.with_client_auth_cert(chain, key)?;
    client.resumption = Resumption::disabled();
    Ok(client)
}
