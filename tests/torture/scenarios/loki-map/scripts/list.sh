echo '{"items": ["ash", "birch", "cedar", "elm", "fir", "gum", "hazel", "larch", "maple", "oak", "pine", "rowan"]}'
