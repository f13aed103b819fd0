//! Files with variables: a line for each, as `NAME=VALUE`.

/// The variables of a text, in its order. Empty lines and those that begin with `#` say nothing; a value in quotes is what is
/// between them, as it is.
///
/// # Errors
/// The first line that says something else.
pub(super) fn read(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut variables = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The line itself is not shown: it may be a secret.
        let wrong = || format!("line {} is not `NAME=VALUE`", number + 1);
        let (name, value) = line.split_once('=').ok_or_else(wrong)?;
        let name = name.trim();
        let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !name.chars().all(fits) {
            return Err(wrong());
        }
        let value = value.trim();
        let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
        variables.push((name.to_owned(), quoted.unwrap_or(value).to_owned()));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn lines_are_variables() {
        let text = "# keys\n\nA=1\n B = \"two words\" \nC='x=y'\nD=\nE=\"\n";
        let read = read(text).expect("variables");
        let pairs: Vec<(&str, &str)> = read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("A", "1"), ("B", "two words"), ("C", "x=y"), ("D", ""), ("E", "\"")]);
        for wrong in ["A", "=1", "export A=1", "1A=1", "A B=1", "Ä=1"] {
            let error = super::read(&format!("X=1\n{wrong}")).expect_err(wrong);
            assert_eq!(error, "line 2 is not `NAME=VALUE`");
        }
    }
}
