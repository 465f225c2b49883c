"""Small decoders with caches and constants of no meaning, as exporters write them: inputs `ids`, `mask`, `positions` and a pair
of caches for each layer, outputs `logits` and the caches with the new rows behind the old."""

from families import Model

WIDTH, HEADS, SIZE, VOCABULARY, CONTEXT = 32, 4, 8, 50, 192


class Decoder(Model):
    """`joined` is the axis of the mask: all rows that the caches hold after the run."""

    def __init__(self, layers, heads_of_caches, opset=17):
        super().__init__(opset)
        self.count, self.layers, self.heads_of_caches = 0, layers, heads_of_caches
        self.inputs = ["int64[batch,sequence] ids", "int64[batch,joined] mask", "int64[batch,sequence] positions"]
        self.outputs = [f"float[batch,sequence,{VOCABULARY}] logits"]
        for layer in range(layers):
            for what in ("key", "value"):
                shape = f"batch,{heads_of_caches}"
                self.inputs.append(f"float[{shape},past,{SIZE}] past_{layer}_{what}")
                self.outputs.append(f"float[{shape},joined_{layer}_{what},{SIZE}] present_{layer}_{what}")
        self.names = {}

    def states(self):
        return [word for layer in range(self.layers) for what in ("key", "value")
                for word in ("--state", f"past_{layer}_{what}=present_{layer}_{what}")]

    def op(self, text, *operands, result=None, **attributes):
        self.count += 1
        result = result or f"v{self.count}"
        given = "<" + ", ".join(f"{k} = {v}" for k, v in attributes.items()) + ">" if attributes else ""
        self.nodes.append(f"{result} = {text}{given}({', '.join(operands)})")
        return result

    def known(self, element, values, shape=None):
        """A constant of one axis, or a scalar: the same name for the same one."""
        if not isinstance(values, (list, tuple)):
            text, axes = f"{{{values}}}", ""
        else:
            text, axes = "{" + ", ".join(map(str, values)) + "}", f"[{len(values)}]"
        if (element, text, axes) not in self.names:
            name = f"k{len(self.names)}"
            self.names[element, text, axes] = name
            self.constants.append(f"{element}{axes} {name} = {text}")
        return self.names[element, text, axes]

    def weight(self, *shape):
        self.count += 1
        return self.constant(f"w{self.count}", "float", shape)

    def size(self, value, axis):
        """As an exporter writes it: an axis of a shape, of rank one."""
        shape = self.op("Shape", value)
        return self.op("Unsqueeze", self.op("Gather", shape, self.known("int64", axis), axis=0), self.known("int64", [0]))

    def slice(self, value, start, end, axis):
        at = [name if isinstance(name, str) else self.known("int64", [name]) for name in (start, end, axis)]
        return self.op("Slice", value, *at)

    def reshape(self, value, *sizes):
        """To numbers and to computed sizes."""
        if all(isinstance(size, int) for size in sizes):
            return self.op("Reshape", value, self.known("int64", list(sizes)))
        parts = [size if isinstance(size, str) else self.known("int64", [size]) for size in sizes]
        return self.op("Reshape", value, self.op("Concat", *parts, axis=0))

    def heads(self, x, count):
        split = self.reshape(x, self.size(x, 0), self.size(x, 1), count, SIZE)
        return self.op("Transpose", split, perm=[0, 2, 1, 3])

    def appended(self, layer, what, new):
        return self.op("Concat", f"past_{layer}_{what}", new, axis=2, result=f"present_{layer}_{what}")

    def padding(self):
        """[batch, 1, 1, joined]: 0 where the mask is 1, else far below."""
        wide = self.op("Unsqueeze", "mask", self.known("int64", [1, 2]))
        hidden = self.op("Sub", self.known("float", 1.0), self.op("Cast", wide, to=1))
        return self.op("Mul", hidden, self.known("float", -10000.0))

    def weighted(self, scores, value):
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), value)
        rows = self.op("Transpose", mixed, perm=[0, 2, 1, 3])
        return self.reshape(rows, self.size(rows, 0), self.size(rows, 1), WIDTH)


