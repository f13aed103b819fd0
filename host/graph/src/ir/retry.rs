//! How often something that may succeed a little later is tried.

use std::sync::Arc;
use std::time::Duration;

/// How often a request, or a node, is tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// How many attempts are made at most
    pub attempts: u32,
    /// Which refusals are worth another attempt
    pub on: RetryOn,
    /// The pause before the second attempt
    pub pause: Duration,
    /// How many times as long as the one before each pause is
    pub growth: f64,
    /// The longest pause
    pub longest_pause: Duration,
    /// What chance does to a pause, so that those who were refused together do not come again together
    pub jitter: Jitter,
    /// How long one request may take; none means as long as any
    pub time: Option<Duration>,
}

/// What chance does to a pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Nothing
    #[default]
    None,
    /// It is up to a quarter shorter or longer
    Quarter,
    /// It is up to half as long
    Equal,
    /// It is anything up to its length
    Full,
    /// As [`Jitter::Equal`] after a status that blames who asked (400 to 499), as [`Jitter::Full`] after all else
    EqualWhenBlamed,
    /// It is up to a second longer
    Second,
}

/// Which refusals are worth another attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryOn {
    /// Those that speak of a trouble that passes: too many requests, time that ran out, a lost connection
    Transient,
    /// Beside these, all that say the fault is the server's, and 408 and 409
    Retryable,
    /// All
    Any,
    /// Those with these statuses of HTTP, and where there was no answer at all
    Statuses(Arc<[u16]>),
    /// Those with these statuses and texts, and where there was no answer at all
    Recoverable(Arc<Recoverable>),
}

/// Answers after which another attempt may help.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recoverable {
    /// Statuses of HTTP, each with texts of which the answer has to have one; none means any answer
    pub statuses: Vec<(u16, Vec<String>)>,
    /// Whether all count that say the fault is the server's (500 to 599), but for what it never does (501)
    pub any_5xx: bool,
}

impl Recoverable {
    /// Whether another attempt may help after an answer with this status and text.
    pub fn has(&self, status: u16, text: &str) -> bool {
        match self.statuses.iter().find(|(known, _)| *known == status) {
            Some((_, texts)) if texts.is_empty() => true,
            Some((_, texts)) => {
                let text = text.to_lowercase();
                texts.iter().any(|part| text.contains(&part.to_lowercase()))
            }
            None => self.any_5xx && (500..=599).contains(&status) && status != 501,
        }
    }
}

impl RetryOn {
    /// Whether another attempt may help after an answer over HTTP with this status and text, which is no success.
    pub fn answer(&self, status: u16, text: &str) -> bool {
        match self {
            RetryOn::Transient => status == 429,
            RetryOn::Retryable => matches!(status, 408 | 409 | 429 | 500..=599) && status != 501,
            RetryOn::Any => true,
            RetryOn::Statuses(statuses) => statuses.contains(&status),
            RetryOn::Recoverable(recoverable) => recoverable.has(status, text),
        }
    }
}

impl Default for Retry {
    /// Five more attempts where it may help.
    fn default() -> Self {
        Retry {
            attempts: 6,
            on: RetryOn::Retryable,
            pause: Duration::from_millis(500),
            growth: 2.0,
            longest_pause: Duration::from_secs(8),
            jitter: Jitter::None,
            time: None,
        }
    }
}

impl Retry {
    /// The pause after this many attempts. `status` is that of the last answer, if there was one, and `chance` a number from 0
    /// to 1.
    pub fn pause_after(&self, attempts: u32, status: Option<u16>, chance: f64) -> Duration {
        // Saturates where the clock would.
        let factor = self.growth.powi(i32::try_from(attempts.saturating_sub(1)).unwrap_or(i32::MAX));
        let longest = self.longest_pause.as_secs_f64();
        let whole = self.pause.as_secs_f64() * factor;
        let (equal, full) = (whole.min(longest) * (1.0 + chance) / 2.0, whole.min(longest) * chance);
        let seconds = match self.jitter {
            Jitter::None => whole,
            Jitter::Quarter => whole * (0.75 + chance / 2.0),
            Jitter::Equal => equal,
            Jitter::Full => full,
            Jitter::EqualWhenBlamed if status.is_some_and(|status| (400..500).contains(&status)) => equal,
            Jitter::EqualWhenBlamed => full,
            Jitter::Second => whole + chance,
        };
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).min(self.longest_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_chance_keeps_them_within_their_bounds() {
        let retry = |growth, jitter| Retry {
            pause: Duration::from_secs(2),
            growth,
            longest_pause: Duration::from_secs(10),
            jitter,
            ..Retry::default()
        };
        let seconds = |retry: &Retry, status, chance| {
            [1, 2, 4].map(|attempts| retry.pause_after(attempts, status, chance).as_secs_f64())
        };
        assert_eq!(seconds(&retry(1.5, Jitter::None), None, 0.5), [2.0, 3.0, 6.75]);
        assert_eq!(seconds(&retry(0.5, Jitter::None), None, 0.5), [2.0, 1.0, 0.25]);
        assert_eq!(seconds(&retry(3.0, Jitter::None), None, 0.5), [2.0, 6.0, 10.0]);
        for (jitter, status, [least, most]) in [
            (Jitter::Quarter, None, [[1.5, 4.5, 10.0], [2.5, 7.5, 10.0]]),
            (Jitter::Equal, None, [[1.0, 3.0, 5.0], [2.0, 6.0, 10.0]]),
            (Jitter::Full, None, [[0.0, 0.0, 0.0], [2.0, 6.0, 10.0]]),
            (Jitter::EqualWhenBlamed, Some(429), [[1.0, 3.0, 5.0], [2.0, 6.0, 10.0]]),
            (Jitter::EqualWhenBlamed, Some(503), [[0.0, 0.0, 0.0], [2.0, 6.0, 10.0]]),
            (Jitter::EqualWhenBlamed, None, [[0.0, 0.0, 0.0], [2.0, 6.0, 10.0]]),
            (Jitter::Second, None, [[2.0, 6.0, 10.0], [3.0, 7.0, 10.0]]),
        ] {
            let retry = retry(3.0, jitter);
            assert_eq!((seconds(&retry, status, 0.0), seconds(&retry, status, 1.0)), (least, most), "{jitter:?}");
        }
        let endless = Retry { longest_pause: Duration::MAX, ..retry(1e9, Jitter::None) };
        assert_eq!(endless.pause_after(u32::MAX, None, 0.0), Duration::MAX);
    }

    #[test]
    fn an_answer_is_worth_another_attempt_by_its_status_and_its_text() {
        let statuses = vec![(404, Vec::new()), (400, vec!["Busy".to_owned(), "later".to_owned()])];
        let recoverable = |any_5xx| RetryOn::Recoverable(Arc::new(Recoverable { statuses: statuses.clone(), any_5xx }));
        for (status, text, with_5xx, without) in [
            (404, "", true, true),
            (400, "{\"code\": \"BUSY\"}", true, true),
            (400, "try LATER", true, true),
            (400, "wrong", false, false),
            (429, "", false, false),
            (500, "", true, false),
            (501, "", false, false),
            (599, "", true, false),
            (600, "", false, false),
        ] {
            let found = (recoverable(true).answer(status, text), recoverable(false).answer(status, text));
            assert_eq!(found, (with_5xx, without), "{status} {text}");
        }
    }
}
