"""Devices that have memory of their own: what they can do, memory, arrays that lie there as well,
programs that run there, and the device of Triton's interpreter, which is a process."""
