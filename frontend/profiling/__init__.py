"""``weft.profile``: what a profile has been told, as kernels, as lines of the user, as a trace."""
