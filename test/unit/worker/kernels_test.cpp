// Counting kernels, over a stand-in for NVIDIA's library. One process watches once, so this is one story.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <string>

#include "verifier/worker/kernels.h"

using namespace kbench::worker;

namespace {

template <class Function>
Function* fake(const char* name) {
  void* library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  auto* found = reinterpret_cast<Function*>(dlsym(library, name));
  REQUIRE(found != nullptr);
  return found;
}

struct Seen {
  int kernels;
  std::string names;
};
Seen seen(std::size_t size = 512) {
  std::string names(size, '?');
  const int kernels = seen_kernels(names.data(), size);
  return {kernels, names.c_str()};
}

}  // namespace

TEST_CASE("kernels are counted from one asking to the next, with their names") {
  REQUIRE(watch_kernels() == nullptr);
  fake<void(int)>("fake_cupti_each")(0);
  auto* const execute = fake<void(const char*)>("fake_cupti_execute");
  CHECK(seen().kernels == 0);
  CHECK(seen().names.empty());

  execute("gemv");
  fake<void()>("fake_cupti_copy")();
  execute("norm");
  execute("gemv");
  const Seen three = seen();
  CHECK(three.kernels == 3);  // a copy is none
  CHECK(three.names == "gemv x2, norm");
  CHECK(seen().kernels == 0);

  for (int i = 0; i < 5000; ++i) execute("many");  // several buffers
  CHECK(seen().kernels == 5000);

  for (int i = 0; i < 20; ++i) execute(("name" + std::to_string(i)).c_str());
  const Seen twenty = seen(32);  // names that do not fit are cut, kernels without room for a name are counted
  CHECK(twenty.kernels == 20);
  CHECK(twenty.names.size() == 31);
  CHECK(twenty.names.rfind("name0, name1, ", 0) == 0);

  const std::string long_name(300, 'n');
  execute(long_name.c_str());
  execute(long_name.c_str());
  CHECK(seen().kernels == 2);

  execute(nullptr);
  fake<void(int)>("fake_cupti_drop")(7);
  CHECK(seen().kernels == 8);  // what CUPTI lost has been executed all the same

  fake<void()>("fake_cupti_break")();
  CHECK(seen().kernels == -1);
}
