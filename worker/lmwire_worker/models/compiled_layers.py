"""Compile what each layer of a network does before its attention, and what it does after it.

A GPU computes a step of few tokens faster than the process can start its operations. MLX compiles functions whose
arrays keep their shapes, which leaves less to start. Between two steps only the caches grow, so a layer becomes two
functions: one from its input to its queries, keys and values, and one from the attention's result to its output. The
second one goes on to the next layer's queries, keys and values where nothing stands between the layers.

Neither is written anew for an architecture. The layer's own code is traced twice, with a cache and an attention that
take its arrays or give others. A layer that does anything else with them stays as it is.
"""

import inspect
import operator
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache

MAX_TOKENS: Final = 64
"""Maximum tokens of a row in a compiled step. With more, the arithmetic takes longer than its start."""
PATIENCE: Final = 100
"""Number of steps of one shape before it is compiled. As many compiled ones gain the time that takes."""
MAX_STEP_S: Final = 0.012
"""Maximum duration of a step, in seconds. A longer one waits for the device, and the load would wait for the trial."""
TRIAL_STEPS: Final = 4
TRIAL_TURNS: Final = 5
"""Maximum number of turns in which the two sides are compared."""
CLEAR_LEAD: Final = 0.1
"""Share of the time by which compiled layers must be faster for a trial to end before its last turn. A lead of the
plain ones ends none: it may be a delay by other programs, and the trial decides for all steps to come."""
_Shape = tuple[tuple[int, ...], bool]
"""The shape of a layer's input, and whether all rows have as many tokens."""
_PARAMETERS: Final = ("self", "x", "mask", "cache")
"""The parameters of a layer that can be compiled."""


def compile_if_faster(network: Any, clock: Callable[[], float] = time.perf_counter) -> bool:
    """Let the layers of a network run compiled if that changes no result and is faster on this device.

    Args:
        network: The network, whose weights are in memory. It is changed.
        clock: Returns the time in seconds.

    Returns:
        True if they do.
    """
    layers = CompiledLayers(network, patience=0)
    with suppress(Exception):  # whatever a layer's code does with arrays that have no values: the plain layers run
        if layers.count and _passes_trial(network, layers, clock):
            layers.patience, layers.is_on = PATIENCE, True
            return True
    layers.remove()
    return False


class _Run(NamedTuple):
    """Some steps of a trial."""

    seconds: float
    """Duration of the shortest one, after the first."""
    logits: mx.array


def _passes_trial(network: Any, layers: "CompiledLayers", clock: Callable[[], float]) -> bool:
    """Return whether compiled layers give the same bits in less time."""

    def run(rows: int, *, is_on: bool) -> _Run:
        layers.is_on = is_on
        return _run(network, rows, clock)

    plain = run(1, is_on=False)
    if plain.seconds > MAX_STEP_S:
        plain = run(1, is_on=False)  # the first steps of a process also load kernels
        if plain.seconds > MAX_STEP_S:
            return False
    compiled = run(1, is_on=True)
    if not layers.have_compiled:
        return False
    for one, other in ((plain, compiled), (run(2, is_on=False), run(2, is_on=True))):
        if not mx.array_equal(one.logits, other.logits).item():
            return False
    plain_s, compiled_s = plain.seconds, compiled.seconds
    for _ in range(TRIAL_TURNS):
        compiled_s = min(compiled_s, run(1, is_on=True).seconds)
        plain_s = min(plain_s, run(1, is_on=False).seconds)
        if compiled_s < (1 - CLEAR_LEAD) * plain_s:
            break
    return compiled_s < plain_s


def _run(network: Any, rows: int, clock: Callable[[], float]) -> _Run:
    """Run some steps of one token for each row."""
    cache = make_prompt_cache(network)
    logits = [network(mx.array([[1]] * rows), cache=cache)]
    mx.eval(logits)
    seconds: list[float] = []
    for _ in range(TRIAL_STEPS):
        start = clock()
        logits.append(network(mx.argmax(logits[-1], axis=-1), cache=cache))
        mx.eval(logits[-1])
        seconds.append(clock() - start)
    return _Run(min(seconds), mx.concatenate(logits))


