//! Streams of server-sent events, read piece by piece with a limit on what one event may hold.

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StreamEvent {
    /// Its name; empty if it has none
    pub name: String,
    /// Its data, lines joined
    pub data: String,
}

/// An event is larger than agreed.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge;

/// Takes pieces of a stream and gives events.
pub struct EventReader {
    limit: usize,
    line: Vec<u8>,
    name: String,
    data: Option<String>,
    after_return: bool,
    first: bool,
}

impl EventReader {
    /// Reads events of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        EventReader { limit, line: Vec::new(), name: String::new(), data: None, after_return: false, first: true }
    }

    /// Reads a piece; the events that it completes come after those in `events`.
    ///
    /// # Errors
    /// When an event is larger than agreed.
    pub fn read(&mut self, piece: &[u8], events: &mut Vec<StreamEvent>) -> Result<(), TooLarge> {
        for &byte in piece {
            let ends_pair = byte == b'\n' && self.after_return;
            self.after_return = byte == b'\r';
            match byte {
                _ if ends_pair => {}
                b'\n' | b'\r' => events.extend(self.take_line()),
                _ => {
                    self.line.push(byte);
                    let held = self.line.len() + self.name.len() + self.data.as_ref().map_or(0, String::len);
                    if held > self.limit {
                        return Err(TooLarge);
                    }
                }
            }
        }
        Ok(())
    }

    fn take_line(&mut self) -> Option<StreamEvent> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = match std::mem::replace(&mut self.first, false) {
            true => line.strip_prefix('\u{feff}').unwrap_or(&line),
            false => &line,
        };
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            return self.data.take().map(|data| StreamEvent { name, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // Comments, and what only matters to those who resume a stream.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> StreamEvent {
        StreamEvent { name: name.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn events_are_read_however_they_are_cut() {
        let stream = "\u{feff}: hello\r\nevent: endpoint\r\ndata: /m?x=1\r\n\r\ndata:a\ndata: b\n\nid: 7\n\n\
                      event: message\rdata: {\"ä\":1}\r\revent: lost\n\ndata\n\ndata: cut";
        let expected = [event("endpoint", "/m?x=1"), event("", "a\nb"), event("message", "{\"ä\":1}"), event("", "")];
        for size in [1, 2, 3, 7, 1_000] {
            let (mut reader, mut events) = (EventReader::new(100), Vec::new());
            for piece in stream.as_bytes().chunks(size) {
                reader.read(piece, &mut events).expect("within the limit");
            }
            assert_eq!(events, expected, "pieces of {size}");
        }
    }

    #[test]
    fn an_event_above_the_limit_is_refused() {
        let mut events = Vec::new();
        assert_eq!(EventReader::new(10).read(b"data: 1234", &mut events), Ok(()));
        assert_eq!(EventReader::new(10).read(b"data: 12345", &mut events), Err(TooLarge));
        let lines = b"data: 1\n".repeat(20);
        assert_eq!(EventReader::new(20).read(&lines, &mut events), Err(TooLarge));
        assert_eq!(EventReader::new(20).read(&b"data: 1\n\n".repeat(20), &mut events), Ok(()));
    }
}
