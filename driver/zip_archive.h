#pragma once

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

/// An archive of stored files, dated 1980-01-01, so that the same files give the same bytes. Throws
/// std::invalid_argument when it would reach 4 GiB or 65,535 files.
std::string write_zip(const std::vector<ZipEntry>& entries);

}  // namespace gcompile
