find_package(CLI11 REQUIRED)
find_package(spdlog REQUIRED)
add_executable(kbenchd main.cpp serve.cpp)
target_compile_definitions(kbenchd PRIVATE KBENCH_VERSION="${PROJECT_VERSION}")
target_link_libraries(kbenchd PRIVATE kbench_flags kbench_api kbench_config kbench_grader kbench_queue kbench_store CLI11::CLI11
  spdlog::spdlog Threads::Threads)
kbench_precompiled(kbenchd)
