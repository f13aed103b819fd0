use hotcell_plugin::Value;

#[derive(Value)]
struct Timer {
    end: std::time::Instant,
}

fn main() {}
