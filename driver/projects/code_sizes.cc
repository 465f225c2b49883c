#include "driver/projects/code_sizes.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>

namespace gcompile {
namespace {

// Constants of elf.h, which not every system has.
constexpr std::uint32_t kSymbolTable = 2, kNoBits = 8, kNote = 7;
constexpr std::uint64_t kWritable = 1, kAllocated = 2, kExecuted = 4;
constexpr unsigned kObject = 1, kFunction = 2, kWeak = 2;

[[noreturn]] void damaged(const char* what) { throw std::invalid_argument(what); }

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

/// One object file.
class Elf {
 public:
  explicit Elf(std::string_view bytes) : bytes_(bytes) {
    if (bytes.size() < 20 || bytes.substr(0, 4) != "\177ELF") damaged("it is no ELF file");
    is_wide_ = bytes[4] == 2;
    if (bytes[5] != 1) damaged("it is for a big-endian machine");
    const std::uint64_t table = is_wide_ ? number(40, 8) : number(32, 4);
    entry_bytes_ = number(is_wide_ ? 58 : 46, 2);
    const std::uint64_t count = number(is_wide_ ? 60 : 48, 2);
    for (std::uint64_t i = 0; i < count; ++i) sections_.push_back(section_at(table + i * entry_bytes_));
  }

  void add_to(CodeSizes& sizes, std::map<std::string, CodeSymbol>& symbols) const {
    for (const Section& section : sections_) {
      if (section.type == kSymbolTable) add_symbols(section, symbols);
      if ((section.flags & kAllocated) == 0 || section.type == kNote) continue;
      const auto bytes = static_cast<std::int64_t>(section.size);
      if ((section.flags & kExecuted) != 0) {
        sizes.code += bytes;
      } else if (section.type == kNoBits) {
        sizes.zeros += bytes;
      } else if ((section.flags & kWritable) != 0) {
        sizes.variables += bytes;
      } else if (!is_unwinding(section)) {
        sizes.constants += bytes;
      }
      if (name_of(section).substr(0, 10) == ".nv_fatbin") sizes.device += bytes;
    }
  }

 private:
  struct Section {
    std::uint64_t name = 0, type = 0, flags = 0, offset = 0, size = 0, link = 0;
  };

  std::uint64_t number(std::uint64_t at, std::size_t width) const {
    if (at > bytes_.size() || bytes_.size() - at < width) damaged("it is cut off");
    std::uint64_t value = 0;
    for (std::size_t i = width; i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(bytes_[static_cast<std::size_t>(at) + i]);
    }
    return value;
  }

  Section section_at(std::uint64_t at) const {
    if (is_wide_) {
      return {number(at, 4),      number(at + 4, 4),  number(at + 8, 8),
              number(at + 24, 8), number(at + 32, 8), number(at + 40, 4)};
    }
    return {number(at, 4),      number(at + 4, 4),  number(at + 8, 4),
            number(at + 16, 4), number(at + 20, 4), number(at + 24, 4)};
  }

  std::string text_at(std::uint64_t at) const {
    if (at >= bytes_.size()) damaged("a name lies outside of it");
    const std::string_view rest = bytes_.substr(static_cast<std::size_t>(at));
    return std::string(rest.substr(0, rest.find('\0')));
  }

  std::string name_of(const Section& section) const {
    const std::uint64_t names = number(is_wide_ ? 62 : 50, 2);
    if (names >= sections_.size()) return "";
    return text_at(sections_[static_cast<std::size_t>(names)].offset + section.name);
  }

  bool is_unwinding(const Section& section) const {
    const std::string name = name_of(section);
    return name.rfind(".eh_frame", 0) == 0 || name.rfind(".ARM.ex", 0) == 0;
  }

  void add_symbols(const Section& table, std::map<std::string, CodeSymbol>& symbols) const {
    const std::uint64_t entry = is_wide_ ? 24 : 16;
    if (table.link >= sections_.size()) damaged("its symbols have no names");
    const std::uint64_t names = sections_[static_cast<std::size_t>(table.link)].offset;
    for (std::uint64_t at = table.offset; at + entry <= table.offset + table.size; at += entry) {
      const std::uint64_t info = number(at + (is_wide_ ? 4 : 12), 1);
      const std::uint64_t place = number(at + (is_wide_ ? 6 : 14), 2);
      const std::uint64_t size = number(at + (is_wide_ ? 16 : 8), is_wide_ ? 8 : 4);
      const unsigned type = info & 15;
      if (size == 0 || place == 0 || place >= sections_.size()) continue;
      if (type != kFunction && type != kObject) continue;
      const Section& section = sections_[static_cast<std::size_t>(place)];
      if (type == kObject && ((section.flags & kAllocated) == 0 || section.type == kNoBits)) continue;
      const std::string mangled = text_at(names + number(at, 4));
      CodeSymbol symbol{demangled(mangled.substr(0, mangled.find('.'))), static_cast<std::int64_t>(size),
                        type == kFunction};
      // A linker keeps the first of equal weak ones; local ones of one name are different functions.
      const bool is_shared = (info >> 4) == kWeak;
      const std::string key = is_shared ? mangled : mangled + " " + std::to_string(symbols.size());
      symbols.try_emplace(key, std::move(symbol));
    }
  }

  std::string_view bytes_;
  bool is_wide_ = false;
  std::uint64_t entry_bytes_ = 0;
  std::vector<Section> sections_;
};

/// The files of an archive, without the tables of its symbols and long names.
std::vector<std::string_view> members_of(std::string_view archive) {
  constexpr std::size_t kHeader = 60;
  std::vector<std::string_view> members;
  for (std::size_t at = 8; at + kHeader <= archive.size();) {
    const std::string_view header = archive.substr(at, kHeader);
    const std::size_t size = std::strtoull(std::string(header.substr(48, 10)).c_str(), nullptr, 10);
    if (size > archive.size() - at - kHeader) damaged("it is cut off");
    if (header.substr(0, 2) != "/ " && header.substr(0, 2) != "//") {
      members.push_back(archive.substr(at + kHeader, size));
    }
    at += kHeader + size + size % 2;
  }
  return members;
}

}  // namespace

CodeSizes read_code_sizes(std::string_view bytes) {
  constexpr std::string_view kArchive = "!<arch>\n";
  CodeSizes sizes;
  std::map<std::string, CodeSymbol> symbols;
  if (bytes.substr(0, kArchive.size()) == kArchive) {
    for (const std::string_view member : members_of(bytes)) Elf(member).add_to(sizes, symbols);
  } else {
    Elf(bytes).add_to(sizes, symbols);
  }
  for (auto& [key, symbol] : symbols) sizes.symbols.push_back(std::move(symbol));
  std::stable_sort(sizes.symbols.begin(), sizes.symbols.end(),
                   [](const CodeSymbol& a, const CodeSymbol& b) { return a.name < b.name; });
  return sizes;
}

}  // namespace gcompile
