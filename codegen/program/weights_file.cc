#include "codegen/program/weights_file.h"

#include <algorithm>
#include <cstring>

#include "base/diagnostics.h"

namespace gcompile {
namespace {

constexpr std::string_view kMagic = "GCWEIGHT";
constexpr std::uint64_t kLayoutVersion = 2;

std::uint64_t little_endian_word(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

void put_word(char* to, std::uint64_t word) {
  for (std::size_t i = 0; i < 8; ++i) to[i] = static_cast<char>(word >> (8 * i) & 255);
}

}  // namespace

std::uint64_t weights_checksum(std::string_view payload) {
  GC_CHECK(payload.size() % 8 == 0);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < payload.size(); i += 8) {
    hash = (hash ^ little_endian_word(payload.data() + i)) * 0x100000001b3u;
  }
  return hash;
}

void WeightsFile::name_structure(std::uint64_t structure) const {
  if (header != nullptr) put_word(header + 32, structure);
}

WeightsFile weights_file(ZeroedMemory bytes) {
  GC_CHECK(bytes.size() >= kWeightsHeaderBytes);
  const std::string_view payload = bytes.text().substr(kWeightsHeaderBytes);
  WeightsFile file;
  file.checksum = weights_checksum(payload);
  const std::uint64_t payload_bytes = payload.size();
  std::fill_n(bytes.data(), kWeightsHeaderBytes, '\0');
  std::copy(kMagic.begin(), kMagic.end(), bytes.data());
  put_word(bytes.data() + 8, kLayoutVersion);
  put_word(bytes.data() + 16, payload_bytes);
  put_word(bytes.data() + 24, file.checksum);
  file.header = bytes.data();
  file.bytes = SharedBytes(std::move(bytes));
  return file;
}

}  // namespace gcompile
