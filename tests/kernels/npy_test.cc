// .npy files: round trips of every type, numpy's own spelling, and files that are wrong in every way.
#include "gcrt/npy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace GCRT_NAMESPACE {
namespace {

std::string temporary_path() {
  return ::testing::TempDir() + "npy_test_" +
         ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".npy";
}

void write_file(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  ASSERT_EQ(std::fclose(file), 0);
}

std::string read_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  std::string bytes;
  for (int c; (c = std::fgetc(file)) != EOF;) bytes.push_back(static_cast<char>(c));
  std::fclose(file);
  return bytes;
}

// A file of the given version around a header's text, padded as numpy pads it.
std::string npy_file(std::string header, const std::string& data, int version = 1) {
  header.push_back('\n');
  std::string bytes("\x93NUMPY", 6);
  bytes.push_back(static_cast<char>(version));
  bytes.push_back('\0');
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    bytes.push_back(static_cast<char>((header.size() >> (8 * i)) & 255));
  return bytes + header + data;
}

std::string error_of(const std::string& bytes) {
  const std::string path = temporary_path();
  write_file(path, bytes);
  NpyArray array;
  const char* error = read_npy(path.c_str(), &array);
  EXPECT_EQ(error == nullptr, array.data != nullptr || (error == nullptr && array.bytes == 0));
  if (error != nullptr) {
    EXPECT_EQ(array.data, nullptr);
  }
  free_npy(&array);
  std::remove(path.c_str());
  return error == nullptr ? "" : error;
}

TEST(Npy, EveryTypeAndRankReturns) {
  const std::string path = temporary_path();
  const std::vector<std::vector<std::int64_t>> shapes = {
      {}, {1}, {5}, {0}, {2, 3}, {2, 0, 3}, {1, 2, 3, 4, 5}};
  for (const NpyTypeName& name : kNpyTypes) {
    for (const auto& shape : shapes) {
      std::size_t bytes = name.bytes;
      for (std::int64_t d : shape) bytes *= static_cast<std::size_t>(d);
      std::vector<unsigned char> data(bytes);
      for (std::size_t i = 0; i < bytes; ++i)
        data[i] = static_cast<unsigned char>(name.type == NpyType::b1 ? i % 2 : i * 7);
      ASSERT_EQ(write_npy(path.c_str(), name.type, shape.data(), static_cast<int>(shape.size()), data.data()),
                nullptr);
      EXPECT_EQ((read_file(path).size() - bytes) % 64, 0u);
      NpyArray array;
      ASSERT_EQ(read_npy(path.c_str(), &array), nullptr) << name.description;
      EXPECT_EQ(array.type, name.type);
      ASSERT_EQ(array.rank, static_cast<int>(shape.size()));
      for (std::size_t i = 0; i < shape.size(); ++i) EXPECT_EQ(array.shape[i], shape[i]);
      ASSERT_EQ(array.bytes, bytes);
      if (bytes != 0) {
        EXPECT_EQ(std::memcmp(array.data, data.data(), bytes), 0);
      }
      free_npy(&array);
    }
  }
  std::remove(path.c_str());
}

// The bytes numpy.save writes for numpy.arange(3, dtype=int16) and for a scalar.
TEST(Npy, WritesWhatNumpyWrites) {
  const std::string path = temporary_path();
  const std::int64_t shape[] = {3};
  const std::int16_t values[] = {0, 1, 2};
  ASSERT_EQ(write_npy(path.c_str(), NpyType::i2, shape, 1, values), nullptr);
  std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }";
  header.append(128 - 10 - 1 - header.size(), ' ');
  EXPECT_EQ(read_file(path), npy_file(header, std::string("\0\0\1\0\2\0", 6)));
  std::remove(path.c_str());
}

