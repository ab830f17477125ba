// A source without an end.
#include "/dev/zero"

extern "C" int kbench_run(const kbench_args*, kbench_stream) { return 0; }
