//! Finding files by their names and by what is in them.

use std::fs;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use hotcell_plugin::Error;
use regex::RegexBuilder;

use crate::{LINE, failed};

/// Folders that hold what others wrote or what is built.
const LEFT_OUT: [&str; 10] =
    [".git", "node_modules", "target", "dist", "build", "__pycache__", "vendor", ".build", ".next", ".venv"];
/// Files that are given at most.
const FILES: usize = 100;
/// Lines that are given at most.
const LINES: usize = 50;
/// Files that are looked at in one call.
const LOOKED_AT: usize = 100_000;
/// Bytes of a file that is searched.
const SIZE: u64 = 4 << 20;
/// Bytes that a compiled regular expression may take.
const EXPRESSION: usize = 4 << 20;

/// The files below a folder, known to the model as `shown`, that match a pattern.
pub(crate) fn glob(pattern: &str, folder: &Path, shown: &str) -> Result<String, Error> {
    let matcher = matcher(pattern)?;
    let by_path = pattern.contains('/');
    let mut found = Vec::new();
    walk(folder, shown, &mut |below, _| {
        let matches = if by_path { matcher.is_match(below) } else { named(&matcher, below) };
        if matches {
            found.push(below.to_owned());
        }
        found.len() <= FILES
    })?;
    Ok(list(found.iter().map(|below| path(shown, below)), found.len(), FILES, || {
        format!("no file matches `{pattern}`")
    }))
}

/// The lines below a folder, or in a file, that match a regular expression.
pub(crate) fn grep(pattern: &str, place: &Path, shown: &str, include: Option<&str>) -> Result<String, Error> {
    let expression = RegexBuilder::new(pattern).size_limit(EXPRESSION).build();
    let expression = expression.map_err(|error| Error::invalid_input(format!("not a regular expression: {error}")))?;
    let include = include.map(matcher).transpose()?;
    let mut found = Vec::new();
    let mut search = |name: String, file: &Path| {
        let small = fs::metadata(file).is_ok_and(|about| about.len() <= SIZE);
        let Some(text) = small.then(|| fs::read(file).ok()).flatten().and_then(|bytes| String::from_utf8(bytes).ok())
        else {
            return true;
        };
        for (index, line) in text.lines().enumerate().filter(|(_, line)| expression.is_match(line)) {
            let cut: String = line.chars().take(LINE).collect();
            found.push(format!("{name}:{}:{cut}", index + 1));
            if found.len() > LINES {
                return false;
            }
        }
        true
    };
    if place.is_file() {
        search(shown.to_owned(), place);
    } else {
        walk(place, shown, &mut |below, file| {
            let wanted = include.as_ref().is_none_or(|include| include.is_match(below) || named(include, below));
            !wanted || search(path(shown, below), file)
        })?;
    }
    let all = found.len();
    Ok(list(found.into_iter(), all, LINES, || format!("no line matches `{pattern}`")))
}

fn matcher(pattern: &str) -> Result<GlobMatcher, Error> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| Error::invalid_input(format!("not a pattern: {error}")))
}

fn named(matcher: &GlobMatcher, below: &Path) -> bool {
    below.file_name().is_some_and(|name| matcher.is_match(name))
}

fn path(shown: &str, below: &Path) -> String {
    match shown.trim_end_matches('/') {
        "." => below.display().to_string(),
        shown => format!("{shown}/{}", below.display()),
    }
}

fn list(lines: impl Iterator<Item = String>, all: usize, most: usize, nothing: impl Fn() -> String) -> String {
    let mut text: String = lines.take(most).map(|line| line + "\n").collect();
    if all == 0 {
        text = nothing() + "\n";
    } else if all > most {
        text.push_str(&format!("(there are more than {most}; search more narrowly)\n"));
    }
    text
}

/// Tells `found` of every file below a folder, in the order of names, by its path below the folder and its whole path, until it
/// wants no more. Links are not followed.
fn walk(folder: &Path, shown: &str, found: &mut dyn FnMut(&Path, &Path) -> bool) -> Result<(), Error> {
    let mut open = vec![(folder.to_owned(), PathBuf::new())];
    let mut looked_at = 0;
    while let Some((place, below)) = open.pop() {
        let about = fs::symlink_metadata(&place).map_err(|error| failed(shown, &error))?;
        if about.is_file() {
            if !found(&below, &place) {
                return Ok(());
            }
            continue;
        }
        if !about.is_dir() {
            continue;
        }
        let Ok(entries) = fs::read_dir(&place) else { continue };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.retain(|name| !LEFT_OUT.iter().any(|left_out| name == left_out));
        looked_at += names.len();
        if looked_at > LOOKED_AT {
            return Err(Error::other(format!(
                "there are more than {LOOKED_AT} files; search in a folder below `{shown}`"
            )));
        }
        names.sort();
        open.extend(names.into_iter().rev().map(|name| (place.join(&name), below.join(&name))));
    }
    Ok(())
}
