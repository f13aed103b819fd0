//! From PDF to text.

use pdf_extract::content::{Content, Operation};
use pdf_extract::{Dictionary, Document as Pdf, Object, ObjectId, PlainTextOutput, output_doc_page};

use crate::Document;

/// How far from its begin a file may say that it is PDF, in bytes; some have other things before.
const HEADER: usize = 1024;
/// How many nodes there may be above a page.
const DEPTH: usize = 64;
/// Fonts that have an encoding by name.
const SIMPLE: [&[u8]; 3] = [b"Type1", b"TrueType", b"MMType1"];
/// The names of encodings that the library knows.
const ENCODINGS: [&[u8]; 3] = [b"MacRomanEncoding", b"MacExpertEncoding", b"WinAnsiEncoding"];

/// Whether a file says that it is PDF.
pub(crate) fn is_pdf(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(HEADER)].windows(5).any(|window| window == b"%PDF-")
}

/// The text of a document, its pages with an empty line between them.
pub(crate) fn read(bytes: &[u8]) -> Result<Document, String> {
    if !is_pdf(bytes) {
        return Err("is not a PDF: it does not begin with `%PDF-`".to_owned());
    }
    let damaged = |reason: String| format!("is damaged: {reason}");
    let mut document = Pdf::load_mem(bytes).map_err(|error| damaged(error.to_string()))?;
    if document.is_encrypted() {
        // Many are encrypted without a password, to say what may be done with them.
        document.decrypt("").map_err(|_| "is encrypted with a password; remove it first".to_owned())?;
    }
    mend(&mut document);
    let pages = document.get_pages();
    if pages.is_empty() {
        return Err(damaged("it has no pages".to_owned()));
    }
    let mut texts = Vec::with_capacity(pages.len());
    for (&number, &page) in &pages {
        check(&document, page).map_err(|reason| damaged(format!("page {number} {reason}")))?;
        let mut text = String::new();
        output_doc_page(&document, &mut PlainTextOutput::new(&mut text), number)
            .map_err(|error| damaged(format!("page {number}: {error}")))?;
        texts.push(text.trim().to_owned());
    }
    let text = texts.join("\n\n").trim().to_owned();
    if text.is_empty() {
        return Err("has no text; its pages may be pictures, which are not read".to_owned());
    }
    Ok(Document { text, title: title(&document), pages: Some(pages.len()) })
}

/// Puts right what is harmless and what the library would give up on: a reference to nothing means null, and a font with an
/// encoding of a name that it does not know has its own.
fn mend(document: &mut Pdf) {
    let mut named = Vec::new();
    for object in document.objects.values_mut() {
        references(object, &mut named);
        if let Object::Dictionary(font) = object {
            let is_simple = font.get(b"Subtype").and_then(Object::as_name).is_ok_and(|kind| SIMPLE.contains(&kind));
            let is_unknown =
                font.get(b"Encoding").and_then(Object::as_name).is_ok_and(|name| !ENCODINGS.contains(&name));
            if is_simple && is_unknown {
                font.remove(b"Encoding");
            }
        }
    }
    for reference in named {
        document.objects.entry(reference).or_insert(Object::Null);
    }
}

fn references(object: &Object, named: &mut Vec<ObjectId>) {
    match object {
        Object::Reference(reference) => named.push(*reference),
        Object::Array(items) => items.iter().for_each(|item| references(item, named)),
        Object::Dictionary(members) => members.iter().for_each(|(_, member)| references(member, named)),
        Object::Stream(stream) => stream.dict.iter().for_each(|(_, member)| references(member, named)),
        _ => {}
    }
}

/// Looks for what the library takes for granted of a page, so that its absence is an error here and no trap there.
fn check(document: &Pdf, page: ObjectId) -> Result<(), &'static str> {
    let mut node = document.get_dictionary(page).map_err(|_| "is not there")?;
    let content = document.get_page_content(page).map_err(|_| "has a content that cannot be unpacked")?;
    let content = Content::decode(&content).map_err(|_| "has a content that cannot be read")?;
    let fonts = document.get_page_fonts(page).map_err(|_| "has fonts that cannot be read")?;
    for font in fonts.values() {
        let name = |key| font.get(key).and_then(Object::as_name);
        match name(b"Subtype") {
            Err(_) => return Err("has a font of no kind"),
            Ok(b"Type3") => {}
            Ok(_) if name(b"BaseFont").is_err() => return Err("has a font without a name"),
            Ok(_) => {}
        }
    }
    let mut has_font = false;
    for Operation { operator, operands } in &content.operations {
        let first = operands.first();
        match operator.as_str() {
            "Tf" => has_font = first.is_some_and(|name| name.as_name().is_ok_and(|name| fonts.contains_key(name))),
            "Tj" if first.is_none_or(|text| text.as_str().is_err()) => return Err("shows what is not text"),
            "Td" | "TD" if operands.len() != 2 => return Err("goes on at no place"),
            _ => {}
        }
        if matches!(operator.as_str(), "Tf" | "Tj" | "TJ" | "'" | "\"") && !has_font {
            return Err("uses a font that it does not have");
        }
    }
    for _ in 0..DEPTH {
        if let Ok(found) = node.get(b"MediaBox") {
            return if is_box(document, found) { Ok(()) } else { Err("has a size of no sense") };
        }
        node = parent(document, node).ok_or("has no size")?;
    }
    Err("has too many nodes above it")
}

