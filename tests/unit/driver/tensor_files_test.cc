#include "driver/data/tensor_files.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>

#include "base/diagnostics.h"
#include "driver/data/npy.h"
#include "driver/data/zip_archive.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gcompile {
namespace {

namespace fs = std::filesystem;
using ir::ElementType;
using testing::HasSubstr;

// Written by numpy 1.24: save(asfortranarray(arange(6, dtype='>f4').reshape(2, 3)));
// savez_compressed(x=arange(40, dtype=int32).reshape(2, 20), flag=array(True));
// savez(a=array([1.5, -2], float16), b=zeros((0, 3), int64)).
constexpr const char* kBigEndianFortran =
    "934e554d5059010076007b276465736372273a20273e6634272c2027666f727472616e5f6f72646572273a2054727565"
    "2c20277368617065273a2028322c2033292c207d20202020202020202020202020202020202020202020202020202020"
    "202020202020202020202020202020202020202020202020202020202020200a00000000404000003f80000040800000"
    "4000000040a00000";

constexpr const char* kCompressedArchive =
    "504b030414000000080000002100dc2778e4950000002001000005001400782e6e707901001000200100000000000095"
    "000000000000009dcab90ac2400084e1c4fbbeef733d572185042bb1b6536c2cac2498150531b2111bf1297c617f5fc1"
    "81af98613e9bdd7abb378da7f192aef28f5a2e845c5ee6d212f2e4e987766e074fbbeab7af9cabafd8fdb37357f4896d"
    "097b36b5c45bfc9b84414c04104408614410450c71fc8e49a490460659e4904701459450460555d45047034db4d04607"
    "5d08f4d0c700438c3086c417504b030414000000080000002100822df8d3430000008100000008001400666c61672e6e"
    "707901001000810000000000000043000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a05e9364a8ae"
    "a3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a9a3a0ab50a14012e4600504b0102140314"
    "000000080000002100dc2778e49500000020010000050000000000000000000000800100000000782e6e7079504b0102"
    "140314000000080000002100822df8d343000000810000000800000000000000000000008001cc000000666c61672e6e"
    "7079504b0506000000000200020069000000490100000000";

constexpr const char* kStoredArchive =
    "504b030414000000000000002100b3c1820c840000008400000005001400612e6e707901001000840000000000000084"
    "00000000000000934e554d5059010076007b276465736372273a20273c6632272c2027666f727472616e5f6f72646572"
    "273a2046616c73652c20277368617065273a2028322c292c207d20202020202020202020202020202020202020202020"
    "20202020202020202020202020202020202020202020202020202020202020202020202020200a003e00c0504b030414"
    "000000000000002100ae265c43800000008000000005001400622e6e7079010010008000000000000000800000000000"
    "0000934e554d5059010076007b276465736372273a20273c6938272c2027666f727472616e5f6f72646572273a204661"
    "6c73652c20277368617065273a2028302c2033292c207d20202020202020202020202020202020202020202020202020"
    "2020202020202020202020202020202020202020202020202020202020202020200a504b010214031400000000000000"
    "2100b3c1820c8400000084000000050000000000000000000000800100000000612e6e7079504b010214031400000000"
    "0000002100ae265c4380000000800000000500000000000000000000008001bb000000622e6e7079504b050600000000"
    "0200020066000000720100000000";

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

/// A .npy file with any header and data.
std::string npy_of(std::string header, const std::string& data, char version = 1) {
  header += '\n';
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  for (std::size_t i = 0; i < length_bytes; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return bytes + header + data;
}

std::string npy_error(const std::string& bytes) {
  try {
    parse_npy(bytes);
    return "no error";
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
}

std::string zip_error(const std::string& bytes) {
  try {
    read_zip(bytes);
    return "no error";
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
}

ir::Tensor random_tensor(ElementType type, ir::Shape shape) {
  const auto size = static_cast<std::size_t>(ir::TensorType{type, shape}.bytes());
  std::vector<std::byte> bytes(size);
  std::mt19937 random(static_cast<unsigned>(type) + 1);
  for (std::byte& byte : bytes)
    byte = static_cast<std::byte>(type == ElementType::kBool ? random() % 2 : random() % 256);
  return ir::Tensor(ir::TensorType{type, std::move(shape)}, std::move(bytes));
}

TEST(Npy, WritesWhatNumpyWrites) {
  const std::string archive = from_hex(kStoredArchive);
  const ir::Tensor halves(ir::TensorType{ElementType::kFloat16, {2}},
                          {std::byte{0x00}, std::byte{0x3E}, std::byte{0x00}, std::byte{0xC0}});
  EXPECT_NE(archive.find(to_npy(halves)), std::string::npos);
  EXPECT_NE(archive.find(to_npy(ir::Tensor(ir::TensorType{ElementType::kInt64, {0, 3}}))), std::string::npos);
  const std::string text = to_npy(ir::Tensor(ir::TensorType{ElementType::kInt8, {}}));
  EXPECT_NE(text.find("{'descr': '|i1', 'fortran_order': False, 'shape': (), }"), std::string::npos);
  EXPECT_EQ(text.size(), 128u + 1u);
}

TEST(Npy, ReadsBackEveryType) {
  for (int type = 0; type < ir::kElementTypeCount; ++type) {
    for (const ir::Shape& shape : {ir::Shape{}, ir::Shape{5}, ir::Shape{2, 3, 4}, ir::Shape{3, 0, 2}}) {
      const ir::Tensor tensor = random_tensor(static_cast<ElementType>(type), shape);
      const ir::Tensor read = parse_npy(to_npy(tensor));
      EXPECT_EQ(read.shape(), shape);
      if (read.element() == tensor.element()) {
        EXPECT_TRUE(read.identical(tensor)) << name_of(tensor.element());
        continue;
      }
      // A type that numpy lacks: the same values in a wider one, or codes.
      const ir::Tensor back = as_written(read, tensor.element());
      EXPECT_EQ(back.element(), tensor.element());
      for (std::int64_t i = 0; i < tensor.count(); ++i) {
        const double wanted = tensor.real_at(i), found = back.real_at(i);
        EXPECT_TRUE(found == wanted || (wanted != wanted && found != found))
            << name_of(tensor.element()) << " " << i;
      }
    }
  }
}

TEST(Npy, WidensToTheseTypes) {
  auto written = [](ElementType type) {
    return parse_npy(to_npy(ir::Tensor(ir::TensorType{type, {1}}))).element();
  };
  EXPECT_EQ(written(ElementType::kBFloat16), ElementType::kFloat32);
  EXPECT_EQ(written(ElementType::kFloat8E5M2), ElementType::kUInt8);
  EXPECT_EQ(written(ElementType::kFloat4E2M1), ElementType::kUInt8);
  EXPECT_EQ(written(ElementType::kInt4), ElementType::kInt8);
  EXPECT_EQ(written(ElementType::kUInt4), ElementType::kUInt8);
}

TEST(Npy, ReadsBigEndianAndFortranOrder) {
  const ir::Tensor tensor = parse_npy(from_hex(kBigEndianFortran));
  EXPECT_EQ(tensor.element(), ElementType::kFloat32);
  EXPECT_EQ(tensor.shape(), (ir::Shape{2, 3}));
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(tensor.real_at(i), static_cast<double>(i));
}

TEST(Npy, FortranOrderOfThreeAxes) {
  // Element (i, j, k) of shape (2, 3, 4) lies at i + 2 j + 6 k.
  std::string data;
  for (int value = 0; value < 24; ++value) data += static_cast<char>(value);
  const ir::Tensor tensor =
      parse_npy(npy_of("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }", data));
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t k = 0; k < 4; ++k) EXPECT_EQ(tensor.int_at((i * 3 + j) * 4 + k), i + 2 * j + 6 * k);
    }
  }
}

TEST(Npy, AcceptsTheHeadersOfOtherWriters) {
  for (const char version : {'\1', '\2', '\3'}) {
    EXPECT_EQ(
        parse_npy(npy_of("{'descr': '<i2', 'fortran_order': False, 'shape': (1,)}", "ab", version)).count(),
        1);
  }
  EXPECT_EQ(parse_npy(npy_of("{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"=i2\"}", "abcd")).count(),
            2);
  const ir::Tensor flag =
      parse_npy(npy_of("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", std::string("\2\0", 2)));
  EXPECT_EQ(flag.ints(), (std::vector<std::int64_t>{1, 0}));
}

TEST(Npy, RefusesDamage) {
  const auto with = [](const std::string& descr, const std::string& shape, const std::string& data) {
    return npy_of("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }", data);
  };
  EXPECT_THAT(npy_error(""), HasSubstr("not a .npy file"));
  EXPECT_THAT(npy_error("PK\3\4 something else"), HasSubstr("not a .npy file"));
  EXPECT_THAT(npy_error(npy_of("{}", "", 4)), HasSubstr("version 4 is not known"));
  EXPECT_THAT(npy_error(with("'<f4'", "(2,)", "1234567")), HasSubstr("cut short"));
  EXPECT_THAT(npy_error(with("'<f4'", "(2,)", "123456789")), HasSubstr("bytes after the end"));
  EXPECT_THAT(npy_error(with("'<f4'", "(4294967296, 4294967296)", "1234")), HasSubstr("cut short"));
  EXPECT_THAT(npy_error(with("'<c8'", "(1,)", "12345678")), HasSubstr("element type '<c8' is not supported"));
  EXPECT_THAT(npy_error(with("'|O'", "(1,)", "12345678")), HasSubstr("'|O' is not supported"));
  EXPECT_THAT(npy_error(with("''", "(1,)", "1")), HasSubstr("is not supported"));
  EXPECT_THAT(npy_error(with("[('a', '<f4')]", "(1,)", "1234")), HasSubstr("arrays of records"));
  for (const char* header :
       {"", "{", "{}", "[]", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': ''}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999,)}"}) {
    EXPECT_THAT(npy_error(npy_of(header, "1234")), HasSubstr("header is malformed")) << header;
  }
  const std::string whole = from_hex(kBigEndianFortran);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(npy_error(whole.substr(0, size)), "no error") << size;
}

TEST(Zip, ReadsWhatNumpyWrites) {
  const auto entries = read_zip(from_hex(kCompressedArchive));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "x.npy");
  const ir::Tensor x = parse_npy(entries[0].bytes);
  EXPECT_EQ(x.shape(), (ir::Shape{2, 20}));
  for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(x.int_at(i), i);
  EXPECT_EQ(parse_npy(entries[1].bytes).ints(), std::vector<std::int64_t>{1});
  EXPECT_EQ(read_zip(from_hex(kStoredArchive)).size(), 2u);
}

TEST(Zip, RoundTripsAndIsDeterministic) {
  const std::vector<ZipEntry> entries = {
      {"a", ""}, {"b/c", std::string(70'000, 'x')}, {"d", std::string("\0\1PK\5\6", 6)}};
  const std::string archive = write_zip(entries);
  EXPECT_EQ(archive, write_zip(entries));
  const auto read = read_zip(archive);
  ASSERT_EQ(read.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read[i].name, entries[i].name);
    EXPECT_EQ(read[i].bytes, entries[i].bytes);
  }
  EXPECT_TRUE(read_zip(write_zip({})).empty());
}

TEST(Zip, RefusesDamage) {
  EXPECT_THAT(zip_error(""), HasSubstr("not a zip archive"));
  EXPECT_THAT(zip_error("\x93NUMPY"), HasSubstr("not a zip archive"));
  std::string archive = write_zip({{"name", "contents"}});
  std::string changed = archive;
  changed[archive.find("contents")] = 'C';
  EXPECT_THAT(zip_error(changed), HasSubstr("in 'name': its checksum is wrong"));
  changed = archive;
  changed[archive.rfind(std::string("PK\1\2", 4)) + 10] = 12;
  EXPECT_THAT(zip_error(changed), HasSubstr("compression method 12 is not supported"));
  changed = archive;
  changed[archive.rfind(std::string("PK\1\2", 4)) + 8] = 1;
  EXPECT_THAT(zip_error(changed), HasSubstr("encrypted"));
}

TEST(Zip, RefusesBombs) {
  // A size far beyond what the packed bytes can give must be refused before memory is taken for it.
  std::string archive = from_hex(kCompressedArchive);
  const std::size_t size_field = archive.find(std::string("PK\1\2", 4)) + 24;
  const std::uint32_t huge = 0xFFFFFFF0;
  std::memcpy(&archive[size_field], &huge, sizeof huge);
  EXPECT_THAT(zip_error(archive), HasSubstr("its sizes are impossible"));
  // Many directory entries for the same bytes.
  const std::string once = write_zip({{"n", std::string(1000, 'x')}});
  const std::size_t entry = once.find(std::string("PK\1\2", 4));
  const std::size_t end = once.rfind(std::string("PK\5\6", 4));
  std::string many = once.substr(0, entry);
  for (int i = 0; i < 100; ++i) many += once.substr(entry, end - entry);
  many += once.substr(end);
  many[many.size() - 12] = 100;
  EXPECT_THAT(zip_error(many), HasSubstr("directory is damaged"));
}

TEST(Zip, ReadsZip64) {
  // The archive that a writer makes who puts all sizes and places into zip64 fields.
  std::string archive = write_zip({{"n", "hello"}});
  const std::size_t entry = archive.find(std::string("PK\1\2", 4));
  const auto number = [](std::uint64_t value) {
    return std::string(reinterpret_cast<const char*>(&value), 8);
  };
  std::string directory = archive.substr(entry, 47);
  directory.replace(20, 8, std::string(8, '\xFF'));
  directory.replace(42, 4, std::string(4, '\xFF'));
  directory[30] = 28;
  directory += std::string("\1\0\x18\0", 4) + number(5) + number(5) + number(0);
  const std::size_t end64 = entry + directory.size();
  const std::string end = std::string("PK\6\6", 4) + number(44) + std::string(12, '\0') + number(1) +
                          number(1) + number(directory.size()) + number(entry);
  const std::string locator =
      std::string("PK\6\7", 4) + std::string(4, '\0') + number(end64) + std::string("\1\0\0\0", 4);
  std::string last = archive.substr(archive.rfind(std::string("PK\5\6", 4)));
  last.replace(8, 12, std::string(12, '\xFF'));
  const auto entries = read_zip(archive.substr(0, entry) + directory + end + locator + last);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].bytes, "hello");
}

TEST(Zip, NeverCrashesOnDamage) {
  std::mt19937 random(3);
  int intact = 0;
  for (const char* digits : {kCompressedArchive, kStoredArchive}) {
    const std::string whole = from_hex(digits);
    for (int round = 0; round < 3000; ++round) {
      std::string damaged = whole;
      for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      if (round % 4 == 0) damaged.resize(random() % damaged.size());
      try {
        for (const ZipEntry& entry : read_zip(damaged)) parse_npy(entry.bytes);
        ++intact;
      } catch (const std::invalid_argument&) {
      }
    }
  }
  EXPECT_GT(intact, 100);
  EXPECT_LT(intact, 3000);
}

class TensorFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/tensors_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string error_of(const std::function<void()>& work) {
    try {
      work();
      return "no error";
    } catch (const CompileError& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kInputOutput);
      return error.what();
    }
  }

  fs::path folder_;
};

