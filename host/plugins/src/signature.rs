//! Signatures of plugins: a minisign signature in a file beside the component, `NAME.wasm.minisig`.
//!
//! The form is that of minisign (Ed25519 over a BLAKE2b digest), so its own tools and any other that speaks it can
//! make and check these signatures too. Everything works offline.

use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use crate::versions::{SeenVersions, VersionError};

/// What the file with a signature ends with, after the name of the component.
pub const SIGNATURE_EXTENSION: &str = "minisig";

/// Why a signature cannot be made or does not count.
#[derive(Debug, Error)]
pub enum SignatureError {
    /// A file cannot be read or written
    #[error("cannot use `{path}`: {cause}", path = path.display())]
    File {
        /// The file
        path: PathBuf,
        /// Why not
        cause: String,
    },
    /// There is no signature
    #[error("it has no signature: there is no `{path}`", path = path.display())]
    Missing {
        /// Where it would be
        path: PathBuf,
    },
    /// The signature is not by any of the keys
    #[error("its signature is not by any of the {keys} trusted keys, or the file was changed after it was signed")]
    Untrusted {
        /// How many keys were tried
        keys: usize,
    },
    /// A key is not of its form
    #[error("`{key}` is not a minisign public key: {cause}")]
    Key {
        /// The key
        key: String,
        /// Why not
        cause: String,
    },
}

/// Why a plugin that needs a signature may not be used. The texts do not repeat its file.
#[derive(Debug, Error)]
pub enum UnsignedError {
    /// The component cannot be read
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// The component is not the one that was looked at
    #[error("it was changed a moment ago; try again")]
    ChangedMeanwhile,
    /// It has no signature that counts
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// Its signature counts, and a newer version was used before
    #[error(transparent)]
    Version(#[from] VersionError),
}

/// Whose signatures count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignaturePolicy {
    /// Whether a plugin without a good signature is refused
    pub required: bool,
    /// Public keys, as minisign writes them
    pub keys: Vec<String>,
    /// Which versions were used, where signatures are required
    #[serde(skip)]
    pub versions: SeenVersions,
}

/// A public key as minisign writes it, in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(pub String);

/// A new pair of keys.
pub struct KeyPair {
    /// For those who check
    pub public: PublicKey,
    /// For the one who signs: the text of its file
    pub secret: String,
}

impl KeyPair {
    /// Makes a pair. The secret key is protected with the password; an empty one leaves it unprotected.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn generate(password: &str) -> Result<Self, SignatureError> {
        let failed = |error: minisign::PError| SignatureError::File { path: PathBuf::new(), cause: error.to_string() };
        let pair = if password.is_empty() {
            minisign::KeyPair::generate_unencrypted_keypair()
        } else {
            minisign::KeyPair::generate_encrypted_keypair(Some(password.to_owned()))
        }
        .map_err(failed)?;
        let secret = pair.sk.to_box(None).map_err(failed)?.to_string();
        Ok(KeyPair { public: PublicKey(pair.pk.to_base64()), secret })
    }

    /// Writes the keys into files that are not there yet; only the owner can read the secret one.
    ///
    /// # Errors
    /// When a file is there or cannot be written.
    pub fn write(&self, secret: &Path, public: &Path) -> Result<(), SignatureError> {
        use std::io::Write as _;
        let write = |path: &Path, text: &str, secret: bool| {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, if secret { 0o600 } else { 0o644 });
            let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|error| SignatureError::File { path: path.to_owned(), cause: error.to_string() })
        };
        write(secret, &self.secret, true)?;
        write(public, &format!("untrusted comment: minisign public key\n{}\n", self.public.0), false)
    }
}

/// Whether each of these is a public key, before anything is compared with them.
///
/// # Errors
/// When one of them is not.
pub fn check_keys(keys: &[String]) -> Result<(), SignatureError> {
    keys.iter().try_for_each(|key| public_key(key).map(drop))
}

fn public_key(key: &str) -> Result<minisign::PublicKey, SignatureError> {
    minisign::PublicKey::from_base64(key.trim())
        .map_err(|error| SignatureError::Key { key: key.to_owned(), cause: error.to_string() })
}

/// Where the signature of a component lies.
pub fn signature_file(component: &Path) -> PathBuf {
    let mut name = component.as_os_str().to_owned();
    name.push(".");
    name.push(SIGNATURE_EXTENSION);
    PathBuf::from(name)
}

