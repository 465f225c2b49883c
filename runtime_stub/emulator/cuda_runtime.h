// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// CUDA on a CPU: the part of the CUDA runtime that emitted projects use, as ordinary C++. Sources written for
// nvcc compile with `g++ -x c++ -I runtime_stub/emulator` and link with cuda_on_cpu.cc; kernels then run
// on the CPU, to the letter of the programming model and as unkindly as it allows:
//
//   - one thread runs until it waits, so whatever a missing barrier should have ordered is not ordered;
//   - asynchronous copies to shared memory land at the wait that makes them visible, not before, and products
//     of warpgroups are formed at theirs;
//   - device and shared memory start as 0xFF, blocks of memory have their exact size and guarded ends;
//   - CUDA_ON_CPU_ARCHITECTURE=87 (or 90a, as without it) makes it a device with the shared memory, the
//     clusters and the tensor cores of such a one; code is that of sm_80 and later, or with
//     -DGCRT_EMULATE_SM_75 what runs on sm_75,
//   - CUDA_ON_CPU_SEED=n shuffles the order of blocks and warps, CUDA_ON_CPU_THREADS=n sets the host threads.
//
// A kernel that breaks the rules ends the process with one line "cuda_on_cpu: ..." that names block and
// thread. Not modelled: races inside a warp between two waits, memory ordering, bank conflicts, registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __grid_constant__

#define CUDART_VERSION 13000

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
};

// The place of the running thread; all 0 outside kernels.
extern __thread uint3 threadIdx;
extern __thread uint3 blockIdx;
extern __thread dim3 blockDim;
extern __thread dim3 gridDim;

enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorLossyQuery = 402,
  cudaErrorNotReady = 600,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorUnknown = 999
};
using cudaError_t = cudaError;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrIntegrated = 18,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice };
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
constexpr unsigned cudaStreamDefault = 0;
constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDefault = 0;
constexpr unsigned cudaEventDisableTiming = 2;
constexpr unsigned cudaEventRecordDefault = 0;
constexpr unsigned cudaEventRecordExternal = 1;
constexpr unsigned cudaHostAllocDefault = 0;
constexpr unsigned cudaHostAllocMapped = 2;

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphNode_t = struct CUgraphNode_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;
struct cudaGraphEdgeData {
  unsigned char from_port;
  unsigned char to_port;
  unsigned char type;
};

struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim;
  dim3 blockDim;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
};
struct cudaFuncAttributes {
  int ptxVersion;
  int binaryVersion;
};
enum cudaLaunchAttributeID {
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6
};
union cudaLaunchAttributeValue {
  struct {
    unsigned x;
    unsigned y;
    unsigned z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
};
enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1,
  cudaDriverEntryPointVersionNotSufficent = 2
};
constexpr unsigned long long cudaEnableDefault = 0;
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
};
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  std::size_t sharedMemPerBlockOptin;
  int major;
  int minor;
  int multiProcessorCount;
};

const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);

/// Knows what emulator/cuda.h declares.
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result = nullptr);

cudaError_t cudaMalloc(void** pointer, std::size_t bytes);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes);
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* target, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream = nullptr);
template <class T>
cudaError_t cudaMalloc(T** pointer, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}
template <class T>
cudaError_t cudaMallocHost(T** pointer, std::size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void**>(pointer), bytes);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
/// While a stream captures, cudaEventRecordExternal makes a node of it, and other records leave no trace.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned flags = 0);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id = nullptr, cudaGraph_t* graph = nullptr,
                                     const cudaGraphNode_t** dependencies = nullptr,
                                     const cudaGraphEdgeData** edges = nullptr, std::size_t* count = nullptr);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags = 0);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters);
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* target,
                                               const void* source, std::size_t bytes, cudaMemcpyKind kind);
struct cudaMemsetParams {
  void* dst;
  std::size_t pitch;
  unsigned value;
  unsigned elementSize;
  std::size_t width;
  std::size_t height;
};
/// Sets bytes, in one row.
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* parameters);

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
/// The kernel must have been made known by cuda_on_cpu::declare_kernel.
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream);

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel);

namespace cuda_on_cpu {

/// Graphs that the process has made executable so far.
int instantiated_graphs();

/// Ends the process with "cuda_on_cpu: MESSAGE", the kernel's grid position and the thread.
[[noreturn]] __attribute__((format(printf, 1, 2))) void die(const char* format, ...);

inline void check_alignment(const void* pointer, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % bytes != 0) {
    die("misaligned access: %zu bytes at an address that is %zu beyond a multiple", bytes,
        static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(pointer) % bytes));
  }
}
/// The same of an access by code that is also compiled for the host, where any address will do.
bool in_kernel();
inline void check_alignment_in_kernel(const void* pointer, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % bytes != 0 && in_kernel()) check_alignment(pointer, bytes);
}
/// The running thread's place in its block, x fastest.
extern __thread unsigned linear_thread;
/// The block's dynamic shared memory; dies if the launch gave none.
unsigned char* shared_memory();

/// Dies unless the `bytes` bytes lie in the block's shared memory and are aligned to their number.
void check_shared_access(const void* pointer, std::size_t bytes);

/// All threads of the block that have not returned.
void block_barrier();
/// The same, and how many of them (or whether any, all) hold `condition`.
int block_barrier_count(bool condition);
void warp_barrier();

/// What every thread of a grid that may start early must call; dies at the end of one that has not.
void await_previous_grid();

/// Called once when the last live lane of a warp arrives;
/// lanes[i] is what lane i published, null if it has returned.
using Collective = void (*)(void* const (&lanes)[32]);
/// Waits for all live lanes of the warp, which must all come with the same `name`.
void warp_collective(const char* name, void* operands, Collective function);

