// A worker of the test's own: two tensors of n floats, y = 2 x, and a mode (modes.h).
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "test/unit/process/modes.h"
#include "verifier/device/device.h"
#include "verifier/process/process.h"

namespace kbench::test {

inline constexpr std::int64_t kElements = 1000;

// A memfd in the place of a device's shared buffer, where a test needs no device.
struct PlainBuffer {
  explicit PlainBuffer(std::size_t size) : bytes(size), fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) throw std::runtime_error("ftruncate");
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    data = static_cast<float*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  }
  ~PlainBuffer() {
    munmap(data, bytes);
    close(fd);
  }
  PlainBuffer(const PlainBuffer&) = delete;
  std::size_t bytes;
  int fd;
  float* data;
};

inline protocol::Setup setup_of(Mode mode, std::int64_t amount, const protocol::SetupTensor& x,
                                const protocol::SetupTensor& y, std::int64_t elements = kElements) {
  protocol::Setup setup{};
  setup.magic = protocol::kMagic;
  setup.version = protocol::kVersion;
  setup.gpus = 1;
  setup.tensor_count = 2;
  setup.tensors[0] = x;
  setup.tensors[1] = y;
  setup.shape_count = 1;
  setup.shapes[0].slot_count = 5;
  setup.shapes[0].first_pointer = 3;
  const std::uint64_t slots[] = {static_cast<std::uint64_t>(elements), static_cast<std::uint64_t>(mode),
                                 static_cast<std::uint64_t>(amount), 0, 1};
  std::copy(std::begin(slots), std::end(slots), setup.shapes[0].slots);
  return setup;
}

inline process::Command command_of(uid_t uid, const std::string& home) {
  process::Command command;
  command.arguments = {KBENCH_TEST_WORKER, KBENCH_TEST_HOSTILE};
  command.uid = uid;
  command.home = home;
  return command;
}

}  // namespace kbench::test
