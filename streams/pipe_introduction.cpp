#include "pipe_introduction.hpp"

#include <algorithm>

#include "pipe_bytes.hpp"
#include "ucx/pipe_options.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {
namespace {

constexpr std::array question_magic{std::byte{'U'}, std::byte{'X'}, std::byte{'P'}, std::byte{'Q'}};
constexpr std::array answer_magic{std::byte{'U'}, std::byte{'X'}, std::byte{'P'}, std::byte{'A'}};
constexpr std::size_t longest_address = 64;  // of IPv6 with a zone and a port

/// Magic, version and a reserved field begin both.
constexpr std::size_t head = 8;

void begin(std::vector<std::byte>& made, std::span<const std::byte> magic) {
  std::copy(magic.begin(), magic.end(), made.begin());
  put_pipe_number(std::span(made).subspan(4, 2), pipe_meeting_version);
}

bool begins(std::span<const std::byte> said, std::span<const std::byte> magic) noexcept {
  return said.size() >= head && std::equal(magic.begin(), magic.end(), said.begin()) &&
         pipe_number_in(said.subspan(4, 2)) == pipe_meeting_version &&
         pipe_number_in(said.subspan(6, 2)) == 0;
}

void append(std::vector<std::byte>& made, const std::string& text) {
  const std::size_t at = made.size();
  made.resize(at + 2 + text.size());
  put_pipe_number(std::span(made).subspan(at, 2), text.size());
  const auto bytes = std::as_bytes(std::span(text));
  std::copy(bytes.begin(), bytes.end(), made.begin() + static_cast<std::ptrdiff_t>(at) + 2);
}

/// Takes a text off the beginning of `rest`.
std::optional<std::string> take_text(std::span<const std::byte>& rest, std::size_t longest) {
  if (rest.size() < 2) return {};
  const auto length = static_cast<std::size_t>(pipe_number_in(rest.first(2)));
  if (length > longest || length > rest.size() - 2) return {};
  const std::span<const std::byte> bytes = rest.subspan(2, length);
  rest = rest.subspan(2 + length);
  std::string text(length, '\0');
  std::transform(bytes.begin(), bytes.end(), text.begin(),
                 [](std::byte each) { return static_cast<char>(each); });
  return text;
}

}  // namespace

std::vector<std::byte> encode(const pipe_question& said) {
  std::vector<std::byte> made(head + 8);
  begin(made, question_magic);
  made[head] = static_cast<std::byte>(said.role);
  put_pipe_number(std::span(made).subspan(head + 4, 4), said.wanted);
  append(made, said.name);
  append(made, said.address);
  return made;
}

std::vector<std::byte> encode(const pipe_answer& said) {
  std::vector<std::byte> made(head + 8 + said.token.size());
  begin(made, answer_magic);
  put_pipe_number(std::span(made).subspan(head, 4), said.status);
  std::copy(said.token.begin(), said.token.end(), made.begin() + head + 8);
  append(made, said.address);
  return made;
}

std::optional<pipe_question> decode_pipe_question(std::span<const std::byte> said) {
  if (!begins(said, question_magic) || said.size() < head + 8) return {};
  const auto role = std::to_integer<std::uint8_t>(said[head]);
  if (role < 1 || role > 3 || pipe_number_in(said.subspan(head + 1, 3)) != 0) return {};
  pipe_question heard;
  heard.role = static_cast<pipe_role>(role);
  heard.wanted = static_cast<std::uint32_t>(pipe_number_in(said.subspan(head + 4, 4)));
  if (heard.wanted == 0 || heard.wanted > pipe_options::most_peers) return {};
  std::span<const std::byte> rest = said.subspan(head + 8);
  auto name = take_text(rest, url::longest_name);
  if (!name || name->empty()) return {};
  auto address = take_text(rest, longest_address);
  if (!address || !rest.empty()) return {};
  if (address->empty() != (heard.role == pipe_role::writer)) return {};
  heard.name = std::move(*name);
  heard.address = std::move(*address);
  return heard;
}

std::optional<pipe_answer> decode_pipe_answer(std::span<const std::byte> said) {
  pipe_answer heard;
  const std::size_t fixed = head + 8 + heard.token.size();
  if (!begins(said, answer_magic) || said.size() < fixed) return {};
  heard.status = static_cast<std::uint32_t>(pipe_number_in(said.subspan(head, 4)));
  if (pipe_number_in(said.subspan(head + 4, 4)) != 0) return {};
  const std::span<const std::byte> token = said.subspan(head + 8, heard.token.size());
  std::copy(token.begin(), token.end(), heard.token.begin());
  std::span<const std::byte> rest = said.subspan(fixed);
  auto address = take_text(rest, longest_address);
  if (!address || !rest.empty()) return {};
  heard.address = std::move(*address);
  return heard;
}

}  // namespace ucx::detail
