// What only products read lies in memory as they round it.

#include "codegen/choice/prices.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

const MachinePrices& prices() {
  static const MachinePrices instance(machine_of_gpu({90}, Precision::kFp16, false));
  return instance;
}

ir::Graph optimised(const std::string& text, const std::set<std::string>& kept = {},
                    const ir::KernelPrices* of = &prices(), bool short_activations = false) {
  ir::Graph graph = parse(text);
  // Each node has the name of its result.
  for (const ir::NodeId id : graph.nodes()) graph.node(id).name = graph.value(graph.node(id).results[0]).name;
  passes::Options options;
  options.prices = of;
  options.keep_fp32 = kept;
  options.short_activations = short_activations;
  return run_pipeline(std::move(graph), options, 0.1);  // sums of 64 products of up to 40, rounded to 11 bits
}

/// Names of the values of 16 bits that some node makes.
std::set<std::string> short_values(const ir::Graph& graph) {
  std::set<std::string> names;
  for (const ir::ValueId id : graph.values()) {
    const ir::Value& value = graph.value(id);
    if (value.producer.valid() && value.type.element == ir::ElementType::kFloat16) names.insert(value.name);
  }
  return names;
}

using Names = std::set<std::string>;

/// The same where what products read is rounded for all readers.
std::set<std::string> short_activations(const std::string& text) {
  return short_values(optimised(text, {}, &prices(), true));
}

/// A product of 16 rows on the left of another, both with activations.
std::string chain(const std::string& more_outputs = "", const std::string& more = "") {
  return "g (float[16,64] x, float[64,64] w_a, float[64,64] w_b) => (float[16,64] y" + more_outputs +
         ") { a = MatMul(x, w_a)\n r = Relu(a)\n b = MatMul(r, w_b)\n y = Tanh(b)\n" + more + " }";
}

TEST(StoreFactors, BetweenProducts) { EXPECT_EQ(short_values(optimised(chain())), Names({"r"})); }

TEST(StoreFactors, WithoutAskingNothing) {
  EXPECT_EQ(short_values(optimised(chain(), {}, nullptr)), Names());
  const MachinePrices floats(machine_of_gpu({90}, Precision::kFp32, false));
  EXPECT_EQ(short_values(optimised(chain(), {}, &floats)), Names());
  const MachinePrices rounded(machine_of_gpu({75}, Precision::kBf16, false));  // no tensor cores for it
  EXPECT_EQ(short_values(optimised(chain(), {}, &rounded)), Names());
}

TEST(StoreFactors, NotWhatSomethingElseReads) {
  EXPECT_EQ(short_values(optimised(chain(", float[16,64] z", "z = Add(r, x)"))), Names());
  EXPECT_EQ(short_values(optimised(chain(", float[16,64] r"))), Names());  // an output
  // A residual stream.
  EXPECT_EQ(
      short_values(optimised("g (float[16,64] x, float[64,64] w_a, float[64,64] w_b) => (float[16,64] y) "
                             "{ a = MatMul(x, w_a)\n b = MatMul(a, w_b)\n y = Add(a, b) }")),
      Names());
}

TEST(StoreFactors, ActivationsForAllReaders) {
  // Element by element, in a reduction, in a norm, and behind the sums of a product: also behind those of
  // which it is a factor.
  EXPECT_EQ(short_activations(chain(", float[16,64] z", "z = Add(r, x)")), Names({"r"}));
  EXPECT_EQ(short_activations(chain(", float[16,64] z", "z = Softmax(r)")), Names({"r"}));
  EXPECT_EQ(short_activations(chain(", float[16,64] z", "z = Max(r, x)")), Names({"r"}));
  const std::string both =
      "g (float[16,64] x, float[64,64] w_a, float[64,64] w_b, float[64,64] w_c) => (float[16,64] y) "
      "{ a = MatMul(x, w_a)\n b = MatMul(a, w_b)\n s = Add(a, b)\n c = MatMul(s, w_c)\n y = Add(c, s) }";
  EXPECT_EQ(short_activations(both), Names({"a", "s"}));
  EXPECT_EQ(short_values(optimised(both)), Names());
  EXPECT_EQ(short_activations("g (float[16,64] x, float[64,64] w_a, float[64,64] w_b) => (float[16,64] y) "
                              "{ a = MatMul(x, w_a)\n b = MatMul(a, w_b)\n y = Add(a, b) }"),
            Names({"a"}));
}

