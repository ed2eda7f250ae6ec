"""Random programs that nest transforms and control flow:

    python -m fuzz.nested --count 10000 --log nested.log

run in tests/. ``draw`` writes a program as a text, ``reference`` runs it without Weft (control flow
by Python, derivatives by differences), ``check`` compares that with the interpreter and with what
is compiled at two levels, and ``worker`` runs many of them in a process of its own.
"""
