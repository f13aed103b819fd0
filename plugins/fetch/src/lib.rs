//! Fetches a web page as readable text, and searches the web where the operator says with what.
//!
//! It reaches the servers that the operator granted it (capability `http`) and no others, also when a page sends it on.
//! HTML becomes text with [`html2text`]: links as numbers with their addresses at the end, tables as tables. Texts
//! that are not UTF-8 keep their ASCII part.

mod page;

use std::time::Duration;

use hotcell_plugin::{Error, Value, config, http, plugin, tool};

plugin! {
    tools: [fetch, fetch_url, fetch_url_via_curl, web_search, web_search_loki, web_search_coyote],
    capabilities: { http: ["*"] },
}

/// How often a page may send on to another.
const REDIRECTS: usize = 5;
/// Characters that are given of a page where nobody says how many.
const LENGTH: usize = 20000;
/// The setting with the address of a search, in which `{query}` stands for what is searched for.
const SEARCH: &str = "search_url";
/// Bytes of a page that are read.
const SIZE: usize = 2 << 20;

/// A page as text.
#[derive(Debug, PartialEq, Value)]
struct Page {
    /// Where it was found in the end.
    url: String,
    /// Its title, if it has one.
    title: Option<String>,
    /// What it says.
    text: String,
    /// Where to go on reading: the `from` of the next call; null at the end.
    next: Option<usize>,
}

/// Fetches a web page and gives its text. Long pages come in parts.
#[tool(read_only)]
fn fetch(
    /// The address, with `https://`.
    url: &str,
    /// The character to begin with, for pages that come in parts.
    #[value(default = 0)]
    from: usize,
    /// How many characters to give at most.
    #[value(default = 20000)]
    length: usize,
) -> Result<Page, Error> {
    page_at(url, from, length)
}

/// Fetches a web page and gives its text, under the name that agents of Loki know.
#[tool(read_only)]
fn fetch_url(
    /// The address, with `https://`.
    url: &str,
) -> Result<String, Error> {
    page_at(url, 0, LENGTH).map(readable)
}

/// Searches the web and gives what was found as text, under the name that agents of Loki know.
#[tool(read_only)]
fn web_search(
    /// What to search for.
    query: &str,
) -> Result<String, Error> {
    let Some(address) = config::get(SEARCH).filter(|address| address.contains("{query}")) else {
        return Err(Error::unavailable(format!(
            "no search is set up: `{SEARCH}` below `[plugins.fetch.config]` in `hotcell.toml` is its address, with `{{query}}` in it"
        )));
    };
    page_at(&address.replace("{query}", &page::encoded(query)), 0, LENGTH).map(readable)
}

/// The same as `fetch_url`, under an older name.
#[tool(read_only)]
fn fetch_url_via_curl(
    /// The address, with `https://`.
    url: &str,
) -> Result<String, Error> {
    fetch_url(url)
}

/// The same as `web_search`, under an older name.
#[tool(read_only)]
fn web_search_loki(
    /// What to search for.
    query: &str,
) -> Result<String, Error> {
    web_search(query)
}

/// The same as `web_search`, under another name.
#[tool(read_only)]
fn web_search_coyote(
    /// What to search for.
    query: &str,
) -> Result<String, Error> {
    web_search(query)
}

fn readable(page: Page) -> String {
    let title = page.title.map(|title| format!("{title}\n\n")).unwrap_or_default();
    let more = if page.next.is_some() { "\n(the page goes on)" } else { "" };
    format!("{title}{}{more}", page.text)
}

