// Which tile a block of threads computes, and how long a product would take: a model of a few lines over one
// table of devices, evaluated when the model is compiled. Needs no CUDA header.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// How the products of a contraction are formed. Sums are float in every mode, int32 in kInt8.
enum class Precision {
  kFp32,  // three TF32 products per product: at most 14 * 2^-23 of the sum of magnitudes; FFMA below sm_80
  kTf32,  // operands rounded to 11 significant bits
  kFp16,
  kBf16,
  kInt8,
  kBf16x3,  // of the CPU: three products of bfloat16 per product (cpu/dot_bfloat16.h)
  kBf16x6,
};

// Tile of rows x columns per block, or one row of warps over up to that many rows for a product of a vector.
enum class Tile { k16x64, k32x64, k64x64, k128x32, k128x64, k128x128, kGemv1, kGemv2, kGemv4, kGemv8 };

constexpr bool is_gemv(Tile tile) { return tile >= Tile::kGemv1; }

struct TileSize {
  int rows;
  int columns;
  int warps_along_rows;
  int warps_along_columns;
  int stages;  // of the pipeline of copies

  constexpr int threads() const { return 32 * warps_along_rows * warps_along_columns; }
};

constexpr TileSize size_of(Tile tile) {
  switch (tile) {
    case Tile::k16x64:
      return {16, 64, 1, 4, 4};
    case Tile::k32x64:
      return {32, 64, 2, 2, 4};
    case Tile::k64x64:
      return {64, 64, 2, 2, 3};
    case Tile::k128x32:
      return {128, 32, 4, 1, 3};
    case Tile::k128x64:
      return {128, 64, 4, 1, 3};
    case Tile::k128x128:
      return {128, 128, 4, 2, 3};
    case Tile::kGemv1:
      return {1, 32, 1, 8, 1};
    case Tile::kGemv2:
      return {2, 32, 1, 8, 1};
    case Tile::kGemv4:
      return {4, 32, 1, 8, 1};
    case Tile::kGemv8:
      return {8, 32, 1, 8, 1};
  }
  return {};
}

// Bytes of one row of a tile per step of the pipeline: 32 floats, or 64 bytes of weights of 8 or 16 bits.
constexpr int kStepBytes = 128;

constexpr int shared_bytes_of(Tile tile) {
  const TileSize size = size_of(tile);
  const int stages = size.stages * (size.rows + size.columns) * kStepBytes;
  const int sums = size.rows * (size.columns + 8) * 4;
  return stages > sums ? stages : sums;
}

// A device as the model sees it. Published figures; products per clock are those that mma.sync reaches.
struct DeviceModel {
  int capability;          // 10 * major + minor
  int multiprocessors;     //
  int shared_bytes;        // largest dynamic shared memory of one block
  int products_per_clock;  // of fp16, per multiprocessor
  double gigahertz;
  double gigabytes_per_second;
};

constexpr DeviceModel kDeviceModels[] = {
    {75, 40, 64 * 1024, 512, 1.6, 320},        // T4
    {80, 108, 163 * 1024, 1024, 1.4, 1555},    // A100
    {86, 82, 99 * 1024, 512, 1.7, 936},        // RTX 3090
    {87, 16, 163 * 1024, 1024, 1.3, 204},      // Jetson AGX Orin
    {89, 128, 99 * 1024, 512, 2.5, 1008},      // RTX 4090
    {90, 132, 227 * 1024, 1300, 1.75, 4000},   // H100, H200
    {100, 148, 227 * 1024, 1300, 1.85, 8000},  // B200
    {110, 20, 227 * 1024, 1300, 1.5, 273},     // Jetson Thor
    {120, 170, 99 * 1024, 1024, 2.4, 1792},    // RTX 5090
};

// The entry of the highest capability that is not above the given one.
constexpr DeviceModel device_model(int capability) {
  DeviceModel best = kDeviceModels[0];
  for (const DeviceModel& device : kDeviceModels) {
    if (device.capability <= capability) best = device;
  }
  return best;
}

struct Plan {
  Tile tile;
  int splits;           // parts of the depth, each summed by its own blocks
  double microseconds;  // predicted
};

// Below sm_80 tensor cores multiply fp16 and 8-bit integers only; other products are FFMA.
constexpr bool has_tensor_cores(int capability, Precision precision) {
  return capability >= 80 || precision == Precision::kFp16 || precision == Precision::kInt8;
}

constexpr double products_per_clock(const DeviceModel& device, Precision precision) {
  const double fp16 = device.products_per_clock;
  if (!has_tensor_cores(device.capability, precision)) return 64;  // FFMA
  switch (precision) {
    case Precision::kFp32:
      return fp16 / 2 / 3.5;
    case Precision::kTf32:
      return fp16 / 2;
    case Precision::kInt8:
      return fp16 * 2;
    default:
      return fp16;
  }
}

