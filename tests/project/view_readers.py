"""What reads a view in cells of views.py: reductions, running sums, sorts, gathers, scatters, recurrences, attention, norms, and
what moves elements.
"""

from view_cells import family, other, reader


# Reductions, running sums, sorts -----------------------------------------------------------------------------------------


@family("reduce", ("last", "ReduceSum", (2, 5, 4), (-1,)), ("middle", "ReduceMean", (2, 5, 4), (1,)),
        ("first", "ReduceMax", (2, 5, 4), (0,)), ("all", "ReduceSum", (2, 5, 4), (0, 1, 2)),
        ("image", "ReduceMean", (2, 3, 5, 4), (2, 3)), ("apart", "ReduceL2", (2, 3, 5, 4), (0, 2)),
        ("exponents", "ReduceLogSumExp", (2, 3, 5, 4), (1, 3)))
def reduce(part, operator, sizes, axes):
    x, _ = part.viewed(*sizes)
    part.output(part.node(operator, x, part.values(*axes)), len(sizes))


@family("arg", ("last", -1), ("middle", 1), ("first", 0))
def arg(part, axis):
    x, _ = part.viewed(2, 5, 4)
    part.output(part.node("ArgMax", x, axis=axis, keepdims=0), 2, "int64")


@family("running", ("last", -1), ("middle", 1), ("first", 0))
def running(part, axis):
    x, _ = part.viewed(2, 5, 4)
    part.output(part.node("CumSum", x, part.values(axis, scalar=True)), 3)


@family("best", ("last", -1), ("middle", 1), ("first", 0))
def best(part, axis):
    x, _ = part.viewed(3, 5, 4, fixed=[axis])
    values, at = part.node("TopK", x, part.values(3), axis=axis, results=2)
    part.output(values, 3)
    part.output(at, 3, "int64")


# Gathers and scatters ----------------------------------------------------------------------------------------------------


@family("gather", ("first", 0), ("middle", 1), ("last", 2))
def gather(part, axis):
    x, _ = part.viewed(3, 5, 4, fixed=[axis])
    part.output(part.node("Gather", x, other(part, [2, 2], "int64"), axis=axis), 4)


@reader
def gather_by(part):
    x, _ = part.viewed(2, 5, 4, element="int64")
    part.output(part.node("Gather", part.weights(3, 6), x), 4)


@reader
def gather_elements(part):
    x, shape = part.viewed(2, 5, 4, fixed=[1])
    part.output(part.node("GatherElements", x, other(part, [shape[0], 3, shape[2]], "int64"), axis=1), 3)


@reader
def gather_elements_by(part):
    x, shape = part.viewed(2, 5, 4, element="int64")
    part.output(part.node("GatherElements", other(part, [shape[0], 3, shape[2]]), x, axis=1), 3)


@reader
def gather_nd(part):
    x, _ = part.viewed(3, 5, 4, fixed=[0, 1])
    part.output(part.node("GatherND", x, other(part, [6, 2], "int64")), 2)


@family("scatter", ("data", 0), ("updates", 1))
def scatter_nd(part, place):
    if place == 0:
        x, shape = part.viewed(3, 5, 4, fixed=[0])
        data, updates = x, other(part, [2, *shape[1:]])
    else:
        updates, shape = part.viewed(1, 5, 4, fixed=[0])
        data = other(part, [3, *shape[1:]])
    indices = part.values(*([2, 0] if place == 0 else [2]))
    column = part.node("Unsqueeze", indices, part.values(1))
    part.output(part.node("ScatterND", data, column, updates), 3)


@family("scatter_elements", ("data", 0), ("updates", 1))
def scatter_elements(part, place):
    x, shape = part.viewed(2, 3, 4, fixed=[1] if place == 0 else [])
    indices = other(part, shape, "int64")
    data, updates = (x, other(part, shape)) if place == 0 else (other(part, [shape[0], 3, shape[2]]), x)
    part.output(part.node("ScatterElements", data, indices, updates, axis=1, reduction="add"), 3)


@reader
def scatter_elements_by(part):
    x, shape = part.viewed(2, 3, 4, element="int64")
    part.output(part.node("ScatterElements", other(part, [shape[0], 3, shape[2]]), x, other(part, shape), axis=1,
                          reduction="max"), 3)


# Recurrences -------------------------------------------------------------------------------------------------------------


