#include "frontend/files/raw_data.h"

#include <cstring>

#include "base/diagnostics.h"

namespace gcompile::frontend {
namespace {

/// Smaller data is copied: the note and the views cost something too.
constexpr std::size_t kLeftBytes = 4096;
constexpr unsigned kLengthDelimited = 2;  // protobuf.dev/programming-guides/encoding

/// The messages on the way to raw data.
enum class Kind { kNone, kModel, kGraph, kNode, kAttribute, kTensor, kRawData };

/// Field numbers of onnx.proto.
Kind field_of(Kind message, std::uint64_t number) {
  switch (message) {
    case Kind::kModel:
      return number == 7 ? Kind::kGraph : Kind::kNone;
    case Kind::kGraph:
      return number == 1 ? Kind::kNode : number == 5 ? Kind::kTensor : Kind::kNone;
    case Kind::kNode:
      return number == 5 ? Kind::kAttribute : Kind::kNone;
    case Kind::kAttribute:
      return number == 5 ? Kind::kTensor : number == 6 ? Kind::kGraph : Kind::kNone;
    case Kind::kTensor:
      return number == 9 ? Kind::kRawData : Kind::kNone;
    default:
      return Kind::kNone;
  }
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

class Leaver {
 public:
  explicit Leaver(std::string_view bytes) : bytes_(bytes) {}

  /// The message at [begin, end) without its raw data; nothing when all of it is small.
  std::optional<std::string> rewritten(Kind kind, std::size_t begin, std::size_t end) const {
    if (end - begin < kLeftBytes || repeats_a_single_field(kind, begin, end)) return std::nullopt;
    std::string out;
    std::size_t copied = begin;
    for (std::size_t at = begin; at < end;) {
      const Field field = next(at);
      const Kind inner = field_of(kind, field.number);
      if (field.is_delimited && inner != Kind::kNone) {
        const std::size_t size = at - field.begin;
        const std::optional<std::string> replaced =
            inner != Kind::kRawData ? rewritten(inner, field.begin, at)
            : size >= kLeftBytes    ? std::optional(note(field.begin, size))
                                    : std::nullopt;
        if (!replaced) continue;
        out.append(bytes_, copied, field.key - copied);
        append_varint(out, (inner == Kind::kRawData ? std::uint64_t{kRawPlaceField} : field.number) << 3 |
                               kLengthDelimited);
        append_varint(out, replaced->size());
        out += *replaced;
        copied = at;
      }
    }
    if (copied == begin) return std::nullopt;
    out.append(bytes_, copied, end - copied);
    return out;
  }

 private:
  struct Field {
    std::size_t key = 0;    // where it begins
    std::size_t begin = 0;  // where its content begins
    std::uint64_t number = 0;
    bool is_delimited = false;
  };

  std::uint64_t varint(std::size_t& at) const {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

  /// The field at `at`, which moves behind it.
  Field next(std::size_t& at) const {
    Field field;
    field.key = at;
    const std::uint64_t key = varint(at);
    field.number = key >> 3;
    const auto wire = static_cast<unsigned>(key & 7);
    field.is_delimited = wire == kLengthDelimited;
    const std::uint64_t size = field.is_delimited ? varint(at) : wire == 1 ? 8 : wire == 5 ? 4 : 0;
    field.begin = at;
    if (wire == 0) varint(at);
    at += static_cast<std::size_t>(size);
    GC_CHECK(at <= bytes_.size());
    return field;
  }

  /// Where raw_data or AttributeProto.t comes several times, protobuf takes the last one, or merges them: it
  /// shall see them all.
  bool repeats_a_single_field(Kind kind, std::size_t begin, std::size_t end) const {
    if (kind != Kind::kTensor && kind != Kind::kAttribute) return false;
    int count = 0;
    for (std::size_t at = begin; at < end;) {
      const Kind inner = field_of(kind, next(at).number);
      count += inner == Kind::kRawData || inner == Kind::kTensor || inner == Kind::kGraph;
    }
    return count > 1;
  }

  static std::string note(std::size_t offset, std::size_t size) {
    std::string text(sizeof(RawPlace), '\0');
    const RawPlace place{static_cast<std::int64_t>(offset), static_cast<std::int64_t>(size)};
    std::memcpy(text.data(), &place, sizeof place);
    return text;
  }

  std::string_view bytes_;
};

}  // namespace

std::optional<std::string> leave_raw_data(std::string_view bytes) {
  return Leaver(bytes).rewritten(Kind::kModel, 0, bytes.size());
}

RawPlace decode_raw_place(std::string_view note) {
  RawPlace place;
  GC_CHECK(note.size() == sizeof place);
  std::memcpy(&place, note.data(), sizeof place);
  return place;
}

}  // namespace gcompile::frontend
