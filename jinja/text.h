#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json_fwd.hpp"

// Names in a model are chosen by strangers and are any bytes at all. Nothing in the output may carry one
// except through a function of this file; each says for which kind of text its result is safe.
namespace gcompile {

/// `name` reduced to [a-z0-9_]: lower case, every run of other bytes one underscore, none at either end, no
/// two in a row (C++ reserves those), at most 40 bytes. May be empty and may begin with a digit: use
/// c_identifier() for something that stands alone.
std::string c_identifier_stem(std::string_view name);

/// An identifier of C, C++, CMake and assembly: `prefix`, `index`, and the stem of `name` for the reader:
/// ("Conv/relu", 17) -> "t17_conv_relu". Injective in `index` for one prefix, whatever the names are; never a
/// keyword. `prefix` is a lower-case word that does not end in a digit.
std::string c_identifier(std::string_view name, std::size_t index, std::string_view prefix = "t");

/// `name` for a comment of C, C++, CMake, make or assembly: printable ASCII stays, except `*`, `\`, `?`, `%`
/// and a slash at the end; those and all other bytes become %XX. So it cannot close a comment, continue it on
/// the next line (also not through the trigraph ??/) or begin one. Slashes elsewhere stay, for exporters name
/// nodes
/// "/layer1/conv1/Conv"; hence a template must not write `*` directly before it. Cut to 200 bytes, the last
/// three then being dots.
std::string comment_escape(std::string_view name);

/// The inside of a C string literal that denotes `bytes`: printable ASCII stays, `"` and `\` get a backslash,
/// and all else, `?` too because of trigraphs,
/// is a three-digit octal escape (hexadecimal ones run on into digits).
std::string c_string_escape(std::string_view bytes);

/// `text` for HTML element content and quoted attribute values. Bytes that are not UTF-8, and control
/// characters that HTML forbids, become U+FFFD. Cut after 1,000 bytes of `text`, with three dots.
std::string html_escape(std::string_view text);

/// `bytes` as one word of a line for a shell: plain where it may be, else quoted. Control characters and
/// bytes that are not UTF-8 are escapes within $'...',
/// so that it is always one line that a terminal can show.
std::string shell_word(std::string_view bytes);

/// JSON text in ASCII, indented by two blanks, with a newline at the end.
/// Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& value);

/// The shortest decimal literal of C++17 that reads back as exactly `value`, with suffix f: "0.1f", "-0.0f",
/// "1e-45f". Infinities and NaN are "INFINITY", "-INFINITY" and "NAN", macros of <cmath>;
/// a NaN loses its payload.
std::string float_literal(float value);

/// Like float_literal, for double, without suffix; infinities and NaN are casts of the same macros.
std::string double_literal(double value);

/// Lines of C++ that are longer than `width`, broken after commas: those that begin at the margin in the
/// parameter list, each part below the first parameter; others anywhere, further parts four blanks deeper.
std::string wrap_signatures(std::string_view text, std::size_t width);

/// The lines of a comment, without the marks that begin them: comment_escape(text), broken between words so
/// that none is longer than `width`, unless it is a single word.
std::vector<std::string> comment_lines(std::string_view text, std::size_t width);

/// A C string literal that denotes `bytes`, in pieces of at most `width` characters that stand below each
/// other, broken behind blanks where there are any.
std::vector<std::string> c_string_lines(std::string_view bytes, std::size_t width);

/// Every occurrence of `from` becomes `to`.
std::string replace_all(std::string text, std::string_view from, std::string_view to);

}  // namespace gcompile
