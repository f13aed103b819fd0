//! When an agent wakes up: cron expressions of five fields.

use std::ops::RangeInclusive;

/// A minute on the calendar and clock of some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalMinute {
    /// The year
    pub year: i16,
    /// The month, from 1
    pub month: i8,
    /// The day of the month, from 1
    pub day: i8,
    /// The hour
    pub hour: i8,
    /// The minute
    pub minute: i8,
}

/// A cron expression, as the minutes, hours and days that it means.
#[derive(Clone, Debug, PartialEq)]
pub struct Cron {
    /// A bit for each minute, hour, day of the month and month
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: Vec<Weekday>,
    /// Whether days of the month and days of the week are both restricted: either is enough then
    either_day: bool,
}

/// Days of the week, Sunday as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weekday {
    Every(u8),
    /// The so manyth of the month
    Nth(u8, u8),
    Last(u8),
}

pub(super) const MACROS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// How many days each month has at most.
const LENGTHS: [u64; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// One of the first four fields, or the days of the week as numbers.
struct Part {
    what: &'static str,
    values: RangeInclusive<u64>,
    names: &'static [&'static str],
    /// What the first of the names stands for
    first: u64,
}

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(source: &str) -> Result<Cron, String> {
        if source.len() > LONGEST {
            return Err(format!("it has {} bytes, and a schedule has {LONGEST} at most", source.len()));
        }
        let source = source.trim();
        let written = match MACROS.iter().find(|(name, _)| name.eq_ignore_ascii_case(source)) {
            Some((_, fields)) => *fields,
            None if source.starts_with('@') => return Err(format!("there is no `{source}`")),
            None => source,
        };
        let fields: Vec<&str> = written.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = &fields[..] else {
            let count = fields.len();
            let noun = if count == 1 { "field" } else { "fields" };
            return Err(format!(
                "it has {count} {noun}, and a schedule has five: minute, hour, day of the month, month, day of the week"
            ));
        };
        let part = |what, values, names, first| Part { what, values, names, first };
        let cron = Cron {
            minutes: part("minute", 0..=59, &[], 0).bits(minutes)?,
            hours: part("hour", 0..=23, &[], 0).bits(hours)?,
            days: part("day of the month", 1..=31, &[], 0).bits(days)?,
            months: part("month", 1..=12, &MONTHS, 1).bits(months)?,
            weekdays: read_weekdays(weekdays)?,
            either_day: !days.starts_with('*') && !weekdays.starts_with('*'),
        };
        let comes =
            |month: u64| cron.months & (1 << month) != 0 && cron.days & ((2 << LENGTHS[month as usize - 1]) - 1) != 0;
        if !cron.either_day && !(1..=12).any(comes) {
            return Err("the day of the month never comes in these months".to_owned());
        }
        Ok(cron)
    }

    /// The first minute after another one at which it comes, on a calendar without gaps: that a local time is left out or comes
    /// twice is for whoever knows the zone. None if the calendar ends before.
    pub fn next_after(&self, after: LocalMinute) -> Option<LocalMinute> {
        let mut day = LocalMinute { hour: 0, minute: 0, ..after };
        let mut from = (u64::try_from(after.hour).ok()?, u64::try_from(after.minute).ok()? + 1);
        // The 29th of February on one day of the week comes every forty years, where a century has none.
        for _ in 0..=MOST_DAYS {
            if self.is_on_day(day) {
                let times = (from.0..24).filter(|hour| self.hours & (1 << hour) != 0);
                for hour in times {
                    let first = if hour == from.0 { from.1 } else { 0 };
                    if let Some(minute) = (first..60).find(|minute| self.minutes & (1 << minute) != 0) {
                        return Some(LocalMinute { hour: hour as i8, minute: minute as i8, ..day });
                    }
                }
            }
            from = (0, 0);
            day = day.next_day()?;
        }
        None
    }

    fn is_on_day(&self, day: LocalMinute) -> bool {
        let by_month_day = self.days & (1 << day.day) != 0;
        let by_weekday = self.weekdays.iter().any(|weekday| weekday.is_on(day));
        let is_day = if self.either_day { by_month_day || by_weekday } else { by_month_day && by_weekday };
        self.months & (1 << day.month) != 0 && is_day
    }
}