TEST(ZipArchive, MoreThanMayBeUnpackedIsRefusedBeforeAnyIs) {
  const std::string archive = write_zip({{"a", std::string(60, 'a')}, {"b", std::string(40, 'b')}});
  int taken = 0;
  const auto count = [&](const ZipEntry&) { ++taken; };
  read_zip(archive, 100, count);
  EXPECT_EQ(taken, 2);
  taken = 0;
  try {
    read_zip(archive, 99, count);
    ADD_FAILURE() << "100 bytes are unpacked where 99 may be";
  } catch (const std::invalid_argument& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("more than 99 bytes unpacked"));
  }
  EXPECT_EQ(taken, 0);
}

TEST_F(TensorFiles, RoundTrip) {
  const ir::Tensor tensor = random_tensor(ElementType::kFloat32, {3, 500, 2000});
  write_npy(folder_ / "x.npy", tensor);
  EXPECT_TRUE(read_npy(folder_ / "x.npy").identical(tensor));
  const ir::Tensor small = random_tensor(ElementType::kInt64, {7});
  write_npz(folder_ / "x.npz", {{"input", tensor}, {"a/b", small}});
  const auto read = read_npz(folder_ / "x.npz");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].name, "input");
  EXPECT_TRUE(read[0].tensor.identical(tensor));
  EXPECT_EQ(read[1].name, "a/b");
  EXPECT_TRUE(read[1].tensor.identical(small));
}

