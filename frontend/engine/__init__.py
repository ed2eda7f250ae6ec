"""``weft.compile``: signatures, specialisations, the pipeline from graph to native program."""
