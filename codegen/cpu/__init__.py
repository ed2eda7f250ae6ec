"""Kernels and plans as LLVM IR and native code. llvmlite is imported here and below only."""
