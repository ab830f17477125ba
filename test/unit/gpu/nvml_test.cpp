#include <catch2/catch.hpp>
#include <cstdlib>

#include "daemon/gpu/gpu.h"

using namespace kbench::gpu;
using std::chrono::milliseconds;

namespace {
void set(const char* text) { ::setenv("FAKE_NVML", text, 1); }
}  // namespace

TEST_CASE("no library or no driver: no GPUs") {
  CHECK_FALSE(open_nvml("libnone.so.1"));
  CHECK_FALSE(open_nvml("libm.so.6"));
  set("noinit");
  CHECK_FALSE(open_nvml(KBENCH_FAKE_NVML));
}

TEST_CASE("GPUs are listed with their node's minor number") {
  set("");
  const auto nvml = open_nvml(KBENCH_FAKE_NVML);
  REQUIRE(nvml);
  const auto gpus = nvml->list();
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].uuid == "GPU-a");
  CHECK(gpus[0].minor == 5);
  CHECK(gpus[1].minor == 4);
  CHECK(gpus[1].model == "NVIDIA H200");
  CHECK(gpus[1].driver == "580.1");
  CHECK(gpus[1].memory_bytes == 150ull << 30);
  set("gone");
  CHECK(nvml->list().size() == 1);
}

TEST_CASE("lost, gone and memory errors are faults; processes are counted") {
  set("");
  const auto nvml = open_nvml(KBENCH_FAKE_NVML);
  CHECK_FALSE(nvml->fault("GPU-b"));
  CHECK(nvml->processes("GPU-b") == 0);
  CHECK(nvml->fault("GPU-z"));
  for (const char* trouble : {"gone", "lost", "ecc"}) {
    set(trouble);
    CHECK(nvml->fault("GPU-b"));
    CHECK_FALSE(nvml->fault("GPU-a"));
  }
  set("busy");
  CHECK(nvml->processes("GPU-b") == 2);
}

TEST_CASE("XID events name their GPU") {
  set("xid");
  const auto nvml = open_nvml(KBENCH_FAKE_NVML);
  const auto xid = nvml->next_xid(milliseconds(10));
  REQUIRE(xid);
  CHECK(xid->uuid == "GPU-b");
  CHECK(xid->code == 79);
  set("");
  CHECK_FALSE(nvml->next_xid(milliseconds(1)));
  set("noevents");
  CHECK_FALSE(open_nvml(KBENCH_FAKE_NVML)->next_xid(milliseconds(1)));
}

TEST_CASE("XIDs: hardware ends a GPU, a bad kernel does not") {
  for (const int code : {48, 63, 64, 74, 79, 94, 95, 119, 120, 140}) CHECK(kind_of_xid(code) == XidKind::hardware);
  for (const int code : {13, 31, 43, 45}) CHECK(kind_of_xid(code) == XidKind::kernel);
  CHECK(kind_of_xid(62) == XidKind::other);
}
