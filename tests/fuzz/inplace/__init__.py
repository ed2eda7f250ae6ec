"""Random programs that write into their arguments:

    python inplace_storm.py --programs 10000 --log inplace.log

run in tests/. ``draw`` writes a program as a text, with three sets of arguments (``layouts``), and
``check`` runs it with NumPy and compiled by Weft: results and arguments afterwards are equal, or
the call failed and left all as it was, whatever it failed of.
"""
