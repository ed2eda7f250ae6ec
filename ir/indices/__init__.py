"""Integer expressions over symbols: sizes of dims, addresses of loads, what is known of them."""
