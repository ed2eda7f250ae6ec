"""Pages that show a program: ``weft viz``, ``Lowered.as_html``, notebooks.

    stages -> program -> document -> items -> nest -> layers -> page

``items`` draws a graph as boxes in boxes with edges, ``partition`` a step that is cut for devices;
``nest`` puts boxes into name scopes and the like, so that few are seen at a time; ``layers`` finds
the row of each box and its place in the row; ``memory`` is the arena over time. ``page`` writes all
that, with the script and style in the folder ``assets``, into one file that needs nothing else; the
script gives coordinates to what is open.
"""
