"""Complex numbers become pairs of real ones: the walk, a rule for each op, the functions of C99."""
