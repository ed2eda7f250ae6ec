"""What work costs: one model for every choice between two ways of computing the same.

    speed        a table: seconds of launches, operations, bytes and of waking a worker
    statements   how much work statements and kernels are
    nodes        how much work nodes of a graph are, and how long they take
    limits       how much work is worth a launch, a worker, a pass through memory

Work is counted in *additions* of float32 in vectors, in graphs and in kernels alike: the primitives
of an op's body are the statements of its kernel. So a choice that asks for seconds compares two
whole numbers, and one of sizes that are known at run time asks in the plan.

The limits are those of the reference machine (``ir/machine``), so that a graph is fused and a plan
reads the same wherever it is made. What speeds depend on is the choice, never the bits of a result.
"""
