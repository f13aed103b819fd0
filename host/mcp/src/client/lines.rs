//! Messages as lines: what a process reads and writes.
//!
//! What the process writes is read into memory up to a limit and no further. A line above the limit, lines that are
//! no messages without end, and a process that does not read are faults that end the connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::ending::Ending;
use super::message::{Decoded, decode};
use super::pace::{Pace, reading};
use crate::text::shown;

/// How many lines in a row may be something other than messages: banners and stray prints, but no endless logs.
const GARBAGE_LINES: u32 = 100;

/// How long a message may wait for the process to read it.
const WRITE_WITHIN: Duration = Duration::from_secs(30);

/// A connection over two streams of lines.
pub(crate) struct Lines<R, W> {
    server: Arc<str>,
    reader: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
    garbage: u32,
    pace: Pace,
    patience: Duration,
    writer: Arc<Mutex<Option<W>>>,
    ending: Arc<Ending>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    /// Reads lines of at most `limit` bytes.
    pub(crate) fn new(server: Arc<str>, reader: R, writer: W, limit: usize, ending: Arc<Ending>) -> Self {
        let writer = Arc::new(Mutex::new(Some(writer)));
        Lines {
            server,
            reader: BufReader::new(reader),
            line: Vec::new(),
            limit,
            garbage: 0,
            pace: Pace::new(),
            patience: WRITE_WITHIN,
            writer,
            ending,
        }
    }

    /// Reads until `self.line` holds a whole line. Whoever stops waiting for it loses nothing.
    async fn read_line(&mut self) -> Result<(), Option<String>> {
        loop {
            let available = self.reader.fill_buf().await.map_err(|error| Some(format!("reading failed: {error}")))?;
            if available.is_empty() {
                return Err(None);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.line.len() + taken > self.limit.saturating_add(1) {
                return Err(Some(format!("it wrote a line of more than {} bytes", self.limit)));
            }
            self.line.extend_from_slice(&available[..taken]);
            self.reader.consume(taken);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// The next message, or why there is none any more.
    async fn next(&mut self) -> Result<RxJsonRpcMessage<RoleClient>, Option<String>> {
        loop {
            self.pace.ready().await;
            self.read_line().await?;
            self.pace.spend(reading(self.line.len()));
            let empty = self.line.trim_ascii().is_empty();
            let decoded = decode(self.line.trim_ascii());
            let start = String::from_utf8_lossy(&self.line[..self.line.len().min(200)]).into_owned();
            self.line.clear();
            // A large message does not keep its memory for the small ones that follow.
            self.line.shrink_to(64 << 10);
            match decoded {
                Decoded::Message(message) => {
                    self.garbage = 0;
                    return Ok(*message);
                }
                Decoded::Garbage(reason) => {
                    self.garbage += 1;
                    if !empty {
                        tracing::warn!(server = %self.server, line = shown(&start), reason, "not a message, ignored");
                    }
                    if self.garbage > GARBAGE_LINES {
                        return Err(Some(format!(
                            "it wrote {} lines in a row that are not messages, the last: {}",
                            self.garbage,
                            shown(&start)
                        )));
                    }
                }
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (writer, ending, patience) = (self.writer.clone(), self.ending.clone(), self.patience);
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let write = async {
                let mut writer = writer.lock().await;
                let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
                writer.write_all(&line).await?;
                writer.flush().await
            };
            tokio::select! {
                written = tokio::time::timeout(patience, write) => written.unwrap_or_else(|_| {
                    ending.end_because(format!("it did not read its input for {patience:?}"));
                    Err(io::ErrorKind::TimedOut.into())
                }),
                () = ending.ended() => Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self.next().await {
            Ok(message) => Some(message),
            Err(Some(fault)) => {
                self.ending.end_because(fault);
                None
            }
            Err(None) => None,
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.ending.end();
        self.writer.lock().await.take();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    fn lines(input: &[u8], limit: usize) -> (Lines<&[u8], tokio::io::Sink>, Arc<Ending>) {
        let ending = Arc::new(Ending::default());
        (Lines::new("s".into(), input, tokio::io::sink(), limit, ending.clone()), ending)
    }

    #[tokio::test]
    async fn messages_are_read_between_garbage() {
        let input = format!("hello\n\n{PING}\r\n{{\n{PING}\nrest without end");
        let (mut lines, ending) = lines(input.as_bytes(), 100);
        assert!(lines.receive().await.is_some());
        assert!(lines.receive().await.is_some());
        assert!(lines.receive().await.is_none());
        assert!(ending.report("s").await.to_string().contains("closed the connection"));
    }

    #[tokio::test]
    async fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let input = format!("{PING}\n");
        let (mut fits, _) = lines(input.as_bytes(), PING.len());
        assert!(fits.receive().await.is_some());
        let (mut long, ending) = lines(input.as_bytes(), PING.len() - 1);
        assert!(long.receive().await.is_none());
        assert!(ending.report("s").await.to_string().contains("more than 39 bytes"));
    }

    #[tokio::test]
    async fn garbage_without_end_is_a_fault() {
        let mut input = format!("noise\n{PING}\n").repeat(GARBAGE_LINES as usize + 10);
        input.push_str(&"noise\n".repeat(GARBAGE_LINES as usize + 1));
        let (mut lines, ending) = lines(input.as_bytes(), 100);
        for _ in 0..GARBAGE_LINES + 10 {
            assert!(lines.receive().await.is_some());
        }
        assert!(lines.receive().await.is_none());
        assert!(ending.report("s").await.to_string().contains("101 lines in a row"));
    }

    #[tokio::test]
    async fn a_process_that_does_not_read_is_at_fault() {
        let (near, _far) = tokio::io::duplex(16);
        let ending = Arc::new(Ending::default());
        let mut lines = Lines::new("s".into(), tokio::io::empty(), near, 100, ending.clone());
        lines.patience = Duration::from_millis(50);
        let ping: TxJsonRpcMessage<RoleClient> = serde_json::from_str(PING).expect("a ping");
        assert!(lines.send(ping).await.is_err());
        assert!(ending.report("s").await.to_string().contains("did not read"));
    }
}
