"""Do the tests notice a mistake? Small mistakes are made on purpose, one at a time, to see.

    cd tests && python -m mutation --sample 300 --seed 0 --jobs 2

samples mutants (``mutants``) of passes, codegen, runtime and frontend, and runs for each the tests
that cover its lines, quickest first, until one fails:

    killed       a test failed, or the process crashed
    timed out    they took many times as long as without the mistake: it was noticed, too
    survived     all passed: a test is missing, or the mutant is equivalent
    not covered  no test runs those lines
    equivalent   listed in ``equivalent.toml``, with the reason why no test can notice it

The repository is copied into a temporary folder first; the checkout itself is never written to.
The suite runs once with coverage by test (``baseline``), which takes a multiple of its own time
and is kept beside the results, in ``--state``; so is each result, and a run that was broken off
goes on where it was. All is made anew when the sources have changed. When tests have, those are
measured again, and the mutants that nobody noticed get another chance.

Needs ``coverage`` (the extra ``mutation``).
"""
