// How pieces and hashes are told in messages of agents.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "copying/piece_codec.hpp"
#include "ucx/content_digest.hpp"

namespace ucx::tool {

/// So many hashes fit into one header.
constexpr std::size_t most_told_digests = 1024;

/// Returns what tells how `piece` is to be decoded; its bytes go as the payload.
nlohmann::json piece_header(const coded_piece& piece);
nlohmann::json digests_header(const std::vector<content_digest>& all);

// These read such headers. Errors: bad_message.

codec codec_in(const nlohmann::json& header);
content_digest digest_in(const nlohmann::json& header);
std::vector<content_digest> digests_in(const nlohmann::json& header);

}  // namespace ucx::tool
