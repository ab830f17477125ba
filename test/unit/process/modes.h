// What hostile.cpp does in a call, chosen by the argument `mode`.
#pragma once

enum class Mode : long long {
  honest,
  busy,
  early_done,
  head_start,
  late_write,
  garbage_status,
  wrong_epoch,
  done_before_go,
  fuzz_page,
  exits,
  aborts,
  hangs,
  stops_itself,
  floods,
  forks,
  writes_guards,
  attacks_verifier,
  continues_itself,
  runs_in_slices,
  hunts_cleaner,
  refuses,
  litters,
  leaks,
  eats_memory,
  sacrifices,
  pools
};
