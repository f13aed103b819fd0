//! What a document is, by its name or by what a server says.

use std::path::Path;

use crate::Format;

/// How a document is read and cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Markdown,
    /// In whatever language.
    Code,
    /// Rows with this byte between their fields.
    Rows(u8),
    Json,
    /// One JSON value in each line.
    JsonLines,
    Foreign(Format),
}

impl Kind {
    /// By the extension of a file's name; `None` is an extension that is not known, or no extension.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let extension = Path::new(path).extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "md" | "markdown" | "mdown" | "mdx" => Self::Markdown,
            "rs" | "py" | "pyi" | "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" | "go" | "java" | "c"
            | "h" | "css" | "scss" | "sql" | "graphql" | "proto" | "wit" | "sh" | "bash" | "zsh" | "fish" | "ps1"
            | "bat" | "rb" | "php" | "pl" | "lua" | "r" | "jl" | "swift" | "kt" | "kts" | "scala" | "clj" | "ex"
            | "exs" | "erl" | "hs" | "ml" | "fs" | "cs" | "cpp" | "cc" | "cxx" | "hpp" | "hh" | "m" | "mm" | "zig"
            | "nim" | "dart" | "vue" | "svelte" | "cmake" | "gradle" | "tf" | "nix" => Self::Code,
            "csv" => Self::Rows(b','),
            "tsv" => Self::Rows(b'\t'),
            "json" => Self::Json,
            "jsonl" | "ndjson" => Self::JsonLines,
            "pdf" => Self::Foreign(Format::Pdf),
            "html" | "htm" | "xhtml" => Self::Foreign(Format::Html),
            // Text without a structure that is known here.
            "txt" | "text" | "log" | "rst" | "adoc" | "asciidoc" | "org" | "tex" | "srt" | "vtt" | "toml" | "yaml"
            | "yml" | "ini" | "cfg" | "conf" | "properties" | "xml" | "svg" | "diff" | "patch" | "eml" => Self::Text,
            _ => return None,
        })
    }

    /// By what a server says; where it says only that it is text, by the path of the address. The error is what the
    /// server says that it is.
    pub(crate) fn of_content(content_type: &str, path: &str) -> Result<Self, String> {
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "text/html" | "application/xhtml+xml" => Ok(Self::Foreign(Format::Html)),
            "application/pdf" => Ok(Self::Foreign(Format::Pdf)),
            "text/markdown" => Ok(Self::Markdown),
            "text/csv" => Ok(Self::Rows(b',')),
            "text/tab-separated-values" => Ok(Self::Rows(b'\t')),
            "application/json" => Ok(Self::Json),
            "application/jsonl" | "application/x-ndjson" => Ok(Self::JsonLines),
            "" | "text/plain" | "application/octet-stream" => match (Self::of_path(path), essence.as_str()) {
                (Some(kind), _) => Ok(kind),
                (None, "text/plain") => Ok(Self::Text),
                (None, "") => Err("of no type that its server names".to_owned()),
                (None, _) => Err(format!("`{essence}`")),
            },
            json if json.ends_with("+json") => Ok(Self::Json),
            text if text.starts_with("text/") || text.ends_with("+xml") || text == "application/xml" => Ok(Self::Text),
            "application/javascript" => Ok(Self::Code),
            other => Err(format!("`{}`", crate::untrusted::shown(other))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types() {
        assert_eq!(Kind::of_path("a/B.MD"), Some(Kind::Markdown));
        assert_eq!((Kind::of_path("a.tsx"), Kind::of_path("a.rb")), (Some(Kind::Code), Some(Kind::Code)));
        assert_eq!((Kind::of_path("LICENSE"), Kind::of_path("a.png")), (None, None));
        assert_eq!(Kind::of_content("text/HTML; charset=utf-8", "/"), Ok(Kind::Foreign(Format::Html)));
        assert_eq!(Kind::of_content("text/plain", "/x/a.rs"), Ok(Kind::Code));
        assert_eq!(Kind::of_content("text/plain", "/spec"), Ok(Kind::Text));
        assert_eq!(Kind::of_content("image/png", "/a.md"), Err("`image/png`".to_owned()));
        assert!(Kind::of_content("", "/spec").is_err());
    }
}
