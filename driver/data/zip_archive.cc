#include "driver/data/zip_archive.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "base/diagnostics.h"
#include "base/interrupt.h"

namespace gcompile {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kDirectoryEnd = 0x06054b50;
constexpr std::uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr std::uint32_t kDirectoryLocator64 = 0x07064b50;
constexpr std::uint16_t kExtra64 = 0x0001;
constexpr std::uint16_t kEncrypted = 0x0001;
constexpr std::uint16_t kStored = 0;
constexpr std::uint16_t kDeflated = 8;
constexpr std::uint16_t kFull16 = 0xFFFF;
constexpr std::uint32_t kFull32 = 0xFFFFFFFF;
constexpr std::uint16_t kFirstOfJanuary1980 = 0x0021;
/// Deflate cannot do better than this (zlib, "Maximum Compression Factor").
constexpr std::uint64_t kMaxDeflateRatio = 1032;

/// Little-endian numbers from a place in the archive; every read is within bounds or throws.
class Reader {
 public:
  Reader(std::string_view bytes, std::uint64_t offset) : bytes_(bytes) {
    if (offset > bytes.size()) throw std::invalid_argument("it is cut short");
    bytes_.remove_prefix(static_cast<std::size_t>(offset));
  }

  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  bool is_empty() const { return bytes_.empty(); }

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size()) throw std::invalid_argument("it is cut short");
    const std::string_view taken = bytes_.substr(0, static_cast<std::size_t>(size));
    bytes_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::uint64_t number(std::size_t size) {
    const std::string_view taken = take(size);
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }

  std::string_view bytes_;
};

struct DirectoryEntry {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t checksum = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
};

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

Directory find_directory(std::string_view archive) {
  constexpr std::size_t kEndBytes = 22;
  constexpr std::size_t kMaxComment = 0xFFFF;
  const std::size_t lowest =
      archive.size() > kEndBytes + kMaxComment ? archive.size() - kEndBytes - kMaxComment : 0;
  const std::size_t end = archive.rfind(std::string_view("PK\x05\x06", 4));
  if (end == std::string_view::npos || end < lowest) throw std::invalid_argument("it is not a zip archive");
  Reader reader(archive, end);
  if (reader.u32() != kDirectoryEnd || reader.u16() != 0 || reader.u16() != 0) {
    throw std::invalid_argument("archives in several parts are not supported");
  }
  Directory directory;
  reader.u16();
  directory.count = reader.u16();
  reader.u32();
  directory.offset = reader.u32();
  if (directory.count != kFull16 && directory.offset != kFull32) return directory;

  constexpr std::size_t kLocatorBytes = 20;
  if (end < kLocatorBytes) return directory;
  Reader locator(archive, end - kLocatorBytes);
  if (locator.u32() != kDirectoryLocator64) return directory;
  locator.u32();
  Reader end64(archive, locator.u64());
  if (end64.u32() != kDirectoryEnd64) throw std::invalid_argument("its zip64 directory is damaged");
  end64.take(8 + 2 + 2 + 4 + 4 + 8);
  directory.count = end64.u64();
  end64.u64();
  directory.offset = end64.u64();
  return directory;
}

/// Replaces the fields that did not fit by those in the zip64 extra field.
void apply_extra64(DirectoryEntry& entry, std::string_view extra) {
  Reader reader(extra, 0);
  while (!reader.is_empty()) {
    const std::uint16_t id = reader.u16();
    Reader field(reader.take(reader.u16()), 0);
    if (id != kExtra64) continue;
    for (std::uint64_t* value : {&entry.size, &entry.packed_size, &entry.offset}) {
      if (*value == kFull32) *value = field.u64();
    }
  }
}

DirectoryEntry read_entry(Reader& reader) {
  if (reader.u32() != kDirectoryEntry) throw std::invalid_argument("its directory is damaged");
  DirectoryEntry entry;
  reader.take(4);
  entry.flags = reader.u16();
  entry.method = reader.u16();
  reader.take(4);
  entry.checksum = reader.u32();
  entry.packed_size = reader.u32();
  entry.size = reader.u32();
  const std::uint16_t name_size = reader.u16();
  const std::uint16_t extra_size = reader.u16();
  const std::uint16_t comment_size = reader.u16();
  reader.take(8);
  entry.offset = reader.u32();
  entry.name = reader.take(name_size);
  apply_extra64(entry, reader.take(extra_size));
  reader.take(comment_size);
  return entry;
}

std::string inflate_bytes(std::string_view packed, std::uint64_t size) {
  if (size / kMaxDeflateRatio > packed.size()) throw std::invalid_argument("its sizes are impossible");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::invalid_argument("zlib does not start");
  std::size_t packed_done = 0;
  std::size_t done = 0;
  char overflow = 0;
  int status = Z_OK;
  // zlib counts in 32 bits, so both sides go in pieces.
  constexpr std::size_t kPiece = std::size_t{1} << 24;
  while (status == Z_OK) {
    poll_interrupt();
    const std::size_t in = std::min(packed.size() - packed_done, kPiece);
    const std::size_t out = std::min(bytes.size() - done, kPiece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + packed_done));
    stream.avail_in = static_cast<uInt>(in);
    // One byte beyond the end shows data that the directory does not admit to.
    stream.next_out = reinterpret_cast<Bytef*>(out > 0 ? bytes.data() + done : &overflow);
    stream.avail_out = static_cast<uInt>(std::max<std::size_t>(out, 1));
    status = inflate(&stream, Z_NO_FLUSH);
    packed_done += in - stream.avail_in;
    const std::size_t written = std::max<std::size_t>(out, 1) - stream.avail_out;
    if (out == 0 && written > 0) status = Z_DATA_ERROR;
    done += out > 0 ? written : 0;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || done != bytes.size() || packed_done != packed.size()) {
    throw std::invalid_argument("its compressed data is damaged");
  }
  return bytes;
}