TEST(Npy, ReadsOtherSpellings) {
  EXPECT_EQ(error_of(npy_file("{\"shape\":(2,1),\"fortran_order\":False,\"descr\":\"<f2\"}", "abcd")), "");
  EXPECT_EQ(error_of(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "abcd", 2)), "");
  EXPECT_EQ(error_of(npy_file("{'descr': '<u1', 'fortran_order': False, 'shape': (), }", "a")), "");
  EXPECT_EQ(error_of(npy_file("{'descr': '|b1', 'fortran_order': False, 'shape': (0, 4), }", "")), "");
}

TEST(Npy, BooleansBecomeZeroOrOne) {
  const std::string path = temporary_path();
  write_file(path,
             npy_file("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", std::string("\0\1\7", 3)));
  NpyArray array;
  ASSERT_EQ(read_npy(path.c_str(), &array), nullptr);
  EXPECT_EQ(std::memcmp(array.data, "\0\1\1", 3), 0);
  free_npy(&array);
  std::remove(path.c_str());
}

TEST(Npy, RefusesWrongFiles) {
  const std::string good = npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcdefgh");
  EXPECT_EQ(error_of(good), "");
  EXPECT_EQ(error_of(good + "x"), "more elements than the shape says");
  EXPECT_EQ(error_of(good.substr(0, good.size() - 1)), "fewer elements than the shape says");
  EXPECT_EQ(error_of("PK\3\4 a zip file of numpy"), "not an .npy file");
  EXPECT_EQ(error_of(npy_file("{}", "", 3)), "unsupported .npy version");
  EXPECT_EQ(error_of(npy_file("{}", "")), "header lacks descr, fortran_order or shape");
  EXPECT_EQ(error_of(npy_file("[]", "")), "header is not a dictionary");
  const auto with = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return error_of(npy_file(
        "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }", "abcd"));
  };
  EXPECT_EQ(with("'<f4'", "False", "(1,)"), "");
  EXPECT_EQ(with("'>f4'", "False", "(1,)"), "big-endian elements are not supported");
  EXPECT_EQ(with("'<c8'", "False", "(1,)"), "unsupported element type");
  EXPECT_EQ(with("'|O'", "False", "(1,)"), "unsupported element type");
  EXPECT_EQ(with("''", "False", "(1,)"), "unsupported element type");
  EXPECT_EQ(with("[('a', '<f4')]", "False", "(1,)"), "unsupported element type (structured?)");
  EXPECT_EQ(with("'<f4'", "True", "(1,)"), "Fortran order is not supported");
  EXPECT_EQ(with("'<f4'", "Maybe", "(1,)"), "malformed header");
  EXPECT_EQ(with("'<f4'", "False", "(-1,)"), "malformed shape");
  EXPECT_EQ(with("'<f4'", "False", "(1 1)"), "malformed shape");
  EXPECT_EQ(with("'<f4'", "False", "1"), "malformed shape");
  EXPECT_EQ(with("'<f4'", "False", "(99999999999999999999,)"), "dimension out of range");
  EXPECT_EQ(with("'<f4'", "False", "(4294967296, 4294967296, 4)"), "array too large");
  EXPECT_EQ(with("'<f4'", "False", "(1000000000000,)"), "fewer elements than the shape says");
  std::string deep = "(";
  for (int i = 0; i < 33; ++i) deep += "1,";
  EXPECT_EQ(with("'<f4'", "False", deep + ")"), "too many dimensions");
  EXPECT_EQ(error_of(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", "abcd")),
            "text after the header's dictionary");
  NpyArray array;
  EXPECT_STREQ(read_npy("/nonexistent/file.npy", &array), "cannot open file");
  EXPECT_STREQ(write_npy("/nonexistent/file.npy", NpyType::f4, nullptr, 0, "abcd"), "cannot create file");
}

// Every prefix and every single-byte change of a good file is read or refused, never worse.
TEST(Npy, SurvivesTruncationAndCorruption) {
  const std::string good = npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcdefgh");
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(error_of(good.substr(0, size)), "") << size;
  for (std::size_t at = 0; at < good.size() - 8; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = good;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      error_of(changed);
    }
  }
}

}  // namespace
}  // namespace GCRT_NAMESPACE
