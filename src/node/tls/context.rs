//! Certificates, keys and roots.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::node::error::Error;

/// What a client trusts. JavaScript: `tls.createSecureContext({ ca })`.
///
/// # Examples
///
/// ```
/// use phaseloop::node::tls::ClientContext;
///
/// let mozilla = ClientContext::new();
/// assert!(ClientContext::with_ca(b"no certificate").is_err());
/// # let _ = mozilla;
/// ```
#[derive(Clone)]
pub struct ClientContext {
    pub(super) config: Arc<ClientConfig>,
}

impl ClientContext {
    /// Trusts Mozilla's roots, and the certificates in the file that the environment variable
    /// `NODE_EXTRA_CA_CERTS` names. A file that cannot be used is ignored, as in Node.
    #[must_use]
    pub fn new() -> Self {
        let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned();
        let mut roots = RootCertStore::from_iter(roots);
        let more =
            std::env::var_os("NODE_EXTRA_CA_CERTS").and_then(|file| std::fs::read(file).ok());
        let more = more.and_then(|pem| certificates(&pem).ok());
        roots.add_parsable_certificates(more.unwrap_or_default());
        Self::of(roots)
    }

    /// Trusts the certificates in `pem`, and no others. JavaScript: `{ ca }`.
    ///
    /// # Errors
    ///
    /// If `pem` has no certificate, or a broken one.
    pub fn with_ca(pem: &[u8]) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(pem)? {
            roots.add(certificate).map_err(invalid)?;
        }
        Ok(Self::of(roots))
    }

    fn of(roots: RootCertStore) -> Self {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            config: Arc::new(config),
        }
    }

    /// Asks for HTTP/1.1.
    pub(in crate::node) fn for_http(&self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self {
            config: Arc::new(config),
        }
    }
}

impl Default for ClientContext {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ClientContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientContext")
    }
}

/// The certificate and the key of a server. JavaScript: `tls.createSecureContext({ cert, key })`.
///
/// # Examples
///
/// ```
/// use phaseloop::node::tls::ServerContext;
///
/// assert!(ServerContext::new(b"no certificate", b"no key").is_err());
/// ```
#[derive(Clone)]
pub struct ServerContext {
    pub(super) config: Arc<ServerConfig>,
}

impl ServerContext {
    /// Creates a context from a chain of certificates and a private key in PEM. JavaScript: `{
    /// cert, key }`.
    ///
    /// # Errors
    ///
    /// If one of them is missing or broken, or the key is not that of the certificate.
    pub fn new(certificate: &[u8], key: &[u8]) -> Result<Self, Error> {
        let key = PrivateKeyDer::from_pem_slice(key).map_err(invalid)?;
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_no_client_auth()
            .with_single_cert(certificates(certificate)?, key)
            .map_err(invalid)?;
        Ok(Self {
            config: Arc::new(config),
        })
    }

    /// Speaks HTTP/1.1 only.
    pub(in crate::node) fn for_http(&self) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self {
            config: Arc::new(config),
        }
    }
}

impl fmt::Debug for ServerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerContext")
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(invalid)?;
    if found.is_empty() {
        return Err(invalid("there is no certificate"));
    }
    Ok(found)
}

fn invalid(cause: impl fmt::Display) -> Error {
    Error::with_code("ERR_OSSL_PEM_NO_START_LINE", cause.to_string())
}
