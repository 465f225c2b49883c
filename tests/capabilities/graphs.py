"""Small graphs by kind: how many kernels one would write by hand, and how many gcompile writes today."""

import collections

Graph = collections.namedtuple("Graph", "name ideal today text options", defaults=[()])

ROWS = "float[8,16,64] x"
ROWS_OUT = "float[8,16,64] y"
LAST = "int64[1] a = {-1}"
EPSILON = ", float eps = {1e-5}"
IMAGE = "float[2,8,16,16] x"
IMAGE_OUT = "float[2,8,16,16] y"


def text(body, inputs=ROWS, outputs=ROWS_OUT, constants="", opset=20):
    """A model in ONNX's text format; the nodes of `body` are divided by semicolons."""
    constants = f" <{constants}>" if constants else ""
    nodes = "\n  ".join(node.strip() for node in body.split(";"))
    return f'<ir_version: 8, opset_import: ["" : {opset}]>\ng ({inputs}) => ({outputs}){constants} {{\n  {nodes}\n}}\n'


def filled(shape, name, number="0.5"):
    """A constant of equal numbers."""
    count = 1
    for size in shape:
        count *= size
    return f"float[{','.join(map(str, shape))}] {name} = {{{', '.join([number] * count)}}}"


# One kernel walks a row, whatever is reduced on the way --------------------------------------------------------------------

SOFTMAX = "m = ReduceMax(x, a); s = Sub(x, m); e = Exp(s); d = ReduceSum(e, a); "
VARIANCE = "m = ReduceMean(x, a); d = Sub(x, m); q = Mul(d, d); v = ReduceMean(q, a); "
GROUPS = ("int64[3] split = {2, 4, -1}, int64[4] back = {2, 8, 16, 16}, float[4] one = {1, 1, 1, 1}, "
          "float[4] none = {0, 0, 0, 0}")
GROUP_NORM = "r = Reshape(x, split); n = InstanceNormalization(r, one, none); k = Reshape(n, back); t = Mul(k, w); "
CHANNELS = ", float[8,1,1] w, float[8,1,1] b"
TWO = ROWS + ", float[8,16,64] z"
EACH_ROW = "float[8,16] y"

