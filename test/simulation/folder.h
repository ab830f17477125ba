// What pthreads.cpp's syscall needs of folder.cpp. Internal to test/simulation.
#pragma once

struct open_how;

namespace kbench::sim {

bool fails_to_open(int folder, const char* path, const open_how& how);  // with errno

}  // namespace kbench::sim
