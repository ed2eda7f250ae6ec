"""What happens while a profile is active: who is told, and programs that tell the time of each of
their rows."""
