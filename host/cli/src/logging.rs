//! The log on standard error, chosen with `RUST_LOG`. The narration is not part of it; without a log it tells what plugins and
//! scripts log while they run, and what goes wrong at a server.

use std::sync::Arc;
use std::{fmt, io};

use tracing::field::{Field, Visit};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{FilterExt as _, FilterFn, LevelFilter, Targets, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::screen::{DIM, Screen, WARNING};
use crate::untrusted::{lines, one_line};

/// Characters of a line that are shown.
const SHOWN: usize = 400;

/// What plugins and scripts log, and what is logged about them.
const OF_PLUGINS: &str = "hotcell::plugin";

/// What the crate that asks models logs, by the beginning of its targets.
const OF_MODELS: &str = "rig";

/// What a server logs.
const OF_SERVER: &str = "hotcell::serve";

/// Starts logging if `RUST_LOG` asks for it.
pub(crate) fn start(screen: &Arc<Screen>) {
    let Some(wanted) = std::env::var("RUST_LOG").ok().filter(|wanted| !wanted.trim().is_empty()) else {
        let notices = Notices(Arc::clone(screen));
        let only = Targets::new().with_target(OF_PLUGINS, Level::INFO).with_target(OF_SERVER, Level::WARN);
        let _ = tracing_subscriber::registry().with(notices.with_filter(only)).try_init();
        return;
    };
    let filter = match EnvFilter::try_new(in_our_names(&wanted)) {
        Ok(filter) => filter,
        Err(error) => {
            screen.warning(&format!("`RUST_LOG` cannot be read and is ignored: {error}"));
            return;
        }
    };
    let layer = tracing_subscriber::fmt::layer().with_ansi(screen.colour()).with_writer(Lines(Arc::clone(screen)));
    let layer = layer.with_filter(filter.and(without_exchanges()));
    // Fails only if there is a subscriber already, which is then the one to keep.
    let _ = tracing_subscriber::registry().with(layer).try_init();
}

/// Whatever `RUST_LOG` says: whole requests to models and their replies are no lines of a log. They may have what a run redacts, and what
/// an agent's replies may not have.
pub(crate) fn without_exchanges() -> FilterFn {
    let may_be_logged: fn(&Metadata<'_>) -> bool =
        |metadata| *metadata.level() <= Level::INFO || !metadata.target().starts_with(OF_MODELS);
    filter_fn(may_be_logged).with_max_level_hint(LevelFilter::TRACE)
}

/// Directives for `loki` mean the same part of hotcell.
pub(crate) fn in_our_names(directives: &str) -> String {
    let ours = directives.split(',').map(|directive| match directive.trim().strip_prefix("loki") {
        Some(rest) if rest.is_empty() || rest.starts_with([':', '=', '[']) => format!("hotcell{rest}"),
        _ => directive.trim().to_owned(),
    });
    ours.collect::<Vec<_>>().join(",")
}

/// Tells what plugins and scripts log as lines of the narration, and what goes wrong around them and at a server as warnings.
struct Notices(Arc<Screen>);

/// The fields of a record that are told.
#[derive(Default)]
struct Told {
    plugin: Option<String>,
    /// The agent of a server
    agent: Option<String>,
    message: String,
    /// Why it happened: text of several lines
    reason: Option<String>,
    /// Whether the plugin or script said it itself
    said: bool,
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "plugin" => self.plugin = Some(format!("{value:?}").trim_matches('"').to_owned()),
            "error" => self.reason = Some(format!("{value:?}")),
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.said |= field.name() == "said" && value;
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            "plugin" => self.plugin = Some(value.to_owned()),
            "agent" => self.agent = Some(value.to_owned()),
            "reason" | "error" => self.reason = Some(value.to_owned()),
            _ => {}
        }
    }
}

impl<S: Subscriber> Layer<S> for Notices {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        // A server has no narration that its warnings would be part of.
        if event.metadata().target() != OF_SERVER && !self.0.tells_warnings() {
            return;
        }
        let mut told = Told::default();
        event.record(&mut told);
        let message = one_line(&told.message, SHOWN);
        let line = match &told.plugin {
            Some(plugin) => format!("{}: {message}", one_line(plugin, SHOWN)),
            None => message,
        };
        let line = match &told.agent {
            Some(agent) => format!("agent `{}`: {line}", one_line(agent, SHOWN)),
            None => line,
        };
        let line = match &told.reason {
            Some(reason) => format!("{line}: {}", lines(reason.trim_end())),
            None => line,
        };
        let is_warning = *event.metadata().level() <= Level::WARN;
        if told.said && self.0.tells_plugins() {
            let style = if is_warning { WARNING } else { DIM };
            self.0.line(&self.0.paint(style, &format!("▸ {line}")));
        } else if is_warning {
            self.0.warning(&line);
        }
    }
}

/// Hands each record to the screen as one piece.
struct Lines(Arc<Screen>);

struct Record {
    screen: Arc<Screen>,
    text: Vec<u8>,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Record;

    fn make_writer(&'a self) -> Record {
        Record { screen: Arc::clone(&self.0), text: Vec::new() }
    }
}

impl io::Write for Record {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.text);
        if !text.is_empty() {
            self.screen.line(text.trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::in_our_names;

    #[test]
    fn loki_means_hotcell_at_the_beginning_of_a_directive() {
        let cases = [
            ("loki::graph=debug", "hotcell::graph=debug"),
            ("info, loki=trace", "info,hotcell=trace"),
            ("loki", "hotcell"),
            ("lokinet=debug,my::loki=info", "lokinet=debug,my::loki=info"),
            ("hotcell::graph=debug", "hotcell::graph=debug"),
        ];
        for (given, expected) in cases {
            assert_eq!(in_our_names(given), expected);
        }
    }
}
