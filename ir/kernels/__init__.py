"""The language of kernels: its statements, how they are written, facts that follow from them."""