/// `value` of `bytes` bytes becomes that of `source_lane`; 0xFF where that lane has returned.
void shuffle(void* value, std::size_t bytes, unsigned source_lane);
std::uint32_t ballot(bool condition);

/// Copies of `valid` bytes, then zeros up to `bytes`; they land when `wait_copies` says so.
void copy_async(void* shared, const void* global, int bytes, int valid);
void commit_copies();
void wait_copies(int groups_left);

/// `loads` times `count` (1, 2 or 4) 8x8 matrices of 16-bit elements into registers[load][count]; the rows of
/// matrix i of a load are at the addresses rows[load] of lanes 8i to 8i+7.
void load_matrices(std::uint32_t* registers, int loads, int count, bool transposed, const void* const* rows);

/// rows x columns tiles of mma.sync; d[row][column][4], a[row][4], b[column][2] in the fragment layouts of
/// PTX. Floating sums run over k in order, each product rounded once. Those and copy_async die on a device
/// before sm_80.
void mma_f16(float* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns);
void mma_bf16(float* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns);
void mma_tf32(float* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns);
/// a_large * b_large is summed, then added to d; a_small * b_large + a_large * b_small to corrections.
void mma_tf32_by_parts(float* d, float* corrections, const std::uint32_t* a_large,
                       const std::uint32_t* a_small, const std::uint32_t* b_large,
                       const std::uint32_t* b_small, int rows, int columns);
void mma_int8(std::int32_t* d, const std::uint32_t* a, const std::uint32_t* b, int rows, int columns,
              bool a_is_signed, bool b_is_signed);
/// The instructions of sm_75: m16n8k8 with d[4], a[2] and b[1]; m8n8k16 with d[2], a[1] and b[1].
void mma_f16_k8(float* d, const std::uint32_t* a, const std::uint32_t* b);
void mma_int8_k16(std::int32_t* d, const std::uint32_t* a, const std::uint32_t* b, bool a_is_signed,
                  bool b_is_signed);

/// The address of shared memory as instructions have it: no multiple of more than 128 at the start, for no
/// more is promised.
std::uint32_t shared_address(const void* pointer);

/// mbarriers, 8 bytes of shared memory each. A phase is complete when all arrivals have come and all expected
/// bytes have landed. `fence_barrier_init` shows new barriers to copies.
void barrier_init(void* barrier, int arrivals);
void fence_barrier_init();
void barrier_arrive(void* barrier);
void barrier_expect(void* barrier, int bytes);  // and arrives
void barrier_wait(void* barrier, int parity);   // until the phase of that parity is complete
/// Copies a box of a tensor to `shared` and counts its bytes at `barrier`. From here on until that phase is
/// complete the target holds NaN. `map`: CUtensorMap of four axes; at: of the box's first element, the
/// innermost axis first.
void copy_tensor(void* shared, const void* map, const int (&at)[4], void* barrier);
/// What threads wrote to shared memory before is read by products of warpgroups from here on, not earlier.
void fence_async_proxy();

unsigned cluster_rank();
void cluster_barrier();
/// What the shared memory of a block of the cluster holds where `shared` lies in that of the running one;
/// 0xFF where it was written after the last barrier of the cluster. Dies where there is no such block, or
/// where it has ended.
void load_from_block(void* to, const void* shared, std::size_t bytes, unsigned block);
/// The barrier `id` (1 to 15) of `threads` threads of the block.
void named_barrier(int id, int threads);
/// Registers of a thread from here on, which all threads of a warpgroup state.
void set_registers(int count, int most);

/// Products of warpgroups: d += a * b over 32 bytes of depth, 64 rows, `columns` columns. `a` null: the
/// operand of descriptor_a. They are formed at the wait; until then d holds NaN, and registers of a and
/// shared memory must stay.
enum class WgmmaType { kF16, kBf16, kTf32 };
void wgmma(WgmmaType type, int columns, float* d, const std::uint32_t* a, std::uint64_t descriptor_a,
           std::uint64_t descriptor_b);
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(int groups_left);

/// How a kernel of one signature is called and how large its parameters are.
struct Signature {
  void (*call)(const void* kernel, void* const* arguments);
  const std::size_t* sizes;
  std::size_t count;
};
void declare_kernel(const void* kernel, const Signature* signature);

/// For which architecture the code was compiled that the emulator runs: CUDA_ON_CPU_ARCHITECTURE=87, or
/// sm_90a with all that is emulated.
int capability();
bool has_warpgroups();

template <class... P>
struct SignatureOf {
  static_assert((std::is_trivially_copyable<std::decay_t<P>>::value && ...), "arguments are copied as bytes");
  static_assert((!std::is_reference<P>::value && ...), "a kernel cannot take references");
  template <std::size_t... I>
  static void call_with(const void* kernel, void* const* arguments, std::index_sequence<I...>) {
    static_cast<void>(arguments);
    reinterpret_cast<void (*)(P...)>(const_cast<void*>(kernel))(*static_cast<P*>(arguments[I])...);
  }
  static void call(const void* kernel, void* const* arguments) {
    call_with(kernel, arguments, std::index_sequence_for<P...>{});
  }
  static constexpr std::size_t sizes[] = {sizeof(P)..., 0};
  static constexpr Signature signature = {&call, sizes, sizeof...(P)};
};
template <class... P>
void declare_kernel(void (*kernel)(P...)) {
  declare_kernel(reinterpret_cast<const void*>(kernel), &SignatureOf<P...>::signature);
}

}  // namespace cuda_on_cpu