def gpt2(layers=2):
    """Learned positions, one product for queries, keys and values on flattened rows, a mask that is a slice of a triangle."""
    model = Decoder(layers, HEADS)
    op, known = model.op, model.known
    x = op("Add", op("Gather", model.constant("tokens", "float", (VOCABULARY, WIDTH)), "ids", axis=0),
           op("Gather", model.constant("table", "float", (CONTEXT, WIDTH)), "positions", axis=0))
    triangle = ", ".join("1" if key <= row else "0" for row in range(CONTEXT) for key in range(CONTEXT))
    model.constants.append(f"bool[1,1,{CONTEXT},{CONTEXT}] triangle = {{{triangle}}}")
    padding = model.padding()

    def dense(x, inner, outer):
        flat = model.reshape(x, -1, inner)
        y = op("Gemm", flat, model.weight(inner, outer), model.weight(outer))
        return model.reshape(y, model.size(x, 0), model.size(x, 1), outer)

    def norm(x):
        return op("LayerNormalization", x, model.weight(WIDTH), model.weight(WIDTH), axis=-1)

    for layer in range(layers):
        x_norm = norm(x)
        joined = dense(x_norm, WIDTH, 3 * WIDTH)
        model.count += 1
        parts = [f"part{model.count}_{i}" for i in range(3)]
        model.nodes.append(f"{', '.join(parts)} = Split<axis = 2>({joined}, {known('int64', [WIDTH] * 3)})")
        q, k, v = (model.heads(part, HEADS) for part in parts)
        k, v = model.appended(layer, "key", k), model.appended(layer, "value", v)
        scores = op("Div", op("MatMul", q, op("Transpose", k, perm=[0, 1, 3, 2])), known("float", 2.8284271247461903))
        queries, keys = model.size(q, 2), model.size(k, 2)
        rows = model.slice("triangle", op("Sub", keys, queries), keys, 2)
        seen = model.slice(rows, 0, keys, 3)
        scores = op("Add", op("Where", seen, scores, known("float", -10000.0)), padding)
        x = op("Add", x, dense(model.weighted(scores, v), WIDTH, WIDTH))
        inner = dense(norm(x), WIDTH, 4 * WIDTH)
        cube = op("Mul", op("Pow", inner, known("float", 3.0)), known("float", 0.044715))
        gate = op("Tanh", op("Mul", op("Add", inner, cube), known("float", 0.7978845608)))
        inner = op("Mul", op("Mul", inner, known("float", 0.5)), op("Add", gate, known("float", 1.0)))
        x = op("Add", x, dense(inner, 4 * WIDTH, WIDTH))
    op("MatMul", norm(x), model.weight(WIDTH, VOCABULARY), result="logits")
    return model


GROUPED = 2  # heads of keys and values of the LLaMA-like decoders