TEST_F(TensorFiles, ErrorsNameTheFileAndTheReason) {
  const std::string path = folder_ / "x";
  EXPECT_THAT(error_of([&] { read_npy(path); }), HasSubstr("x': No such file or directory"));
  EXPECT_THAT(error_of([&] { read_npy(folder_); }), HasSubstr("it is a directory"));
  EXPECT_THAT(error_of([&] {
                write_npy(folder_ / "no/such", ir::Tensor::of_ints(std::vector<std::int64_t>{1}, {1}));
              }),
              HasSubstr("cannot write"));
  EXPECT_THAT(
      error_of([&] { write_npy("/dev/full", ir::Tensor::of_ints(std::vector<std::int64_t>{1}, {1})); }),
      HasSubstr("cannot write '/dev/full': No space left on device"));
  std::ofstream(path) << "text";
  EXPECT_THAT(error_of([&] { read_npy(path); }), HasSubstr("x': it is not a .npy file"));
  EXPECT_THAT(error_of([&] { read_npz(path); }), HasSubstr("x': it is not a zip archive"));
  std::ofstream(path, std::ios::binary) << write_zip({{"readme.txt", "text"}});
  EXPECT_THAT(error_of([&] { read_npz(path); }), HasSubstr("in 'readme.txt': it is not an array"));
  std::ofstream(path, std::ios::binary) << write_zip({{"a.npy", "text"}});
  EXPECT_THAT(error_of([&] { read_npz(path); }), HasSubstr("in 'a.npy': it is not a .npy file"));
  const std::string array = to_npy(ir::Tensor(ir::TensorType{ElementType::kInt8, {}}));
  std::ofstream(path, std::ios::binary) << write_zip({{"a.npy", array}, {"a.npy", array}});
  EXPECT_THAT(error_of([&] { read_npz(path); }), HasSubstr("in 'a.npy': its name is in it twice"));
  EXPECT_THAT(error_of([&] {
                write_npz(path, {{"a", ir::Tensor()}, {"a", ir::Tensor()}});
              }),
              HasSubstr("twice"));
}

}  // namespace
}  // namespace gcompile
