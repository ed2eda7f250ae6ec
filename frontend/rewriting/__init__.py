"""Python's own control flow on traced values, by rewriting the functions it is written in.

A function is traced as it stands. Only when Python asks for the truth of a traced value is it
traced again, as a copy in which each ``if``, ``while``, ``for``, ``and``, ``or``, ``not``, ternary
and call is a call of ``operators`` or ``calls`` (the idea is TensorFlow's AutoGraph: Moldovan et
al., *AutoGraph: Imperative-style Coding with Graph-based Performance*, 2018):

    def total(x, most):                       def total(x, most):
        s = 0.0                                   s = 0.0
        while s < most:                           def test(): return s < most
            s += x.sum()                          def body(): nonlocal s; s += x.sum()
        return s                                  _weft.while_(test, body, get, put, ("s",))
                                                  return s

``get`` and ``put`` read and bind the names that the body changes. On plain values an operator does
what Python does; on traced ones it traces the parts as regions. Lines and columns stay the user's.

    definition   the source of a code object, and the code of its rewritten copy
    names        what statements bind and change
    matching     match statements, as branches
    exits        return, break and continue, as flags and branches
    statements   the rewriting itself
    state        what a region starts from and leaves behind
    operators    what the rewritten statements do
    calls        what rewritten calls do: functions of the user, builtins, math
"""
