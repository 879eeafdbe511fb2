//! Which certificates of servers are accepted: those that rustls accepts, and those that Node does.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

use super::certificate::Fields;

/// Verifies the certificate of a server.
///
/// A certificate that is itself among the trusted ones is accepted, whatever it says of its use. A
/// program that makes a certificate of its own, as with `openssl req -x509`, gets one that claims
/// to be an authority; rustls refuses it as that of a server, OpenSSL does not.
#[derive(Clone)]
pub(super) struct Verifier {
    base: Arc<WebPkiServerVerifier>,
    /// What the program has named; not Mozilla's roots, which are no servers.
    named: Arc<[CertificateDer<'static>]>,
}

impl Verifier {
    /// Creates a verifier that trusts `roots`, of which there must be one.
    pub(super) fn new(roots: RootCertStore, named: Vec<CertificateDer<'static>>) -> Self {
        let provider = Arc::new(ring::default_provider());
        let base = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Self {
            base: base.expect("there are roots, and no lists of revoked certificates"),
            named: named.into(),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self
            .base
            .verify_server_cert(certificate, others, name, ocsp, now);
        match verified {
            Err(Error::InvalidCertificate(fault)) if is_of_issuer(&fault) => {
                if !self.named.contains(certificate) {
                    return Err(Untrusted::of(certificate, others).into());
                }
                // Its dates were found valid before its issuer was looked for.
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.base
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.base
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.base.supported_verify_schemes()
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

/// Whether a certificate was refused for who has issued it, and not for its dates or its name.
fn is_of_issuer(fault: &CertificateError) -> bool {
    match fault {
        CertificateError::UnknownIssuer => true,
        // rustls has no variant for this fault of its library, only the text.
        CertificateError::Other(OtherError(cause)) => {
            format!("{cause:?}").contains("CaUsedAsEndEntity")
        }
        _ => false,
    }
}

/// Why the issuer of a certificate is not trusted, in the words of OpenSSL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Untrusted {
    SelfSigned,
    SelfSignedInChain,
    NoIssuer,
    NoIssuerOfLeaf,
}

impl Untrusted {
    fn of(certificate: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Self {
        if is_self_signed(certificate) {
            Self::SelfSigned
        } else if others.iter().any(is_self_signed) {
            Self::SelfSignedInChain
        } else if others.is_empty() {
            Self::NoIssuerOfLeaf
        } else {
            Self::NoIssuer
        }
    }

    pub(super) fn code(self) -> &'static str {
        match self {
            Self::SelfSigned => "DEPTH_ZERO_SELF_SIGNED_CERT",
            Self::SelfSignedInChain => "SELF_SIGNED_CERT_IN_CHAIN",
            Self::NoIssuer => "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
            Self::NoIssuerOfLeaf => "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
        }
    }
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SelfSigned => "self-signed certificate",
            Self::SelfSignedInChain => "self-signed certificate in certificate chain",
            Self::NoIssuer => "unable to get local issuer certificate",
            Self::NoIssuerOfLeaf => "unable to verify the first certificate",
        })
    }
}

impl std::error::Error for Untrusted {}

impl From<Untrusted> for Error {
    fn from(untrusted: Untrusted) -> Self {
        CertificateError::Other(OtherError(Arc::new(untrusted))).into()
    }
}

/// Whether a certificate names itself as its issuer.
fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    Fields::of(certificate).is_some_and(|fields| fields.issuer == fields.subject)
}

#[cfg(test)]
mod tests {
    use super::Fields;

    #[test]
    fn the_names_of_a_certificate_are_found_and_nothing_in_other_bytes() {
        // SEQUENCE { SEQUENCE { [0], INTEGER, SEQUENCE, issuer, validity, subject } }
        let fields = [
            0xa0, 0, 2, 1, 7, 0x30, 0, 0x30, 1, b'i', 0x30, 0, 0x30, 1, b's',
        ];
        let certificate = [&[0x30, 17, 0x30, 15], &fields[..]].concat();
        let found = Fields::of(&certificate).map(|found| (found.issuer, found.subject));
        assert_eq!(found, Some((&b"i"[..], &b"s"[..])));
        for length in 0..certificate.len() {
            assert!(Fields::of(&certificate[..length]).is_none(), "{length}");
        }
    }
}
