"""Random programs in plain NumPy: what Weft makes of them is what NumPy makes of them.

    cd tests && python -m fuzz --count 20000 --seed 0 --jobs 2

Program n of seed s is always the same program. Each is a text, run by Python with NumPy and
compiled by Weft, for several sets of arguments; a mismatch is made smaller and printed as a script
that needs nothing from here. One idea per file:

    prelude     what the programs' texts may use besides NumPy; scripts carry it along
    program     what a program is, and its text
    data        arguments: dtypes, odd values, layouts of memory, literals
    writer      draws a program step by step, running it in NumPy as it grows
    rows        calls written from the samples of the registry's rows, and options to vary
    steps_*     the steps by subject: rows, buffers written in place, elementwise, views, reduce,
                index, shifts and casts, calls
    draw        draws what is around the steps: arguments, dims, nests, options, variables
    oracle      what NumPy says, and how much of it is certain: see there for the tolerances
    excused     the few places where Weft need not do what NumPy does, each with its reason
    compiled    Weft's results for a program: as a function, or the interpreter's
    check       what has to be equal; check_grad, check_session, check_stages: the other ways to run
    minimise    a smaller program with the same defect
    worker      runs a range of programs and reports each in a line of JSON
    supervise   feeds workers, and survives those that crash or hang

A step needs no rule for shapes or dtypes: every value of a program under construction is computed
for two sets of sizes, and a step that NumPy refuses is dropped. A new step is a function of a few
lines with the decorator ``step`` in one of ``steps_*``.

Outcomes: *ok*; *refused* (Weft says at compile time, by an error of its own, that it does not
support a step: no defect, but counted); *finding* (anything else). Where NumPy raises, Weft raises
an error of its own that is NumPy's as well.
"""
