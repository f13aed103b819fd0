//! Pieces that stand for themselves, as many in a chunk as there is room for.

use super::{Cutter, prose};
use crate::source::Kind;

/// Gathers pieces into chunks that all begin with the same text.
pub(super) struct Packer<'a> {
    cutter: Cutter<'a>,
    /// What every chunk begins with, with a line break at its end if it is not empty.
    head: String,
    head_length: usize,
    chunk: String,
    length: usize,
    chunks: Vec<String>,
}

impl<'a> Packer<'a> {
    pub(super) fn new(cutter: Cutter<'a>, head: &str) -> Self {
        let head_length = cutter.length(head);
        let head = if head.is_empty() { String::new() } else { format!("{head}\n") };
        Self { cutter, head, head_length, chunk: String::new(), length: 0, chunks: Vec::new() }
    }

    /// Adds a piece of `length` tokens. A piece too long for a chunk is cut, and `label` stands before each part of it.
    pub(super) fn add(&mut self, label: &str, piece: &str, length: usize) {
        let room = self.cutter.size.saturating_sub(self.head_length);
        let label_length = if label.is_empty() { 0 } else { self.cutter.length(label) };
        if label_length + length > room {
            self.close();
            // A label that would take most of the room is still worth more than a chunk that nobody can place.
            let parts = self.cutter.with_size(room.saturating_sub(label_length));
            for part in prose::cut(&parts, Kind::Text, piece) {
                self.chunks.push(format!("{}{label}{part}", self.head));
            }
            return;
        }
        if self.length + label_length + length > room {
            self.close();
        }
        if !self.chunk.is_empty() {
            self.chunk.push('\n');
        }
        self.chunk.push_str(label);
        self.chunk.push_str(piece);
        self.length += label_length + length;
    }

    fn close(&mut self) {
        if !self.chunk.is_empty() {
            self.chunks.push(format!("{}{}", self.head, self.chunk));
        }
        self.chunk.clear();
        self.length = 0;
    }

    pub(super) fn finish(mut self) -> Vec<String> {
        self.close();
        self.chunks
    }
}
