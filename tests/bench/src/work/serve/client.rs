//! A client that costs little beside the server that it drives: HTTP/1.1 over connections that stay.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::work::Failure;

/// A connection.
pub(super) struct Client {
    stream: TcpStream,
    host: String,
    read: Vec<u8>,
}

/// What came back.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Client {
    pub(super) async fn connect(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, host: address.to_owned(), read: Vec::new() })
    }

    async fn send(&mut self, method: &str, path: &str, body: &str) -> Result<(), Failure> {
        let (host, length) = (&self.host, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        Ok(self.stream.write_all(request.as_bytes()).await?)
    }

    async fn more(&mut self) -> Result<(), Failure> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err("the server closed the connection".into()),
            _ => Ok(()),
        }
    }

    /// The status, and where the head ends in what was read.
    async fn head(&mut self) -> Result<(u16, usize, String), Failure> {
        self.read.clear();
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            self.more().await?;
        };
        let head = std::str::from_utf8(&self.read[..end])?.to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or("a reply without a status")?;
        Ok((status, end, head))
    }

    /// Sends a request and reads the reply.
    pub(super) async fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Reply, Failure> {
        self.send(method, path, body).await?;
        let (status, end, head) = self.head().await?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
        let body = match length {
            Some(length) => {
                while self.read.len() < end + length {
                    self.more().await?;
                }
                self.read[end..end + length].to_vec()
            }
            // In chunks: all there is to know is that the last one came.
            None => {
                while !self.read.ends_with(b"0\r\n\r\n") {
                    self.more().await?;
                }
                self.read[end..].to_vec()
            }
        };
        Ok(Reply { status, body })
    }

    /// Begins to follow something, and returns when the first event is there.
    pub(super) async fn follow(&mut self, path: &str) -> Result<(), Failure> {
        self.send("GET", path, "").await?;
        let (status, end, _) = self.head().await?;
        if status != 200 {
            return Err(format!("a stream began with {status}").into());
        }
        while self.read.len() <= end {
            self.more().await?;
        }
        Ok(())
    }
}
