//! The keys that an MCP server is sent over HTTP, which it does not give to models, journals and people.

use hotcell_cells::SecretForms;
use hotcell_mcp::Transport;

/// Headers whose names say that they hold something secret.
const SECRET: [&str; 8] = ["auth", "cookie", "credential", "key", "password", "secret", "session", "token"];

/// The keys that one server is sent.
pub(crate) struct ServerKeys(Option<SecretForms>);

impl ServerKeys {
    /// The values of headers, and of parameters of the address, whose names say that they are secret, and the password of the address. What a program is given is not
    /// looked for: it does with it what it likes.
    pub(crate) fn of(transport: &Transport) -> Self {
        let (Transport::StreamableHttp { url, headers, .. } | Transport::Sse { url, headers, .. }) = transport else {
            return ServerKeys(None);
        };
        let is_secret = |name: &str| {
            let name = name.to_ascii_lowercase();
            SECRET.iter().any(|part| name.contains(part))
        };
        let mut values: Vec<(String, String)> = Vec::new();
        for (name, value) in headers.iter().filter(|(name, _)| is_secret(name)) {
            // `Bearer KEY`: without its scheme it is a key, too.
            let parts = [Some(value.as_str()), value.split_once(' ').map(|(_, key)| key.trim())];
            values.extend(parts.into_iter().flatten().map(|part| (format!("(header {name})"), part.to_owned())));
        }
        values.extend(url.password().map(|password| ("(password of the address)".to_owned(), password.to_owned())));
        let of_address = url.query_pairs().filter(|(name, _)| is_secret(name));
        values.extend(of_address.map(|(name, value)| (format!("(parameter {name})"), value.into_owned())));
        ServerKeys(SecretForms::of(values.iter().map(|(shown, value)| (shown.clone(), value.as_str()))))
    }

    /// A text of the server without them.
    pub(crate) fn without(&self, text: String) -> String {
        let found = self.0.as_ref().and_then(|forms| forms.without(text.as_bytes()));
        // Between what was taken out are whole characters.
        found.map_or(text, |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use hotcell_mcp::{TlsFiles, Transport};

    use super::ServerKeys;

    fn keys(url: &str, headers: &[(&str, &str)]) -> ServerKeys {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ServerKeys::of(&Transport::StreamableHttp { url: url.parse().unwrap(), headers, tls: TlsFiles::default() })
    }

    #[test]
    fn keys_are_taken_out_as_they_are_and_as_servers_write_them() {
        let keys = keys(
            "https://x.org/mcp?api_key=from-the-address&page=second",
            &[("Authorization", "Bearer abc+def/12"), ("X-Api-Key", "another-key"), ("Accept", "application/json")],
        );
        for (said, left) in [
            ("you sent Bearer abc+def/12", "you sent (header Authorization)"),
            ("the key is abc+def/12", "the key is (header Authorization)"),
            ("abc%2Bdef%2F12", "(header Authorization)"),
            (r#"{"key":"abc+def\/12"}"#, r#"{"key":"(header Authorization)"}"#),
            // The last letter has two bits of it.
            ("YWJjK2RlZi8xMg==", "(header Authorization)g=="),
            ("another-key from-the-address", "(header X-Api-Key) (parameter api_key)"),
            ("application/json of the second page", "application/json of the second page"),
        ] {
            assert_eq!(keys.without(said.to_owned()), left);
        }
    }

    #[test]
    fn the_password_of_an_address_is_a_key() {
        let keys = keys("https://me:pass-word@x.org/mcp", &[]);
        // As it is, and as the header has it: `me:pass-word` in base64.
        assert_eq!(keys.without("me:PASS-WORD".to_owned()), "me:(password of the address)");
        assert!(!keys.without("Basic bWU6cGFzcy13b3Jk".to_owned()).contains("cGFzcy13b3Jk"));
    }

    #[test]
    fn a_server_without_keys_says_what_it_likes() {
        let keys = keys("https://x.org/mcp", &[("Accept", "application/json"), ("X-Token", "abc")]);
        for said in ["application/json", "abc", ""] {
            assert_eq!(keys.without(said.to_owned()), said);
        }
    }
}