// Elements between the rows of packed 8-bit or 16-bit weights.
constexpr std::ptrdiff_t integer_weight_stride(std::ptrdiff_t depth) { return ceil_div(depth, 32) * 32; }

// Of a block of a product of vectors.
constexpr int kGemvThreads = 256;

// Elements of k per step of the pipeline.
constexpr int step_depth(Precision precision) { return precision == Precision::kInt8 ? 64 : 32; }

// Blocks along z or y in one launch.
constexpr int kMaxGridZ = 65535;

// Launches of a product of so many batch entries, whose depth is in `splits` parts.
constexpr std::ptrdiff_t product_launches(std::ptrdiff_t entries, int splits) {
  return ceil_div(entries * splits, kMaxGridZ);
}

// Floats of workspace of a product whose depth is split; 0 if it is not.
constexpr std::ptrdiff_t gemm_workspace_size(std::ptrdiff_t rows, std::ptrdiff_t columns,
                                             std::ptrdiff_t batch, int splits) {
  return splits > 1 ? batch * splits * rows * (ceil_div(columns, 4) * 4) : 0;
}

// Words of Queue::counters that such a product uses: one of a tile.
constexpr std::ptrdiff_t gemm_counters(Tile tile, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                       std::ptrdiff_t batch, int splits) {
  const TileSize size = size_of(tile);
  return splits > 1 ? ceil_div(rows, size.rows) * ceil_div(columns, size.columns) * batch : 0;
}

// The library asks for a multiple of 256; the block's own alignment may be less.
constexpr std::ptrdiff_t kCublasltAlignment = 256;
constexpr std::ptrdiff_t kCublasltWorkspaceBytes = std::ptrdiff_t{4} << 20;

// Floats of workspace of gemm_cublaslt: the library's, and the sums.
constexpr std::ptrdiff_t cublaslt_workspace_size(std::ptrdiff_t rows, std::ptrdiff_t columns,
                                                 std::ptrdiff_t batch) {
  return kCublasltWorkspaceBytes / 4 + batch * rows * (ceil_div(columns, 4) * 4);
}

constexpr double kLaunchClocks = 2500;
constexpr double kBlockClocks = 1500;  // of a block: first loads, last stores
// Of a block that tells the others of its tile that its sums are in memory, and of the last one, which reads
// them: a fence, an atomic addition and one latency of the second-level cache each way.
constexpr double kArrivalClocks = 1500;

// Multiply-adds without tensor cores, per clock and multiprocessor.
constexpr double scalar_products_per_clock(const DeviceModel& device) {
  return device.capability <= 80 ? 64 : 128;
}

// Microseconds of `launches` kernels, one behind the other, that together move `bytes` between the device's
// memory and the multiprocessors and form `products`: bound by the slower of the two.
constexpr double streaming_microseconds(const DeviceModel& device, std::ptrdiff_t launches, double bytes,
                                        double products, double products_per_clock) {
  const double moving = bytes / device.gigabytes_per_second * 1e-3;
  const double computing = products / (products_per_clock * device.multiprocessors * device.gigahertz) * 1e-3;
  const double starting =
      static_cast<double>(launches) * (kLaunchClocks + kBlockClocks) / device.gigahertz * 1e-3;
  return starting + (moving > computing ? moving : computing);
}

// Bytes of an element of packed weights, and of an operand that only the run knows.
constexpr int weight_bytes(Precision precision) {
  return precision == Precision::kInt8                                    ? 1
         : precision == Precision::kFp16 || precision == Precision::kBf16 ? 2
                                                                          : 4;
}
constexpr int activation_bytes(Precision precision) { return precision == Precision::kInt8 ? 1 : 4; }

// Of an element of the operands of a product.
struct OperandBytes {
  int a, b;
};
// A that only the run knows, as float or byte, and packed weights.
constexpr OperandBytes weighted(Precision precision) {
  return {activation_bytes(precision), weight_bytes(precision)};
}