/// Signs a component with the secret key in a file, and gives the path of the signature.
///
/// # Errors
/// When a file cannot be used or the password is wrong.
pub fn sign(component: &Path, secret_key: &Path, password: &str) -> Result<PathBuf, SignatureError> {
    let file = |path: &Path, cause: String| SignatureError::File { path: path.to_owned(), cause };
    let text = hotcell_files::read_text(secret_key, hotcell_files::MAX_TEXT)
        .map_err(|error| file(secret_key, error.to_string()))?;
    let secret = minisign::SecretKeyBox::from_string(&text)
        .and_then(|boxed| {
            if password.is_empty() {
                boxed.clone().into_unencrypted_secret_key().or_else(|_| boxed.into_secret_key(Some(String::new())))
            } else {
                boxed.into_secret_key(Some(password.to_owned()))
            }
        })
        .map_err(|error| file(secret_key, error.to_string()))?;
    let bytes = hotcell_files::read(component, hotcell_files::MAX_COMPONENT)
        .map_err(|error| file(component, error.to_string()))?;
    let comment = component.file_name().map(|name| format!("file:{}", name.to_string_lossy()));
    let signature = minisign::sign(None, &secret, Cursor::new(bytes), comment.as_deref(), None)
        .map_err(|error| file(component, error.to_string()))?;
    let path = signature_file(component);
    hotcell_files::replace(&path, signature.to_string().as_bytes()).map_err(|error| file(&path, error.to_string()))?;
    Ok(path)
}

/// The first of `keys` that signed the component whose bytes these are.
///
/// # Errors
/// When there is no signature, or none by these keys.
pub fn signer_of<'k>(component: &Path, bytes: &[u8], keys: &'k [String]) -> Result<&'k str, SignatureError> {
    let path = signature_file(component);
    let text = match hotcell_files::read_text(&path, hotcell_files::MAX_TEXT) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(SignatureError::Missing { path }),
        Err(error) => return Err(SignatureError::File { path, cause: error.to_string() }),
    };
    signer_by_text(path, &text, bytes, keys)
}

/// The first of `keys` that made the signature with this text, of the component whose bytes these are. `path` is where the text
/// was found.
///
/// # Errors
/// When the text is no signature, or it is by none of these keys.
pub fn signer_by_text<'k>(
    path: PathBuf,
    text: &str,
    bytes: &[u8],
    keys: &'k [String],
) -> Result<&'k str, SignatureError> {
    let signature = minisign::SignatureBox::from_string(text)
        .map_err(|error| SignatureError::File { path, cause: error.to_string() })?;
    for key in keys {
        let public = public_key(key)?;
        if minisign::verify(&public, &signature, Cursor::new(bytes), true, false, false).is_ok() {
            return Ok(key);
        }
    }
    Err(SignatureError::Untrusted { keys: keys.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attack_63_only_what_was_signed_by_a_trusted_key_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (component, key) = (folder.path().join("a.wasm"), folder.path().join("key"));
        std::fs::write(&component, b"bytes").unwrap();
        let (mine, other) = (KeyPair::generate("").unwrap(), KeyPair::generate("").unwrap());
        let keys = [other.public.0.clone(), mine.public.0.clone()];
        assert!(matches!(signer_of(&component, b"bytes", &keys), Err(SignatureError::Missing { .. })));
        std::fs::write(&key, &mine.secret).unwrap();
        let path = sign(&component, &key, "").unwrap();
        assert_eq!(path, folder.path().join("a.wasm.minisig"));
        assert_eq!(signer_of(&component, b"bytes", &keys).unwrap(), mine.public.0);
        assert!(matches!(signer_of(&component, b"Bytes", &keys), Err(SignatureError::Untrusted { keys: 2 })));
        assert!(matches!(signer_of(&component, b"bytes", &keys[..1]), Err(SignatureError::Untrusted { .. })));
        assert!(matches!(signer_of(&component, b"bytes", &["x".to_owned()]), Err(SignatureError::Key { .. })));
        std::fs::write(&path, "nonsense").unwrap();
        assert!(matches!(signer_of(&component, b"bytes", &keys), Err(SignatureError::File { .. })));
    }
}