fn page_at(url: &str, from: usize, length: usize) -> Result<Page, Error> {
    let mut url = url.to_owned();
    for _ in 0..=REDIRECTS {
        let response = http::get(&url)
            .header("accept", "text/html, text/plain, text/*;q=0.8, application/json;q=0.8")
            .header("user-agent", "hotcell-fetch")
            .timeout(Duration::from_secs(15))
            .limit(SIZE)
            .send()?;
        if let (300..=399, Some(location)) = (response.status, response.header("location")) {
            url = page::resolve(&url, location)?;
            continue;
        }
        let response = response.success()?;
        let (title, text) = page::text(&response)?;
        let total = text.chars().count();
        let text: String = text.chars().skip(from).take(length).collect();
        let end = from.saturating_add(length);
        return Ok(Page { url, title, text, next: (end < total).then_some(end) });
    }
    Err(Error::other(format!("`{url}` and the pages before it sent on more than {REDIRECTS} times")))
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::http::{Request, Response};
    use hotcell_plugin::testing::Surroundings;
    use hotcell_plugin::{Error, Json, json};

    use super::PLUGIN;

    fn server(request: Request) -> Result<Response, Error> {
        let answer = |status, kind: &str, body: &str| {
            let headers = vec![("content-type".to_owned(), kind.to_owned())];
            Ok(Response { status, headers, body: body.as_bytes().to_vec() })
        };
        let html = "<html><head><title>A &amp; B</title><script>bad()</script></head>\
                    <body><h1>News</h1><p>One <a href='/x'>link</a>.</p></body></html>";
        match request.url.as_str() {
            "https://a.example/" => answer(200, "text/html; charset=utf-8", html),
            "https://a.example/text" => answer(200, "text/plain", "0123456789"),
            "https://a.example/old/page" => {
                let headers = vec![("location".to_owned(), "../text".to_owned())];
                Ok(Response { status: 301, headers, body: Vec::new() })
            }
            "https://a.example/loop" => {
                let headers = vec![("location".to_owned(), "/loop".to_owned())];
                Ok(Response { status: 302, headers, body: Vec::new() })
            }
            "https://a.example/picture" => answer(200, "image/png", "?"),
            "https://a.example/busy" => answer(503, "text/plain", "come back later"),
            "https://a.example/large" => answer(200, "text/plain", &"x".repeat(3 << 20)),
            other => Err(Error::denied(format!("`{other}` was not granted"))),
        }
    }

    fn fetch(arguments: Json) -> Result<Json, Error> {
        Surroundings::new().http(server).run(|| PLUGIN.call_tool("fetch", arguments)).result
    }

    #[test]
    fn html_becomes_text() {
        let page = fetch(json!({"url": "https://a.example/"})).unwrap_or_default();
        assert_eq!(page["title"], "A & B");
        let text = page["text"].as_str().unwrap_or_default();
        assert!(text.contains("# News") && text.contains("One [link][1].") && text.contains("/x"), "{text}");
        assert!(!text.contains("bad()"), "{text}");
    }

    #[test]
    fn long_texts_come_in_parts_and_pages_may_send_on() {
        let page = fetch(json!({"url": "https://a.example/old/page", "from": 2, "length": 3}));
        assert_eq!(page, Ok(json!({"url": "https://a.example/text", "title": null, "text": "234", "next": 5})));
        let page = fetch(json!({"url": "https://a.example/text", "from": 8, "length": 3})).unwrap_or_default();
        assert_eq!((page["text"].as_str(), page["next"].is_null()), (Some("89"), true));
    }

    #[test]
    fn what_is_no_page_is_said() {
        for (path, kind, part) in [
            ("loop", "other", "more than 5 times"),
            ("picture", "invalid-input", "`image/png`"),
            ("busy", "unavailable", "503: come back later"),
            ("large", "other", "more than 2097152 bytes"),
            ("elsewhere", "denied", "not granted"),
        ] {
            let error = fetch(json!({"url": format!("https://a.example/{path}")}));
            let error = error.err().unwrap_or_else(|| Error::other("a page"));
            assert!(error.kind() == kind && error.message().contains(part), "{path}: {error}");
        }
        let error = fetch(json!({"url": "file:///etc/passwd"})).err().map(|error| error.kind());
        assert_eq!(error, Some("invalid-input"));
    }

    #[test]
    fn agents_of_loki_find_their_names() {
        let call = |tool: &str, arguments: Json, search: &str| {
            let surroundings = Surroundings::new().http(server).config("search_url", search);
            surroundings.run(|| PLUGIN.call_tool(tool, arguments)).result
        };
        let page = call("fetch_url", json!({"url": "https://a.example/text"}), "");
        assert_eq!(page, Ok(json!("0123456789")));
        let found = call("web_search", json!({"query": "a&b c"}), "https://a.example/search?q={query}");
        let error = found.err().map(|error| error.message().to_owned()).unwrap_or_default();
        assert!(error.contains("search?q=a%26b%20c"), "{error}");
        let error = call("web_search", json!({"query": "a"}), "https://a.example/").err();
        assert!(error.is_some_and(|error| error.kind() == "unavailable" && error.message().contains("search_url")));
    }

    #[test]
    fn cases_hold() {
        let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
        assert_eq!(problems, Ok(Vec::new()));
    }
}
