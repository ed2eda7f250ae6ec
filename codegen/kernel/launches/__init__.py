"""How kernels are launched: equal ones once, small ones together, shared out, inside of loops."""
