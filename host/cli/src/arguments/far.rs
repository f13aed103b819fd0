//! The command line of what a server does.

use std::path::PathBuf;

use clap::Args;
use url::Url;

/// Options of commands that a server can carry out.
#[derive(Debug, Default, Args)]
pub(crate) struct Far {
    /// Server to use in place of this machine's journal and files, such as `http://127.0.0.1:18820`. Its API key is taken from
    /// the variable `HOTCELL_SERVER_KEY` or from `--server-key-file`
    #[arg(long, global = true, value_name = "URL", value_parser = server, help_heading = "Server options")]
    pub(crate) server: Option<Url>,
    /// File with the API key of the server
    #[arg(long, global = true, value_name = "FILE", requires = "server", help_heading = "Server options")]
    pub(crate) server_key_file: Option<PathBuf>,
}

fn server(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| {
        let reason = match error {
            url::ParseError::RelativeUrlWithoutBase => "it does not begin with `http://` or `https://`".to_owned(),
            other => other.to_string(),
        };
        format!("{reason}; write it like `http://127.0.0.1:18820`")
    })?;
    match url.scheme() {
        "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
            Err("an address with a user name or password in it ends up in logs; use `HOTCELL_SERVER_KEY`".to_owned())
        }
        "http" | "https" if url.query().is_some() || url.fragment().is_some() => {
            Err("the address of a server has no `?` and no `#`".to_owned())
        }
        "http" | "https" => Ok(url),
        other => {
            Err(format!("the scheme `{other}` is neither `http` nor `https`; write it like `http://127.0.0.1:18820`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::server;

    #[test]
    fn an_address_of_a_server_holds_no_secret() {
        assert!(server("127.0.0.1:18820").is_err_and(|error| error.contains("write it like `http://")));
        assert!(server("http://127.0.0.1:18820").is_ok() && server("https://example.org/hotcell/").is_ok());
        for wrong in ["localhost:18820", "http://a:b@localhost", "http://localhost?key=x", "ftp://localhost", ""] {
            assert!(server(wrong).is_err(), "{wrong}");
        }
    }
}