fn parent<'a>(document: &'a Pdf, node: &Dictionary) -> Option<&'a Dictionary> {
    document.get_dictionary(node.get(b"Parent").ok()?.as_reference().ok()?).ok()
}

fn is_box(document: &Pdf, found: &Object) -> bool {
    let Ok((_, Object::Array(numbers))) = document.dereference(found) else { return false };
    let is_number = |number| {
        let number = document.dereference(number);
        number.is_ok_and(|(_, number)| number.as_float().is_ok())
    };
    numbers.len() == 4 && numbers.iter().all(is_number)
}

/// The title that the document gives itself.
fn title(document: &Pdf) -> Option<String> {
    let (_, information) = document.dereference(document.trailer.get(b"Info").ok()?).ok()?;
    let (_, title) = document.dereference(information.as_dict().ok()?.get(b"Title").ok()?).ok()?;
    let bytes = title.as_str().ok()?;
    let text = match bytes.strip_prefix(&[0xfe, 0xff]) {
        Some(wide) => {
            let units: Vec<u16> = wide.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
            String::from_utf16_lossy(&units)
        }
        None => bytes.iter().map(|&byte| char::from(byte)).collect(),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A document of one line for each page.
    pub(crate) fn pdf(pages: &[&str], title: Option<&str>) -> Vec<u8> {
        let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
        let mut objects = vec![
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            format!("<< /Type /Pages /Count {} /Kids [{}] /MediaBox [0 0 595 842] >>", pages.len(), kids.join(" ")),
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        ];
        for (page, line) in pages.iter().enumerate() {
            let stream = format!("BT /F1 12 Tf 72 770 Td ({line}) Tj ET");
            objects.push(format!(
                "<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
                5 + 2 * page
            ));
            objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
        }
        objects.push(format!("<< /Title ({}) >>", title.unwrap_or_default()));
        assemble(&objects)
    }

    fn assemble(objects: &[String]) -> Vec<u8> {
        let mut text = "%PDF-1.4\n".to_owned();
        let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
        for (number, object) in objects.iter().enumerate() {
            table.push_str(&format!("{:010} 00000 n \n", text.len()));
            text.push_str(&format!("{} 0 obj\n{object}\nendobj\n", number + 1));
        }
        let (count, start) = (objects.len(), text.len());
        text.push_str(&format!("{table}trailer\n<< /Size {} /Root 1 0 R /Info {count} 0 R >>\n", count + 1));
        text.push_str(&format!("startxref\n{start}\n%%EOF\n"));
        text.into_bytes()
    }

    #[test]
    fn pages_and_titles() {
        let document = read(&pdf(&["One", "Two"], None));
        let expected = Document { text: "One\n\nTwo".to_owned(), title: None, pages: Some(2) };
        assert_eq!(document, Ok(expected));
    }

    #[test]
    fn harmless_damage_is_mended() {
        let whole = String::from_utf8_lossy(&pdf(&["One"], None)).into_owned();
        for (from, to) in [("/WinAnsiEncoding", "/StandardEncodin"), ("/Title ()", "/T 99 0 R")] {
            let document = read(whole.replace(from, to).as_bytes());
            assert_eq!(document.map(|document| document.text), Ok("One".to_owned()), "{to}");
        }
    }

    #[test]
    fn what_the_library_takes_for_granted_is_looked_for() {
        let whole = String::from_utf8_lossy(&pdf(&["One"], None)).into_owned();
        for (from, to, part) in [
            ("/MediaBox [0 0 595 842]", "/MediaBax [0 0 595 842]", "page 1 has no size"),
            ("/MediaBox [0 0 595 842]", "/MediaBox [0 0 595    ]", "no sense"),
            ("(One)", "(   )", "has no text"),
            ("/F1 12 Tf", "/F2 12 Tf", "page 1 uses a font that it does not have"),
            ("(One) Tj", " /One Tj", "page 1 shows what is not text"),
            ("/Subtype /Type1", "/Subtypo /Type1", "page 1 has a font of no kind"),
            ("/Kids [4 0 R]", "/Kids [     ]", "no pages"),
        ] {
            let error = read(whole.replace(from, to).as_bytes()).err().unwrap_or_default();
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
