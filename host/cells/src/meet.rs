//! What two sets of grants both allow.

use crate::grants::{Access, ClockGrant, DirectoryGrant, Grants, HttpGrant, SecretGrant};

impl Grants {
    /// The grants that allow what both of these allow. Random numbers come from where this one says: neither way allows more.
    #[must_use]
    pub fn meet(&self, other: &Grants) -> Grants {
        if self == other {
            return self.clone();
        }
        let names = |mine: &[String], theirs: &[String]| -> Vec<String> {
            mine.iter().filter(|name| theirs.contains(name)).cloned().collect()
        };
        let any = |tools: &[String]| tools.iter().any(|tool| tool == "*");
        let tool = match (any(&self.tool), any(&other.tool)) {
            (true, _) => other.tool.clone(),
            (false, true) => self.tool.clone(),
            (false, false) => names(&self.tool, &other.tool),
        };
        let precise = self.clock == ClockGrant::Precise && other.clock == ClockGrant::Precise;
        Grants {
            fs: pairs(&self.fs, &other.fs, directory),
            http: pairs(&self.http, &other.http, HttpGrant::meet),
            env: names(&self.env, &other.env),
            clock: if precise { ClockGrant::Precise } else { ClockGrant::Coarse },
            random: self.random,
            secret: pairs(&self.secret, &other.secret, secret),
            kv: self.kv && other.kv,
            llm: self.llm && other.llm,
            tool,
            ask: self.ask && other.ask,
            process: self.process && other.process,
        }
    }
}

impl HttpGrant {
    /// The grant of the requests that both cover, if there are any.
    fn meet(&self, other: &Self) -> Option<Self> {
        let plain = |grant: &Self| HttpGrant { methods: Vec::new(), private: false, ..grant.clone() };
        let (mine, theirs) = (plain(self), plain(other));
        let narrower = match (mine.covers(&theirs), theirs.covers(&mine)) {
            (true, _) => theirs,
            (false, true) => mine,
            (false, false) => return None,
        };
        let methods = match (&self.methods[..], &other.methods[..]) {
            ([], methods) | (methods, []) => methods.to_vec(),
            (mine, theirs) => {
                let both: Vec<String> = mine.iter().filter(|method| theirs.contains(method)).cloned().collect();
                // None at all would mean any.
                if both.is_empty() {
                    return None;
                }
                both
            }
        };
        Some(HttpGrant { methods, private: self.private && other.private, ..narrower })
    }
}

fn directory(mine: &DirectoryGrant, theirs: &DirectoryGrant) -> Option<DirectoryGrant> {
    let same = mine.host == theirs.host && mine.guest == theirs.guest;
    let access: Access = mine.access.min(theirs.access);
    same.then(|| DirectoryGrant {
        access,
        max_bytes: mine.max_bytes.into_iter().chain(theirs.max_bytes).min(),
        max_files: mine.max_files.into_iter().chain(theirs.max_files).min(),
        ..mine.clone()
    })
}

fn secret(mine: &SecretGrant, theirs: &SecretGrant) -> Option<SecretGrant> {
    let servers = pairs(&mine.servers, &theirs.servers, HttpGrant::meet);
    (mine.name == theirs.name && !servers.is_empty()).then(|| SecretGrant { name: mine.name.clone(), servers })
}

/// What any of these allow together with any of those, each once.
fn pairs<T: PartialEq>(mine: &[T], theirs: &[T], meet: impl Fn(&T, &T) -> Option<T>) -> Vec<T> {
    let mut met = Vec::new();
    for (mine, theirs) in mine.iter().flat_map(|mine| theirs.iter().map(move |theirs| (mine, theirs))) {
        if let Some(both) = meet(mine, theirs).filter(|both| !met.contains(both)) {
            met.push(both);
        }
    }
    met
}

#[cfg(test)]
mod tests {
    use crate::grants::Grants;

    fn grants(text: &str) -> Grants {
        toml::from_str(text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
    }

    #[test]
    fn what_both_allow_and_nothing_else() {
        let cases = [
            ("kv = true\nllm = true", "kv = true\nask = true", "kv = true"),
            ("env = ['A', 'B']", "env = ['B', 'C']", "env = ['B']"),
            ("tool = ['*']", "tool = ['a']", "tool = ['a']"),
            ("tool = ['a', 'b']", "tool = ['*']", "tool = ['a', 'b']"),
            ("tool = ['a']", "tool = ['b']", ""),
            ("clock = 'precise'", "", ""),
            ("process = true", "", ""),
            ("random = 'seeded'", "", "random = 'seeded'"),
            ("http = ['https://*.x.org']", "http = ['https://a.x.org']", "http = ['https://a.x.org']"),
            ("http = ['https://a.x.org', 'https://b.org']", "http = ['https://*.x.org']", "http = ['https://a.x.org']"),
            ("http = ['https://x.org']", "http = ['http://x.org', 'https://x.org:8443', 'https://y.org']", ""),
            (
                "http = [{ url = 'https://x.org', methods = ['GET', 'POST'], private = true }]",
                "http = [{ url = 'https://x.org', methods = ['POST', 'PUT'] }]",
                "http = [{ url = 'https://x.org', methods = ['POST'] }]",
            ),
            (
                "http = [{ url = 'https://x.org', methods = ['GET'] }]",
                "http = [{ url = 'https://x.org', methods = ['PUT'] }]",
                "",
            ),
            (
                "http = [{ url = 'https://x.org', methods = ['GET'] }]",
                "http = ['https://x.org']",
                "http = [{ url = 'https://x.org', methods = ['GET'] }]",
            ),
            (
                "fs = [{ host = 'd', guest = '/d', access = 'read-write' }]",
                "fs = [{ host = 'd', guest = '/d', access = 'read' }]",
                "fs = [{ host = 'd', guest = '/d', access = 'read' }]",
            ),
            ("fs = [{ host = 'd', guest = '/d' }]", "fs = [{ host = 'e', guest = '/d' }]", ""),
            (
                "secret = [{ name = 'K', servers = ['https://*.x.org', 'https://y.org'] }]",
                "secret = [{ name = 'K', servers = ['https://a.x.org'] }, { name = 'L', servers = ['https://y.org'] }]",
                "secret = [{ name = 'K', servers = ['https://a.x.org'] }]",
            ),
            ("secret = [{ name = 'K', servers = ['https://y.org'] }]", "secret = [{ name = 'K', servers = [] }]", ""),
        ];
        for (mine, theirs, both) in cases {
            let (mine, theirs, both) = (grants(mine), grants(theirs), grants(both));
            assert_eq!(mine.meet(&theirs), both, "{mine:?} {theirs:?}");
            let turned = Grants { random: mine.random, ..theirs.meet(&mine) };
            assert_eq!(turned, both, "{theirs:?} {mine:?}");
            assert_eq!(mine.meet(&mine), mine);
            assert_eq!(mine.meet(&Grants::default()), Grants { random: mine.random, ..Grants::default() });
        }
    }
}
