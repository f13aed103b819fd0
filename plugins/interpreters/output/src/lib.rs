//! Standard output and standard error, buffered on this side of the boundary: one host call for many small writes.

use std::cell::RefCell;

use wasip2::cli::{stderr::get_stderr, stdout::get_stdout};
use wasip2::io::streams::{OutputStream, StreamError};

/// Bytes kept back before they are handed to the host.
const BUFFER: usize = 64 * 1024;

/// Where a script writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, which carries the result.
    Stdout,
    /// Standard error, which carries everything else.
    Stderr,
}

#[derive(Default)]
struct Buffers {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers::default());
}

/// Appends to a stream.
pub fn write(stream: Stream, bytes: &[u8]) {
    BUFFERS.with_borrow_mut(|buffers| {
        let buffer = match stream {
            Stream::Stdout => &mut buffers.stdout,
            Stream::Stderr => &mut buffers.stderr,
        };
        buffer.extend_from_slice(bytes);
        if buffer.len() >= BUFFER {
            send(stream, buffer);
        }
    });
}

/// Hands everything that was written to the host.
pub fn flush() {
    BUFFERS.with_borrow_mut(|buffers| {
        send(Stream::Stdout, &mut buffers.stdout);
        send(Stream::Stderr, &mut buffers.stderr);
    });
}

fn send(stream: Stream, buffer: &mut Vec<u8>) {
    if buffer.is_empty() {
        return;
    }
    let target = match stream {
        Stream::Stdout => get_stdout(),
        Stream::Stderr => get_stderr(),
    };
    // A host that no longer listens decides itself what that means for the call.
    let _ = send_all(&target, buffer);
    buffer.clear();
}

fn send_all(target: &OutputStream, mut bytes: &[u8]) -> Result<(), StreamError> {
    while !bytes.is_empty() {
        let room = usize::try_from(target.check_write()?).unwrap_or(usize::MAX).min(bytes.len());
        if room == 0 {
            target.subscribe().block();
            continue;
        }
        let (now, later) = bytes.split_at(room);
        target.write(now)?;
        bytes = later;
    }
    target.blocking_flush()
}
