//! Granting one thing more beside what is granted: what a call was denied and whoever runs this granted for always.

use std::path::Path;

use hotcell_cells::{Grants, digest};
use hotcell_files::{Folder, MAX_COMPONENT};
use toml_edit::{DocumentMut, Item, Table, TomlError, Value};

use crate::agent_folder::AgentFolder;
use crate::grant::{GrantError, all_grants, inline};
use crate::lock::Locked;
use crate::plugin::Plugin;
use crate::trust::Trust;

impl AgentFolder {
    /// Gives a script this beside what it is granted, and trusts the folder with that. `meant` is the digest of the script: another one in
    /// its place gets nothing.
    ///
    /// # Errors
    /// As with [`AgentFolder::grant`], and when the script is another one.
    pub fn grant_to_script(&mut self, name: &str, meant: &str, more: &Grants, trust: &Trust) -> Result<(), GrantError> {
        let found = Folder::new(self.path()).read(Path::new(name), MAX_COMPONENT);
        if found.is_ok_and(|bytes| digest(&bytes) == meant) {
            let (more, lock) = (beyond(&self.settings().grants(name), more), self.lock.clone());
            return self.write(|file, before| added(file, before, name, &more), lock, trust);
        }
        Err(GrantError::Exchanged(name.to_owned()))
    }

    /// Gives a plugin this beside what it is granted, pinned to its component, which has to be the one in `file` still.
    ///
    /// # Errors
    /// As with [`AgentFolder::grant`], and when the component in the file is another one, or the plugin does not ask for that.
    pub fn grant_to_plugin(
        &mut self,
        plugin: &Plugin,
        file: &Path,
        more: &Grants,
        trust: &Trust,
    ) -> Result<(), GrantError> {
        let name = &plugin.description.name;
        if Plugin::read(file).map(|found| found.survey.digest).ok().as_ref() != Some(&plugin.survey.digest) {
            return Err(GrantError::Exchanged(name.clone()));
        }
        let exceeded = plugin.description.capabilities.exceeded_by(more);
        if !exceeded.is_empty() {
            return Err(GrantError::Beyond { plugin: name.clone(), beyond: exceeded.join(", ") });
        }
        let more = beyond(&self.settings().grants(name), more);
        let mut lock = self.lock.clone();
        lock.plugin.insert(name.clone(), Locked::of(plugin));
        self.write(|file, before| added(file, before, name, &more), lock, trust)
    }
}

/// What both grant together: servers, tools, the model and questions of `more` beside everything of `grants`.
#[must_use]
pub fn together(grants: &Grants, more: &Grants) -> Grants {
    let more = beyond(grants, more);
    let mut all = grants.clone();
    all.http.extend(more.http);
    all.tool.extend(more.tool);
    all.llm |= more.llm;
    all.ask |= more.ask;
    all
}

/// The servers and tools, the model and questions that `more` grants and `grants` does not.
fn beyond(grants: &Grants, more: &Grants) -> Grants {
    Grants {
        http: more.http.iter().filter(|one| !grants.http.contains(one)).cloned().collect(),
        tool: more.tool.iter().filter(|one| !grants.tool.contains(one)).cloned().collect(),
        llm: more.llm && !grants.llm,
        ask: more.ask && !grants.ask,
        ..Grants::default()
    }
}

/// The text of `hotcell.toml` with these grants beside the others of that name, and everything else as it was.
fn added(file: &Path, before: &str, name: &str, more: &Grants) -> Result<String, GrantError> {
    let failed = |cause: String| GrantError::File { file: file.display().to_string(), cause };
    if *more == Grants::default() {
        return Ok(before.to_owned());
    }
    let parsed = |text: &str| text.parse::<DocumentMut>().map_err(|error: TomlError| failed(error.to_string()));
    let mut document = parsed(before)?;
    let written = parsed(&toml::to_string(more).map_err(|error| failed(error.to_string()))?)?;
    let other = |what: &str| failed(format!("{what} is written in a form that nothing can be added to"));
    let all = all_grants(&mut document).ok_or_else(|| other("`grants`"))?;
    if !all.contains_key(name) {
        all.insert(name, Item::Table(Table::new()));
    }
    let of_name = || format!("`[grants.\"{name}\"]`");
    let entry = all.get_mut(name).and_then(Item::as_table_like_mut).ok_or_else(|| other(&of_name()))?;
    for (key, value) in written.iter() {
        match inline(value) {
            Item::Value(Value::Array(more)) if entry.contains_key(key) => {
                let known = entry.get_mut(key).and_then(Item::as_array_mut);
                let known = known.ok_or_else(|| other(&format!("`{key}` of {}", of_name())))?;
                more.into_iter().for_each(|one| known.push(one));
            }
            value => drop(entry.insert(key, value)),
        }
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(text: &str) -> Grants {
        toml::from_str(text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
    }

    fn with(before: &str, name: &str, more: &str) -> String {
        added(Path::new("hotcell.toml"), before, name, &grants(more)).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn what_is_granted_more_stands_beside_the_rest() {
        let get = "http = [{ url = 'https://b.org', methods = ['GET'] }]";
        let text = with("# mine\n[denials]\nask = true\n", "scripts/a.js", get);
        assert!(text.starts_with("# mine\n[denials]\nask = true\n"), "{text}");
        assert!(text.contains("[grants.\"scripts/a.js\"]\nhttp = [{"), "{text}");

        let before =
            "[grants.'a.js'] # why\nhttp = ['https://a.org']\nllm = false\nfs = [{ host = 'data', guest = '/d' }]\n";
        let text = with(before, "a.js", &format!("{get}\nllm = true\ntool = ['x']"));
        for kept in ["[grants.'a.js'] # why", "'https://a.org'", "fs = [{ host = 'data', guest = '/d' }]"] {
            assert!(text.contains(kept), "`{kept}` is not in `{text}`");
        }
        let read: toml::Table = toml::from_str(&text).unwrap();
        let read: Grants = read["grants"]["a.js"].clone().try_into().unwrap();
        assert!(read.llm && read.tool == ["x"] && read.http.len() == 2 && read.http[1].methods == ["GET"], "{read:?}");
        assert_eq!(with(&text, "a.js", ""), text);
    }

    #[test]
    fn a_form_that_nothing_can_be_added_to_is_refused() {
        let before = "[[grants.a.http]]\nurl = 'https://a.org'\n";
        let error = added(Path::new("hotcell.toml"), before, "a", &grants("http = ['https://b.org']")).unwrap_err();
        assert!(error.to_string().contains("`http` of `[grants.\"a\"]`"), "{error}");
    }

    #[test]
    fn what_both_grant_is_granted_once() {
        let one = grants("http = ['https://a.org']\nkv = true");
        let two = grants("http = ['https://a.org', 'https://b.org']\nask = true\nkv = true");
        let both = together(&one, &two);
        assert_eq!(both, grants("http = ['https://a.org', 'https://b.org']\nask = true\nkv = true"));
        assert_eq!(together(&both, &two), both);
    }
}
