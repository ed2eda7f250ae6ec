"""Functions made from functions: gradients."""
