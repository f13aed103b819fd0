use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::{AgentFolder, Decisions, Trust};

/// The folder of an agent, `mine`, beside others.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Place(tempfile::tempdir().unwrap());
        for folder in ["mine/scripts", "mine/plugins", "mine/data", "mine/packages/deep", "other/data", "free", "home"]
        {
            fs::create_dir_all(place.at(folder)).unwrap();
        }
        for file in ["mine/scripts/a.js", "mine/server.py", "other/hotcell.toml"] {
            fs::write(place.at(file), "").unwrap();
        }
        fs::write(place.at("mine/mcp.json"), r#"{"mcpServers":{"x":{"command":"python3","args":["server.py"]}}}"#)
            .unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Says what is granted to a script.
    fn grant(&self, directory: &str, access: &str) {
        let text = format!(
            "[grants.'scripts/a.js']\nfs = [{{ host = '{directory}', guest = '/d', access = '{access}' }}]\n\
             [python]\npath = ['packages']\n"
        );
        fs::write(self.at("mine/hotcell.toml"), text).unwrap();
    }

    /// Why nothing counts of the folder, when it is loaded and when a call is made.
    fn refused(&self, trust: &Trust) -> Option<String> {
        let folder = self.at("mine");
        let opened = AgentFolder::open(&folder, trust).map(drop).map_err(|error| error.to_string());
        let decided = Decisions::read(&folder, trust).map(drop).map_err(|error| error.to_string());
        assert_eq!(opened, decided);
        opened.err()
    }

    fn list(&self) -> Trust {
        Trust::Listed(self.at("home/trust.toml"))
    }
}

#[test]
fn nobody_is_let_write_what_decides_in_a_folder_that_counts_as_it_is() {
    let place = Place::new();
    for (directory, file) in [
        (".", "mine/hotcell.lock"),
        ("..", "mine/hotcell.lock"),
        ("scripts", "mine/scripts/a.js"),
        ("./data/../plugins", "plugins/"),
        ("packages", "packages"),
        ("packages/deep", "packages"),
        // The folder of another agent.
        ("../other", "other/"),
    ] {
        place.grant(directory, "read-write");
        let refused = place.refused(&Trust::Everything).unwrap_or_else(|| panic!("{directory} is let be"));
        assert!(refused.starts_with("`scripts/a.js` is granted") && refused.contains(file), "{directory}: {refused}");
        assert!(refused.contains("hotcell trust"), "{refused}");
        place.grant(directory, "read");
        assert_eq!(place.refused(&Trust::Everything), None, "{directory}");
    }
    for directory in ["data", "../free", "../other/data"] {
        place.grant(directory, "read-write");
        assert_eq!(place.refused(&Trust::Everything), None, "{directory}");
    }
    // What is a folder of an agent by now.
    fs::create_dir(place.at("free/new")).unwrap();
    fs::write(place.at("free/new/Hotcell.TOML"), "").unwrap();
    place.grant("../free", "read-write");
    assert!(place.refused(&Trust::Everything).unwrap().contains("free/new/Hotcell.TOML"));
    // What decides in a folder around it.
    fs::write(place.at("other/hotcell.toml"), "[grants.'data/b.js']\nkv = true\n").unwrap();
    place.grant("../other/data", "read-write");
    assert!(place.refused(&Trust::Everything).unwrap().contains("other/data/b.js"));
}

#[test]
fn a_folder_that_counts_as_it_was_looked_at_may_grant_it() {
    let place = Place::new();
    place.grant(".", "read-write");
    let (folder, list) = (place.at("mine"), place.list());
    assert_eq!(place.refused(&list), None);
    AgentFolder::open(&folder, &list).unwrap().trust(&list).unwrap();
    assert!(place.refused(&list).is_none() && AgentFolder::open(&folder, &list).unwrap().is_trusted());
    fs::write(place.at("mine/scripts/a.js"), "changed").unwrap();
    assert!(!AgentFolder::open(&folder, &list).unwrap().is_trusted());
}

#[test]
fn nobody_is_let_write_the_list_of_trusted_folders() {
    let place = Place::new();
    let (folder, list) = (place.at("mine"), place.list());
    for directory in ["../home", ".."] {
        place.grant(directory, "read-write");
        AgentFolder::open(&folder, &list).unwrap().trust(&list).unwrap();
        let refused = place.refused(&list).unwrap_or_else(|| panic!("{directory} is let be"));
        assert!(refused.contains("trust.toml"), "{refused}");
        list.forget(&folder).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn links_on_the_way_to_what_decides_are_looked_at() {
    use std::os::unix::fs::symlink;

    let place = Place::new();
    // What decides is a link to a link, of which one lies where somebody writes.
    fs::create_dir(place.at("mine/safe")).unwrap();
    fs::rename(place.at("mine/scripts/a.js"), place.at("mine/safe/a.js")).unwrap();
    symlink("../safe/a.js", place.at("mine/data/middle.js")).unwrap();
    symlink("../data/middle.js", place.at("mine/scripts/a.js")).unwrap();
    place.grant("data", "read-write");
    assert!(place.refused(&Trust::Everything).unwrap().contains("mine/scripts/a.js"));
    // The granted directory is a link, or the folder of plugins is one.
    symlink("scripts", place.at("mine/away")).unwrap();
    fs::remove_dir(place.at("mine/plugins")).unwrap();
    symlink("../free", place.at("mine/plugins")).unwrap();
    for directory in ["away", "../free", "safe"] {
        place.grant(directory, "read-write");
        assert!(place.refused(&Trust::Everything).is_some(), "{directory}");
    }
    // A circle of links leads nowhere.
    symlink("round", place.at("mine/round")).unwrap();
    assert!(!super::passed(&place.at("mine/round/x")).is_empty());
}

/// Files of agents are for whoever writes them no way to what is granted to such a file.
#[test]
fn nothing_is_granted_to_the_file_of_an_agent_that_somebody_may_write() {
    let place = Place::new();
    fs::write(
        place.at("mine/hotcell.toml"),
        "[grants.agent]\nenv = ['KEY']\n[grants.'scripts/a.js']\nfs = [{ host = 'data', guest = '/d', access = 'read-write' }]\n",
    )
    .unwrap();
    let opened = AgentFolder::open(&place.at("mine"), &Trust::Everything).unwrap();
    let held = |file: &str| opened.settings_for_file(&place.at(file), b"").1;
    assert!(held("mine/data/graph.yaml") && !held("mine/graph.yaml"));
}
