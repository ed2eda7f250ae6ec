"""What a program does, as a tree of steps, and how it is called."""
