//! Certificates, keys and roots.

use std::fmt;
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, ServerConfig};

use super::choice::Choice;
use super::verify::Verifier;
use crate::error::Error;

/// What a client trusts. JavaScript: `tls.createSecureContext({ ca })`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::tls::ClientContext;
///
/// fn main() {
///     let mozilla = ClientContext::new();
///     assert!(ClientContext::with_ca(b"no certificate").is_err());
///     println!("{mozilla:?}");
/// }
/// ```
#[derive(Clone)]
pub struct ClientContext {
    pub(super) config: Arc<ClientConfig>,
    verifier: Verifier,
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
        let more = more.unwrap_or_default();
        roots.add_parsable_certificates(more.clone());
        Self::of(Verifier::new(roots, more))
    }

    /// Trusts the certificates in `pem`, and no others. A certificate that a server has made for
    /// itself is trusted by its own. JavaScript: `{ ca }`.
    ///
    /// # Errors
    ///
    /// If `pem` has no certificate, or a broken one.
    pub fn with_ca(pem: &[u8]) -> Result<Self, Error> {
        Ok(Self::of(Verifier::new(roots(pem)?, certificates(pem)?)))
    }

    /// Shows a certificate to servers that ask for one: a chain of certificates and a private key
    /// in PEM. JavaScript: `{ cert, key }`.
    ///
    /// # Errors
    ///
    /// If one of them is missing or broken, or the key is not that of the certificate.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::tls::ClientContext;
    ///
    /// fn main() {
    ///     let anonymous = ClientContext::new();
    ///     assert!(anonymous.with_certificate(b"no certificate", b"no key").is_err());
    /// }
    /// ```
    pub fn with_certificate(&self, certificate: &[u8], key: &[u8]) -> Result<Self, Error> {
        let key = PrivateKeyDer::from_pem_slice(key).map_err(invalid)?;
        let config = client_config(&self.verifier)
            .with_client_auth_cert(certificates(certificate)?, key)
            .map_err(invalid)?;
        Ok(Self {
            config: Arc::new(config),
            verifier: self.verifier.clone(),
        })
    }

    fn of(verifier: Verifier) -> Self {
        let config = client_config(&verifier).with_no_client_auth();
        Self {
            config: Arc::new(config),
            verifier,
        }
    }

    /// Offers protocols to the server, which chooses one; see
    /// [`Session::alpn_protocol`](super::Session::alpn_protocol). JavaScript: `{ ALPNProtocols }`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::tls::ClientContext;
    ///
    /// fn main() {
    ///     let context = ClientContext::new().with_alpn_protocols(["mqtt", "http/1.1"]);
    ///     println!("{context:?}");
    /// }
    /// ```
    #[must_use]
    pub fn with_alpn_protocols<P: Into<Vec<u8>>>(
        &self,
        protocols: impl IntoIterator<Item = P>,
    ) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = protocols.into_iter().map(Into::into).collect();
        Self {
            config: Arc::new(config),
            verifier: self.verifier.clone(),
        }
    }

    /// Asks for HTTP/1.1, unless the program offers protocols.
    pub(crate) fn for_http(&self) -> Self {
        match self.config.alpn_protocols.is_empty() {
            true => self.with_alpn_protocols(["http/1.1"]),
            false => self.clone(),
        }
    }
}

fn client_config(verifier: &Verifier) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let provider = Arc::new(ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier.clone()))
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
/// use phaseloop_node::tls::ServerContext;
///
/// fn main() {
///     assert!(ServerContext::new(b"no certificate", b"no key").is_err());
/// }
/// ```
#[derive(Clone)]
pub struct ServerContext {
    pub(super) config: Arc<ServerConfig>,
    pub(super) choice: Choice,
}

impl ServerContext {
    /// Creates a context from a chain of certificates and a private key in PEM. JavaScript: `{
    /// cert, key }`.
    ///
    /// # Errors
    ///
    /// If one of them is missing or broken, or the key is not that of the certificate.
    pub fn new(certificate: &[u8], key: &[u8]) -> Result<Self, Error> {
        Self::of(certificate, key, None)
    }

