"""From fused regions to code. ``kernel`` lowers a region to the kernel language, which knows no
target; ``cpu`` and ``gpu`` write that as LLVM IR and Triton; ``artifact`` makes files of it that
need no Python. LLVM and Triton are imported on first use, and here only.
"""
