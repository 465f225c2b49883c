// Runs emitted cases: every one in a process of its own, so that a crash or an endless loop is one finding.
//
//     runner FOLDER     reads FOLDER/NAME.weights, NAME.in0, ...; writes NAME.out0, ...; one line per case
//
// Each case runs twice on memory that holds other rubbish: an arena byte that is read before it is written
// shows as a difference. Bytes behind every block are watched, and inputs must come out as they went in.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "case_abi.h"

extern const EmittedUnit* const kUnits[];
extern const int kUnitCount;

namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr unsigned kSeconds = 60;

/// Aligned memory with a watched margin on both sides.
class Block {
 public:
  Block(std::size_t bytes, int fill) : bytes_(bytes), size_((bytes + 63) / 64 * 64 + 2 * kGuardBytes) {
    memory_ = static_cast<unsigned char*>(std::aligned_alloc(64, size_));
    if (memory_ == nullptr) std::_Exit(111);
    std::memset(memory_, kGuard, size_);
    std::memset(data(), fill, bytes);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { std::free(memory_); }
  unsigned char* data() const { return memory_ + kGuardBytes; }
  std::size_t bytes() const { return bytes_; }
  bool is_intact() const {
    for (std::size_t i = 0; i < size_; ++i) {
      if ((i < kGuardBytes || i >= kGuardBytes + bytes_) && memory_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char kGuard = 0x5c;
  std::size_t bytes_, size_;
  unsigned char* memory_;
};

bool read_file(const std::string& path, const Block& block) {
  if (block.bytes() == 0) return true;
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  const bool whole = std::fread(block.data(), 1, block.bytes(), file) == block.bytes();
  std::fclose(file);
  return whole;
}

bool write_file(const std::string& path, const Block& block) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool whole = std::fwrite(block.data(), 1, block.bytes(), file) == block.bytes();
  return std::fclose(file) == 0 && whole;
}

using Blocks = std::vector<Block*>;  // freed by the end of the process

bool are_intact(const Blocks& blocks) {
  for (const Block* block : blocks) {
    if (!block->is_intact()) return false;
  }
  return true;
}

/// Empty: the outputs are in `outputs`.
std::string run_once(const EmittedCase& one, const Blocks& inputs, const Block& weights, int fill,
                     Blocks* outputs) {
  const Block arena(one.arena_bytes, fill), state(one.state_bytes, fill), instance(one.instance_bytes, fill);
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<std::string> before;
  for (const Block* block : inputs) {
    in.push_back(block->data());
    before.emplace_back(reinterpret_cast<const char*>(block->data()), block->bytes());
  }
  for (int i = 0; i < one.outputs; ++i) {
    outputs->push_back(new Block(one.output_bytes[i], fill));
    out.push_back(outputs->back()->data());
  }
  const EmittedMemory memory = {arena.data(), weights.data(), state.data(), instance.data()};
  const int status = one.run(memory, in.data(), out.data());
  if (status != 0) return "returns status " + std::to_string(status);
  if (!arena.is_intact() || !state.is_intact() || !instance.is_intact()) return "writes beside its memory";
  if (!are_intact(*outputs)) return "writes beside its outputs";
  if (!are_intact(inputs) || !weights.is_intact()) return "writes beside its inputs";
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (std::memcmp(before[i].data(), inputs[i]->data(), before[i].size()) != 0) return "changes its inputs";
  }
  return {};
}

std::string run_case(const EmittedCase& one, const std::string& path) {
  const Block weights(one.weights_bytes, 0);
  if (!read_file(path + ".weights", weights)) return "has no weights file";
  Blocks inputs, outputs, again;
  for (int i = 0; i < one.inputs; ++i) {
    inputs.push_back(new Block(one.input_bytes[i], 0));
    if (!read_file(path + ".in" + std::to_string(i), *inputs.back())) return "has no input file";
  }
  std::string problem = run_once(one, inputs, weights, 0xff, &outputs);
  if (problem.empty()) problem = run_once(one, inputs, weights, 0x3e, &again);
  if (!problem.empty()) return problem;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (std::memcmp(outputs[i]->data(), again[i]->data(), outputs[i]->bytes()) != 0) {
      return "depends on what the memory held before: output " + std::to_string(i);
    }
    if (!write_file(path + ".out" + std::to_string(i), *outputs[i])) return "cannot write its output";
  }
  return {};
}

void run_apart(const EmittedCase& one, const std::string& path) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    const std::string problem = run_case(one, path);
    std::printf("%s %s\n", one.name, problem.empty() ? "ok" : problem.c_str());
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    std::printf("%s cannot be started\n", one.name);
  } else if (WIFSIGNALED(status)) {
    std::printf("%s ends with signal %d\n", one.name, WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    std::printf("%s ends with %d\n", one.name, WEXITSTATUS(status));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (int u = 0; u < kUnitCount; ++u) {
    for (int i = 0; i < kUnits[u]->count; ++i) {
      const EmittedCase& one = kUnits[u]->cases[i];
      run_apart(one, std::string(argv[1]) + "/" + one.name);
    }
  }
  return 0;
}
