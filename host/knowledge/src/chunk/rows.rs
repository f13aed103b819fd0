//! Rows of fields, as in CSV.

use csv::{ByteRecord, ReaderBuilder};

use super::{Cutter, pack::Packer};

/// Whole rows, each chunk with the first row of the text at its head. `None` if that row is too long to be repeated, or
/// there is no other.
pub(super) fn cut(cutter: &Cutter<'_>, delimiter: u8, text: &str) -> Option<Vec<String>> {
    let mut reader =
        ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut record = ByteRecord::new();
    let mut packer: Option<Packer<'_>> = None;
    let mut rows = 0;
    let mut from = 0;
    // Rows are taken as they are written, with their quotes.
    while reader.read_byte_record(&mut record).ok()? {
        let to = usize::try_from(reader.position().byte()).ok()?;
        let row = text.get(from..to)?.trim_matches(['\n', '\r']);
        from = to;
        match &mut packer {
            None if cutter.length(row) > cutter.size / 2 => return None,
            None => packer = Some(Packer::new(*cutter, row)),
            Some(packer) => {
                packer.add("", row, cutter.length(row));
                rows += 1;
            }
        }
    }
    packer.filter(|_| rows > 0).map(Packer::finish)
}
