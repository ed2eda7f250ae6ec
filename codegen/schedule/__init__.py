"""What is chosen for a machine and written in the text of a kernel: kinds of axes, blocks, vectors,
tiles of products, programs of a GPU. It imports no emitter."""
