#!/usr/bin/env python3
"""Operators of transformers that ONNX's official cases do not cover: those of com.microsoft, and what opsets 24 to 28 added.
The expected numbers are numpy's, from the definitions of the operators. ONNX Runtime 1.31 computes the same, but for what it
leaves open: rows of a prompt that are padding, and rows of a cache that nothing was written to, which stay as they were.

    transformer_operators.py --gcompile GCOMPILE [CASE...]
"""

from every_type import Case, on_both
from support import run_main

try:
    import numpy as np
except ImportError:
    np = None


# Definitions -------------------------------------------------------------------------------------------------------------


def rotated(x, cos, sin, interleaved):
    """x (..., size), cos and sin (..., pairs): the first pairs of a head turned, the rest as it was."""
    pairs = cos.shape[-1]
    a, b = (x[..., :2 * pairs:2], x[..., 1:2 * pairs:2]) if interleaved else (x[..., :pairs], x[..., pairs:2 * pairs])
    turned = [a * cos - b * sin, a * sin + b * cos]
    joined = np.stack(turned, -1).reshape(*a.shape[:-1], 2 * pairs) if interleaved else np.concatenate(turned, -1)
    return np.concatenate([joined, x[..., 2 * pairs:]], -1)


def heads_of(x, heads):
    """(batch, rows, heads * size) -> (batch, heads, rows, size)."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def attend(q, k, v, scale, softcap=0., bias=0., seen=True, sinks=None):
    """The result (batch, rows, heads * size), the scores before the softmax, and after it."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = q @ k.swapaxes(2, 3) * scale
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    scores = np.where(seen, scores + bias, -np.inf)
    more = np.full((q.shape[1], 1, 1), -np.inf) if sinks is None else sinks.reshape(-1, 1, 1)
    top = np.maximum(scores.max(-1, keepdims=True), more)
    top = np.where(np.isinf(top), 0, top)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True) + np.exp(more - top)
    weights = weights / np.where(total == 0, 1, total)
    y = (weights @ v).transpose(0, 2, 1, 3)
    return y.reshape(*y.shape[:2], -1), scores, weights


