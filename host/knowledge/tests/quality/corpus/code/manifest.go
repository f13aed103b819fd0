package cargo

// MaxAxleLoad is what the car deck bears, in kilograms.
const MaxAxleLoad = 12000

// Fits tells whether a lorry may drive on board.
func Fits(axles []int, height float64) bool {
	for _, load := range axles {
		if load > MaxAxleLoad {
			return false
		}
	}
	return height < 4.2
}
