#include "precompiled/precompiled.h"

template class nlohmann::basic_json<>;
template class std::vector<nlohmann::json>;
template class nlohmann::detail::serializer<nlohmann::json>;
template class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>;
template class nlohmann::detail::lexer<nlohmann::json, kbench::precompiled::OfString>;
template class nlohmann::detail::parser<nlohmann::json, kbench::precompiled::OfString>;
