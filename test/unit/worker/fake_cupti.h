// What the fake libcupti exports besides CUPTI's own functions, by dlsym.
//
//   void fake_cupti_each(int kernels)             so many, named "each", end before every flush by themselves; at first
//   kEach void fake_cupti_execute(const char* name)     one more kernel ends void fake_cupti_copy() a copy ends void
//   fake_cupti_drop(int kernels)             ended, but there was no room to tell void fake_cupti_break() flushes fail
//   from now on
#pragma once

namespace fake_cupti {
inline constexpr int kEach = 2;
}
