"""From graph to graph: prune, simplify, differentiate, place, fuse; and the plan of the memory that
a program needs. A pass knows ``ir`` and no back end. ``manager`` makes data of passes and runs
them; which of them run, in what order, ``frontend.engine.building.pipeline`` says.
"""
