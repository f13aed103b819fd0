//! `hotcell plugin grant`

use std::path::{Component, Path, PathBuf};

use hotcell_runtime::DecideError;
use hotcell_runtime::plugins::{Access, DirectoryGrant, GrantError, GrantOrder, HttpGrant};

use super::{Context, Desk, explained, grant_command, print};
use crate::arguments::Grant;
use crate::exit::{Exit, Failure};
use crate::untrusted::{lines, one_line};

pub(super) fn perform(context: &Context, arguments: &Grant) -> Result<Exit, Failure> {
    let mut desk = Desk::new(context, &arguments.folders)?;
    let (file, plugin) = desk.find(&arguments.plugin)?;
    let plugin = plugin.clone();
    let order = order(arguments)?;
    let decided = match desk.decide(&plugin, &order, arguments.allow_older) {
        Err(older @ DecideError::Older { .. }) => return Err(older.into()),
        decided => decided,
    };
    for line in explained(&arguments.plugin, &desk.standing(file, &plugin), &arguments.folders) {
        if !line.starts_with("decide with") {
            context.screen.line(&line);
        }
    }
    let before = desk.folder.granted_before(&arguments.plugin);
    let asked = &plugin.description.capabilities;
    let grants = decided?;
    let words: Vec<String> = grants.in_words().into_iter().chain(plugin.hooks_in_words()).collect();
    let kept = before.is_some_and(|before| *before == grants);
    context.screen.line(match (words.is_empty(), kept) {
        (true, _) if asked.is_empty() => "it asks for nothing",
        (true, _) => "it will be used without any of that",
        (false, true) => "it keeps what it was granted; it will be allowed to",
        (false, false) => "it will be allowed to",
    });
    for line in &words {
        context.screen.line(&format!("  - {}", one_line(line, 500)));
    }
    let left_out = asked.left_out_by(&grants);
    if !arguments.nothing && arguments.only.is_empty() && !left_out.is_empty() {
        let more = left_out.iter().map(|name| format!(" --add {name}")).collect::<String>();
        let command = grant_command(&arguments.plugin, &arguments.folders);
        context.screen.line(&format!("it asks for more than that; to grant it all: {command}{more}"));
    }
    if !arguments.yes {
        context.confirm(&format!("Grant this to `{}`?", arguments.plugin))?;
    }
    desk.grant(&plugin, &grants, arguments.allow_older)?;
    print(&format!("`{}` may be used; it is pinned to sha256 {}", arguments.plugin, plugin.survey.digest))?;
    Ok(Exit::Done)
}

fn order(arguments: &Grant) -> Result<GrantOrder, Failure> {
    let http = arguments
        .http
        .iter()
        .map(|url| url.parse::<HttpGrant>().map_err(|error| Failure::refused(error.to_string())))
        .collect::<Result<_, _>>()?;
    let folder = &arguments.folders.folder;
    let fs = arguments.fs.iter().map(|text| directory(text, folder)).collect::<Result<_, _>>()?;
    Ok(GrantOrder { http, fs, only: arguments.only.clone(), nothing: arguments.nothing, add: arguments.add.clone() })
}

/// `GUEST=DIRECTORY`, with `:rw` at the end if it may be written. A directory is written into the settings of `folder` as the person
/// wrote it: a relative path stays one, from there.
fn directory(text: &str, folder: &Path) -> Result<DirectoryGrant, Failure> {
    let wrong = || {
        Failure::refused(format!("`{}` is not a directory grant", one_line(text, 200)))
            .help("write `--fs /data=DIRECTORY`, with `:rw` at the end if the plugin may write there")
    };
    let (guest, host) = text.split_once('=').ok_or_else(wrong)?;
    let (host, access) = match host.strip_suffix(":rw") {
        Some(host) => (host, Access::ReadWrite),
        None => (host, Access::Read),
    };
    if !guest.starts_with('/') || guest.len() < 2 || host.is_empty() {
        return Err(wrong());
    }
    let host = Path::new(host);
    if !host.is_dir() {
        return Err(Failure::refused(format!("there is no directory `{}`", one_line(&host.to_string_lossy(), 500))));
    }
    let host = if host.is_absolute() { host.to_owned() } else { relative(host, folder) };
    Ok(DirectoryGrant::new(host, guest, access))
}

/// The way to a path from a folder.
fn relative(path: &Path, folder: &Path) -> PathBuf {
    let (Ok(path), Ok(folder)) = (path.canonicalize(), folder.canonicalize()) else { return path.to_owned() };
    let shared = path.components().zip(folder.components()).take_while(|(left, right)| left == right).count();
    let up = folder.components().skip(shared).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(path.components().skip(shared)).collect();
    if way.as_os_str().is_empty() { PathBuf::from(".") } else { way }
}

impl From<DecideError> for Failure {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::Older { .. } => Failure::refused(one_line(&error.to_string(), 300))
                .help("it may lack fixes of the newer one; pass `--allow-older` to use it anyway"),
            DecideError::Grant(error) => error.into(),
        }
    }
}

impl From<GrantError> for Failure {
    fn from(error: GrantError) -> Self {
        Failure::refused(lines(&error.to_string()))
    }
}
