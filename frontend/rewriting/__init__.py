"""Python's own control flow on traced values, by rewriting the functions it is written in.

What is traced is a copy of a function in which each ``if``, ``while``, ``for``, ``and``, ``or``,
``not``, ternary, operator, attribute, item and call is a call of ``operators`` (the idea is
TensorFlow's AutoGraph: Moldovan et al., *AutoGraph: Imperative-style Coding with Graph-based
Performance*, 2018):

    def total(x, most):                       def total(x, most):
        s = 0.0                                   s = 0.0
        while s < most:                           def test(): return s < most
            s += x.sum()                          def body(): nonlocal s; s += x.sum()
        return s                                  _weft.while_(test, body, get, put, ("s",))
                                                  return s

``get`` and ``put`` read and bind the names that the body changes. On plain values an operator does
what Python does; on traced ones it traces the parts as regions. Lines and columns stay the user's.

    retrace     tracing a function as its rewritten copy
    source      the rewriting itself: what code binds and changes, and what it becomes
    operators   what rewritten code calls, by one name
    regions     what rewritten statements do: parts that run on one way only
    loops       parts that run in rounds, and what these are over
    lists       lists that branches and loops make longer or shorter
    calls       what rewritten calls do: functions and classes of the user, builtins, print
"""
