"""Compiled programs as files: objects, C headers, shared libraries without a linker."""
