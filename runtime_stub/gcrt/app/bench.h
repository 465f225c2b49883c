// NAME_bench: times a model on random inputs. Host code.
#pragma once

#include "gcrt/app/measure.h"

namespace GCRT_NAMESPACE {

// What --layers and --trace say where layers cannot be timed one by one.
struct NoProfile {
  const char* why;
  template <class... Arguments>
  void operator()(const Arguments&...) const {
    fail(why);
  }
  template <class... Arguments>
  void trace(const Arguments&...) const {
    fail(why);
  }
};

// `profile`: what --layers and --trace do, LayerProfile of layers.h or NoProfile.
template <class Model, class Profile>
int bench_program(int argc, char** argv, const Profile& profile) {
  using T = typename Model::Traits;
  const std::string usage =
      std::string("usage: ") + T::kName +
      "_bench [--repeat N] [--warmup N] [--threads T] [--random SEED] [--weights FILE] [--layers] "
      "[--trace FILE] [--json]";
  int repeat = 20, warmup = 3, threads = 1;
  std::uint64_t seed = 1;
  bool json = false, layers = false;
  std::string weights = T::kWeightsPath, trace;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      json = true;
      continue;
    }
    if (word == "--layers") {
      layers = true;
      continue;
    }
    if (word == "--help" || word == "-h") {
      std::printf("%s\n", usage.c_str());
      return 0;
    }
    if (i + 1 >= argc) fail(usage);
    const std::string value = argv[++i];
    if (word == "--repeat") {
      repeat = positive_number(word, value);
    } else if (word == "--warmup") {
      warmup = positive_number(word, value);
    } else if (word == "--threads") {
      threads = positive_number(word, value);
    } else if (word == "--random") {
      seed = seed_number(value);
    } else if (word == "--trace") {
      trace = value;
    } else if (word == "--weights") {
      weights = value;
    } else {
      fail("unknown option " + word + "\n" + usage);
    }
  }
  Tensors tensors(*T::describe());
  for (Tensor& tensor : tensors.inputs) tensor.fill(&seed);
  const Model model(weights, threads);
  for (int i = 0; i < warmup; ++i) model.run(&tensors);
  if (!trace.empty()) {
    profile.trace(model, &tensors, repeat, trace);
  } else if (layers) {
    profile(model, &tensors, repeat, threads, json);
  } else {
    measure(model, &tensors, repeat, threads, json);
  }
  return 0;
}

}  // namespace GCRT_NAMESPACE
