/// Which seats are taken, one bit each.
pub struct SeatMap(u128);

impl SeatMap {
    /// Marks a seat as taken; false if it was already.
    pub fn occupy(&mut self, seat: u8) -> bool {
        let bit = 1 << seat;
        let free = self.0 & bit == 0;
        self.0 |= bit;
        free
    }
}
