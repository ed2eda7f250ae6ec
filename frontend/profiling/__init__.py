"""``weft.profile``: what a profile has been told, as rows of kernels, as user's lines, as a trace."""