class CompiledLayers:
    """The layers of a network that run compiled.

    Args:
        network: The network. Each of its layers that may be compiled gets another class.
        patience: Steps of one shape before the first layer is compiled for it, and then one layer in each step, so
            that no step waits for all; 0 to compile all in the first step.
    """

    def __init__(self, network: Any, patience: int) -> None:
        self.patience = patience
        self.is_on = True
        """False while the plain layers run."""
        self.have_compiled = False
        """True once a layer was compiled."""
        self._plain: list[tuple[weakref.ref[Any], type]] = []
        self._offset = -1
        self._offset_array = mx.array(0)
        previous: _Halves | None = None
        for index, layer in enumerate(getattr(network, "layers", ())):
            plain = type(layer)
            halves = None
            if tuple(inspect.signature(plain.__call__).parameters) == _PARAMETERS:
                layer.__class__ = _compiled_class(plain)
                layer.halves = halves = _Halves(layer, index, self)
                self._plain.append((weakref.ref(layer), plain))
            if previous:
                previous.following = halves
            previous = halves

    @property
    def count(self) -> int:
        """Number of the layers."""
        return len(self._plain)

    def remove(self) -> None:
        """Give the layers their own classes again."""
        for reference, plain in self._plain:
            if (layer := reference()) is not None:
                layer.__class__ = plain
                del layer.halves
        self._plain = []

    def offset_array(self, offset: int | mx.array) -> mx.array:
        """Return the position of the next tokens as an array, since a compiled function is traced anew for each number.

        All layers of a step get the same one.
        """
        if not isinstance(offset, int):
            return offset
        if offset != self._offset:
            self._offset, self._offset_array = offset, mx.array(offset)
        return self._offset_array


@lru_cache
def _compiled_class(plain: type) -> type:
    """Return a class of layers that run compiled where they can, and otherwise as `plain` does."""
    return type(f"Compiled{plain.__name__}", (_CompiledLayer, plain), {})


class _CompiledLayer(nn.Module):
    """A layer that runs compiled where it can."""

    halves: "_Halves"

    def __call__(self, x: mx.array, mask: Any = None, cache: Any = None) -> Any:
        """Return the layer's output."""
        halves = self.halves
        shape = halves.compiled_shape(x, cache)
        if shape is None:
            return self.call_plain(x, mask, cache)
        offset = halves.layers.offset_array(cache.offset)
        queries, keys, values = halves.begin(x, offset, shape)
        keys, values = cache.update_and_fetch(keys, values)
        attended = mx.fast.scaled_dot_product_attention(queries, keys, values, mask=mask, **halves.options)
        return halves.end(x, attended, offset, shape)

    def call_plain(self, x: mx.array, mask: Any, cache: Any) -> Any:
        """Return what the layer's own code does."""
        plain: Any = super()
        return plain.__call__(x, mask, cache)


class _Begun(NamedTuple):
    """The first half of a layer, computed with the layer before it."""

    x: mx.array
    offset: mx.array
    arrays: Sequence[mx.array]
    """The queries, keys and values."""


