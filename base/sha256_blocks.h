#pragma once
// The compression function of SHA-256 over whole blocks, portable and with the instructions of x86.

#include <cstddef>
#include <cstdint>

namespace gcompile {

/// Folds `blocks` blocks of 64 bytes into the eight words of `state`.
void absorb_blocks(std::uint32_t* state, const std::uint8_t* data, std::size_t blocks);
/// The same without special instructions.
void absorb_blocks_portably(std::uint32_t* state, const std::uint8_t* data, std::size_t blocks);

}  // namespace gcompile