TEST(StoreFactors, ActivationsThatNoProductReads) {
  // A residual stream whose norm alone is a factor may leave the range of 16 bits.
  EXPECT_EQ(short_activations("g (float[16,64] x, float[64,64] w_a, float[64,64] w_b) => (float[16,64] y) "
                              "{ a = MatMul(x, w_a)\n n = Softmax(a)\n b = MatMul(n, w_b)\n y = Add(a, b) }"),
            Names({"n"}));
  EXPECT_EQ(short_activations(chain(", float[16,64] r")), Names());  // an output
}

TEST(StoreFactors, ActivationsThatDecide) {
  EXPECT_EQ(short_activations(chain(", int64[16,1] z", "z = ArgMax<axis = 1>(r)")), Names());
  EXPECT_EQ(short_activations(chain(", float[16,64] z", "z = Floor(r)")), Names());
  EXPECT_EQ(short_activations(chain(", int64[16,64] z", "z = Cast<to = 7>(r)")), Names());
  EXPECT_EQ(short_activations(chain(", bool[16,64] z", "z = Greater(r, x)")), Names());
  EXPECT_EQ(short_activations(chain(", float[16,64] z", "m = Greater(r, x)\n z = Where(m, r, x)")), Names());
  EXPECT_EQ(short_activations(chain(", float[16,4] z, int64[16,4] i",
                                    "k = Constant<value_ints = [4]>()\n "
                                    "z, i = TopK(r, k)")),
            Names());
  // The sign is kept: a slope is no step.
  EXPECT_EQ(short_activations(chain(", float[16,64] z", "z = LeakyRelu(r)")), Names({"r"}));
}

/// Element types of what a run begins with and of what it leaves:
/// a cache of rows, joined with those of the run.
std::pair<ir::ElementType, ir::ElementType> state_types(const std::string& more_outputs = "",
                                                        const std::string& more = "",
                                                        const std::set<std::string>& kept = {}) {
  ir::Graph graph = parse(
      "g (float[16,64] x, float[16,64] past, float[64,64] w_a, float[64,64] w_b) => (float[32,64] y, "
      "float[16,64] next" +
      more_outputs +
      ") <int64[1] s = {8}, int64[1] e = {24}, int64[1] axis = {0}> "
      "{ a = MatMul(x, w_a)\n joined = Concat<axis = 0>(past, a)\n y = MatMul(joined, w_b)\n "
      "next = Slice(joined, s, e, axis)\n" +
      more + " }");
  for (const ir::NodeId id : graph.nodes()) graph.node(id).name = graph.value(graph.node(id).results[0]).name;
  passes::Options options;
  options.prices = &prices();
  options.keep_fp32 = kept;
  options.states = {{"past", "next"}};
  passes::optimise(graph, options);
  return {graph.value(graph.inputs()[1]).type.element, graph.value(graph.outputs()[1]).type.element};
}

TEST(StoreFactors, StatesOfProducts) {
  const auto both = [](ir::ElementType element) { return std::pair(element, element); };
  EXPECT_EQ(state_types(), both(ir::ElementType::kFloat16));
  EXPECT_EQ(state_types("", "", {"next"}), both(ir::ElementType::kFloat32));
  // What a run begins with is read by something else, or what it leaves is an output as well.
  EXPECT_EQ(state_types(", float[16,64] z", "z = Tanh(past)"), both(ir::ElementType::kFloat32));
  EXPECT_EQ(state_types(", float[16,64] z", "z = Identity(next)"), both(ir::ElementType::kFloat32));
}

/// What a run leaves is an input as it came, whose type is the caller's.
TEST(StoreFactors, StatesThatAreInputs) {
  ir::Graph graph = parse(
      "g (float[16,64] x, float[16,64] past, float[64,64] w_b) => (float[32,64] y, float[16,64] next) {"
      " joined = Concat<axis = 0>(past, x)\n y = MatMul(joined, w_b)\n next = Identity(x) }");
  passes::Options options;
  options.prices = &prices();
  options.states = {{"past", "next"}};
  passes::optimise(graph, options);
  for (const ir::ValueId input : graph.inputs())
    EXPECT_EQ(graph.value(input).type.element, ir::ElementType::kFloat32);
}

