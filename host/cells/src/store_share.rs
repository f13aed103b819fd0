//! What the store of one plugin may hold, wherever it is kept: a plugin that passes its cases meets no other limits in a graph.

use crate::services::ServiceError;

/// The share of one plugin of whatever keeps its store.
#[derive(Clone, Copy, Debug)]
pub struct StoreShare;

impl StoreShare {
    /// Bytes of a key
    pub const KEY: usize = 256;
    /// Bytes of a value
    pub const VALUE: usize = 1 << 20;
    /// Bytes that the keys and values have together
    pub const BYTES: usize = 64 << 20;
    /// Keys
    pub const KEYS: usize = 10_000;

    /// Whether this may be a key.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn check_key(key: &str) -> Result<(), ServiceError> {
        if key.is_empty() || key.len() > Self::KEY {
            let text = format!("a key has 1 to {} bytes, not {}", Self::KEY, key.len());
            return Err(ServiceError::InvalidInput(text));
        }
        Ok(())
    }

    /// Whether a value may be put under a key of a store that has so many other keys, and so many bytes under them, keys included.
    ///
    /// # Errors
    /// When the key or the value is none, or there is no room.
    pub fn check_entry(key: &str, value: &[u8], keys: usize, bytes: usize) -> Result<(), ServiceError> {
        Self::check_key(key)?;
        if value.len() > Self::VALUE {
            let text = format!("a value has at most {} bytes, not {}", Self::VALUE, value.len());
            return Err(ServiceError::InvalidInput(text));
        }
        if keys >= Self::KEYS || bytes.saturating_add(key.len() + value.len()) > Self::BYTES {
            let (keys, bytes) = (Self::KEYS, Self::BYTES);
            let text = format!("the plugin's store is full: {keys} keys and {bytes} bytes are its share");
            return Err(ServiceError::Unavailable(text));
        }
        Ok(())
    }
}
