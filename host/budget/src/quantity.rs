//! Newtypes for the two quantities that are easily mixed up with plain counts.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Units of work done by WebAssembly code: about one per instruction, and a part of each host call.
///
/// Ten million units are very roughly one millisecond of straight-line code; the same call with the same inputs,
/// clock and random seed uses the same number to the unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fuel(pub u64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// An amount of money, in billionths of a US dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(pub u64);

impl Cost {
    /// So many dollars; an amount below zero, or one that is no number, is nothing.
    pub fn from_usd(usd: f64) -> Self {
        // A conversion that does not fit gives the nearest number that does.
        Self((usd * 1e9).round() as u64)
    }

    /// The amount in dollars.
    pub fn to_usd(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl fmt::Display for Cost {
    /// With at least two digits behind the point, and with as many as it has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let digits = format!("{rest:09}");
        let digits = digits.trim_end_matches('0');
        write!(f, "${whole}.{digits:0<2}")
    }
}

impl Bytes {
    /// `count` times 1,024 bytes.
    pub const fn kib(count: u64) -> Self {
        Self(count * 1024)
    }

    /// `count` times 1,048,576 bytes.
    pub const fn mib(count: u64) -> Self {
        Self(count * 1024 * 1024)
    }

    /// The same number for indexing and allocation; on a 32-bit host it is cut to what an address can hold.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// What a run may write to its journal, where the operator says nothing else.
pub const JOURNAL_BYTES: Bytes = Bytes(1 << 30);

impl From<usize> for Bytes {
    fn from(count: usize) -> Self {
        Self(count as u64)
    }
}

macro_rules! saturating_arithmetic {
    ($($name:ident),*) => {$(
        impl Add for $name {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;

            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
    )*};
}

saturating_arithmetic!(Fuel, Bytes, Cost);

impl fmt::Display for Fuel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            units if units >= 1_000_000_000 => write!(f, "{:.1} G fuel", units as f64 / 1e9),
            units if units >= 1_000_000 => write!(f, "{:.1} M fuel", units as f64 / 1e6),
            units => write!(f, "{units} fuel"),
        }
    }
}

impl fmt::Display for Bytes {
    /// Binary units; exact multiples are written without a fraction (`64 MiB`), others with one digit (`1.5 KiB`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        for (name, size) in UNITS {
            if self.0 < size {
                continue;
            }
            if self.0.is_multiple_of(size) {
                return write!(f, "{} {name}", self.0 / size);
            }
            return write!(f, "{:.1} {name}", self.0 as f64 / size as f64);
        }
        write!(f, "{} bytes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Cost, Fuel};

    #[test]
    fn quantities_are_written_in_the_largest_fitting_unit() {
        let cases = [
            (Bytes(0).to_string(), "0 bytes"),
            (Bytes(1023).to_string(), "1023 bytes"),
            (Bytes::kib(1).to_string(), "1 KiB"),
            (Bytes(1536).to_string(), "1.5 KiB"),
            (Bytes::mib(64).to_string(), "64 MiB"),
            (Bytes::mib(4096).to_string(), "4 GiB"),
            (Fuel(999).to_string(), "999 fuel"),
            (Fuel(200_000_000).to_string(), "200.0 M fuel"),
            (Fuel(5_000_000_000).to_string(), "5.0 G fuel"),
        ];
        for (written, expected) in cases {
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn money_is_written_in_dollars() {
        for (usd, written) in
            [(0.0, "$0.00"), (0.05, "$0.05"), (1.5, "$1.50"), (0.00000015, "$0.00000015"), (-1.0, "$0.00")]
        {
            assert_eq!(Cost::from_usd(usd).to_string(), written);
        }
        assert_eq!(Cost::from_usd(f64::NAN), Cost(0));
        assert_eq!(Cost::from_usd(0.06).to_usd(), 0.06);
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Bytes(u64::MAX) + Bytes(1), Bytes(u64::MAX));
        assert_eq!(Fuel(1) - Fuel(2), Fuel(0));
    }
}
