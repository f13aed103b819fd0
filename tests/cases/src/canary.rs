//! A listener that nothing may reach.

use std::io;
use std::net::TcpListener;

/// Listens on a free port of 127.0.0.1 for as long as it lives.
#[derive(Debug)]
pub struct Canary {
    listener: TcpListener,
    port: u16,
}

impl Canary {
    /// Starts to listen.
    ///
    /// # Errors
    /// When no port is to be had.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Canary { listener, port })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections were opened since the last time. Whoever connects is queued by the operating system, so
    /// nobody has to wait for them meanwhile.
    pub fn connections(&self) -> usize {
        std::iter::from_fn(|| self.listener.accept().ok()).count()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::Canary;

    #[test]
    fn connections_are_counted_even_if_they_are_closed_again() {
        let canary = Canary::start().expect("a port");
        assert_eq!(canary.connections(), 0);
        for _ in 0..2 {
            drop(TcpStream::connect(("127.0.0.1", canary.port())).expect("connected"));
        }
        assert_eq!(canary.connections(), 2);
        assert_eq!(canary.connections(), 0);
    }
}
