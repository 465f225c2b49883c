// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
#include "device_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "block_runner.h"

namespace cuda_on_cpu {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kMostReserved = std::size_t{1} << (sizeof(void*) > 4 ? 40 : 29);
constexpr std::size_t kLeastReserved = std::size_t{1} << 28;
constexpr std::size_t kLargeBlock = 1 << 20;  // whose pages go back to the system

std::size_t rounded(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// One range of addresses, so that one call opens or closes all blocks. Free blocks are taken first fit.
class Reservation {
 public:
  Reservation() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    for (reserved_ = kMostReserved; reserved_ >= kLeastReserved; reserved_ /= 2) {
      void* const found =
          mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (found == MAP_FAILED) continue;
      begin_ = static_cast<unsigned char*>(found);
      break;
    }
    if (begin_ == nullptr) die("no addresses for device memory");
    free_[0] = reserved_;
  }

  unsigned char* take(std::size_t bytes) {
    const std::size_t size = rounded(bytes, kAlignment);
    const std::lock_guard<std::mutex> lock(mutex_);
    auto found = free_.begin();
    while (found != free_.end() && found->second < size) ++found;
    if (found == free_.end()) die("no device memory for %zu bytes", bytes);
    const std::size_t at = found->first, left = found->second - size;
    free_.erase(found);
    if (left > 0) free_[at + size] = left;
    const std::size_t end = rounded(at + size, page_);
    if (end > used_) {
      if (users_ > 0) protect(used_, end, PROT_READ | PROT_WRITE);
      used_ = end;
    }
    return begin_ + at;
  }

  void give(unsigned char* block, std::size_t bytes) {
    std::size_t size = rounded(bytes, kAlignment);
    const std::lock_guard<std::mutex> lock(mutex_);
    std::size_t at = static_cast<std::size_t>(block - begin_);
    if (size >= kLargeBlock) {
      const std::size_t first = rounded(at, page_);
      madvise(begin_ + first, (at + size - first) / page_ * page_, MADV_DONTNEED);
    }
    auto next = free_.lower_bound(at);
    if (next != free_.end() && next->first == at + size) {
      size += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        before->second += size;
        return;
      }
    }
    free_[at] = size;
  }

  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (users_++ == 0) protect(0, used_, PROT_READ | PROT_WRITE);
  }
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--users_ == 0) protect(0, used_, PROT_NONE);
  }

  bool holds(const void* address) const {
    const auto* const byte = static_cast<const unsigned char*>(address);
    return byte >= begin_ && byte < begin_ + reserved_;
  }

 private:
  void protect(std::size_t from, std::size_t to, int protection) const {
    if (from < to && mprotect(begin_ + from, to - from, protection) != 0)
      die("mprotect of device memory failed");
  }

  std::mutex mutex_;
  std::size_t page_, reserved_ = 0;
  unsigned char* begin_ = nullptr;
  std::size_t used_ = 0;  // where blocks have been, in whole pages
  unsigned users_ = 0;
  std::map<std::size_t, std::size_t> free_;  // bytes, by where they begin
};

struct sigaction former_action;
Reservation& reservation();

void tell_of_fault(int, siginfo_t* info, void*) {
  if (!reservation().holds(info->si_addr)) {
    sigaction(SIGSEGV, &former_action, nullptr);  // whose turn it is when the access is made again
    return;
  }
  if (runner != nullptr) die("no block of device memory is at %p", info->si_addr);
  die("the host uses device memory, at %p, which only kernels and copies reach", info->si_addr);
}

// Never destroyed: blocks may be freed as late as the destructors of global objects.
Reservation& reservation() {
  static Reservation* const made = [] {
    auto* const all = new Reservation;
    struct sigaction action = {};
    action.sa_sigaction = tell_of_fault;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &former_action);
    return all;
  }();
  return *made;
}

}  // namespace

#if CUDA_ON_CPU_ADDRESS_SANITIZER
DeviceAccess::DeviceAccess() = default;
DeviceAccess::~DeviceAccess() = default;
unsigned char* allocate_on_device(std::size_t bytes) { return allocate_exact(bytes, kAlignment); }
void free_on_device(unsigned char* block, std::size_t) { free_exact(block); }
#else
DeviceAccess::DeviceAccess() { reservation().open(); }
DeviceAccess::~DeviceAccess() { reservation().close(); }
unsigned char* allocate_on_device(std::size_t bytes) {
  unsigned char* const block = reservation().take(bytes + kGuardBytes);
  const DeviceAccess access;
  poison(block, bytes);
  return block;
}
void free_on_device(unsigned char* block, std::size_t bytes) {
  reservation().give(block, bytes + kGuardBytes);
}
#endif

}  // namespace cuda_on_cpu