std::uint32_t checksum_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string extract(std::string_view archive, const DirectoryEntry& entry) {
  Reader reader(archive, entry.offset);
  if (reader.u32() != kLocalHeader) throw std::invalid_argument("its directory is damaged");
  reader.take(22);
  const std::uint16_t name_size = reader.u16();
  const std::uint16_t extra_size = reader.u16();
  reader.take(name_size);
  reader.take(extra_size);
  const std::string_view packed = reader.take(entry.packed_size);
  if ((entry.flags & kEncrypted) != 0) throw std::invalid_argument("it is encrypted");
  if (entry.method != kStored && entry.method != kDeflated) {
    throw std::invalid_argument(fmt::format("its compression method {} is not supported", entry.method));
  }
  if (entry.method == kStored && entry.packed_size != entry.size)
    throw std::invalid_argument("its directory is damaged");
  std::string bytes = entry.method == kStored ? std::string(packed) : inflate_bytes(packed, entry.size);
  if (checksum_of(bytes) != entry.checksum) throw std::invalid_argument("its checksum is wrong");
  return bytes;
}

void put(std::string& bytes, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
}

/// What local header and directory entry have in common.
std::string common_fields(const ZipEntry& entry) {
  constexpr std::uint16_t kVersionNeeded = 20;
  std::string fields;
  put(fields, kVersionNeeded, 2);
  put(fields, 0, 2);  // flags
  put(fields, kStored, 2);
  put(fields, 0, 2);  // time of day
  put(fields, kFirstOfJanuary1980, 2);
  put(fields, checksum_of(entry.bytes), 4);
  put(fields, entry.bytes.size(), 4);
  put(fields, entry.bytes.size(), 4);
  put(fields, entry.name.size(), 2);
  put(fields, 0, 2);  // extra field
  return fields;
}

}  // namespace

std::vector<ZipEntry> read_zip(std::string_view archive) {
  std::vector<ZipEntry> entries;
  read_zip(archive, std::numeric_limits<std::uint64_t>::max(),
           [&](ZipEntry entry) { entries.push_back(std::move(entry)); });
  return entries;
}

void read_zip(std::string_view archive, std::uint64_t most_bytes, const std::function<void(ZipEntry)>& take) {
  const Directory directory = find_directory(archive);
  Reader reader(archive, directory.offset);
  std::vector<DirectoryEntry> entries;
  std::uint64_t packed = 0, unpacked = 0;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    const DirectoryEntry& entry = entries.emplace_back(read_entry(reader));
    // Files of an honest archive do not overlap; those of a zip bomb do.
    if (entry.packed_size > archive.size() - packed) throw std::invalid_argument("its directory is damaged");
    packed += entry.packed_size;
    if (entry.size > most_bytes - unpacked) {
      throw std::invalid_argument(fmt::format(
          "its files have more than {} bytes unpacked, although it has {}; store them without compression",
          most_bytes, archive.size()));
    }
    unpacked += entry.size;
  }
  for (const DirectoryEntry& entry : entries) {
    poll_interrupt();
    try {
      take({entry.name, extract(archive, entry)});
    } catch (const std::invalid_argument& problem) {
      throw std::invalid_argument(fmt::format("in '{}': {}", printable(entry.name), problem.what()));
    }
  }
}

std::string write_zip(const std::vector<ZipEntry>& entries) {
  std::string archive;
  std::string directory;
  for (const ZipEntry& entry : entries) {
    if (archive.size() + entry.bytes.size() + entry.name.size() >= kFull32 || entry.name.size() >= kFull16) {
      throw std::invalid_argument("it would be larger than a zip archive of 32 bits can be");
    }
    const std::string fields = common_fields(entry);
    put(directory, kDirectoryEntry, 4);
    put(directory, 20, 2);  // version made by
    directory += fields;
    put(directory, 0, 2 + 2 + 2);  // comment, disk, internal attributes
    put(directory, 0, 4);          // external attributes
    put(directory, archive.size(), 4);
    directory += entry.name;
    put(archive, kLocalHeader, 4);
    archive += fields + entry.name + entry.bytes;
  }
  if (entries.size() >= kFull16 || archive.size() + directory.size() >= kFull32) {
    throw std::invalid_argument("it would be larger than a zip archive of 32 bits can be");
  }
  const std::size_t offset = archive.size();
  archive += directory;
  put(archive, kDirectoryEnd, 4);
  put(archive, 0, 2 + 2);  // disks
  put(archive, entries.size(), 2);
  put(archive, entries.size(), 2);
  put(archive, directory.size(), 4);
  put(archive, offset, 4);
  put(archive, 0, 2);  // comment
  return archive;
}

}  // namespace gcompile
