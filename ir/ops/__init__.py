"""The op rows: one defines all that Weft knows of an operation. ``op`` says what a row has,
``table`` holds them all, and the folders have families of rows by kind."""
