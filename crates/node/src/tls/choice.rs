//! What a server chooses by the first message of a client.

use std::future::Future;
use std::sync::Arc;

use futures::future::LocalBoxFuture;
use rustls::ServerConfig;
use rustls::server::ClientHello;

use super::ServerContext;
use crate::error::Error;

/// What a client asks for.
pub(super) struct Hello {
    server_name: Option<String>,
    protocols: Vec<String>,
}

impl Hello {
    pub(super) fn of(hello: &ClientHello<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            server_name: hello.server_name().map(str::to_owned),
            protocols: hello.alpn().into_iter().flatten().map(text).collect(),
        }
    }
}

type ByName =
    dyn Fn(String) -> LocalBoxFuture<'static, Result<Option<ServerContext>, Error>> + Send + Sync;

type ByProtocols = dyn Fn(Option<&str>, &[String]) -> Option<String> + Send + Sync;

/// The functions that choose. Other threads may use the context, so they are `Send`.
#[derive(Clone, Default)]
pub(super) struct Choice {
    by_name: Option<Arc<ByName>>,
    by_protocols: Option<Arc<ByProtocols>>,
}

impl ServerContext {
    /// Asks `callback` for the context of the name that a client asks for. The certificate of the
    /// context that it returns is shown. `None` chooses this context, and an error refuses the
    /// client. A client without a name gets this context. JavaScript: `{ SNICallback }`.
    ///
    /// The future may wait, such as for a file; the time counts as a part of the handshake.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop_node::{fs, tls::ServerContext};
    ///
    /// fn main() {
    /// #     let (certificate, key) = (b"", b"");
    ///     let context = ServerContext::new(certificate, key).unwrap();
    ///     let context = context.with_sni_callback(|name| async move {
    ///         if name != "other.test" {
    ///             return Ok(None);
    ///         }
    ///         let certificate = fs::promises::read_file("other.pem").await?;
    ///         let key = fs::promises::read_file("other.key").await?;
    ///         ServerContext::new(&certificate, &key).map(Some)
    ///     });
    /// #     let _ = context;
    /// }
    /// ```
    #[must_use]
    pub fn with_sni_callback<F>(
        &self,
        callback: impl Fn(String) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Option<Self>, Error>> + 'static,
    {
        let mut context = self.clone();
        context.choice.by_name = Some(Arc::new(move |name| Box::pin(callback(name))));
        context
    }

    /// Asks `callback` for one of the protocols that a client offers; it gets the name that the
    /// client asks for, and the protocols. `None`, or another protocol, refuses the client. A
    /// client that offers none is served without the call. JavaScript: `{ ALPNCallback }`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop_node::tls::ServerContext;
    ///
    /// fn main() {
    /// #     let (certificate, key) = (b"", b"");
    ///     let context = ServerContext::new(certificate, key).unwrap();
    ///     let context = context.with_alpn_callback(|_name, offered| {
    ///         offered.iter().find(|offer| offer.starts_with("mqtt")).cloned()
    ///     });
    /// #     let _ = context;
    /// }
    /// ```
    #[must_use]
    pub fn with_alpn_callback(
        &self,
        callback: impl Fn(Option<&str>, &[String]) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let mut context = self.clone();
        context.choice.by_protocols = Some(Arc::new(callback));
        context
    }

    /// Returns what serves a client.
    pub(super) async fn chosen(&self, hello: &Hello) -> Result<Arc<ServerConfig>, Error> {
        let mut protocols = self.config.alpn_protocols.clone();
        let by_protocols = self.choice.by_protocols.as_ref();
        if let Some(by_protocols) = by_protocols.filter(|_| !hello.protocols.is_empty()) {
            let chosen = by_protocols(hello.server_name.as_deref(), &hello.protocols);
            match chosen.filter(|chosen| hello.protocols.contains(chosen)) {
                Some(chosen) => protocols = vec![chosen.into_bytes()],
                // No client offers a name that is empty: the session refuses this one.
                None => return Ok(with_protocols(self.config.clone(), vec![Vec::new()])),
            }
        }
        let mut config = self.config.clone();
        if let (Some(by_name), Some(name)) = (&self.choice.by_name, &hello.server_name) {
            if let Some(other) = by_name(name.clone()).await? {
                config = other.config;
            }
        }
        Ok(with_protocols(config, protocols))
    }
}

/// Returns a configuration that speaks these protocols.
fn with_protocols(mut config: Arc<ServerConfig>, protocols: Vec<Vec<u8>>) -> Arc<ServerConfig> {
    if config.alpn_protocols != protocols {
        Arc::make_mut(&mut config).alpn_protocols = protocols;
    }
    config
}