def grouped(q, k, v, past_k, past_v, lengths, total, angles=None, positions=None, bias=0., sinks=None, norms=None, *,
            num_heads, kv_num_heads, rotary_interleaved=0, local_window_size=-1, softcap=0., scale=0., causal=1):
    """GroupQueryAttention: the result, the caches, scores and weights."""
    batch, rows = q.shape[:2]
    if k is None:
        q, k, v = np.split(q, np.cumsum([num_heads, kv_num_heads]) * (q.shape[2] // (num_heads + 2 * kv_num_heads)), 2)
    q, k, v = heads_of(q, num_heads), heads_of(k, kv_num_heads), heads_of(v, kv_num_heads)
    if norms:
        q, k = (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w for x, w in zip((q, k), norms))
    before = np.zeros(batch, int) if rows == total else lengths + 1 - rows
    at = before[:, None] + np.arange(rows)
    if angles:
        where = at if positions is None else positions[:1, :1] + np.arange(rows) if rows == total else positions
        q, k = (rotated(x, *(table[where][:, None] for table in angles), rotary_interleaved) for x in (q, k))
    room = max(total, 0 if past_k is None else past_k.shape[2])
    caches = []
    for past, new in ((past_k, k), (past_v, v)):
        cache = np.zeros((batch, kv_num_heads, room, new.shape[3]), new.dtype)
        if past is not None:
            cache[:, :, :past.shape[2]] = past
        for n in range(batch):
            cache[n, :, before[n]:before[n] + rows] = new[n]
        caches.append(cache)
    row, column = at[:, None, :, None], np.arange(total)
    seen = column <= row if causal else np.broadcast_to(column < lengths[:, None, None, None] + 1, (batch, 1, rows, total))
    if local_window_size > 0:
        seen = seen & (column > row - local_window_size)
    y, scores, weights = attend(q, caches[0][:, :, :total], caches[1][:, :, :total], scale or q.shape[3]**-.5, softcap,
                                bias, seen, sinks)
    return y, *caches, scores, weights


def multi_head(q, k, v, bias=None, mask=None, added=0., past=None, *, num_heads, unidirectional=0, scale=0.):
    """MultiHeadAttention: the result, keys and values, scores."""
    batch, rows = q.shape[:2]
    if q.ndim == 5:
        q, k, v = (q[:, :, :, i].reshape(batch, rows, -1) for i in range(3))
    elif k.ndim == 5:
        k, v = (k[:, :, :, i].reshape(batch, k.shape[1], -1) for i in range(2))
    if bias is not None:
        width = q.shape[2]
        parts = np.split(bias, [width, 2 * width])
        q = q + parts[0]
        if k.ndim == 3:
            k, v = k + parts[1], v + parts[2]
    q = heads_of(q, num_heads)
    if k.ndim == 3:
        k, v = heads_of(k, num_heads), heads_of(v, num_heads)
    before = 0 if past is None else past[0].shape[2]
    if past is not None:
        k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    column = np.arange(k.shape[2])
    if mask is not None:
        shown = column < mask[:batch, None] if mask.ndim == 1 else mask > 0
        shown = shown[:, None] if shown.ndim == 3 else shown[:, None, None]
        added = added + np.where(shown, 0, -10000.)
    seen = column <= np.arange(rows)[:, None] + before if unidirectional else True
    y, scores, _ = attend(q, k, v, scale or q.shape[3]**-.5, bias=added, seen=seen)
    return y, k, v, scores


def linear(q, k, v, state=None, decay=None, beta=None, *, q_num_heads, kv_num_heads, scale=0.):
    """LinearAttention: the results of all steps, and the state after the last one."""
    batch, steps = q.shape[:2]
    size, most = q.shape[2] // q_num_heads, max(q_num_heads, kv_num_heads)
    q, k, v = (np.repeat(x, heads // x.shape[2], 2).astype(float)
               for x, heads in ((q.reshape(batch, steps, -1, size), most), (k.reshape(batch, steps, -1, size), kv_num_heads),
                                (v.reshape(batch, steps, kv_num_heads, -1), kv_num_heads)))
    s = np.zeros((batch, kv_num_heads, k.shape[3], v.shape[3])) if state is None else state.astype(float)
    results = []
    for t in range(steps):
        if decay is not None:
            s = s * np.exp(decay[:, t].reshape(batch, kv_num_heads, -1))[..., None]
        new = v[:, t]
        if beta is not None:
            new = beta[:, t, :, None] * (new - np.einsum("bhdm,bhd->bhm", s, k[:, t]))
        s = s + k[:, t, :, :, None] * new[:, :, None]
        results.append(np.einsum("bhdm,bhd->bhm", np.repeat(s, most // kv_num_heads, 1), q[:, t]))
    return np.stack(results, 1).reshape(batch, steps, -1) * (scale or size**-.5), s


def causal_conv(x, w, bias=None, past=None, *, dilation=1, activation="none"):
    """CausalConvWithState of (batch, channels, length): the result, and the state after it."""
    count = (w.shape[2] - 1) * dilation
    x = np.concatenate([np.zeros((*x.shape[:2], count), x.dtype) if past is None else past, x], 2)
    length = x.shape[2] - count
    y = sum(x[:, :, i * dilation:i * dilation + length] * w[:, 0, i:i + 1] for i in range(w.shape[2]))
    y = y if bias is None else y + bias[:, None]
    return y if activation == "none" else y / (1 + np.exp(-y)), x[:, :, length:]


# Models ------------------------------------------------------------------------------------------------------------------


class Graph(Case):
    """A case whose nodes are variants of one operator."""

    def __init__(self, opset=17):
        super().__init__(opset)
        self.model.domains = ', "com.microsoft" : 1'
        self.count = 0

    def floats(self, *shape):
        self.count += 1
        return f"x{self.count}", self.reals(f"x{self.count}", "float32", *shape)

    def whole(self, values, element):
        self.count += 1
        return f"x{self.count}", self.input(f"x{self.count}", np.array(values, element))

    def known(self, value, element="int32"):
        """A scalar that the compiler knows."""
        self.count += 1
        self.model.constants.append(f"{element} x{self.count} = {{{value}}}")
        return f"x{self.count}", value

    def add(self, name, operator, operands, results, **attributes):
        """`results` are arrays, None for one that is not asked for."""
        names = [f"{name}_{i}" if value is not None else "" for i, value in enumerate(results)]
        spelled = f"<{', '.join(f'{key} = {value}' for key, value in attributes.items())}>" if attributes else ""
        inputs = ", ".join(operand[0] if operand else "" for operand in operands).rstrip(", ")
        self.node(f"{', '.join(names)} = {operator}{spelled}({inputs})",
                  **{n: v.astype(v.dtype if v.dtype.kind in 'iub' else np.float32)
                     for n, v in zip(names, results) if v is not None})


def value(operand):
    return operand[1] if operand else None


def rotary():
    """Every form of positions, of heads, and of the part that is turned."""
    g = Graph(23)
    flat, deep = g.floats(2, 3, 16), g.floats(2, 2, 3, 8)
    cos, sin, few_cos, few_sin = g.floats(9, 4), g.floats(9, 4), g.floats(9, 2), g.floats(9, 2)
    each, first = g.whole([[3, 4, 5], [0, 8, 2]], np.int64), g.whole([2], np.int64)
    own_cos, own_sin = g.floats(2, 3, 3), g.floats(2, 3, 3)

    def expected(x, c, s, at, interleaved):
        split = value(x).reshape(2, 3, 2, 8) if value(x).ndim == 3 else value(x).transpose(0, 2, 1, 3)
        c, s = (t[:, :, None] if at is None else t[at][:, :, None] for t in (value(c), value(s)))
        y = rotated(split, c, s, interleaved)
        return y.reshape(2, 3, 16) if value(x).ndim == 3 else y.transpose(0, 2, 1, 3)

    counted = np.broadcast_to(2 + np.arange(3), (2, 3))
    microsoft = "com.microsoft.RotaryEmbedding"
    for name, x, tables, positions, attributes in (
            ("flat", flat, (cos, sin), each, {}), ("deep", deep, (cos, sin), each, {"interleaved": 1}),
            ("first", flat, (cos, sin), first, {"scale": 1.0, "is_packed_batching": 1}),
            ("part", flat, (few_cos, few_sin), each, {"num_heads": 2, "rotary_embedding_dim": 4}),
            ("few", deep, (few_cos, few_sin), first, {"rotary_embedding_dim": 4, "interleaved": 1})):
        at = counted if positions is first else value(each)
        g.add(name, microsoft, [x, positions, *tables], [expected(x, *tables, at, attributes.get("interleaved", 0))],
              **attributes)
    g.add("own", "RotaryEmbedding", [flat, own_cos, own_sin], [expected(flat, own_cos, own_sin, None, 1)], num_heads=2,
          rotary_embedding_dim=6, interleaved=1)
    g.add("standard", "RotaryEmbedding", [deep, cos, sin, each], [expected(deep, cos, sin, value(each), 0)])
    return g


def group_query(g, name, q, k, v, past, lengths, total, options, **attributes):
    """Adds a node with whatever `options` names."""
    get = options.get
    angles, norms, caches = get("angles", (None, None)), get("norms", (None, None)), past or (None, None)
    operands = [q, k, v, *caches, lengths, total, *angles, get("positions"), get("bias"), get("sinks"), None, None, *norms]
    shape = dict(num_heads=4, kv_num_heads=2)
    definition = {key: x for key, x in attributes.items() if key not in ("do_rotary", "smooth_softmax", "qk_output")}
    sinks = value(get("sinks"))
    if attributes.get("smooth_softmax") == 1 and sinks is None:
        sinks = np.zeros(4, np.float32)
    bias = value(get("bias"))
    y, keys, values, scores, weights = grouped(
        value(q), value(k), value(v), *map(value, caches), value(lengths), int(value(total)),
        tuple(map(value, angles)) if angles[0] else None, value(get("positions")), 0. if bias is None else bias, sinks,
        tuple(map(value, norms)) if norms[0] else None, **shape, **definition)
    results = [y, keys, values]
    if attributes.get("qk_output"):
        results.append(weights if attributes["qk_output"] == 2 else np.where(np.isinf(scores), 0, scores))
    if angles[0]:
        attributes["do_rotary"] = 1
    g.add(name, "com.microsoft.GroupQueryAttention", operands, results, **shape, **attributes)


def prompts():
    """GroupQueryAttention without anything before the new rows."""
    g = Graph()
    q, k, v = g.floats(2, 5, 64), g.floats(2, 5, 32), g.floats(2, 5, 32)
    packed, cache = g.floats(2, 5, 128), (g.floats(2, 2, 9, 16), g.floats(2, 2, 9, 16))
    full, ragged = g.whole([4, 4], np.int32), g.whole([4, 2], np.int32)
    total, angles, part = g.known(5), (g.floats(9, 8), g.floats(9, 8)), (g.floats(9, 4), g.floats(9, 4))
    later, bias, sinks = g.whole([[3, 4, 5, 6, 7], [0, 0, 0, 0, 0]], np.int64), g.floats(2, 1, 5, 5), g.floats(4)
    apart = (q, k, v)
    group_query(g, "plain", *apart, None, full, total, {})
    group_query(g, "packed", packed, None, None, None, ragged, total, {"angles": angles}, scale=0.3)
    group_query(g, "cached", *apart, cache, ragged, total, {"angles": part}, rotary_interleaved=1)
    group_query(g, "placed", *apart, None, full, total, {"angles": angles, "positions": later})
    group_query(g, "window", *apart, None, full, total, {"sinks": sinks}, local_window_size=2)
    group_query(g, "smooth", *apart, None, full, total, {"bias": bias}, smooth_softmax=1, softcap=1.5, qk_output=1)
    group_query(g, "both_ways", *apart, None, ragged, total, {}, causal=0, qk_output=2)
    empty, counted = (g.floats(2, 2, 0, 16), g.floats(2, 2, 0, 16)), g.whole(5, np.int32)
    group_query(g, "empty", *apart, empty, full, counted, {})
    group_query(g, "normalised", *apart, None, full, total, {"norms": (g.floats(16), g.floats(16)), "angles": angles})
    return g


def steps():
    """GroupQueryAttention with a cache: as long as the past, or as it will ever be; one new row or several."""
    g = Graph()
    q, k, v = g.floats(2, 1, 64), g.floats(2, 1, 32), g.floats(2, 1, 32)
    short, long = ((g.floats(2, 2, rows, 16), g.floats(2, 2, rows, 16)) for rows in (6, 11))
    full, ragged = g.whole([6, 6], np.int32), g.whole([6, 3], np.int32)
    angles, total, bias = (g.floats(12, 8), g.floats(12, 8)), g.known(7), g.floats(1, 4, 1, 7)
    placed = g.whole([[6], [3]], np.int64)
    group_query(g, "grows", q, k, v, short, full, total, {})
    group_query(g, "ragged", q, k, v, short, ragged, total, {"angles": angles, "bias": bias})
    group_query(g, "buffer", q, k, v, long, ragged, total, {"angles": angles, "positions": placed}, local_window_size=3)
    several = (g.floats(1, 3, 64), g.floats(1, 3, 32), g.floats(1, 3, 32))
    cache, count = (g.floats(1, 2, 11, 16), g.floats(1, 2, 11, 16)), g.whole([8], np.int32)
    group_query(g, "several", *several, cache, count, g.known(9), {"sinks": g.floats(4)}, softcap=2.0)
    group_query(g, "both_ways", *several, cache, count, g.known(9), {}, causal=0)
    return g


def run_time_total(lengths, total):
    """How many keys there are only the run knows: the cache is as long as it will ever be."""
    g = Graph()
    q, k, v = g.floats(2, 3, 64), g.floats(2, 3, 32), g.floats(2, 3, 32)
    cache, angles = (g.floats(2, 2, 9, 16), g.floats(2, 2, 9, 16)), (g.floats(12, 8), g.floats(12, 8))
    group_query(g, "y", q, k, v, cache, g.whole(lengths, np.int32), g.whole(total, np.int32),
                {"angles": angles, "positions": g.whole([[2, 3, 4], [1, 2, 3]], np.int64)})
    return g


def many_heads():
    """MultiHeadAttention in every layout, with every mask."""
    g = Graph()
    q, k, v = g.floats(2, 3, 8), g.floats(2, 5, 8), g.floats(2, 5, 12)
    bias, past = g.floats(28), (g.floats(2, 2, 4, 4), g.floats(2, 2, 4, 6))
    lengths, packed = g.whole([3, 5], np.int32), g.whole([2, 4, 0, 3, 6, 0, 5, 10], np.int32)
    columns, rows = g.whole([[1, 1, 1, 0, 1], [0, 1, 1, 1, 1]], np.int32), g.whole(
        np.arange(54).reshape(2, 3, 9) % 4 > 0, np.int32)
    added, more = g.floats(1, 2, 3, 9), g.floats(2, 1, 3, 5)

    def variant(name, q, k, v, bias=None, mask=None, added=None, past=None, count=3, **attributes):
        extra = 0. if added is None else value(added)
        results = multi_head(value(q), value(k), value(v), value(bias), value(mask), extra,
                             tuple(map(value, past)) if past else None, num_heads=2, **attributes)
        g.add(name, "com.microsoft.MultiHeadAttention", [q, k, v, bias, mask, added, *(past or ())], results[:count],
              num_heads=2, **attributes)

    variant("plain", q, k, v, count=1)
    variant("biased", q, k, v, bias, lengths, scale=0.4)
    variant("counted", q, k, v, bias, packed, more, count=4)
    variant("hidden", q, k, v, None, columns)
    variant("late", q, k, v, bias, rows, added, past, count=4)
    variant("ahead", q, k, v, None, None, None, past, unidirectional=1)
    variant("joined", g.floats(2, 3, 2, 3, 4), None, None, g.floats(24), unidirectional=1)
    variant("pairs", q, g.floats(2, 5, 2, 2, 4), None, g.floats(24))
    variant("crossed", q, g.floats(2, 2, 5, 4), g.floats(2, 2, 5, 4), g.floats(24))
    return g


def normalisations():
    g = Graph()
    x, skip, row = g.floats(2, 3, 8), g.floats(2, 3, 8), g.floats(3, 8)
    gamma, bias, scale = g.floats(8), g.floats(8), g.floats(3, 8)

    def inverse(x, axes, epsilon):
        return 1 / np.sqrt((x * x).mean(axes, keepdims=True) + epsilon)

    total = value(x) + value(skip) + value(bias)
    factor = inverse(total, -1, 1e-3)
    g.add("skip", "com.microsoft.SkipSimplifiedLayerNormalization", [x, skip, gamma, bias],
          [total * factor * value(gamma), np.zeros_like(factor), factor, total], epsilon=1e-3)
    total = value(x) + value(row)
    g.add("short", "com.microsoft.SkipSimplifiedLayerNormalization", [x, row, gamma],
          [total * inverse(total, -1, 1e-12) * value(gamma), None, None, total])
    factor = inverse(value(x), (1, 2), 0.25)
    g.add("simple", "SimplifiedLayerNormalization", [x, scale], [value(x) * factor * value(scale), factor], axis=1,
          epsilon=0.25)
    return g


def windows():
    """Attention of opset 25: windows on either side, with and without a past."""
    g = Graph(25)
    q, k, v = g.floats(2, 4, 5, 8), g.floats(2, 2, 7, 8), g.floats(2, 2, 7, 8)
    past = (g.floats(2, 2, 3, 8), g.floats(2, 2, 3, 8))
    kept = g.whole([4, 7], np.int64)
    wide = g.floats(2, 4, 9, 8)

    def variant(name, q, left, right, past=None, kept=None, causal=0):
        before = past[0][1].shape[2] if past else 0
        keys, values = (np.concatenate([p[1], x[1]], 2) if past else x[1] for p, x in zip(past or (k, v), (k, v)))
        rows, column = value(q).shape[2], np.arange(keys.shape[2])
        place = np.arange(rows)[:, None] + before
        if kept:
            place = np.arange(rows)[:, None] + (value(kept) - rows)[:, None, None, None]
        seen = np.ones((2, 1, rows, len(column)), bool)
        for holds in (column >= place - left if left >= 0 else True, column <= place + right if right >= 0 else True,
                      column <= place if causal else True,
                      column < value(kept)[:, None, None, None] if kept else True):
            seen = seen & holds
        y, *_ = attend(value(q), keys, values, 8**-.5, seen=seen)
        y = heads_of(y, 4)
        g.add(name, "Attention", [q, k, v, None, *(past or (None, None)), kept], [y], left_window_size=left,
              right_window_size=right, is_causal=causal)

    variant("narrow", q, 2, 1)
    variant("late", q, 1, -1, past)
    variant("causal", q, 3, 2, past, causal=1)
    variant("counted", q, 2, 0, kept=kept)
    variant("beyond", wide, 0, -1)
    return g


def caches():
    """TensorScatter on axes and of types that the official cases leave out."""
    g = Graph(24)
    cache, update, places = g.floats(2, 6, 3), g.floats(2, 2, 3), g.whole([4, 1], np.int64)
    y = value(cache).copy()
    for n in range(2):
        y[n, value(places)[n]:value(places)[n] + 2] = value(update)[n]
    g.add("rows", "TensorScatter", [cache, update, places], [y], axis=1)
    y = value(cache).copy()
    y[:, :2] = value(update)
    g.add("first", "TensorScatter", [cache, update], [y])
    numbers, new = g.whole(np.arange(48).reshape(2, 2, 3, 4), np.int64), g.whole(-np.arange(36).reshape(2, 2, 3, 3), np.int64)
    around = g.whole([3, 6], np.int64)
    y = value(numbers).copy()
    for n in range(2):
        for i in range(3):
            y[n, ..., (value(around)[n] + i) % 4] = value(new)[n, ..., i]
    g.add("around", "TensorScatter", [numbers, new, around], [y], axis=-1, mode='"circular"')
    return g


def convolutions():
    """com.microsoft.CausalConvWithState: taps apart, channels last, on several axes."""
    g = Graph()
    operator, w, bias = "com.microsoft.CausalConvWithState", g.floats(6, 1, 4), g.floats(6)
    x, past, last, last_past = g.floats(2, 6, 7), g.floats(2, 6, 6), g.floats(2, 7, 3, 2), g.floats(2, 3, 3, 2)
    g.add("apart", operator, [x, w, bias, past], causal_conv(value(x), value(w), value(bias), value(past), dilation=2),
          dilation=2)
    g.add("fresh", operator, [x, w], causal_conv(value(x), value(w), dilation=3), dilation=3)
    first = [value(part).reshape(2, -1, 6).transpose(0, 2, 1) for part in (last, last_past)]
    results = causal_conv(first[0], value(w), value(bias), first[1], activation="silu")
    g.add("last", operator, [last, w, bias, last_past],
          [y.transpose(0, 2, 1).reshape(2, -1, 3, 2) for y in results], channels_last=1, activation='"silu"')
    return g


def states():
    """LinearAttention of every rule, and what its state makes of the next tokens."""
    g = Graph(27)
    q, k, v = g.floats(2, 9, 24), g.floats(2, 9, 12), g.floats(2, 9, 22)
    past, slow, fast = g.floats(2, 2, 6, 11), g.floats(2, 9, 2), g.floats(2, 9, 12)
    rates, rate = g.floats(2, 9, 2), g.floats(2, 9, 1)
    for name, rule, *more in (("plain", "linear"), ("summed", "linear", past), ("slow", "gated", None, slow),
                              ("fast", "gated", past, fast), ("rated", "delta", past, None, rate),
                              ("both", "gated_delta", past, slow, rates)):
        results = linear(value(q), value(k), value(v), *map(value, more), q_num_heads=4, kv_num_heads=2, scale=0.5)
        for domain in ("", "com.microsoft."):
            g.add(f"{name}{len(domain)}", f"{domain}LinearAttention", [q, k, v, *more],
                  results if name != "slow" else results[:1], q_num_heads=4, kv_num_heads=2, scale=0.5,
                  update_rule=f'"{rule}"')
    # com.microsoft: more heads of values than of queries, and these than of keys.
    few, all_heads = (g.floats(2, 9, 12), g.floats(2, 9, 6), g.floats(2, 9, 20)), dict(q_num_heads=2, kv_num_heads=4)
    more = g.floats(2, 4, 6, 5), g.floats(2, 9, 24), g.floats(2, 9, 4)
    g.add("shared", "com.microsoft.LinearAttention", [*few, *more], linear(*map(value, few + more), **all_heads), **all_heads)
    return g


case_rotary_cpp, case_rotary_cuda = on_both(rotary)
case_prompts_cpp, case_prompts_cuda = on_both(prompts)
case_steps_cpp, case_steps_cuda = on_both(steps)
case_unknown_prompt_cpp, case_unknown_prompt_cuda = on_both(lambda: run_time_total([2, 1], 3))
case_unknown_step_cpp, case_unknown_step_cuda = on_both(lambda: run_time_total([6, 4], 7))
case_many_heads_cpp, case_many_heads_cuda = on_both(many_heads)
case_normalisations_cpp, case_normalisations_cuda = on_both(normalisations)
case_windows_cpp, case_windows_cuda = on_both(windows)
case_caches_cpp, case_caches_cuda = on_both(caches)
case_convolutions_cpp, case_convolutions_cuda = on_both(convolutions)
case_states_cpp, case_states_cuda = on_both(states)


if __name__ == "__main__":
    run_main(globals())
