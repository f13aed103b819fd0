//! The log on standard error, chosen with `RUST_LOG`. The narration is not part of it.

use std::io;
use std::sync::Arc;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::screen::Screen;

/// Starts logging if `RUST_LOG` asks for it.
pub(crate) fn start(screen: &Arc<Screen>) {
    let Some(wanted) = std::env::var("RUST_LOG").ok().filter(|wanted| !wanted.trim().is_empty()) else {
        return;
    };
    let filter = match EnvFilter::try_new(in_our_names(&wanted)) {
        Ok(filter) => filter,
        Err(error) => {
            screen.warning(&format!("`RUST_LOG` cannot be read and is ignored: {error}"));
            return;
        }
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(screen.colour())
        .with_writer(Lines(Arc::clone(screen)));
    // Fails only if there is a subscriber already, which is then the one to keep.
    let _ = subscriber.try_init();
}

/// Directives for `loki` mean the same part of hotcell.
fn in_our_names(directives: &str) -> String {
    let ours = directives.split(',').map(|directive| match directive.trim().strip_prefix("loki") {
        Some(rest) if rest.is_empty() || rest.starts_with([':', '=', '[']) => format!("hotcell{rest}"),
        _ => directive.trim().to_owned(),
    });
    ours.collect::<Vec<_>>().join(",")
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
