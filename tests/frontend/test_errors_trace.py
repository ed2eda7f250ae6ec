"""Wrong programs: each error names its code, the user's line (marked ``# here``) and a fix, in at
most 15 lines, and is the exception that NumPy users expect."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import weft
from weft.frontend.face.signature import Signature
from weft.frontend.library import nn
from weft.frontend.library.random import default_rng
from weft.frontend.tracing.arrays.variable import Variable
from weft.frontend.tracing.spec import Spec
from weft.frontend.tracing.trace import trace_function
from weft.frontend.transforms.reverse import grad
from weft.ir.diagnose import CODES, Error

X, V = np.ones((3, 4), np.float32), np.ones(5, np.float32)
PLAIN = np.zeros(3, np.float32)
CASES: list[tuple[str, type[Exception], Callable[..., Any]]] = []


def wrong(code: str, kind: type[Exception] = Error) -> Callable[..., Any]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((code, kind, function))
        return function

    return add


# -- shapes ------------------------------------------------------------------------------


OUTSIDE = np.zeros((3, 4), np.float32)  # the caller's


@wrong("W101", ValueError)
def operands_do_not_broadcast(x: Any) -> Any:
    y = x * 2
    return y + V  # here


@wrong("W101", ValueError)
def a_result_that_does_not_fit_in_place(x: Any) -> Any:
    y = x[0] * 1
    y += x  # here
    return y


@wrong("W101", ValueError)
def a_value_that_does_not_fit_its_place(x: Any) -> Any:
    y = x * 1
    y[1:3] = V  # here
    return y


@wrong("W101", ValueError)
def broadcast_to_another_shape(x: Any) -> Any:
    return np.broadcast_to(x, (3, 5))  # here


@wrong("W102", ValueError)
def concatenate_different_shapes(x: Any) -> Any:
    return np.concatenate([x, x.T])  # here


@wrong("W102", ValueError)
def stack_different_shapes(x: Any) -> Any:
    return np.stack([x, x[0]])  # here


@wrong("W102", ValueError)
def uneven_split(x: Any) -> Any:
    return np.split(x, 3, axis=1)  # here


@wrong("W102", ValueError)
def squeeze_a_wide_axis(x: Any) -> Any:
    return x.squeeze(0)  # here


@wrong("W102", ValueError)
def maximum_of_nothing(x: Any) -> Any:
    return x[:0].max()  # here


@wrong("W102", ValueError)
def a_product_with_a_scalar(x: Any) -> Any:
    return x @ 2.0  # here


@wrong("W103", ValueError)
def a_reshape_that_does_not_divide(x: Any) -> Any:
    return x.reshape(5, -1)  # here


@wrong("W103", ValueError)
def a_reshape_to_another_size(x: Any) -> Any:
    return np.reshape(x, (3, 5))  # here


@wrong("W104", ValueError)
def a_product_of_wrong_dims(x: Any) -> Any:
    return x @ x  # here


@wrong("W104", ValueError)
def an_einsum_of_wrong_dims(x: Any) -> Any:
    return np.einsum("ij,jk->ik", x, x)  # here


# -- dtypes and functions ----------------------------------------------------------------


@wrong("W111", TypeError)
def a_difference_of_truth_values(x: Any) -> Any:
    return (x > 0) - (x < 1)  # here


@wrong("W131", OverflowError)
def a_number_too_large(x: Any) -> Any:
    n = x.astype(np.int32)
    return n + 2 ** 40  # here


@wrong("W111", TypeError)
def bits_of_floats(x: Any) -> Any:
    return x & 1  # here


@wrong("W111", TypeError)
def a_fraction_into_integers(x: Any) -> Any:
    n = x.astype(np.int64)
    n += 0.5  # here
    return n


@wrong("W112", TypeError)
def an_operand_that_is_a_text(x: Any) -> Any:
    return x + "text"  # here


@wrong("W112", TypeError)
def an_operand_that_is_an_object(x: Any) -> Any:
    return np.add(x, object())  # here


@wrong("W112", TypeError)
def an_array_of_objects(x: Any) -> Any:
    return x + np.array([None] * 4)  # here


@wrong("W113", TypeError)
def a_function_that_is_not_there(x: Any) -> Any:
    return np.datetime_as_string(x)  # here


@wrong("W113", TypeError)
def a_ufunc_that_is_not_there(x: Any) -> Any:
    return np.isnat(x)  # here


@wrong("W113", TypeError)
def an_option_that_is_not_there(x: Any) -> Any:
    return np.einsum("ij->i", x, casting="no")  # here


@wrong("W113", TypeError)
def an_option_of_a_ufunc(x: Any) -> Any:
    return np.add(x, x, where=x > 0)  # here


@wrong("W113", TypeError)
def a_method_that_is_not_there(x: Any) -> Any:
    return x.byteswap()  # here


@wrong("W113", NotImplementedError)
def a_function_that_is_not_there_by_its_own_class(x: Any) -> Any:
    return np.is_busday(x)  # here


@wrong("W102", ValueError)
def a_mask_that_may_choose_nothing(x: Any) -> Any:
    return np.max(x, where=x > 0)  # here


@wrong("W203", TypeError)
def writing_into_an_argument(x: Any) -> Any:
    return np.add(x, x, out=x)  # here


@wrong("W203", TypeError)
def writing_into_a_plain_array(x: Any) -> Any:
    return np.add(x, x, out=OUTSIDE)  # here


@wrong("W101", ValueError)
def writing_what_does_not_fit(x: Any) -> Any:
    y = x[0] * 1
    return np.add(x, x, out=y)  # here


@wrong("W111", TypeError)
def writing_fractions_into_integers(x: Any) -> Any:
    n = np.zeros((3, 4), int, like=x)
    return np.multiply(x, 0.5, out=n)  # here


@wrong("W112", TypeError)
def where_with_one_value(x: Any) -> Any:
    return np.where(x > 0, 1)  # here


@wrong("W113", TypeError)
def another_update(x: Any) -> Any:
    return x.at[0].max(3)  # here


@wrong("W113", TypeError)
def padding_in_no_mode_of_numpy(x: Any) -> Any:
    return np.pad(x, 1, mode="mirror")  # here


@wrong("W114", TypeError)
def a_gradient_of_an_array(x: Any) -> Any:
    return grad(lambda x: x * 2)(x)  # here


# -- axes and indices --------------------------------------------------------------------


@wrong("W121", IndexError)
def an_axis_out_of_range(x: Any) -> Any:
    return x.sum(axis=2)  # here


@wrong("W121", IndexError)
def an_axis_of_a_layer_out_of_range(x: Any) -> Any:
    return nn.softmax(x, axis=2)  # here


@wrong("W121", IndexError)
def an_axis_of_batch_norm_out_of_range(x: Any) -> Any:
    return nn.batch_norm(x, V, V, axis=2)  # here


@wrong("W121", IndexError)
def an_axis_of_differences_out_of_range(x: Any) -> Any:
    return np.diff(x, axis=-3)  # here


@wrong("W112", TypeError)
def an_axis_that_is_a_truth_value(x: Any) -> Any:
    return np.sum(x, axis=True)  # here


@wrong("W112", TypeError)
def an_axis_that_is_a_fraction(x: Any) -> Any:
    return np.sum(x, axis=1.0)  # here


@wrong("W112", TypeError)
def a_size_that_is_a_truth_value(x: Any) -> Any:
    return x.reshape(True, 12)  # here


@wrong("W121", IndexError)
def an_axis_named_twice(x: Any) -> Any:
    return np.mean(x, axis=(0, -2))  # here


@wrong("W122", IndexError)
def an_index_out_of_range(x: Any) -> Any:
    return x[3]  # here


@wrong("W122", IndexError)
def an_index_array_out_of_range(x: Any) -> Any:
    rows = np.array([0, 7])
    return x[rows]  # here


@wrong("W122", IndexError)
def too_many_indices(x: Any) -> Any:
    return x[0, 0, 0]  # here


@wrong("W123", IndexError)
def an_index_of_floats(x: Any) -> Any:
    return x[x[0]]  # here


# -- tracing -----------------------------------------------------------------------------


@wrong("W201", TypeError)
def a_branch_on_a_traced_value(x: Any) -> Any:
    if x.sum() > 0:  # here
        return x
    return -x


@wrong("W201", TypeError)
def a_loop_on_a_traced_value(x: Any) -> Any:
    while np.max(x) > 1:  # here
        x = x / 2
    return x


@wrong("W201", TypeError)
def the_larger_of_traced_values(x: Any) -> Any:
    return max(x[0, 0], 0.0)  # here


@wrong("W201", TypeError)
def two_traced_conditions(x: Any) -> Any:
    return np.where((x > 0) and (x < 1), x, 0)  # here


@wrong("W201", TypeError)
def an_assertion_on_a_traced_value(x: Any) -> Any:
    assert np.all(x > 0)  # here
    return x


@wrong("W201", TypeError)
def a_function_of_math(x: Any) -> Any:
    return math.sin(x[0, 0])  # here


@wrong("W201", TypeError)
def a_traced_range(x: Any) -> Any:
    return [i for i in range(x.astype(int)[0, 0])]  # here  # noqa: C416


@wrong("W201", TypeError)
def a_plain_array_of_a_traced_one(x: Any) -> Any:
    return np.float64(x)  # here


@wrong("W201", TypeError)
def a_formatted_number(x: Any) -> Any:
    return f"{x[0, 0]:.3f}"  # here


@wrong("W201", TypeError)
def an_item(x: Any) -> Any:
    return f"{x[0, 0]:.2f}"  # here


@wrong("W203", TypeError)
def storing_a_number_into_a_plain_array(x: Any) -> Any:
    PLAIN[0] = x[0, 0]  # here
    return PLAIN


@wrong("W203", TypeError)
def storing_a_row_into_a_plain_array(x: Any) -> Any:
    PLAIN[:] = x[0, :3]  # here
    return PLAIN


@wrong("W203", TypeError)
def adding_to_a_plain_array(x: Any) -> Any:
    total = OUTSIDE[:]
    total += x  # here
    return total


@wrong("W203", TypeError)
def changing_an_argument(x: Any) -> Any:
    x[0] = 1  # here
    return x


@wrong("W203", TypeError)
def changing_a_view_of_an_argument(x: Any) -> Any:
    x[0][1] = 2  # here
    return x


@wrong("W203", TypeError)
def changing_a_repeated_array(x: Any) -> Any:
    y = np.broadcast_to(x * 2, (2, 3, 4))
    y[0] = 1  # here
    return y


@wrong("W203", TypeError)
def using_an_argument_changed_through_a_view(x: Any) -> Any:
    row = x[0]
    row += 1  # here
    return x * 2


@wrong("W203", TypeError)
def using_an_array_changed_through_a_reshape(x: Any) -> Any:
    y = x * 2
    flat = y.ravel()
    flat += 1  # here
    return y * 2


@wrong("W203", TypeError)
def using_a_reshape_of_an_array_that_changed(x: Any) -> Any:
    y = x * 2
    flat = y.ravel()
    y[0] = 1  # here
    return flat + 1


@wrong("W203", TypeError)
def using_another_name_of_a_changed_argument(x: Any) -> Any:
    z = x
    z += 1  # here
    return x * z


@wrong("W203", TypeError)
def changing_a_closed_over_array_after_its_use(x: Any) -> Any:
    y = x + OUTSIDE  # here
    OUTSIDE[0] += 1
    return y


@wrong("W203", TypeError)
def a_variable_made_of_a_traced_value(x: Any) -> Any:
    return Variable(x)  # here


@wrong("W304", KeyError)
def a_variable_of_another_shape(x: Any) -> Any:
    return Variable(np.zeros(3, np.float32)).assign(x)  # here


# -- layers ------------------------------------------------------------------------------


@wrong("W104", ValueError)
def a_layer_with_wrong_weights(x: Any) -> Any:
    hidden = nn.relu(x)
    return nn.linear(hidden, V[:, None])  # here


@wrong("W113", TypeError)
def an_unknown_reduction(x: Any) -> Any:
    return nn.cross_entropy(x, x, reduction="average")  # here


@wrong("W111", TypeError)
def random_halves(x: Any) -> Any:
    return default_rng(0).random(3, dtype=np.float16)  # here


@pytest.mark.parametrize(("code", "kind", "function"), CASES, ids=lambda c: getattr(
    c, "__name__", ""))
def test_wrong_programs(code: str, kind: type[Exception], function: Callable[..., Any]) -> None:
    with pytest.raises(kind) as caught:
        trace_function(function, (X,))
    problem = caught.value
    assert isinstance(problem, Error) and problem.code == code and code in CODES
    lines, first = inspect.getsourcelines(function)
    wanted = next(at for at, line in enumerate(lines, first) if "# here" in line)
    assert (problem.locs[0].file, problem.locs[0].line) == (__file__, wanted)
    text = str(problem).splitlines()
    assert len(text) <= 15 and any("fix: " in line for line in text)
    assert any("^" in line for line in text)


# -- arguments, found before the function runs -------------------------------------------


def tenfold(x: Any, mode: Any = None) -> Any:
    return x * 10


ARGUMENTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "an object": ("W112", lambda: trace_function(tenfold, (object(),))),
    "a set": ("W112", lambda: trace_function(tenfold, (X, {1}))),
    "an array of texts": ("W112", lambda: trace_function(tenfold, (np.array(["a"]),))),
    "a huge int": ("W112", lambda: trace_function(tenfold, (1 << 70,))),
    "a bad spec": ("W112", lambda: Spec("f33", (3,))),
    "a static list": ("W112", lambda: trace_function(
        tenfold, (X, [1]), signature=Signature(tenfold, ("mode",)))),
    "a static argument that is not there": ("W112", lambda: Signature(tenfold, "modus")),
    "a dynamic argument that is not there": ("W105", lambda: trace_function(
        tenfold, (X,), signature=Signature(tenfold, dynamic={"y": {0: "b"}}))),
    "a dynamic axis that is not there": ("W105", lambda: trace_function(
        tenfold, (X,), signature=Signature(tenfold, dynamic={"x": {2: "b"}}))),
    "a result that is no array": ("W112", lambda: trace_function(lambda x: {"a": object()}, (X,))),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments(name: str) -> None:
    code, call = ARGUMENTS[name]
    with pytest.raises(Error) as caught:
        call()
    assert caught.value.code == code
    assert caught.value.locs[0].file == __file__
    assert len(str(caught.value).splitlines()) <= 15


@pytest.mark.filterwarnings("default:.* is a traced value")
@pytest.mark.parametrize("fails", [False, True])
def test_a_leaked_value(fails: bool) -> None:
    held: list[Any] = []

    def leaking(x: Any) -> Any:
        held.append(x * 2)
        if fails:
            raise ValueError("after the leak")
        return x

    with pytest.raises(ValueError, match="leak") if fails else nullcontext():
        trace_function(leaking, (X,))
    for use in (lambda: held[0] + 1, lambda: np.sin(held[0]), lambda: held[0][0],
                lambda: bool(held[0]), lambda: trace_function(lambda x: x + held[0], (X,))):
        with pytest.raises(TypeError) as caught:
            use()
        problem = caught.value
        assert isinstance(problem, Error) and problem.code == "W202"
        assert problem.locs[0].file == __file__ and "leaking" in problem.message
        assert problem.locs[-1].function == "leaking"


def test_symbolic_dims_that_are_needed_now() -> None:
    for function in (lambda x: list(x), lambda x: len(x), lambda x: range(x.shape[0])):
        with pytest.raises(Error) as caught:
            trace_function(function, ("f32[b]",))
        assert caught.value.code == "W201" and "symbolic" in str(caught.value)


def test_the_methods_take_a_shape_with_symbolic_dims() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for f in (lambda x: np.ravel(x).reshape(x.shape), lambda x: x.T.reshape((x.shape[0], -1)),
              lambda x: x.T.reshape([x.shape[0], x.shape[1]])):
        np.testing.assert_array_equal(weft.compile(f, dynamic={"x": {0: "a", 1: "b"}})(x), f(x))


@pytest.mark.parametrize(("function", "fix"), [
    (lambda x: np.pad(x, x.shape[0]), "a shift or a width give the dim no symbol"),
])
def test_what_needs_a_size_now_says_what_to_write(
    function: Callable[..., Any], fix: str
) -> None:
    with pytest.raises(weft.Error, match=f"W201.*\n(.*\n)*.*{fix}"):
        weft.compile(function, dynamic={"x": {0: "n"}})(np.ones(3))


def test_a_width_that_is_an_array_has_no_number() -> None:
    with pytest.raises(weft.Error, match=r"W201.*\n(.*\n)*.*fix"):
        weft.compile(np.pad)(np.ones(3), np.array(1))


@pytest.mark.parametrize(("function", "name"), [
    (lambda x: scipy.special.comb(5, x), "scipy.special.comb"),
    (lambda x: scipy.special.factorial(x), "scipy.special.factorial"),
    (lambda x: scipy.linalg.expm(np.outer(x, x)), "scipy.linalg.expm"),
    (lambda x: scipy.linalg.cholesky(np.outer(x, x)), "scipy"),
])
def test_functions_of_scipy_are_named_and_the_line_is_the_users(
    function: Callable[..., Any], name: str
) -> None:
    with pytest.raises(Error) as caught:
        weft.compile(function)(np.ones(3))
    problem = caught.value
    assert problem.locs[0].file == __file__ and f"which {name} asks for" in str(problem)
    assert "weft.host_call(" in str(problem)
