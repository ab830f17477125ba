// An object file of gigabytes.
#include "honest.h"

__asm__(".data\n.globl kb_huge\nkb_huge: .byte 1\n.zero 6000000000\n.byte 1\n.text\n");

extern "C" int kbench_run(const kbench_args* a, kbench_stream) { return honest(*a); }
