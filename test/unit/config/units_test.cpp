#include "daemon/config/units.h"

#include <catch2/catch.hpp>

using namespace kbench::config;
using namespace std::chrono_literals;

TEST_CASE("sizes with units") {
  CHECK(bytes_in("16 MiB") == 16 << 20);
  CHECK(bytes_in("64KiB") == 65536);
  CHECK(bytes_in("1.5 GiB") == 1610612736);
  CHECK(bytes_in("2 MB") == 2'000'000);
  CHECK(bytes_in("0 B") == 0);
  for (const char* bad : {"", "16", "MiB", "16 mib", "16 MiB ", "-1 B", "0.3 B", "1e300 TiB", "nan B", "inf B",
                          "8388608 TiB", "1 M B", " 1 B"}) {
    CAPTURE(bad);
    CHECK_FALSE(bytes_in(bad));
  }
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1023}, std::int64_t{1024},
                               std::int64_t{1} << 40, std::int64_t{3} << 20}) {
    CHECK(bytes_in(bytes_text(n)) == n);
  }
  CHECK(bytes_text(256 << 10) == "256 KiB");
  CHECK(bytes_text(1025) == "1025 B");
}

TEST_CASE("times with units") {
  CHECK(duration_in("500 ms") == 500ms);
  CHECK(duration_in("1.5 s") == 1500ms);
  CHECK(duration_in("5min") == 5min);
  CHECK(duration_in("2 h") == 2h);
  CHECK(duration_in("7 d") == 168h);
  for (const char* bad : {"30", "s", "30 S", "30 seconds", "-1 s", "0.5 ms", "1e30 d"}) {
    CAPTURE(bad);
    CHECK_FALSE(duration_in(bad));
  }
  CHECK(duration_text(90s) == "90 s");
  CHECK(duration_text(2min) == "2 min");
  CHECK(duration_text(1500ms) == "1500 ms");
  CHECK(duration_text(0ms) == "0 ms");
}
