//! How connections over TLS are made.

use std::sync::{Arc, LazyLock};

use hotcell_tls::{TlsError, TlsFiles, client_config};

/// How connections over TLS are made for requests of the host's own.
#[derive(Clone)]
pub struct OwnTls(Arc<rustls::ClientConfig>);

/// With the certificate authorities of the web, or nothing where the cryptography cannot be set up.
static OF_THE_WEB: LazyLock<Option<OwnTls>> = LazyLock::new(|| OwnTls::new(&TlsFiles::default()).ok());

impl OwnTls {
    /// With the certificates in these files; whom they do not name, the authorities of the web vouch for.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn new(files: &TlsFiles) -> Result<Self, TlsError> {
        let web = || rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
        let mut configuration = client_config(files, web)?;
        configuration.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(OwnTls(Arc::new(configuration)))
    }

    /// These settings, or where there are none those of the web; nothing where the cryptography cannot be set up.
    pub(crate) fn or_of_the_web(own: Option<&Self>) -> Option<Arc<rustls::ClientConfig>> {
        own.or(OF_THE_WEB.as_ref()).map(|OwnTls(configuration)| configuration.clone())
    }
}