TEST(StoreFactors, NotWhatTheUserKeeps) {
  EXPECT_EQ(short_values(optimised(chain(), {"a"})), Names());
  EXPECT_EQ(short_values(optimised(chain(), {"r"})), Names());  // another node of the same kernel
  EXPECT_EQ(short_values(optimised(chain(), {"b"})), Names({"r"}));
}

TEST(StoreFactors, NotForFewRows) {
  EXPECT_EQ(short_values(optimised("g (float[4,64] x, float[64,64] w_a, float[64,64] w_b) => (float[4,64] y) "
                                   "{ a = MatMul(x, w_a)\n y = MatMul(a, w_b) }")),
            Names());
}

// No asynchronous copy moves a single element of 16 bits.
TEST(StoreFactors, NotForOddRows) {
  EXPECT_EQ(
      short_values(optimised("g (float[16,64] x, float[64,63] w_a, float[63,64] w_b) => (float[16,64] y) "
                             "{ a = MatMul(x, w_a)\n y = MatMul(a, w_b) }")),
      Names());
}

TEST(StoreFactors, NotForFactorsBeyondFloat16) {
  EXPECT_EQ(
      short_values(optimised("g (float[16,64] x, float[64,64] w_a) => (float[16,64] y) "
                             "<float[64,1] large = {65536.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, "
                             "1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, "
                             "1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, "
                             "1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, "
                             "1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}> "
                             "{ a = MatMul(x, w_a)\n b = MatMul(a, large)\n y = Add(x, b) }")),
      Names());
}

/// Queries, keys and values of two heads of 32 over 20 rows; `keys` makes kh of k.
std::string attention(const std::string& inputs, const std::string& keys, const std::string& outputs = "") {
  return "g (float[1,20,64] x, float[64,64] w_q, float[64,64] w_k, float[64,64] w_v, float[64,64] w_o" +
         inputs + ") => (float[1,20,64] y" + outputs +
         ") <int64[4] s = {1,20,2,32}, int64[3] t = {1,20,64}, float small = {0.001}> { q = MatMul(x, w_q)\n "
         "k = MatMul(x, w_k)\n v = "
         "MatMul(x, w_v)\n qs = Reshape(q, s)\n ks = Reshape(k, s)\n vs = Reshape(v, s)\n qh = "
         "Transpose<perm = "
         "[0,2,1,3]>(qs)\n kh = Transpose<perm = [0,2,1,3]>(ks)\n vh = Transpose<perm = [0,2,1,3]>(vs)\n" +
         keys +
         "scores = MatMul(qh, kt)\n scaled = Mul(scores, small)\n p = Softmax(scaled)\n oh = MatMul(p, va)\n "
         "os = Transpose<perm = "
         "[0,2,1,3]>(oh)\n o = Reshape(os, t)\n y = MatMul(o, w_o) }";
}

TEST(StoreFactors, QueriesKeysValuesAndWhatComesOfThem) {
  const Names names =
      short_values(optimised(attention("", "kt = Transpose<perm = [0,1,3,2]>(kh)\n va = Identity(vh)\n")));
  // The joined product, its views, and the result of attention with its merged heads.
  EXPECT_GE(names.size(), 2u);
  EXPECT_TRUE(names.count("o") != 0 || names.count("os") != 0 || names.count("oh") != 0);
}

// A cache that the caller sees as float32 stays that, with all that is placed in it; queries are 16 bits.
TEST(StoreFactors, CachesOfTheCaller) {
  const std::string text = attention(", float[1,2,7,32] pk, float[1,2,7,32] pv",
                                     "ka = Concat<axis = 2>(pk, kh)\n va = Concat<axis = 2>(pv, vh)\n kt = "
                                     "Transpose<perm = [0,1,3,2]>(ka)\n",
                                     ", float[1,2,27,32] ka, float[1,2,27,32] va");
  const ir::Graph graph = optimised(text);
  for (const ir::ValueId id : graph.outputs()) {
    EXPECT_EQ(graph.value(id).type.element, ir::ElementType::kFloat32);
  }
  const Names names = short_values(graph);
  EXPECT_EQ(names.count("ka") + names.count("va") + names.count("kh") + names.count("vh"), 0u);
}

}  // namespace
}  // namespace gcompile::testing