@family("recurrent", ("lstm", "LSTM", 4), ("gru", "GRU", 3), ("rnn", "RNN", 1))
def recurrent(part, operator, gates):
    x, _ = part.viewed(5, 2, 4, fixed=[2])
    y, last = part.node(operator, x, part.weights(1, 3 * gates, 4), part.weights(1, 3 * gates, 3), results=2, hidden_size=3)
    part.output(y, 4)
    part.output(last, 3)


@family("state", ("lstm", "LSTM", 4), ("gru", "GRU", 3))
def of_state(part, operator, gates):
    """The view is the first state."""
    h, shape = part.viewed(2, 3, 6, fixed=[0, 2])
    x = other(part, [4, shape[1], 5])
    y = part.node(operator, x, part.weights(2, 6 * gates, 5), part.weights(2, 6 * gates, 6), "", "", h, hidden_size=6,
                  direction="bidirectional")
    part.output(y, 4)


# Attention ---------------------------------------------------------------------------------------------------------------


@family("attention", ("query", 0), ("key", 1), ("value", 2), ("mask", 3))
def attention(part, place):
    """As the operator."""
    sizes = ((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 4), (2, 3, 5, 6))[place]
    x, shape = part.viewed(*sizes, fixed=[] if place == 3 else [3])
    batch, number = shape[:2]
    rows, columns = (shape[2], 6) if place == 0 else (5, shape[2]) if place < 3 else (shape[2], shape[3])
    inputs = [other(part, [batch, number, size, 4]) if i != place else x for i, size in enumerate((rows, columns, columns))]
    part.output(part.node("Attention", *inputs, *([x] if place == 3 else [])), 4)


@family("spelled", ("query", 0), ("key", 1), ("value", 2), ("mask", 3))
def spelled(part, place):
    """As products and a softmax."""
    sizes = ((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 4), (2, 1, 5, 6))[place]
    x, shape = part.viewed(*sizes, fixed=[1] if place == 3 else [3])
    batch, number = shape[0], 3 if place == 3 else shape[1]
    rows, columns = (shape[2], 6) if place == 0 else (5, shape[2]) if place < 3 else (shape[2], shape[3])
    q, k, v = [other(part, [batch, number, size, 4]) if i != place else x for i, size in enumerate((rows, columns, columns))]
    scores = part.node("MatMul", q, part.node("Transpose", k, perm=(0, 1, 3, 2)))
    scores = part.node("Mul", scores, part.values(0.5, element="float", scalar=True))
    mask = x if place == 3 else other(part, [batch, 1, rows, columns])
    weights = part.node("Softmax", part.node("Add", scores, mask), axis=-1)
    part.output(part.node("MatMul", weights, v), 4)


@reader
def multi_head(part):
    """Three parts of one product, of which each is split into heads."""
    x, shape = part.viewed(2, 5, 8, fixed=[2])
    q, k, v = part.node("Split", part.node("MatMul", x, part.weights(8, 24)), results=3, axis=-1, num_outputs=3)
    to = part.values(0, 0, 2, 4)
    q, k, v = (part.node("Transpose", part.node("Reshape", each, to), perm=order)
               for each, order in ((q, (0, 2, 1, 3)), (k, (0, 2, 3, 1)), (v, (0, 2, 1, 3))))
    mixed = part.node("MatMul", part.node("Softmax", part.node("MatMul", q, k), axis=-1), v)
    rows = part.node("Reshape", part.node("Transpose", mixed, perm=(0, 2, 1, 3)), part.values(0, 0, 8))
    part.output(part.node("MatMul", rows, part.weights(8, 8)), 3)


# Norms -------------------------------------------------------------------------------------------------------------------


@family("norm", ("layer", "LayerNormalization", (4,)), ("rms", "RMSNormalization", (4,)))
def norm(part, operator, weights):
    x, _ = part.viewed(2, 5, 4, fixed=[-1])
    extra = [part.weights(4)] if operator == "LayerNormalization" else []
    part.output(part.node(operator, x, part.weights(*weights), *extra), 3)


@reader
def norm_instance(part):
    x, _ = part.viewed(2, 3, 5, 4, fixed=[1])
    part.output(part.node("InstanceNormalization", x, part.weights(3), part.weights(3)), 4)


@reader
def norm_group(part):
    x, _ = part.viewed(2, 4, 5, 3, fixed=[1])
    part.output(part.node("GroupNormalization", x, part.weights(4), part.weights(4), num_groups=2), 4)


