//! The server: agents of every language, their runs and the people who answer them, over HTTP.
//!
//! [`Server::new`] finds and loads the agents below some folders, [`Server::serve`] answers requests until it is told to stop.
//! [`Site`] does so for several tenants, each with a server of its own that the others cannot reach.
//! Runs are in the journal of the [`Host`](hotcell_runtime::Host) and nowhere else: a stream of events is the entries of a run
//! as they are committed, so a server that is killed loses nothing, and a client that comes back misses nothing.

mod access;
mod agents;
mod answerer;
mod api;
mod aside;
mod asked;
mod attachments;
mod deadlines;
mod decisions;
mod error;
mod follow;
mod front;
mod gauges;
mod groups;
mod guard;
mod happenings;
mod input;
mod items;
mod jwt;
mod key;
mod keyed;
mod leash;
mod live;
mod locks;
mod log;
mod mesh;
mod news;
mod object;
mod once;
mod plugin_view;
mod post;
mod problem;
mod quota;
mod replies;
mod rfc3339;
mod role;
mod rules;
mod runs;
mod schedule;
mod server;
mod server_file;
mod shares;
mod site;
mod spending;
mod state;
mod step;
mod store;
mod tenant_name;
mod thread_store;
mod told_runs;
mod view;
mod watch;
mod webhooks;
mod whereabouts;

pub use access::Keys;
pub use access::oidc::{OidcSettings, TenantOf};
pub use agents::watching::Watching;
pub use error::ServeError;
pub use groups::{Groups, NotGroups};
pub use key::{ApiKey, Token};
pub use problem::Problem;
pub use quota::{MonthBudget, Quota};
pub use role::Role;
pub use server_file::{ServerFile, ServerFileError, TenantSetup, is_origin};
pub use site::{Site, Tenant};
pub use state::{ServeSettings, Server};
pub use tenant_name::{NotAName, TenantName};
pub use webhooks::WebhookSettings;
