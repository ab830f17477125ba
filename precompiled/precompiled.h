// What many files include, compiled once a build (CMakeLists.txt, kbench_precompiled). Nobody includes it by name: a
// build without it, as that of the images, must work too.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace kbench::precompiled {
using OfString = decltype(nlohmann::detail::input_adapter(std::declval<const std::string&>()));
}
// Half of what the compiler wrote was these, again in each file; they are in precompiled.cpp.
extern template class nlohmann::basic_json<>;
extern template class std::vector<nlohmann::json>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
extern template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>;
extern template class nlohmann::detail::lexer<nlohmann::json, kbench::precompiled::OfString>;
extern template class nlohmann::detail::parser<nlohmann::json, kbench::precompiled::OfString>;