    /// Creates a context like [`new`](Self::new) that asks every client for a certificate, and
    /// refuses a client without one from the authorities in `ca`. JavaScript: `{ cert, key, ca,
    /// requestCert: true }`.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), and if `ca` has no certificate or a broken one.
    pub fn with_client_ca(certificate: &[u8], key: &[u8], ca: &[u8]) -> Result<Self, Error> {
        Self::of(certificate, key, Some(ca))
    }

    fn of(certificate: &[u8], key: &[u8], client_ca: Option<&[u8]>) -> Result<Self, Error> {
        let key = PrivateKeyDer::from_pem_slice(key).map_err(invalid)?;
        let provider = Arc::new(ring::default_provider());
        let verifier = match client_ca {
            Some(ca) => {
                let roots = Arc::new(roots(ca)?);
                WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
                    .build()
                    .map_err(invalid)?
            }
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(certificates(certificate)?, key)
            .map_err(invalid)?;
        Ok(Self {
            config: Arc::new(config),
            choice: Choice::default(),
        })
    }

    /// Shows the certificate of `other` to clients that ask for `server_name`, which is a name or
    /// `*.` with a domain. Of several that match, the one added last is shown. JavaScript:
    /// `server.addContext(serverName, context)`.
    ///
    /// Add all before the server is created.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop_node::tls::ServerContext;
    ///
    /// fn main() {
    ///     let read = |path| std::fs::read(path).unwrap();
    ///     let certificate = read("certificate.pem");
    ///     let mut context = ServerContext::new(&certificate, &read("key.pem")).unwrap();
    ///     let other = ServerContext::new(&read("other.pem"), &read("other-key.pem")).unwrap();
    ///     context.add_context("*.example.org", &other);
    /// }
    /// ```
    pub fn add_context(&mut self, server_name: impl Into<String>, other: &Self) {
        let mut config = ServerConfig::clone(&self.config);
        config.cert_resolver = Arc::new(ByName {
            name: server_name.into().to_ascii_lowercase(),
            named: other.config.cert_resolver.clone(),
            otherwise: config.cert_resolver,
        });
        self.config = Arc::new(config);
    }

    /// Sets the protocols that the server speaks, the best first. It chooses the first that the
    /// client offers, and refuses a client that offers others only. JavaScript: `{
    /// ALPNProtocols }`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop_node::tls::{self, ServerContext};
    ///
    /// fn main() {
    ///     let certificate = std::fs::read("certificate.pem").unwrap();
    ///     let key = std::fs::read("key.pem").unwrap();
    ///     let context = ServerContext::new(&certificate, &key).unwrap();
    ///     let context = context.with_alpn_protocols(["mqtt", "http/1.1"]);
    ///     let server = tls::create_server(&context, |socket| {
    ///         let session = tls::session(socket).unwrap();
    ///         println!("{:?}", session.alpn_protocol());
    ///     });
    /// }
    /// ```
    #[must_use]
    pub fn with_alpn_protocols<P: Into<Vec<u8>>>(
        &self,
        protocols: impl IntoIterator<Item = P>,
    ) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = protocols.into_iter().map(Into::into).collect();
        Self {
            config: Arc::new(config),
            choice: self.choice.clone(),
        }
    }

    /// Speaks HTTP/1.1 only, unless the program names protocols.
    pub(crate) fn for_http(&self) -> Self {
        match self.config.alpn_protocols.is_empty() {
            true => self.with_alpn_protocols(["http/1.1"]),
            false => self.clone(),
        }
    }
}

/// Chooses a certificate by the name that the client asks for.
#[derive(Debug)]
struct ByName {
    /// In lower case.
    name: String,
    named: Arc<dyn ResolvesServerCert>,
    otherwise: Arc<dyn ResolvesServerCert>,
}

impl ByName {
    fn matches(&self, asked: &str) -> bool {
        match self.name.strip_prefix("*.") {
            Some(domain) => asked
                .split_once('.')
                .is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(domain)),
            None => asked.eq_ignore_ascii_case(&self.name),
        }
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_named = client_hello
            .server_name()
            .is_some_and(|name| self.matches(name));
        match is_named {
            true => self.named.resolve(client_hello),
            false => self.otherwise.resolve(client_hello),
        }
    }
}

impl fmt::Debug for ServerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerContext")
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(invalid)?;
    }
    Ok(roots)
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
