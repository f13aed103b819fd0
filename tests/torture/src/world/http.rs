//! Requests and answers of HTTP/1.1, by hand: a server of a library would not lose a connection when it is told to.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A request as it came.
pub(crate) struct Request {
    pub(crate) method: String,
    /// With the query
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
}

/// What a request gets.
pub(crate) struct Answer {
    /// How long it takes
    pub(crate) after: Duration,
    pub(crate) outcome: Outcome,
}

/// How an exchange ends.
pub(crate) enum Outcome {
    /// A whole reply
    Reply { status: u16, kind: &'static str, body: String },
    /// The connection is reset before a byte of the reply
    Reset,
    /// The connection ends in the middle of a reply like this
    Cut { body: String },
}

impl Answer {
    pub(crate) fn now(status: u16, kind: &'static str, body: impl Into<String>) -> Self {
        Answer { after: Duration::ZERO, outcome: Outcome::Reply { status, kind, body: body.into() } }
    }
}

/// The next request of a connection; none when the client has gone.
pub(crate) fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut header = String::new();
        if stream.read_line(&mut header)? == 0 {
            return Ok(None);
        }
        let header = header.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        chunked |= header.starts_with("transfer-encoding:") && header.contains("chunked");
    }
    let mut body = Vec::new();
    if chunked {
        read_chunks(stream, &mut body)?;
    } else {
        body.resize(length, 0);
        stream.read_exact(&mut body)?;
    }
    Ok(Some(Request { method, target, body }))
}

fn read_chunks(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut size = String::new();
        stream.read_line(&mut size)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
        let begun = body.len();
        body.resize(begun + size, 0);
        stream.read_exact(&mut body[begun..])?;
        stream.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(());
        }
    }
}

/// Gives an answer. Whether the connection can be used for another request.
pub(crate) fn write(stream: &mut TcpStream, outcome: &Outcome) -> io::Result<bool> {
    let head = |status: u16, kind: &str, length: usize| {
        format!("HTTP/1.1 {status} {}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n", reason(status))
    };
    match outcome {
        Outcome::Reply { status, kind, body } => {
            stream.write_all(format!("{}{body}", head(*status, kind, body.len())).as_bytes())?;
            Ok(true)
        }
        Outcome::Reset => {
            // Without lingering, closing a socket is a reset.
            rustix::net::sockopt::set_socket_linger(&*stream, Some(Duration::ZERO))?;
            Ok(false)
        }
        Outcome::Cut { body } => {
            let half = body.floor_char_boundary(body.len() / 2);
            let head = head(200, "application/json", body.len());
            stream.write_all(format!("{head}{}", &body[..half]).as_bytes())?;
            Ok(false)
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        404 => "Not Found",
        405 => "Method Not Allowed",
        429 => "Too Many Requests",
        _ => "Internal Server Error",
    }
}
