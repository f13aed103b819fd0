//! Patches as models write them: hunks whose lines say where they belong.

/// A hunk: the lines that it finds, and those it puts in their place.
#[derive(Default)]
struct Hunk<'p> {
    old: Vec<&'p str>,
    new: Vec<&'p str>,
}

/// The text with all hunks of a patch applied, each behind the one before. The error says which does not fit.
pub(crate) fn apply(text: &str, patch: &str) -> Result<String, String> {
    let hunks = hunks(patch)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut made: Vec<&str> = Vec::with_capacity(lines.len());
    let mut at = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let rest = &lines[at..];
        let found = if hunk.old.is_empty() {
            // Nothing says where: at the end.
            Some(rest.len())
        } else {
            rest.windows(hunk.old.len()).position(|window| window == hunk.old)
        };
        let Some(found) = found else {
            let first = hunk.old.first().copied().unwrap_or_default();
            return Err(format!(
                "hunk {} does not fit: its lines, which begin with `{first}`, do not stand in the file like that{}",
                index + 1,
                if index > 0 { " behind the hunk before" } else { "" }
            ));
        };
        made.extend(&rest[..found]);
        made.extend(&hunk.new);
        at += found + hunk.old.len();
    }
    made.extend(&lines[at..]);
    let mut made = made.join("\n");
    if !made.is_empty() && (text.ends_with('\n') || text.is_empty()) {
        made.push('\n');
    }
    Ok(made)
}

fn hunks(patch: &str) -> Result<Vec<Hunk<'_>>, String> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    for line in patch.lines() {
        if line.starts_with("@@") {
            hunks.push(Hunk::default());
            continue;
        }
        let Some(hunk) = hunks.last_mut() else {
            // What stands before the first hunk names the files.
            continue;
        };
        match line.split_at_checked(1) {
            Some((" ", same)) => {
                hunk.old.push(same);
                hunk.new.push(same);
            }
            Some(("-", gone)) => hunk.old.push(gone),
            Some(("+", new)) => hunk.new.push(new),
            Some(("\\", _)) => {}
            None => {
                hunk.old.push("");
                hunk.new.push("");
            }
            Some(_) => {
                return Err(format!("the line `{line}` of the patch begins with none of ` `, `-`, `+` and `@@`"));
            }
        }
    }
    for hunk in &mut hunks {
        // Empty lines at the end of a patch are rarely meant.
        while hunk.old.last() == Some(&"") && hunk.new.last() == Some(&"") {
            hunk.old.pop();
            hunk.new.pop();
        }
    }
    hunks.retain(|hunk| !(hunk.old.is_empty() && hunk.new.is_empty()));
    if hunks.is_empty() { Err("the patch has no hunk: one begins with `@@`".to_owned()) } else { Ok(hunks) }
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn hunks_are_found_by_their_lines() {
        let text = "a\nb\nc\nb\nd\n";
        let patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ ... @@\n-b\n d\n+e\n";
        assert_eq!(apply(text, patch), Ok("a\nB\nc\nd\ne\n".to_owned()));
        assert_eq!(apply("", "@@\n+new\n"), Ok("new\n".to_owned()));
        assert_eq!(apply("a\n", "@@\n+end\n\n"), Ok("a\nend\n".to_owned()));
        assert_eq!(apply("a\nb", "@@\n-b\n"), Ok("a".to_owned()));
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        for (patch, part) in [
            ("@@\n-x\n+y\n", "hunk 1 does not fit"),
            ("@@\n-b\n@@\n-a\n", "hunk 2 does not fit"),
            ("no patch", "no hunk"),
            ("", "no hunk"),
            ("@@\n-a\nb\n", "begins with none"),
        ] {
            let error = apply("a\nb\n", patch).err().unwrap_or_default();
            assert!(error.contains(part), "{patch:?}: {error}");
        }
    }
}
