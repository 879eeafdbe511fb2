//! TLS for `localhost`, by an authority of our own. The programs of `examples/island` use this file
//! too.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

const CA: &[u8] = include_bytes!("../../../util/certificates/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../util/certificates/server.pem");
const KEY: &[u8] = include_bytes!("../../../util/certificates/server.key");

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(crate) fn client_config() -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(CA).unwrap())
        .unwrap();
    rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

pub(crate) fn server_config() -> Arc<rustls::ServerConfig> {
    let chain = CertificateDer::pem_slice_iter(CERTIFICATE).map(Result::unwrap);
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.collect(), key);
    Arc::new(config.unwrap())
}
