//! The host's functions with the types of this crate: the real ones in a component, those of [`crate::testing`]
//! elsewhere.

#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(target_arch = "wasm32")]
mod outgoing;
#[cfg(target_arch = "wasm32")]
mod wasm;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use native::*;
#[cfg(target_arch = "wasm32")]
pub(crate) use outgoing::http;
#[cfg(target_arch = "wasm32")]
pub(crate) use wasm::*;
