#include "driver/command_line/options.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/diagnostics.h"
#include "driver/machine/process.h"

namespace gcompile {
namespace {

Options parse(std::vector<const char*> words) {
  words.insert(words.begin(), "gcompile");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}

std::string name_of_model(const char* path) { return program_name(parse({path, "-o", "out"})); }

TEST(Options, CompileIsTheDefaultCommand) {
  EXPECT_EQ(parse({"m.onnx", "-o", "out"}).command, Command::kCompile);
  EXPECT_EQ(parse({"compile", "m.onnx", "-o", "out"}).command, Command::kCompile);
  EXPECT_EQ(parse({"verify", "m.onnx"}).command, Command::kVerify);
  EXPECT_EQ(parse({"ops"}).command, Command::kOps);
  // A model may be called like a command.
  const Options options = parse({"check", "verify"});
  EXPECT_EQ(options.command, Command::kCheck);
  EXPECT_EQ(options.model, "verify");
}

TEST(Options, ReadsNumbersOfElements) {
  const Options options = parse({"m.onnx", "-o", "out", "--elements", "a=b=3", "--elements", "mask=none"});
  const auto& elements = options.import.bindings.elements;
  ASSERT_EQ(elements.size(), 2u);
  EXPECT_EQ(elements[0].input, "a=b");
  EXPECT_EQ(elements[0].count, 3);
  EXPECT_EQ(elements[1].count, std::nullopt);
  EXPECT_NE(canonical_options(options).find(" --elements a=b=3 --elements mask=none"), std::string::npos);
}

TEST(Options, ReadsTheFlagsOfAnInterface) {
  const Options options =
      parse({"m.onnx",         "-o",      "out",       "-O1",   "--dim",          "N=4",
             "--dim",          "M=5",     "--shape",   "x:1x3", "--set",          "sr=16000",
             "--state",        "h=h_out", "--weights", "array", "--optimize-for", "size",
             "--disable-pass", "fuse"});
  EXPECT_EQ(options.level, 1);
  ASSERT_EQ(options.import.bindings.dims.size(), 2u);
  EXPECT_EQ(options.import.bindings.dims[1].size, 5);
  EXPECT_EQ(options.import.bindings.shapes[0].input, "x");
  EXPECT_EQ(options.import.bindings.sets[0].values[0], "16000");
  EXPECT_EQ(options.import.states[0], (std::pair<std::string, std::string>("h", "h_out")));
  EXPECT_EQ(options.weights, WeightsMode::kArray);
  EXPECT_TRUE(options.optimize_for_size);
  EXPECT_EQ(options.disabled, std::vector<std::string>{"fuse"});
}

TEST(Options, CanonicalTextHoldsWhatShapesTheOutputOnly) {
  EXPECT_EQ(canonical_options(parse({"m.onnx", "-o", "out"})), "--target cpp -O3");
  EXPECT_EQ(canonical_options(parse({"-q", "m.onnx", "-o", "elsewhere", "--json", "--force"})),
            "--target cpp -O3");
  EXPECT_EQ(canonical_options(parse({"m.onnx", "--disable-pass", "b", "--weights", "file", "--disable-pass",
                                     "a", "--dim", "N=4", "-O0", "-o", "out"})),
            "--target cpp -O0 --dim N=4 --disable-pass a --disable-pass b --weights file");
  EXPECT_EQ(canonical_options(parse({"m.onnx", "-o", "out", "--extra-weights", "100"})), "--target cpp -O3");
  EXPECT_EQ(canonical_options(parse({"m.onnx", "-o", "out", "--extra-weights", "20"})),
            "--target cpp -O3 --extra-weights 20");
  EXPECT_EQ(canonical_options(parse({"m.onnx", "-o", "out", "--weight-bits", "4"})),
            "--target cpp -O3 --weight-bits 4");
}

TEST(Options, PrecisionIsOfATarget) {
  EXPECT_EQ(parse({"m.onnx", "-o", "out"}).precision, Precision::kFp32);
  const Options options = parse({"m.onnx", "-o", "out", "--target", "cuda", "--precision", "bf16"});
  EXPECT_EQ(options.precision, Precision::kBf16);
  EXPECT_EQ(canonical_options(options),
            fmt::format("--target cuda -O3 --arch {} --precision bf16", kDefaultCudaArch));
  EXPECT_EQ(canonical_options(parse({"m.onnx", "-o", "out", "--precision", "bf16x3"})),
            "--target cpp -O3 --precision bf16x3");
  EXPECT_EQ(canonical_options(parse({"m.onnx", "-o", "out", "--target", "cuda", "--precision", "fp32"})),
            fmt::format("--target cuda -O3 --arch {}", kDefaultCudaArch));
  const auto message_of = [](std::vector<const char*> words) -> std::string {
    words.insert(words.begin(), {"gcompile", "m.onnx", "-o", "out"});
    try {
      parse_command_line(static_cast<int>(words.size()), words.data());
    } catch (const CompileError& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message_of({"--precision", "tf32"}).find("needs --target cuda"), std::string::npos);
  EXPECT_NE(
      message_of({"--target", "cuda", "--precision", "fp8"}).find("fp32, tf32, fp16, bf16, bf16x3, bf16x6"),
      std::string::npos);
  for (const char* name : {"bf16", "bf16x3", "bf16x6"}) {
    EXPECT_EQ(message_of({"--precision", name}), "no error");
    EXPECT_NE(message_of({"--precision", name, "--exact"}).find("contradict"), std::string::npos);
  }
  for (const char* name : {"bf16x3", "bf16x6"})
    EXPECT_NE(message_of({"--target", "cuda", "--precision", name}).find("needs --target cpp"),
              std::string::npos);
  EXPECT_EQ(message_of({"--precision", "fp32"}), "no error");
}

TEST(Options, NamesComeFromTheFile) {
  EXPECT_EQ(name_of_model("folder.d/MobileNet-v2 1.0.onnx"), "mobilenet_v2_1_0");
  EXPECT_EQ(name_of_model("/models/3d.onnx"), "model_3d");
  EXPECT_EQ(name_of_model("while.onnx"), "while_model");
  EXPECT_EQ(name_of_model("std.onnx"), "std_model");
  EXPECT_EQ(name_of_model("\xc3\xa4\xc3\xb6.onnx"), "model");
  EXPECT_EQ(name_of_model("net"), "net");
  // Half of all files are called so; what tells them apart is where they are to go.
  EXPECT_EQ(name_of_model("model.onnx"), "out");
  const auto name_in = [](const char* folder) { return program_name(parse({"a/model.onnx", "-o", folder})); };
  EXPECT_EQ(name_in("build/Face-Detector//"), "face_detector");
  EXPECT_EQ(name_in("3d"), "model_3d");
  EXPECT_EQ(name_in("."), "model");
  EXPECT_EQ(name_in("std"), "std_model");
  EXPECT_EQ(program_name(parse({"check", "a/model.onnx"})), "model");
}

TEST(Options, BadNamesAreRefused) {
  for (const char* name : {"Upper", "1st", "_x", "a__b", "x-y", "int", "std", "gcrt", "main", "x_"}) {
    EXPECT_THROW(parse({"m.onnx", "-o", "out", "--name", name}), CompileError) << name;
  }
}

TEST(Process, TellsStatusAndOutputInOrder) {
  const std::vector<ProcessResult> results = run_processes(
      {{"sh", "-c", "sleep 0.2; echo one"}, {"sh", "-c", "echo two >&2"}, {"sh", "-c", "kill -9 $$"}}, 3);
  EXPECT_EQ(results[0].output, "one\n");
  EXPECT_EQ(results[1].output, "two\n");
  EXPECT_EQ(results[1].status, 0);
  EXPECT_EQ(results[2].status, 128 + 9);
}

TEST(Process, NoShellReadsTheArguments) {
  EXPECT_EQ(run_process({"printf", "%s", "$(echo evil); *"}).output, "$(echo evil); *");
  EXPECT_EQ(command_text({"g++", "a b", "it's"}), "g++ 'a b' 'it'\\''s'");
}

TEST(Process, StopsAfterTheFirstFailure) {
  const std::vector<ProcessResult> results = run_processes({{"false"}, {"sh", "-c", "echo no"}}, 1);
  EXPECT_EQ(results[0].status, 1);
  EXPECT_EQ(results[1].output, "");
}

TEST(Process, AMissingProgramIsAnErrorOfFiles) {
  try {
    run_process({"/no/such/program"});
    FAIL();
  } catch (const CompileError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kInputOutput);
  }
}

TEST(CudaArch, NamesGpusOldestFirst) {
  const auto gpus = [](const char* list) {
    std::string text;
    for (const GpuArchitecture& gpu : gpus_of(cuda_architectures(list))) text += name_of(gpu) + " ";
    return text;
  };
  EXPECT_EQ(gpus("sm_90a,sm_80,compute_80,sm_87"), "sm_80 sm_87 sm_90a ");
  EXPECT_EQ(gpus("sm_90a,compute_90"), "sm_90 sm_90a ");  // PTX, which a later GPU compiles
  EXPECT_EQ(gpus("sm_90,sm_90a"), "sm_90 ");
  EXPECT_EQ(gpus("sm_100a,sm_100"), "sm_100 ");
}

TEST(CudaArch, ADeviceRunsTheLatestCodeThatIsForIt) {
  const auto code = [](int device, const char* list) {
    try {
      return code_for(device, cuda_architectures(list));
    } catch (const CompileError& error) {
      return std::string("none");
    }
  };
  EXPECT_EQ(code(90, "sm_80,sm_90a"), "sm_90a");
  EXPECT_EQ(code(90, "sm_90a,sm_90,compute_90"), "sm_90a");
  EXPECT_EQ(code(90, "sm_90,sm_90a,compute_90"), "sm_90a");
  EXPECT_EQ(code(90, "compute_90,sm_90"), "sm_90");
  EXPECT_EQ(code(90, "sm_80,sm_86"), "none");
  EXPECT_EQ(code(90, "compute_75,compute_80"), "compute_80");
  EXPECT_EQ(code(100, "sm_90a"), "none");
  EXPECT_EQ(code(100, "compute_90a"), "none");
  EXPECT_EQ(code(100, kDefaultCudaArch), "compute_90");
  EXPECT_EQ(code(86, kDefaultCudaArch), "sm_80");
  EXPECT_EQ(code(89, "sm_80,sm_86"), "sm_86");
  EXPECT_EQ(code(80, "sm_86"), "none");
  EXPECT_EQ(code(75, kDefaultCudaArch), "none");
  // Jetson.
  EXPECT_EQ(code(87, kDefaultCudaArch), "sm_87");
  EXPECT_EQ(code(87, "sm_80,sm_86"), "none");
  EXPECT_EQ(code(87, "sm_86,compute_80"), "compute_80");
  EXPECT_EQ(code(89, "sm_80,sm_87"), "sm_80");
  // Families.
  EXPECT_EQ(code(103, "sm_100f"), "sm_100f");
  EXPECT_EQ(code(103, "sm_100a"), "none");
  EXPECT_EQ(code(120, "sm_100f"), "none");
}

TEST(CudaArch, ADeviceWithoutCodeIsNamedBesideTheCode) {
  try {
    code_for(75, {"sm_80", "sm_90a"});
    FAIL();
  } catch (const CompileError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
    EXPECT_EQ(error.diagnostics().front().message,
              "the GPU here is of compute capability 7.5, which runs nothing of --arch sm_80,sm_90a");
  }
}

}  // namespace
}  // namespace gcompile
