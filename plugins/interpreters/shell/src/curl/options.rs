//! The arguments of `curl`: those that scripts use. What is not known is an error, not ignored.

/// A body or a part of one, as it was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// `-d`: a text, or a file whose line ends are left out.
    Text(String),
    /// `--data-raw`: a text, whatever it begins with.
    Raw(String),
    /// `--data-binary`: a text, or a file as it is.
    Binary(String),
    /// `--data-urlencode`: a text that is percent-encoded, behind `name=` if it has one.
    Encoded(String),
}

/// What is wanted.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) url: String,
    /// `-X`
    pub(crate) method: Option<String>,
    /// `-H`, `-A`, `-b`, `-e`
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) data: Vec<Data>,
    /// `--json`
    pub(crate) json: bool,
    /// `-G`: the data belongs into the address.
    pub(crate) get: bool,
    /// `-I`
    pub(crate) head: bool,
    /// `-i`
    pub(crate) include: bool,
    /// `-L`
    pub(crate) follow: bool,
    /// `--max-redirs`
    pub(crate) redirects: usize,
    /// `-f`
    pub(crate) fail: bool,
    /// `--fail-with-body`
    pub(crate) fail_with_body: bool,
    /// `-s`
    pub(crate) silent: bool,
    /// `-S`
    pub(crate) show_error: bool,
    /// `-m`, in milliseconds
    pub(crate) timeout: Option<u64>,
    /// `-o`
    pub(crate) output: Option<String>,
    /// `-w`
    pub(crate) write_out: String,
}

impl Options {
    /// Reads the arguments behind the name of the command.
    ///
    /// # Errors
    /// Which argument cannot be used.
    pub(crate) fn read(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self { redirects: 50, ..Self::default() };
        let mut arguments = arguments.iter().map(String::as_str);
        let mut addresses = Vec::new();
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix("--") {
                Some(long) => {
                    let value = || arguments.next().ok_or_else(|| format!("option --{long}: requires parameter"));
                    if !options.set(long, value)? {
                        return Err(format!("option --{long}: is unknown to the `curl` of a script cell"));
                    }
                }
                None if argument.len() > 1 && argument.starts_with('-') => {
                    options.read_short(&argument[1..], &mut arguments)?;
                }
                None => addresses.push(argument.to_owned()),
            }
        }
        addresses.extend(std::mem::take(&mut options.url).split('\n').filter(|url| !url.is_empty()).map(str::to_owned));
        match <[String; 1]>::try_from(addresses) {
            Ok([url]) => options.url = url,
            Err(addresses) if addresses.is_empty() => return Err("no URL specified".to_owned()),
            Err(addresses) => {
                return Err(format!("{} URLs specified, and one can be asked at a time", addresses.len()));
            }
        }
        Ok(options)
    }

    /// One argument of one or several letters, the last perhaps with its value.
    fn read_short<'a>(
        &mut self,
        letters: &'a str,
        arguments: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        for (at, letter) in letters.char_indices() {
            let unknown = || format!("option -{letter}: is unknown to the `curl` of a script cell");
            let long = long_name(letter).ok_or_else(unknown)?;
            let rest = &letters[at + letter.len_utf8()..];
            let mut takes_rest = false;
            self.set(long, || {
                takes_rest = !rest.is_empty();
                let value = if takes_rest { Some(rest) } else { arguments.next() };
                value.ok_or_else(|| format!("option -{letter}: requires parameter"))
            })?;
            if takes_rest {
                break;
            }
        }
        Ok(())
    }

    /// Sets an option, with its value where it has one. Gives whether there is such an option.
    fn set<'a>(&mut self, long: &str, value: impl FnOnce() -> Result<&'a str, String>) -> Result<bool, String> {
        match long {
            "request" => self.method = Some(value()?.to_owned()),
            "header" => {
                let line = value()?;
                let (name, value) = line.split_once(':').ok_or_else(|| format!("`{line}` is no header"))?;
                self.headers.push((name.to_owned(), value.trim().to_owned()));
            }
            "user-agent" => self.headers.push(("user-agent".to_owned(), value()?.to_owned())),
            "referer" => self.headers.push(("referer".to_owned(), value()?.to_owned())),
            "cookie" => match value()? {
                cookies if cookies.contains('=') => self.headers.push(("cookie".to_owned(), cookies.to_owned())),
                file => return Err(format!("cookies are written `NAME=VALUE` here; `{file}` cannot be read")),
            },
            "data" | "data-ascii" => self.data.push(Data::Text(value()?.to_owned())),
            "data-raw" => self.data.push(Data::Raw(value()?.to_owned())),
            "data-binary" => self.data.push(Data::Binary(value()?.to_owned())),
            "data-urlencode" => self.data.push(Data::Encoded(value()?.to_owned())),
            "json" => {
                self.data.push(Data::Binary(value()?.to_owned()));
                self.json = true;
            }
            "max-redirs" => self.redirects = number(value()?)?,
            "max-time" => {
                let text = value()?;
                let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is no number of seconds"))?;
                // Cast saturates: less than nothing is nothing.
                self.timeout = Some((seconds * 1000.0).ceil() as u64);
            }
            "output" => self.output = Some(value()?.to_owned()),
            "write-out" => self.write_out = value()?.to_owned(),
            "url" => self.url = format!("{}\n{}", self.url, value()?),
            "get" => self.get = true,
            "head" => self.head = true,
            "include" | "show-headers" => self.include = true,
            "location" => self.follow = true,
            "fail" => self.fail = true,
            "fail-with-body" => self.fail_with_body = true,
            "silent" => self.silent = true,
            "show-error" => self.show_error = true,
            // There is no meter to be left out.
            "no-progress-meter" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn long_name(letter: char) -> Option<&'static str> {
    Some(match letter {
        'X' => "request",
        'H' => "header",
        'A' => "user-agent",
        'e' => "referer",
        'b' => "cookie",
        'd' => "data",
        'G' => "get",
        'I' => "head",
        'i' => "include",
        'L' => "location",
        'f' => "fail",
        's' => "silent",
        'S' => "show-error",
        'm' => "max-time",
        'o' => "output",
        'w' => "write-out",
        _ => return None,
    })
}