def llama(layers=2, grouped_operator=False):
    """Rotated positions, root mean square norms, a gated middle, two heads of keys and values for four of queries: by primitive
    operators, or by GroupQueryAttention of com.microsoft."""
    model = Decoder(layers, GROUPED)
    op, known = model.op, model.known
    if grouped_operator:
        model.domains = ', "com.microsoft" : 1'
    x = op("Gather", model.constant("tokens", "float", (VOCABULARY, WIDTH)), "ids", axis=0)
    table = [model.constant(name, "float", (CONTEXT, SIZE // 2)) for name in ("cosines", "sines")]

    def norm(x):
        square = op("ReduceMean", op("Pow", x, known("float", 2.0)), axes=[-1])
        root = op("Sqrt", op("Add", square, known("float", 1e-5)))
        return op("Mul", model.weight(WIDTH), op("Div", x, root))

    def dense(x, inner, outer):
        return op("MatMul", x, model.weight(inner, outer))

    def rotated(x, cosine, sine):
        first, second = model.slice(x, 0, SIZE // 2, 3), model.slice(x, SIZE // 2, 2**63 - 1, 3)
        turned = op("Concat", op("Neg", second), first, axis=-1)
        return op("Add", op("Mul", x, cosine), op("Mul", turned, sine))

    if grouped_operator:
        last = op("Sub", op("ReduceSum", "mask", known("int64", [1]), keepdims=0), known("int64", 1))
        lengths = op("Cast", last, to=6)
        total = op("Cast", op("Gather", op("Shape", "mask"), known("int64", 1), axis=0), to=6)
    else:
        angles = [op("Gather", each, "positions", axis=0) for each in table]
        cosine, sine = (op("Unsqueeze", op("Concat", each, each, axis=-1), known("int64", [1])) for each in angles)
        zero, one = known("int64", 0), known("int64", 1)
        past = op("Gather", op("Shape", "past_0_key"), known("int64", 2), axis=0)
        rows = op("Gather", op("Shape", "ids"), known("int64", 1), axis=0)
        joined = op("Add", past, rows)
        at = op("Reshape", op("Range", past, joined, one), known("int64", [-1, 1]))
        later = op("Greater", op("Range", zero, joined, one), at)
        shape = op("Concat", op("Unsqueeze", rows, known("int64", [0])), op("Unsqueeze", joined, known("int64", [0])), axis=0)
        model.nodes.append(f"hidden = ConstantOfShape<value = float[1] {{-10000.0}}>({shape})")
        causal = op("Mul", "hidden", op("Cast", later, to=1))
        causal = op("Unsqueeze", causal, known("int64", [0, 1]))
        bias = op("Add", causal, model.padding())

    for layer in range(layers):
        rows = norm(x)
        q, k, v = (dense(rows, WIDTH, width) for width in (WIDTH, GROUPED * SIZE, GROUPED * SIZE))
        if grouped_operator:
            model.count += 1
            mixed = f"v{model.count}"
            model.nodes.append(
                f"{mixed}, present_{layer}_key, present_{layer}_value = com.microsoft.GroupQueryAttention<num_heads = {HEADS}, "
                f"kv_num_heads = {GROUPED}, do_rotary = 1>({q}, {k}, {v}, past_{layer}_key, past_{layer}_value, {lengths}, {total}, "
                f"{table[0]}, {table[1]})")
        else:
            q, k, v = model.heads(q, HEADS), model.heads(k, GROUPED), model.heads(v, GROUPED)
            q, k = rotated(q, cosine, sine), rotated(k, cosine, sine)
            k, v = model.appended(layer, "key", k), model.appended(layer, "value", v)

            def repeated(x):
                times = op("Concat", model.size(x, 0), known("int64", [GROUPED]), known("int64", [HEADS // GROUPED]), model.size(x, 2),
                           known("int64", [SIZE]), axis=0)
                wide = op("Expand", op("Unsqueeze", x, known("int64", [2])), times)
                return model.reshape(wide, model.size(x, 0), HEADS, model.size(x, 2), SIZE)

            k, v = repeated(k), repeated(v)
            scores = op("Mul", op("MatMul", q, op("Transpose", k, perm=[0, 1, 3, 2])), known("float", 0.35355339))
            mixed = model.weighted(op("Add", scores, bias), v)
        x = op("Add", x, dense(mixed, WIDTH, WIDTH))
        rows = norm(x)
        gate = dense(rows, WIDTH, 2 * WIDTH)
        gate = op("Mul", gate, op("Sigmoid", gate))
        x = op("Add", x, dense(op("Mul", gate, dense(rows, WIDTH, 2 * WIDTH)), 2 * WIDTH, WIDTH))
    op("MatMul", norm(x), model.weight(WIDTH, VOCABULARY), result="logits")
    return model


class Whisper(Decoder):
    """A decoder that also attends to what an encoder made, merged as exporters merge it: one If on `use_cache`, whose branches
    share weights. Without the cache, keys and values of the encoder's rows are computed; with it, they are passed on."""

    CONTEXT = 344

    def __init__(self, layers=2):
        super().__init__(0, HEADS)
        self.layers = layers
        self.inputs = ["int64[batch,sequence] ids", f"float[batch,heard,{WIDTH}] encoder_states"]
        self.outputs = [f"float[batch,sequence,{VOCABULARY}] logits"]
        self.results = ["logits"]
        for layer, whose, what in self.caches():
            rows = "past" if whose == "decoder" else "heard_before"
            self.inputs.append(f"float[batch,{HEADS},{rows},{SIZE}] past_{layer}_{whose}_{what}")
            self.outputs.append(f"float[batch,{HEADS},{whose}_{layer}_{what},{SIZE}] present_{layer}_{whose}_{what}")
            self.results.append(f"present_{layer}_{whose}_{what}")
        self.inputs.append("bool[1] use_cache")
        self.shared = {}
        branches = [self.branch(True), self.branch(False)]
        self.nodes = [f"{', '.join(self.results)} = If(use_cache)<then_branch = {branches[0]}, else_branch = {branches[1]}>"]

    def caches(self):
        return [(layer, whose, what) for layer in range(self.layers) for whose in ("decoder", "encoder") for what in ("key", "value")]

    def states(self):
        return [word for layer, whose, what in self.caches()
                for word in ("--state", f"past_{layer}_{whose}_{what}=present_{layer}_{whose}_{what}")]

    def of(self, name, *shape):
        """The same weight in both branches."""
        if name not in self.shared:
            self.shared[name] = self.weight(*shape)
        return self.shared[name]

    def branch(self, has_past):
        op, known = self.op, self.known
        self.nodes = []
        kind = "with_past" if has_past else "without_past"
        zero, one = known("int64", 0), known("int64", 1)

        def dense(x, name, inner, outer):
            return op("Add", op("MatMul", x, self.of(name, inner, outer)), self.of(name + "_bias", outer))

        def norm(x, name):
            return op("LayerNormalization", x, self.of(name + "_scale", WIDTH), self.of(name + "_shift", WIDTH), axis=-1)

        def attention(q, k, v, bias=None):
            scores = op("MatMul", q, op("Transpose", k, perm=[0, 1, 3, 2]))
            return self.weighted(op("Add", scores, bias) if bias else scores, v)

        def queries(x, name):
            return self.heads(op("Mul", dense(x, name, WIDTH, WIDTH), known("float", 0.35355339)), HEADS)

        def keys(x, name):
            return self.heads(op("MatMul", x, self.of(name, WIDTH, WIDTH)), HEADS)

        rows = op("Gather", op("Shape", "ids"), one, axis=0)
        past = op("Gather", op("Shape", "past_0_decoder_key"), known("int64", 2), axis=0) if has_past else zero
        joined = op("Add", past, rows) if has_past else rows
        positions = op("Range", past, joined, one)
        later = op("Greater", op("Range", zero, joined, one), op("Reshape", positions, known("int64", [-1, 1])))
        bias = op("Unsqueeze", op("Where", later, known("float", -10000.0), known("float", 0.0)), known("int64", [0, 1]))
        x = op("Add", op("Gather", self.of("tokens", VOCABULARY, WIDTH), "ids", axis=0),
               op("Gather", self.of("table", self.CONTEXT, WIDTH), positions, axis=0))
        presents = []
        for layer in range(self.layers):
            y = norm(x, f"{layer}_self")
            q = queries(y, f"{layer}_q")
            new = [keys(y, f"{layer}_k"), self.heads(dense(y, f"{layer}_v", WIDTH, WIDTH), HEADS)]
            if has_past:
                new = [op("Concat", f"past_{layer}_decoder_{what}", each, axis=2) for what, each in zip(("key", "value"), new)]
            presents += new
            x = op("Add", x, dense(attention(q, *new, bias), f"{layer}_o", WIDTH, WIDTH))
            q = queries(norm(x, f"{layer}_cross"), f"{layer}_cq")
            if has_past:
                heard = [f"past_{layer}_encoder_{what}" for what in ("key", "value")]
                presents += [op("Identity", each) for each in heard]
            else:
                heard = [keys("encoder_states", f"{layer}_ck"),
                         self.heads(dense("encoder_states", f"{layer}_cv", WIDTH, WIDTH), HEADS)]
                presents += heard
            x = op("Add", x, dense(attention(q, *heard), f"{layer}_co", WIDTH, WIDTH))
            inner = dense(norm(x, f"{layer}_middle"), f"{layer}_in", WIDTH, 4 * WIDTH)
            half = op("Mul", op("Add", op("Erf", op("Div", inner, known("float", 1.4142135))), known("float", 1.0)), known("float", 0.5))
            x = op("Add", x, dense(op("Mul", inner, half), f"{layer}_back", 4 * WIDTH, WIDTH))
        logits = op("MatMul", norm(x, "last"), op("Transpose", self.of("tokens", VOCABULARY, WIDTH), perm=[1, 0]))
        outputs = ", ".join(f"float[{', '.join(f'{name}_{axis}' for axis in range(rank))}] {name}"
                            for name, rank in zip([logits, *presents], [3] + [4] * len(presents)))
        return f"{kind} () => ({outputs}) {{ {' '.join(self.nodes)} }}"
