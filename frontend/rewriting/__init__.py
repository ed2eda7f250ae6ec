"""Python's own control flow on traced values, by rewriting the functions it is written in.

A function is traced as it stands. Only when Python asks for the truth of a traced value is it
traced again, as a copy in which each ``if``, ``while``, ``for``, ``and``, ``or``, ``not``, ternary
and call is a call of ``operators`` (the idea is TensorFlow's AutoGraph: Moldovan et
al., *AutoGraph: Imperative-style Coding with Graph-based Performance*, 2018):

    def total(x, most):                       def total(x, most):
        s = 0.0                                   s = 0.0
        while s < most:                           def test(): return s < most
            s += x.sum()                          def body(): nonlocal s; s += x.sum()
        return s                                  _weft.while_(test, body, get, put, ("s",))
                                                  return s

``get`` and ``put`` read and bind the names that the body changes. On plain values an operator does
what Python does; on traced ones it traces the parts as regions. Lines and columns stay the user's.

    retrace     tracing a function, and again as its rewritten copy
    patience    when loops in loops are too much to be traced round by round
    source      the rewriting itself: what code binds and changes, and what it becomes
    operators   what rewritten code calls, by one name
    regions     what rewritten statements do: parts that run on one way, or in rounds
    calls       what rewritten calls do: functions of the user, builtins, print
"""