STITCHED = [
    Graph("softmax_by_reciprocal", 1, 1, text(SOFTMAX + "r = Reciprocal(d); y = Mul(e, r)", constants=LAST)),
    Graph("softmax_by_quotient", 1, 1, text(SOFTMAX + "y = Div(e, d)", constants=LAST)),
    Graph("log_softmax", 1, 1, text(SOFTMAX + "l = Log(d); y = Sub(s, l)", constants=LAST)),
    Graph("log_of_softmax", 1, 1, text("s = Softmax(x); y = Log(s)")),
    Graph("softmax_without_maximum", 1, 1, text("e = Exp(x); d = ReduceSum(e, a); y = Div(e, d)", constants=LAST)),
    Graph("log_sum_exp", 1, 1, text(SOFTMAX + "l = Log(d); y = Add(l, m)", outputs="float[8,16,1] y", constants=LAST)),
    Graph("softmax_with_a_mask", 1, 1, text("t = Add(x, z); y = Softmax(t)", ROWS + ", float[8,1,64] z")),
    Graph("softmax_of_columns", 1, 1, text(SOFTMAX + "y = Div(e, d)", constants="int64[1] a = {1}")),
    Graph("variance_by_squares", 1, 1,
          text("q = Mul(x, x); b = ReduceMean(q, a); m = ReduceMean(x, a); c = Mul(m, m); y = Sub(b, c)",
               outputs="float[8,16,1] y", constants=LAST)),
    Graph("standard_deviation", 1, 1, text(VARIANCE + "y = Sqrt(v)", outputs="float[8,16,1] y", constants=LAST)),
    Graph("centred", 1, 1, text("m = ReduceMean(x, a); y = Sub(x, m)", constants=LAST)),
    Graph("layer_norm", 1, 1, text(VARIANCE + "f = Add(v, eps); s = Sqrt(f); y = Div(d, s)", constants=LAST + EPSILON)),
    Graph("layer_norm_by_squares", 1, 1,
          text("q = Mul(x, x); b = ReduceMean(q, a); m = ReduceMean(x, a); c = Mul(m, m); v = Sub(b, c); f = Add(v, eps); "
               "s = Sqrt(f); d = Sub(x, m); y = Div(d, s)", constants=LAST + EPSILON)),
    Graph("norm_of_columns", 1, 1, text(VARIANCE + "f = Add(v, eps); s = Sqrt(f); y = Div(d, s)",
                                        constants="int64[1] a = {1}" + EPSILON)),
    Graph("rms_norm", 1, 1, text("q = Mul(x, x); v = ReduceMean(q, a); f = Add(v, eps); s = Sqrt(f); r = Reciprocal(s); "
                                 "n = Mul(x, r); y = Mul(n, w)", ROWS + ", float[64] w", constants=LAST + EPSILON)),
    Graph("instance_norm", 1, 1, text("y = InstanceNormalization(x, w, b)", IMAGE + ", float[8] w, float[8] b", IMAGE_OUT)),
    Graph("instance_norm_spelled", 1, 1,
          text(VARIANCE + "f = Add(v, eps); s = Sqrt(f); n = Div(d, s); t = Mul(n, w); y = Add(t, b)", IMAGE + CHANNELS,
               IMAGE_OUT, "int64[2] a = {2, 3}" + EPSILON)),
    Graph("instance_norm_silu", 1, 1, text("n = InstanceNormalization(x, w, b); s = Sigmoid(n); y = Mul(n, s)",
                                           IMAGE + ", float[8] w, float[8] b", IMAGE_OUT)),
    Graph("group_norm", 1, 1, text(GROUP_NORM + "y = Add(t, b)", IMAGE + CHANNELS, IMAGE_OUT, GROUPS)),
    Graph("group_norm_silu", 1, 1, text(GROUP_NORM + "u = Add(t, b); s = Sigmoid(u); y = Mul(u, s)", IMAGE + CHANNELS,
                                        IMAGE_OUT, GROUPS)),
    Graph("norm_of_a_sum", 1, 1, text("s = Add(x, z); y = LayerNormalization(s, w, b)",
                                      TWO + ", float[64] w, float[64] b")),
    Graph("norm_of_a_sum_that_is_kept", 1, 2, text("s = Add(x, z); y = LayerNormalization(s, w, b)",
                                                   TWO + ", float[64] w, float[64] b", ROWS_OUT + ", float[8,16,64] s")),
    Graph("norm_and_gelu", 1, 1, text("n = LayerNormalization(x, w, b); y = Gelu(n)", ROWS + ", float[64] w, float[64] b")),
    Graph("unit_length", 1, 1, text("n = ReduceL2(x, a); y = Div(x, n)", constants=LAST)),
    Graph("unit_length_with_a_floor", 1, 1,
          text("q = Mul(x, x); n = ReduceSum(q, a); f = Max(n, eps); s = Sqrt(f); y = Div(x, s)", constants=LAST + EPSILON)),
    Graph("unit_sum", 1, 1, text("n = ReduceL1(x, a); y = Div(x, n)", constants=LAST)),
    Graph("largest_magnitude", 1, 1, text("b = Abs(x); n = ReduceMax(b, a); y = Div(x, n)", constants=LAST)),
    Graph("between_extremes", 1, 1, text("h = ReduceMax(x, a); l = ReduceMin(x, a); d = Sub(x, l); r = Sub(h, l); "
                                         "y = Div(d, r)", constants=LAST)),
    Graph("entropy", 1, 1, text("p = Softmax(x); l = Log(p); t = Mul(p, l); s = ReduceSum<keepdims = 0>(t, a); y = Neg(s)",
                                outputs=EACH_ROW, constants=LAST)),
    Graph("divergence", 1, 1, text("p = Softmax(x); q = LogSoftmax(z); l = Log(p); d = Sub(l, q); t = Mul(p, d); "
                                   "y = ReduceSum<keepdims = 0>(t, a)", TWO, EACH_ROW, LAST)),
    Graph("cosine", 1, 1, text("p = Mul(x, z); d = ReduceSum<keepdims = 0>(p, a); n = ReduceL2<keepdims = 0>(x, a); "
                               "m = ReduceL2<keepdims = 0>(z, a); t = Mul(n, m); y = Div(d, t)", TWO, EACH_ROW, LAST)),
    Graph("expected_value", 1, 1, text("p = Softmax(x); t = Mul(p, z); y = ReduceSum<keepdims = 0>(t, a)",
                                       ROWS + ", float[64] z", EACH_ROW, LAST)),
    Graph("rest_of_a_sum", 1, 1, text("m = ReduceMax(x, a); s = Sub(x, m); r = Relu(s); d = ReduceSum(r, a); y = Sub(s, d)",
                                      constants=LAST)),
    Graph("response_norm", 2, 3,
          text("n = ReduceL2(x, p); m = ReduceMean(n, c); e = Add(m, eps); q = Div(n, e); t = Mul(x, q); u = Mul(t, w); "
               "v = Add(u, b); y = Add(v, x)", "float[2,7,7,32] x, float[32] w, float[32] b", "float[2,7,7,32] y",
               "int64[2] p = {1, 2}, int64[1] c = {-1}" + EPSILON)),
    Graph("dynamic_quantisation", 2, 4, text("q, s, z = DynamicQuantizeLinear(x)", "float[8,64] x",
                                             "uint8[8,64] q, float s, uint8 z")),
]

