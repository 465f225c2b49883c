#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gcompile {

struct ZipEntry {
  std::string name;
  std::string bytes;
};

/// The files in a zip archive (PKWARE APPNOTE 6.3, zip64 included), in the order of its directory: stored or
/// deflated, their checksums verified. Throws std::invalid_argument with the reason.
std::vector<ZipEntry> read_zip(std::string_view archive);
/// The same, one file at a time. An archive whose files have more than `most_bytes` together is refused
/// before any is unpacked: deflated zeros are a thousandth of what they stand for.
void read_zip(std::string_view archive, std::uint64_t most_bytes, const std::function<void(ZipEntry)>& take);

/// An archive of stored files, dated 1980-01-01, so that the same files give the same bytes. Throws
/// std::invalid_argument when it would reach 4 GiB or 65,535 files.
std::string write_zip(const std::vector<ZipEntry>& entries);

}  // namespace gcompile