class _Halves:
    """The two functions of a layer.

    Args:
        layer: The layer. It is not kept, so that its weights leave the memory with it.
        index: Its place in the network.
        layers: All layers of the network.
    """

    def __init__(self, layer: Any, index: int, layers: CompiledLayers) -> None:
        self.layers = layers
        self.options: dict[str, Any] = {}
        """The options that the layer gives its attention, beside the arrays and the mask."""
        self.following: _Halves | None = None
        """The functions of the layer that takes this one's output; None for none."""
        self.begun: _Begun | None = None
        """The part of this layer that the one before has computed."""
        self._layer = weakref.ref(layer)
        self._index = index
        self._seen: Counter[_Shape] = Counter()
        """Steps by shape, until it is compiled."""
        self._compiled: set[_Shape] = set()
        self._alone: set[_Shape] = set()
        """The shapes of them for which the layer before gives its output to something else, or has another position."""
        self._can_compile = True
        self.compiled_before: Any = mx.compile(self._before)
        self.compiled_after: Any = mx.compile(self._after)
        self.compiled_through: Any = mx.compile(self._through)

    @property
    def shapes(self) -> int:
        """Number of the shapes for which they are compiled."""
        return len(self._compiled)

    def compiled_shape(self, x: mx.array, cache: Any) -> _Shape | None:
        """Count a step, and compile for its shape if that has come often. Return the shape if the step runs compiled.

        Args:
            x: The layer's input [B, T, D].
            cache: The layer's cache; None without.
        """
        offset = getattr(cache, "offset", None)
        if not self.layers.is_on or offset is None or hasattr(cache, "bits"):
            return None  # a recurrent state, or quantized keys and values
        shape = x.shape, isinstance(offset, int)
        if shape in self._compiled:
            return shape
        if not self._can_compile or x.shape[1] > MAX_TOKENS:
            return None
        self._seen[shape] += 1
        patience = self.layers.patience
        if patience and self._seen[shape] <= patience + self._index:
            return None
        self._can_compile = self._compile(x, cache)
        if not self._can_compile:
            return None
        self._compiled.add(shape)
        self.layers.have_compiled = True
        return shape

    def can_begin(self, shape: _Shape) -> bool:
        """Return whether the layer before may compute this one's first half."""
        return shape in self._compiled and shape not in self._alone

    def begin(self, x: mx.array, offset: mx.array, shape: _Shape) -> Sequence[mx.array]:
        """Return the queries, keys and values.

        Args:
            x: The layer's input [B, T, D].
            offset: Position of the next tokens.
            shape: The step's shape.
        """
        begun, self.begun = self.begun, None
        if begun and begun.x is x and begun.offset is offset:
            return begun.arrays
        if begun:
            self._alone.add(shape)
        return self.compiled_before(x, offset)

    def end(self, x: mx.array, attended: mx.array, offset: mx.array, shape: _Shape) -> mx.array:
        """Return the layer's output, and begin the next layer if it is compiled for its shape.

        Args:
            x: The layer's input [B, T, D].
            attended: The attention's result.
            offset: Position of the next tokens.
            shape: The step's shape.
        """
        following = self.following
        if following is None or not following.can_begin(shape):
            return self.compiled_after(x, attended)
        output, *arrays = self.compiled_through(x, attended, offset)
        following.begun = _Begun(output, offset, arrays)
        return output

    def _compile(self, x: mx.array, cache: Any) -> bool:
        """Trace both functions for the shape of `x`, and return whether that works. Changes nothing else."""
        try:
            queries, _, values = self.compiled_before(x, self.layers.offset_array(cache.offset))
            self.compiled_after(x, mx.zeros((*queries.shape[:-1], values.shape[-1]), queries.dtype))
        except Exception:  # whatever the layer's own code does with arrays that have no values
            return False
        return True

    def _before(self, x: mx.array, offset: mx.array) -> tuple[mx.array, mx.array, mx.array]:
        layer, cache = self._traced(), _TracedCache(offset)
        with _attention_by(_take):
            try:
                layer.call_plain(x, _MASK, cache)
            except _TakenError as taken:
                arrays, mask, options = taken.args
            else:
                raise _UnsupportedError
        is_cached = len(cache.given) == 1 and all(map(operator.is_, cache.given[0], arrays[1:]))
        if mask is not _MASK or not is_cached or not all(_is_constant(option, layer) for option in options.values()):
            raise _UnsupportedError
        self.options = options
        return arrays

    def _after(self, x: mx.array, attended: mx.array) -> mx.array:
        calls = 0

        def give(*_: Any, **__: Any) -> mx.array:
            nonlocal calls
            calls += 1
            return attended

        with _attention_by(give):  # what it computes for its own attention drops from the trace
            output = self._traced().call_plain(x, _MASK, _TracedCache(mx.array(0)))
        if calls != 1:
            raise _UnsupportedError
        return output

    def _through(self, x: mx.array, attended: mx.array, offset: mx.array) -> Sequence[mx.array]:
        assert self.following is not None
        output = self._after(x, attended)
        return output, *self.following._before(output, offset)

    def _traced(self) -> Any:
        layer = self._layer()
        assert layer is not None
        return layer


# What takes the place of a cache and of the attention while a layer is traced.

_MASK: Final[Any] = object()
"""The mask of a traced layer. It must reach the attention as it is."""


class _TakenError(Exception):
    """The arrays and options that a layer has given its attention."""


class _UnsupportedError(Exception):
    """The layer does something that its two functions would not."""


class _TracedCache:
    """A cache without arrays.

    Args:
        offset: Position of the next tokens.
    """

    def __init__(self, offset: mx.array) -> None:
        self.offset = offset
        self.given: list[tuple[mx.array, mx.array]] = []
        """The keys and values that it has been given."""

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Return the same arrays, as if there were no others."""
        self.given.append((keys, values))
        return keys, values


def _take(queries: mx.array, keys: mx.array, values: mx.array, *, mask: Any = None, **options: Any) -> mx.array:
    raise _TakenError((queries, keys, values), mask, options)


def _is_constant(option: Any, layer: nn.Module) -> bool:
    """Return whether an option of the attention stays the same in all steps, as a number or a parameter does."""
    leaves: Any = tree_flatten(layer.parameters())
    return option is None or isinstance(option, float | int) or any(option is parameter for _, parameter in leaves)


@contextmanager
def _attention_by(attend: Callable[..., mx.array]) -> Iterator[None]:
    """Let a function take the place of MLX's attention. The networks of a process run in one thread."""
    plain = mx.fast.scaled_dot_product_attention
    mx.fast.scaled_dot_product_attention = attend  # pyrefly: ignore[bad-assignment]
    try:
        yield
    finally:
        mx.fast.scaled_dot_product_attention = plain
