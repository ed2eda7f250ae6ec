"""NumPy's sums of products, decompositions, polynomials and differences."""
