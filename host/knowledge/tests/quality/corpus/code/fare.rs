/// The price of a ticket in cents.
pub fn fare_cents(age: u8, has_card: bool) -> u32 {
    let full = match age {
        0..4 => 0,
        4..12 => 725,
        _ => 1450,
    };
    if has_card { full * 4 / 5 } else { full }
}
