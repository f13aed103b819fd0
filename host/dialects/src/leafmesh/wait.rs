//! What an agent waits for: names of agents with `AND`, `OR`, brackets, and `?` behind what is optional.

use std::ops::Range;

/// How deeply brackets may be nested.
const MAX_DEPTH: usize = 64;
const MAX_BYTES: usize = 4 << 10;

/// An expression over agents.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wait {
    /// This agent, with its place in the text
    Agent(String, Range<usize>),
    Optional(Box<Wait>),
    All(Vec<Wait>),
    Any(Vec<Wait>),
}

/// Why a text is no such expression, and where in bytes.
#[derive(Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) message: String,
    pub(super) at: Range<usize>,
}

impl Wait {
    /// Reads an expression. `AND` binds more tightly than `OR`.
    pub(super) fn parse(source: &str) -> Result<Wait, Problem> {
        if source.len() > MAX_BYTES {
            return Err(Problem { message: format!("it has more than {MAX_BYTES} bytes"), at: 0..0 });
        }
        let mut parser = Parser { source, tokens: tokens(source)?, at: 0, depth: 0 };
        let wait = parser.any()?;
        match parser.now() {
            (Token::End, _) => Ok(wait),
            _ => Err(parser.unexpected()),
        }
    }

    /// The agents that it names, in order.
    pub(super) fn agents(&self) -> Vec<(&str, &Range<usize>)> {
        match self {
            Wait::Agent(name, place) => vec![(name, place)],
            Wait::Optional(inner) => inner.agents(),
            Wait::All(parts) | Wait::Any(parts) => parts.iter().flat_map(Wait::agents).collect(),
        }
    }
}

/// An expression with another name for one agent; as it is where it is no expression.
pub fn renamed_in_wait(source: &str, from: &str, to: &str) -> String {
    let Ok(wait) = Wait::parse(source) else { return source.to_owned() };
    let mut places: Vec<&Range<usize>> =
        wait.agents().into_iter().filter(|(name, _)| *name == from).map(|(_, place)| place).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.start));
    let mut renamed = source.to_owned();
    places.into_iter().for_each(|place| renamed.replace_range(place.clone(), to));
    renamed
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'s> {
    Name(&'s str),
    And,
    Or,
    Open,
    Close,
    Optional,
    End,
}

fn tokens(source: &str) -> Result<Vec<(Token<'_>, Range<usize>)>, Problem> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let mut length = first.len_utf8();
        let token = match first {
            _ if first.is_whitespace() => {
                at += length;
                continue;
            }
            '(' => Token::Open,
            ')' => Token::Close,
            '?' => Token::Optional,
            _ if first.is_alphabetic() || first == '_' => {
                let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
                length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
                match &rest[..length] {
                    word if word.eq_ignore_ascii_case("and") => Token::And,
                    word if word.eq_ignore_ascii_case("or") => Token::Or,
                    word => Token::Name(word),
                }
            }
            _ => {
                let message =
                    format!("`{}` is not expected here: it takes names, `AND`, `OR`, brackets and `?`", first);
                return Err(Problem { message, at: at..at + length });
            }
        };
        tokens.push((token, at..at + length));
        at += length;
    }
    tokens.push((Token::End, at..at));
    Ok(tokens)
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<(Token<'s>, Range<usize>)>,
    at: usize,
    depth: usize,
}

impl<'s> Parser<'s> {
    fn now(&self) -> (Token<'s>, Range<usize>) {
        // The last token is the end, behind which nothing steps.
        self.tokens[self.at.min(self.tokens.len() - 1)].clone()
    }

    fn takes(&mut self, token: Token<'_>) -> bool {
        let is_it = self.now().0 == token;
        self.at += usize::from(is_it);
        is_it
    }

    fn unexpected(&self) -> Problem {
        let (token, at) = self.now();
        let message = match token {
            Token::End => "it ends too early".to_owned(),
            _ => format!("`{}` is not expected here", &self.source[at.clone()]),
        };
        Problem { message, at }
    }

    fn any(&mut self) -> Result<Wait, Problem> {
        let mut parts = vec![self.all()?];
        while self.takes(Token::Or) {
            parts.push(self.all()?);
        }
        Ok(one_or(parts, Wait::Any))
    }

    fn all(&mut self) -> Result<Wait, Problem> {
        let mut parts = vec![self.unit()?];
        while self.takes(Token::And) {
            parts.push(self.unit()?);
        }
        Ok(one_or(parts, Wait::All))
    }

    fn unit(&mut self) -> Result<Wait, Problem> {
        let (token, place) = self.now();
        let wait = match token {
            Token::Name(name) => {
                self.at += 1;
                Wait::Agent(name.to_owned(), place)
            }
            Token::Open => {
                self.at += 1;
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(Problem { message: format!("it is nested more than {MAX_DEPTH} deep"), at: place });
                }
                let wait = self.any()?;
                if !self.takes(Token::Close) {
                    return Err(self.unexpected());
                }
                self.depth -= 1;
                wait
            }
            _ => return Err(self.unexpected()),
        };
        Ok(if self.takes(Token::Optional) { Wait::Optional(Box::new(wait)) } else { wait })
    }
}

fn one_or(mut parts: Vec<Wait>, several: fn(Vec<Wait>) -> Wait) -> Wait {
    match parts.len() {
        1 => parts.swap_remove(0),
        _ => several(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_expression_is_refused_with_its_place() {
        for (source, at) in [
            ("a AND", 5),
            ("AND a", 0),
            ("a b", 2),
            ("(a OR b", 7),
            ("a OR b)", 6),
            ("a??", 2),
            ("a AND ?", 6),
            ("a && b", 2),
            ("", 0),
            ("()", 1),
        ] {
            let problem = Wait::parse(source).expect_err(source);
            assert_eq!(problem.at.start, at, "{source}: {}", problem.message);
        }
        assert!(Wait::parse(&"(".repeat(100)).is_err());
        assert!(Wait::parse(&"a AND ".repeat(1000)).is_err());
    }

    #[test]
    fn an_agent_gets_another_name() {
        for (source, renamed) in
            [("a AND (ab OR a?)", "long AND (ab OR long?)"), ("b", "b"), ("a AND", "a AND"), (" a ", " long ")]
        {
            assert_eq!(renamed_in_wait(source, "a", "long"), renamed);
        }
    }

    #[test]
    fn and_binds_more_tightly_than_or() {
        let (one, two) = (Wait::parse("a or b AND c?").unwrap(), Wait::parse("a OR (b and c?)").unwrap());
        let names = |wait: &Wait| wait.agents().into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&one), ["a", "b", "c"]);
        assert!(matches!(&one, Wait::Any(parts) if matches!(&parts[1], Wait::All(_))), "{one:?}");
        assert!(matches!(&two, Wait::Any(parts) if matches!(&parts[1], Wait::All(_))), "{two:?}");
    }
}