// Microseconds of one launch that computes `batch` products of `rows` x `depth` by `depth` x `columns`. Work
// is spread over the multiprocessors in whole blocks; a block is bound by products, by what it reads through
// the second-level cache, or by the latency of its steps, which other blocks on the same multiprocessor hide.
constexpr double tile_microseconds(const DeviceModel& device, Precision precision, Tile tile, int splits,
                                   std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth,
                                   std::ptrdiff_t batch, OperandBytes bytes) {
  constexpr double kCacheBytesPerClock = 48;  // per multiprocessor
  constexpr double kStepClocks = 180;         // latency of one step
  const TileSize size = size_of(tile);
  const double sms = device.multiprocessors;
  const std::ptrdiff_t steps = ceil_div(ceil_div(depth, step_depth(precision)), splits);
  const std::ptrdiff_t blocks = ceil_div(rows, size.rows) * ceil_div(columns, size.columns) * batch * splits;
  const double step_products = 1.0 * size.rows * size.columns * step_depth(precision);
  const double step_bytes = (size.rows * bytes.a + size.columns * bytes.b) * step_depth(precision);
  double step = step_products / products_per_clock(device, precision);
  if (step < step_bytes / kCacheBytesPerClock) step = step_bytes / kCacheBytesPerClock;
  int resident = device.shared_bytes / shared_bytes_of(tile);
  if (resident > 1536 / size.threads()) resident = 1536 / size.threads();
  if (resident < 1) resident = 1;
  const double steps_total = static_cast<double>(steps);
  const double bound = static_cast<double>(ceil_div(blocks, device.multiprocessors)) * steps_total * step;
  const double rounds = static_cast<double>(ceil_div(blocks, device.multiprocessors * resident));
  const double latency = rounds * (steps_total * kStepClocks + kBlockClocks);
  double clocks = kLaunchClocks + (bound + kBlockClocks > latency ? bound + kBlockClocks : latency);
  if (splits > 1) {
    // Every block writes its part, and the last one of a tile reads them all by itself.
    const double sums = 4.0 * size.rows * size.columns;
    const double written = 4.0 * static_cast<double>(rows * columns * batch) * splits;
    clocks += kArrivalClocks + sums * splits / kCacheBytesPerClock + written / (kCacheBytesPerClock * sms);
  }
  return clocks / device.gigahertz * 1e-3;
}

// Products of float32 by parts of TF32 keep both parts of every operand, and sums beside those of the tensor
// cores: the largest tiles would spill.
constexpr bool fits_registers(const DeviceModel& device, Precision precision, Tile tile) {
  return precision != Precision::kFp32 || !has_tensor_cores(device.capability, precision) ||
         tile <= Tile::k128x32;
}

// The fastest tile and number of splits by the model. `allow_split` is false where no workspace exists.
constexpr Plan plan_tiles(const DeviceModel& device, Precision precision, std::ptrdiff_t rows,
                          std::ptrdiff_t columns, std::ptrdiff_t depth, std::ptrdiff_t batch,
                          bool allow_split, OperandBytes bytes) {
  constexpr Tile kTiles[] = {Tile::k16x64,  Tile::k32x64,  Tile::k64x64,
                             Tile::k128x32, Tile::k128x64, Tile::k128x128};
  constexpr int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16};
  Plan best{Tile::k16x64, 1, 0};
  bool is_first = true;
  for (const Tile tile : kTiles) {
    if (shared_bytes_of(tile) > device.shared_bytes || !fits_registers(device, precision, tile)) continue;
    for (const int splits : kSplits) {
      if (splits > 1 && (!allow_split || depth < splits * 4 * step_depth(precision))) continue;
      const double time =
          tile_microseconds(device, precision, tile, splits, rows, columns, depth, batch, bytes);
      if (is_first || time < best.microseconds) best = {tile, splits, time};
      is_first = false;
    }
  }
  return best;
}

// A product with constant B: as a product of a vector up to 8 rows.
constexpr Plan plan_gemm(const DeviceModel& device, Precision precision, std::ptrdiff_t rows,
                         std::ptrdiff_t columns, std::ptrdiff_t depth, std::ptrdiff_t batch, bool allow_split,
                         OperandBytes bytes_of) {
  if (rows > 8 || precision == Precision::kInt8) {
    return plan_tiles(device, precision, rows, columns, depth, batch, allow_split, bytes_of);
  }
  const Tile tile =
      rows == 1 ? Tile::kGemv1 : (rows == 2 ? Tile::kGemv2 : (rows <= 4 ? Tile::kGemv4 : Tile::kGemv8));
  const double bytes = static_cast<double>(columns * depth * batch) * weight_bytes(precision);
  return {tile, 1, streaming_microseconds(device, 1, bytes, 0, 1)};
}
constexpr Plan plan_gemm(const DeviceModel& device, Precision precision, std::ptrdiff_t rows,
                         std::ptrdiff_t columns, std::ptrdiff_t depth, std::ptrdiff_t batch = 1,
                         bool allow_split = true) {
  return plan_gemm(device, precision, rows, columns, depth, batch, allow_split, weighted(precision));
}

}  // namespace GCRT_NAMESPACE
