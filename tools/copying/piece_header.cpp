#include "copying/piece_header.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/agent_message.hpp"

namespace ucx::tool {
namespace {

std::uint64_t half_of(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (ec != std::errc() || end != digits.data() + digits.size()) throw bad_message("no hash");
  return value;
}

content_digest digest_of_text(std::string_view text) {
  if (text.size() != 32) throw bad_message("no hash");
  return {.high = half_of(text.substr(0, 16)), .low = half_of(text.substr(16))};
}

}  // namespace

nlohmann::json piece_header(const coded_piece& piece) {
  return {{"codec", name_of(piece.by)}, {"digest", to_string(piece.digest)}};
}

nlohmann::json digests_header(const std::vector<content_digest>& all) {
  nlohmann::json texts = nlohmann::json::array();
  for (const content_digest& each : all) texts.push_back(to_string(each));
  return {{"digests", std::move(texts)}};
}

codec codec_in(const nlohmann::json& header) {
  const std::optional<codec> known = codec_of(text_in(header, "codec"));
  if (!known) throw bad_message("there is no such codec");
  return *known;
}

content_digest digest_in(const nlohmann::json& header) {
  return digest_of_text(text_in(header, "digest"));
}

std::vector<content_digest> digests_in(const nlohmann::json& header) {
  std::vector<content_digest> all;
  for (const std::string& each : texts_in(header, "digests", most_told_digests)) {
    all.push_back(digest_of_text(each));
  }
  return all;
}

}  // namespace ucx::tool
