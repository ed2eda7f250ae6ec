"""What a module that uses Weft touches when it is imported: few modules, and no heavy ones.

    names       where each public name is; it is loaded when it is asked for
    compile     ``weft.compile``
    function    what it gives: at its first call it loads the engine
    signature   the parameters of a function and the one normal form of a call
    options     what of a compilation a user decides
    tree        nests of arrays
    exact, held   when two values, two functions are one to a program
    source, boundary   the user's line in errors
"""
