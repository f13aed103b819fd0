//! What operators do with plugins: find them in folders, see what they ask for, grant it, pin it, trust it, sign it.
//!
//! Nothing here compiles or runs a plugin. A [`Catalogue`] reads what files say about themselves; an [`AgentFolder`] is
//! what the operator said about them (`hotcell.toml`, `hotcell.lock`, trust); [`AgentFolder::standing`] brings both
//! together and decides whether a plugin may be used, and with which grants.

mod agent_folder;
mod asked;
mod catalogue;
mod decisions;
mod footprint;
mod grant;
mod grant_more;
mod install;
mod kv;
mod lock;
mod plugin;
mod record;
mod schedule;
mod settings;
mod signature;
mod standing;
#[cfg(test)]
mod testing;
mod toml_file;
mod trust;
mod versions;
mod writers;

pub use agent_folder::{AgentFolder, FolderError, FolderRecord};
pub use catalogue::{Catalogue, Found};
pub use decisions::Decisions;
pub use footprint::{MAX_SERVERS, PLUGIN_FOLDER, SERVERS_FILE};
pub use grant::{EVERYTHING, GrantError, GrantOrder};
pub use grant_more::together;
pub use hotcell_cells::{Access, DirectoryGrant, Grants, HttpGrant};
pub use install::{install, install_bytes, uninstall};
pub use kv::{Amount, Former, Listing, Owner, Stores, StoresError, TakeOverError};
pub use lock::{LOCK_FILE, LockError};
pub use plugin::{Plugin, PluginError};
pub use record::RecordSettings;
pub use schedule::{Misfire, ScheduleSettings};
pub use settings::{
    AGENT_GRANTS, GrantsForm, KNOWLEDGE_GRANTS, LimitError, NotPinned, SERVER_GRANTS, SETTINGS_FILE, Settings,
    SettingsError, parse_grants,
};
pub use signature::{
    KeyPair, PublicKey, SIGNATURE_EXTENSION, SignatureError, SignaturePolicy, UnsignedError, check_keys, sign,
    signature_file, signer_by_text, signer_of,
};
pub use standing::Standing;
pub use toml_file::TomlFileError;
pub use trust::{Trust, TrustError};
pub use versions::{SeenVersions, VERSIONS_FILE, VersionError};
pub use writers::WritesWhatDecides;
