"""What integers of the graph can be, and what follows: loops that count, places, narrow indices."""
