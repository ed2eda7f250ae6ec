"""Where a kernel runs: as far as its masks, windows and conditions let it do something."""
