"""What you call: tracing, ``compile``, gradients, ``Graph`` and ``Session``, the layers,
optimisers and random numbers, export, the command line. It is the only composition root: passes,
codegen and runtime never import each other, they meet in data (graph, kernel, plan, entry), and
nothing but this folder imports them all and hands what one makes to the next.
"""
