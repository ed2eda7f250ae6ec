"""What to do about a line that asks for a traced value: where the function around it is not
rewritten, that is another thing than in one that is."""

from __future__ import annotations

from ...face.source import RUNTIME, user_frame
from ..source_text import text_of

_NO_SOURCE = ("there is no source of this function at hand (python -c, exec, a file that was "
              "edited after it was imported), so its branches, loops, texts and np.zeros are "
              "Python's own: put it into a file")


class Hints:
    """What a trace says to do about a line."""

    endless: bool  # a graph, whose lines are not rewritten

    def in_function(self, hint: str) -> str:
        """What to do about a line that asks for a traced value: in a graph, to have it in a
        function that is rewritten."""
        return hint if not self.endless else (
            f"put these lines into a function under @weft.compile and call it here, or {hint}")

    def by_source(self, hint: str) -> str:
        """What to do about a line that asks for a traced value: where the source of its function is
        not at hand, to put that into a file."""
        frame = None if self.endless else user_frame()
        if frame is None or RUNTIME in frame.f_code.co_freevars or text_of(frame.f_code):
            return hint
        return _NO_SOURCE

    def by_numpy(self, hint: str) -> str:
        """What to do about a function of NumPy that cannot know traced values: in a graph, whose
        lines are not rewritten, to call that of ``weft.numpy``."""
        return hint if not self.endless else (
            "make arrays in a graph by weft.numpy (weft.numpy.zeros(n)), or put these lines into a "
            "function under @weft.compile and call it here")