# A map is the last expression of the kernel before it, through views --------------------------------------------------------

PRODUCT = ROWS + ", float[64,32] w"
CONV = "float[1,8,16,16] x, float[16,8,1,1] w"

THROUGH_VIEWS = [
    Graph("map_and_map", 1, 1, text("e = Sigmoid(x); r = Reshape(e, s); y = Relu(r)", outputs="float[8,1024] y",
                                    constants="int64[2] s = {8, 1024}")),
    Graph("product_and_map", 1, 1, text("m = MatMul(x, w); r = Reshape(m, s); y = Relu(r)", PRODUCT, "float[128,32] y",
                                        "int64[2] s = {128, 32}")),
    Graph("product_bias_and_gelu", 1, 1, text("m = MatMul(x, w); b = Add(m, c); r = Reshape(b, s); y = Gelu(r)",
                                              PRODUCT + ", float[32] c", "float[128,32] y", "int64[2] s = {128, 32}")),
    Graph("product_and_residual", 1, 1, text("m = MatMul(x, w); r = Reshape(m, s); y = Add(r, z)",
                                             PRODUCT + ", float[128,32] z", "float[128,32] y", "int64[2] s = {128, 32}")),
    Graph("softmax_and_map", 1, 1, text("p = Softmax(x); r = Reshape(p, s); y = Mul(r, c)", ROWS + ", float[64] c",
                                        "float[128,64] y", "int64[2] s = {128, 64}")),
    Graph("norm_and_map", 1, 1, text("n = LayerNormalization(x, w); u = Unsqueeze(n, s); y = Relu(u)",
                                     ROWS + ", float[64] w", "float[8,1,16,64] y", "int64[1] s = {1}")),
    Graph("product_of_one_row_turned", 1, 1,
          text("m = MatMul(x, w); t = Transpose<perm = [0, 2, 1]>(m); y = Sigmoid(t)", "float[1,1,64] x, float[64,32] w",
               "float[1,32,1] y")),
    Graph("product_turned", 1, 2, text("m = MatMul(x, w); r = Transpose<perm = [0, 2, 1]>(m); y = Add(r, c)",
                                       PRODUCT + ", float[32,1] c", "float[8,32,16] y")),
    Graph("convolution_to_rows", 1, 2, text("m = Conv(x, w); r = Transpose<perm = [0, 2, 3, 1]>(m); q = Reshape(r, s); "
                                            "y = Sigmoid(q)", CONV, "float[1,256,16] y", "int64[3] s = {1, 256, 16}")),
    Graph("convolution_to_planes", 1, 3, text("m = Conv(x, w); r = Reshape(m, s); y = Sigmoid(r)", CONV,
                                              "float[1,16,256] y", "int64[3] s = {1, 16, 256}")),
    Graph("convolutions_joined", 5, 5,
          text("p = Conv(x, w); q = Conv(x, v); c = Concat<axis = 1>(p, q); r = Relu(c); y = Conv(r, u)",
               CONV + ", float[16,8,1,1] v, float[4,32,1,1] u", "float[1,4,16,16] y")),
    Graph("convolution_split", 1, 4, text("m = Conv(x, w); p, q = Split<axis = 1, num_outputs = 2>(m); y = Relu(p); "
                                          "z = Sigmoid(q)", CONV, "float[1,8,16,16] y, float[1,8,16,16] z")),
]

# Movements -----------------------------------------------------------------------------------------------------------------

SHUFFLED = "float[1,8,6,6] x, float[1,8,6,6] z"
SHUFFLE = "int64[5] split = {1, 2, 8, 6, 6}, int64[4] all = {1, 16, 6, 6}"