/// Bytes of the longest expression. Whatever it lists is compared with each day that is looked at.
const LONGEST: usize = 1_000;
/// How many days are looked at for the next one that fits.
const MOST_DAYS: u32 = 41 * 366;

impl Weekday {
    fn is_on(self, day: LocalMinute) -> bool {
        let this = day.weekday();
        match self {
            Weekday::Every(weekday) => weekday == this,
            Weekday::Nth(weekday, nth) => weekday == this && (day.day as u8 - 1) / 7 + 1 == nth,
            Weekday::Last(weekday) => weekday == this && day.day + 7 > day.month_length(),
        }
    }
}

impl LocalMinute {
    fn month_length(self) -> i8 {
        let is_leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        match self.month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    fn next_day(self) -> Option<LocalMinute> {
        Some(match self {
            _ if self.day < self.month_length() => LocalMinute { day: self.day + 1, ..self },
            _ if self.month < 12 => LocalMinute { month: self.month + 1, day: 1, ..self },
            _ => LocalMinute { year: self.year.checked_add(1)?, month: 1, day: 1, ..self },
        })
    }

    /// The day of the week, Sunday as 0.
    fn weekday(self) -> u8 {
        /// How far the first of each month is from that of March in a year that begins then.
        const MONTHS: [i32; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
        let year = i32::from(self.year) - i32::from(self.month < 3);
        let place = usize::try_from(self.month - 1).unwrap_or(0) % 12;
        let days = year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        (days + MONTHS[place] + i32::from(self.day)).rem_euclid(7) as u8
    }
}

impl Part {
    fn bits(&self, field: &str) -> Result<u64, String> {
        let mut bits = 0;
        for item in field.split(',') {
            let (range, step) = match item.split_once('/') {
                Some((range, step)) => (range, Some(self.step(step)?)),
                None => (item, None),
            };
            let (first, last) = match range {
                "*" => (*self.values.start(), *self.values.end()),
                range => match range.split_once('-') {
                    Some((first, last)) => (self.value(first)?, self.value(last)?),
                    None => {
                        let first = self.value(range)?;
                        (first, if step.is_some() { *self.values.end() } else { first })
                    }
                },
            };
            if first > last {
                return Err(format!("`{item}` runs backwards ({})", self.what));
            }
            (first..=last).step_by(step.unwrap_or(1)).for_each(|value| bits |= 1 << value);
        }
        Ok(bits)
    }

    fn value(&self, text: &str) -> Result<u64, String> {
        let name = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let value = match name {
            Some(place) => Some(place as u64 + self.first),
            None if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            None => None,
        };
        let (least, most) = (self.values.start(), self.values.end());
        value
            .filter(|value| self.values.contains(value))
            .ok_or_else(|| format!("`{text}` is not a valid {}: it takes {least} to {most}", self.what))
    }

    fn step(&self, text: &str) -> Result<usize, String> {
        let step = if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
        step.filter(|step| (1..=60).contains(step)).ok_or_else(|| format!("`/{text}` is not a step ({})", self.what))
    }
}

fn read_weekdays(field: &str) -> Result<Vec<Weekday>, String> {
    let part = Part { what: "day of the week", values: 0..=7, names: &WEEKDAYS, first: 0 };
    let mut days = Vec::new();
    for item in field.split(',') {
        if let Some((day, nth)) = item.split_once('#') {
            let nth = nth.parse().ok().filter(|nth| (1..=5).contains(nth));
            let nth = nth.ok_or_else(|| format!("`{item}`: a month has a day of the week one to five times"))?;
            days.push(Weekday::Nth((part.value(day)? % 7) as u8, nth));
        } else if let Some(day) = item.strip_suffix(['L', 'l']) {
            days.push(Weekday::Last((part.value(day)? % 7) as u8));
        } else {
            let bits = part.bits(item)?;
            // Sunday is 0 and 7.
            let bits = (bits | (bits >> 7)) & 0x7f;
            days.extend((0..7).filter(|day| bits & (1 << day) != 0).map(Weekday::Every));
        }
    }
    Ok(days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_run_is_refused() {
        for (source, part) in [
            ("0 24 * * *", "24"),
            ("0 25 * * *", "25"),
            ("60 * * * *", "60"),
            ("*/10 * * * * *", "6 fields"),
            ("0 9 * * 8", "8"),
            ("0 9 * * 5#6", "5#6"),
            ("0 17-9 * * *", "17-9"),
            ("0 0 30 2 *", "never"),
            ("0 0 31 4,6 *", "never"),
            ("*/0 * * * *", "/0"),
            ("0 0 0 * *", "`0`"),
            ("0 0 * foo *", "foo"),
            ("@often", "@often"),
            ("", "0 fields"),
            ("0 9 * *", "4 fields"),
            ("-1 9 * * *", "``"),
            ("0 9 * * MONDAY", "MONDAY"),
        ] {
            let problem = Cron::parse(source).expect_err(source);
            assert!(problem.contains(part), "{source}: {problem}");
        }
    }

    /// The days of forty years would be compared with a million days of the week, each time that the next one is looked for.
    #[test]
    fn a_schedule_that_lists_without_end_is_refused() {
        let long = format!("0 0 30 2 {}", "1#5,".repeat(1_000_000));
        assert_eq!(Cron::parse(&long).unwrap_err(), "it has 4000009 bytes, and a schedule has 1000 at most");
        assert!(Cron::parse(&format!("{} 0 1 1 *", ["59"; 300].join(","))).is_ok());
    }

    #[test]
    fn the_next_one_is_found() {
        let at = |text: &str| {
            let parts: Vec<i16> = text.split(['-', ' ', ':']).map(|part| part.parse().unwrap()).collect();
            let [year, month, day, hour, minute] = parts[..] else { panic!("{text}") };
            LocalMinute { year, month: month as i8, day: day as i8, hour: hour as i8, minute: minute as i8 }
        };
        for (source, after, next) in [
            ("0 9 * * *", "2026-11-23 08:59", "2026-11-23 09:00"),
            ("0 9 * * *", "2026-11-23 09:00", "2026-11-24 09:00"),
            ("*/20 23 31 12 *", "2026-12-31 23:40", "2027-12-31 23:00"),
            ("0 0 29 2 *", "2026-01-01 00:00", "2028-02-29 00:00"),
            // The third Friday, and the last one.
            ("30 8 * * 5#3", "2026-11-01 00:00", "2026-11-20 08:30"),
            ("30 8 * * 5L", "2026-11-01 00:00", "2026-11-27 08:30"),
            // Either is enough where both are restricted: the 13th, or a Monday.
            ("0 0 13 * 1", "2026-11-10 00:00", "2026-11-13 00:00"),
            ("0 0 13 * 1", "2026-11-13 00:00", "2026-11-16 00:00"),
            ("0 0 29 2 0", "2026-03-01 00:00", "2027-02-07 00:00"),
            ("@weekly", "2026-11-23 00:00", "2026-11-29 00:00"),
        ] {
            assert_eq!(Cron::parse(source).unwrap().next_after(at(after)), Some(at(next)), "{source} after {after}");
        }
        assert_eq!(Cron::parse("0 0 1 1 *").unwrap().next_after(at("32767-01-01 00:00")), None);
    }

    #[test]
    fn fields_mean_what_they_say() {
        let cron = Cron::parse("*/15 9-17 1,15 jan-mar MON-FRI").unwrap();
        assert_eq!(cron.minutes, 1 | 1 << 15 | 1 << 30 | 1 << 45);
        assert_eq!(cron.hours.count_ones(), 9);
        assert_eq!(cron.days, 1 << 1 | 1 << 15);
        assert_eq!(cron.months, 0b1110);
        assert_eq!(cron.weekdays.len(), 5);
        assert!(cron.either_day);
        assert_eq!(Cron::parse("0 0 * * 7").unwrap().weekdays, [Weekday::Every(0)]);
        assert_eq!(Cron::parse("0 0 * * 5#3,5L").unwrap().weekdays, [Weekday::Nth(5, 3), Weekday::Last(5)]);
        assert!(!Cron::parse("0 0 29 2 *").unwrap().either_day);
        assert_eq!(Cron::parse("@daily").unwrap().hours, 1);
        assert_eq!(Cron::parse("5/20 * * * *").unwrap().minutes, 1 << 5 | 1 << 25 | 1 << 45);
    }
}