@reader
def norm_batch(part):
    x, _ = part.viewed(2, 3, 5, 4, fixed=[1])
    variance = part.values(0.5, 1.5, 0.75, element="float")
    part.output(part.node("BatchNormalization", x, part.weights(3), part.weights(3), part.weights(3), variance), 4)


@family("norm_lp", ("1", 1, -1), ("2", 2, 1))
def norm_lp(part, power, axis):
    x, _ = part.viewed(2, 5, 4)
    part.output(part.node("LpNormalization", x, p=power, axis=axis), 3)


@family("softmax", ("last", "Softmax", -1), ("middle", "Softmax", 1), ("first", "LogSoftmax", 0), ("hard", "Hardmax", 1))
def softmax(part, operator, axis):
    x, _ = part.viewed(2, 5, 4)
    part.output(part.node(operator, x, axis=axis), 3)


# What moves elements, or computes each for itself ------------------------------------------------------------------------


@family("resize", ("nearest", "nearest"), ("linear", "linear"))
def resize(part, mode):
    x, _ = part.viewed(2, 3, 5, 4)
    part.output(part.node("Resize", x, "", part.values(1, 1, 2, 2, element="float"), mode=mode), 4)


@reader
def joined_behind(part):
    """Behind another tensor along the rows, then multiplied."""
    x, shape = part.viewed(2, 5, 4, fixed=[1, 2])
    rows = part.node("Concat", other(part, [shape[0], 1, 4]), x, axis=1)
    part.output(part.node("MatMul", rows, part.weights(4, 6)), 3)


@family("placed", ("rows", 1), ("columns", 2), ("batch", 0))
def placed(part, axis):
    """A product that is written where it is joined."""
    x, shape = part.viewed(2, 5, 4, fixed=[2])
    y = part.node("MatMul", x, part.weights(4, 3))
    part.output(part.node("Concat", other(part, [2 if i == axis else size for i, size in enumerate([*shape[:2], 3])]), y,
                          axis=axis), 3)


@family("turned_behind", ("102", (1, 0, 2)), ("021", (0, 2, 1)), ("201", (2, 0, 1)))
def turned_behind(part, order):
    """A product that is written in another order."""
    x, _ = part.viewed(2, 5, 4, fixed=[2])
    part.output(part.node("Transpose", part.node("MatMul", x, part.weights(4, 3)), perm=order), 3)


@reader
def added(part):
    x, shape = part.viewed(2, 5, 4)
    part.output(part.node("Tanh", part.node("Add", x, other(part, [1, *shape[1:]]))), 3)


@reader
def chosen_where(part):
    x, shape = part.viewed(2, 5, 4, element="bool")
    part.output(part.node("Where", x, other(part, shape), other(part, [shape[-1]])), 3)


@reader
def padded(part):
    x, _ = part.viewed(2, 5, 4)
    part.output(part.node("Pad", x, part.values(0, 1, 2, 1, 0, 1), mode="constant"), 3)


@reader
def lower(part):
    x, _ = part.viewed(2, 5, 4)
    part.output(part.node("Trilu", x, upper=0), 3)


@reader
def space(part):
    x, _ = part.viewed(2, 8, 3, 4, fixed=[1])
    part.output(part.node("DepthToSpace", x, blocksize=2), 4)


@reader
def quantised(part):
    x, _ = part.viewed(2, 5, 4, fixed=[2])
    scales = part.values(0.25, 0.5, 0.125, 0.75, element="float")
    part.output(part.node("QuantizeLinear", x, scales, part.values(1, 2, 3, 4, element="uint8"), axis=2), 3, "uint8")


@reader
def rotary(part):
    x, shape = part.viewed(2, 3, 5, 4, fixed=[3])
    angles = [other(part, [shape[0], shape[2], 2]) for _ in range(2)]
    part.output(part.node("RotaryEmbedding", x, *angles), 4)


@reader
def one_hot(part):
    x, _ = part.viewed(2, 5, element="int64")
    part.output(part.node("OneHot", x, part.values(3, scalar=True), part.values(0, 1, element="float")), 3)


@reader
def reversed_rows(part):
    x, shape = part.viewed(5, 3, 4, fixed=[0])
    lengths = part.node("Add", other(part, [shape[1]], "int64"), part.values(2))
    part.output(part.node("ReverseSequence", x, lengths), 3)
