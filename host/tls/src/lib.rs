//! TLS of connections that the host makes: whom it trusts, and how it proves who it is.
//!
//! Files with certificates and keys are named by whoever describes a server. Which files may be named is decided before; here
//! they are read, within bounds, and nothing of a key gets into an error.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

/// Bytes that a file with certificates or a key may have.
const MAX_CERTIFICATES: u64 = 4 << 20;

/// Certificates of a connection, as PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TlsFiles {
    /// Who may sign the server's certificate, in place of those who are trusted otherwise
    pub ca_file: Option<PathBuf>,
    /// The certificate that is shown to the server, with those that signed it
    pub client_certificate: Option<PathBuf>,
    /// The key of that certificate
    pub client_key: Option<PathBuf>,
}

/// Why a connection cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TlsError {
    /// A file cannot be read, or is none with certificates or a key.
    #[error("`{}` cannot be used: {reason}", .file.display())]
    File {
        /// The file
        file: PathBuf,
        /// What is wrong with it
        reason: String,
    },
    /// A file that should hold certificates holds none.
    #[error("`{}` holds no certificate", .0.display())]
    NoCertificate(PathBuf),
    /// Of a certificate and its key, one is missing.
    #[error("a client certificate needs its key, and a key its certificate")]
    OneOfTwo,
    /// The cryptography cannot be set up.
    #[error("{0}")]
    Setup(String),
}

/// Who may sign the certificates of servers of the public internet: those that are bundled, so that TLS works on machines without a
/// certificate store, and those that the machine's owner trusts besides. A store that cannot be read adds nothing.
pub fn public_roots() -> RootCertStore {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// What a client needs for TLS: it trusts the authorities that are named, or else those of `trusted`, and shows the certificate
/// that is named, if one is.
///
/// # Errors
/// A file cannot be read or used, or a certificate has no key.
pub fn client_config(files: &TlsFiles, trusted: impl FnOnce() -> RootCertStore) -> Result<ClientConfig, TlsError> {
    let roots = match &files.ca_file {
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(|error| unusable(file, &error))?;
            }
            roots
        }
        None => trusted(),
    };
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Setup(error.to_string()))?
        .with_root_certificates(roots);
    match (&files.client_certificate, &files.client_key) {
        (Some(certificate), Some(key)) => {
            let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| unusable(key, &error))?;
            let chain = certificates(certificate)?;
            config.with_client_auth_cert(chain, private).map_err(|error| unusable(certificate, &error))
        }
        (None, None) => Ok(config.with_no_client_auth()),
        _ => Err(TlsError::OneOfTwo),
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(file)?;
    match CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>() {
        Ok(certificates) if certificates.is_empty() => Err(TlsError::NoCertificate(file.to_owned())),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(unusable(file, &error)),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    hotcell_files::read(file, MAX_CERTIFICATES).map_err(|error| unusable(file, &error))
}

fn unusable(file: &Path, error: &dyn StdError) -> TlsError {
    TlsError::File { file: file.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(files: &TlsFiles) -> Result<ClientConfig, String> {
        client_config(files, RootCertStore::empty).map_err(|error| error.to_string())
    }

    #[test]
    fn certificates_and_keys_are_read_from_their_files() {
        let folder = tempfile::tempdir().expect("a folder");
        hotcell_loopback::tls::certificates(folder.path()).expect("certificates");
        let file = |name: &str| Some(folder.path().join(name));
        let all = TlsFiles {
            ca_file: file("ca.pem"),
            client_certificate: file("client.pem"),
            client_key: file("client.key"),
        };
        assert!(config(&TlsFiles::default()).is_ok_and(|config| !config.client_auth_cert_resolver.has_certs()));
        assert!(config(&all).is_ok_and(|config| config.client_auth_cert_resolver.has_certs()));
        std::fs::write(folder.path().join("large.pem"), vec![b' '; MAX_CERTIFICATES as usize + 1]).expect("written");
        for (files, expected) in [
            (TlsFiles { ca_file: file("nowhere.pem"), ..all.clone() }, "nowhere.pem` cannot be used"),
            (TlsFiles { ca_file: file("client.key"), ..all.clone() }, "client.key` holds no certificate"),
            (TlsFiles { ca_file: file("large.pem"), ..all.clone() }, "large.pem` cannot be used"),
            (TlsFiles { client_key: file("client.pem"), ..all.clone() }, "client.pem` cannot be used"),
            (TlsFiles { client_key: file("stranger.key"), ..all.clone() }, "client.pem` cannot be used"),
            (TlsFiles { client_key: None, ..all.clone() }, "a client certificate needs its key"),
            (TlsFiles { client_certificate: None, ..all }, "and a key its certificate"),
        ] {
            let refused = config(&files).expect_err(expected);
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