MOVED = [
    Graph("shuffle_of_parts", 1, 1, text("c = Concat<axis = 1>(x, z); r = Reshape(c, split); "
                                         "t = Transpose<perm = [0, 2, 1, 3, 4]>(r); y = Reshape(t, all)", SHUFFLED,
                                         "float[1,16,6,6] y", SHUFFLE)),
    Graph("shuffle_and_map", 1, 1, text("e = Relu(x); c = Concat<axis = 1>(e, z); r = Reshape(c, split); "
                                        "t = Transpose<perm = [0, 2, 1, 3, 4]>(r); u = Reshape(t, all); y = Tanh(u)",
                                        SHUFFLED, "float[1,16,6,6] y", SHUFFLE)),
    Graph("slice_and_pad", 1, 1, text("s = Slice(x, from, to, last); y = Pad(s, pads)", outputs=ROWS_OUT,
                                      constants="int64[1] from = {16}, int64[1] to = {64}, int64[1] last = {2}, "
                                                "int64[6] pads = {0, 0, 0, 0, 0, 16}")),
    Graph("transposes_cancel", 1, 1, text("t = Transpose<perm = [0, 2, 1]>(x); e = Relu(t); "
                                          "y = Transpose<perm = [0, 2, 1]>(e)")),
    Graph("concat_of_a_split", 1, 1, text("p, q = Split<axis = 1, num_outputs = 2>(x); c = Concat<axis = 1>(p, q); "
                                          "y = Relu(c)")),
    Graph("pad_of_a_pad", 1, 1, text("p = Pad(x, one); y = Pad(p, one)", outputs="float[8,16,68] y",
                                     constants="int64[6] one = {0, 0, 1, 0, 0, 1}")),
]

# Several results of one kernel ---------------------------------------------------------------------------------------------

SEVERAL = [
    Graph("two_maps_of_one", 1, 2, text("y = Relu(x); z = Sigmoid(x)", outputs=ROWS_OUT + ", float[8,16,64] z")),
    Graph("a_value_on_the_way", 1, 2, text("e = Exp(x); y = Add(e, x)", outputs=ROWS_OUT + ", float[8,16,64] e")),
    Graph("two_reductions_of_one", 1, 2, text("y = ReduceSum<keepdims = 0>(x, a); z = ReduceMax<keepdims = 0>(x, a)",
                                              outputs=EACH_ROW + ", float[8,16] z", constants=LAST)),
    Graph("pool_behind_a_convolution", 1, 3, text("m = Conv(x, w); r = Relu(m); y = GlobalAveragePool(r)", CONV,
                                                  "float[1,16,1,1] y")),
    Graph("position_of_the_largest", 1, 2, text("m = MatMul(x, w); y = ArgMax<axis = -1, keepdims = 0>(m)", PRODUCT,
                                                "int64[8,16] y")),
]

# Algebra -------------------------------------------------------------------------------------------------------------------

ALGEBRA = [
    Graph("affine_chain", 1, 1, text("p = Mul(x, k); q = Add(p, k); r = Mul(q, k); y = Add(r, k)",
                                     constants="float k = {1.5}")),
    Graph("linear_of_linear", 1, 1, text("p = MatMul(x, w); y = MatMul(p, v)", ROWS, "float[8,16,16] y",
                                         filled((64, 32), "w") + ", " + filled((32, 16), "v"))),
    Graph("mean_of_means", 1, 1, text("m = ReduceMean(x, a); y = ReduceMean(m, b)", IMAGE, "float[2,8,1,1] y",
                                      "int64[1] a = {3}, int64[1] b = {2}")),
    Graph("mean_of_means_that_drop_axes", 1, 1, text("m = ReduceMean<keepdims = 0>(x, a); y = ReduceMean(m, b)", IMAGE,
                                                     "float[2,8,1] y", "int64[1] a = {3}, int64[1] b = {2}")),
    Graph("sign_changes", 1, 1, text("n = Neg(x); y = Add(z, n)", TWO)),
    Graph("sum_of_scaled", 1, 1, text("p = Mul(x, k); q = Mul(z, k); y = Add(p, q)", TWO, constants="float k = {1.5}")),
]

KINDS = {"stitched rows": STITCHED, "epilogues through views": THROUGH_VIEWS, "movements": MOVED,
         "several results": SEVERAL, "algebra": ALGEBRA}
