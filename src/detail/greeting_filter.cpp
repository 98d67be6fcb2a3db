#include "detail/greeting_filter.hpp"

#include <linux/filter.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cstdint>

namespace ucx::detail::greeting_filter {
namespace {

/// Where a test leads: to the next step, or to one of the filter's ends.
enum class to { next, pass, drop, first_of_several };

struct step {
  unsigned code;
  std::uint32_t k = 0;
  to if_true = to::next;
  to if_false = to::next;
};

constexpr unsigned load_byte = BPF_LD | BPF_B | BPF_IND;
constexpr unsigned load_word = BPF_LD | BPF_W | BPF_IND;
constexpr unsigned equals = BPF_JMP | BPF_JEQ | BPF_K;
constexpr unsigned is_at_least = BPF_JMP | BPF_JGE | BPF_K;

// Places in the filter's memory.
constexpr std::uint32_t payload = 0;
constexpr std::uint32_t high_byte = 1;

// Loads are big-endian; the length in UCX's header is as its host has it, little-endian.
constexpr std::array steps{
    step{BPF_LD | BPF_B | BPF_ABS, 12},  // how long TCP's header is, in X from now on
    step{BPF_ALU | BPF_RSH | BPF_K, 4},
    step{BPF_ALU | BPF_LSH | BPF_K, 2},
    step{BPF_MISC | BPF_TAX},
    step{BPF_LD | BPF_W | BPF_LEN},
    step{BPF_ALU | BPF_SUB | BPF_X},
    step{equals, 0, to::pass},
    step{is_at_least, header_size, to::next, to::drop},
    step{BPF_ST, payload},
    step{load_word, 4},  // a length of 2^32 or more
    step{equals, 0, to::next, to::drop},
    step{load_word, 8},  // what is behind the length is 0
    step{equals, 0, to::next, to::drop},
    step{load_word, 12},
    step{equals, 0, to::next, to::drop},
    step{BPF_LD | BPF_H | BPF_IND, 2},  // a length of 2^16 or more
    step{equals, 0, to::next, to::drop},
    step{load_byte, 1},
    step{BPF_ALU | BPF_LSH | BPF_K, 8},
    step{BPF_ST, high_byte},
    step{load_byte, 0},
    step{BPF_LDX | BPF_MEM, high_byte},
    step{BPF_ALU | BPF_OR | BPF_X},
    step{BPF_ALU | BPF_ADD | BPF_K, header_size},  // how long all of it is
    step{BPF_LDX | BPF_MEM, payload},
    step{BPF_JMP | BPF_JGT | BPF_X, 0, to::first_of_several},
    step{BPF_JMP | BPF_JEQ | BPF_X, 0, to::next, to::drop},
    step{equals, header_size, to::pass},
    step{is_at_least, least_greeting, to::pass, to::drop},
};

constexpr std::array ends{
    ::sock_filter{BPF_LD | BPF_MEM, 0, 0, payload},  // to::first_of_several
    ::sock_filter{BPF_JMP | BPF_JGE | BPF_K, 0, 1, least_full_segment},
    ::sock_filter{BPF_RET | BPF_K, 0, 0, 0xffffffff},  // to::pass
    ::sock_filter{BPF_RET | BPF_K, 0, 0, 0},           // to::drop
};

constexpr std::uint8_t distance(std::size_t from, to where) {
  switch (where) {
    case to::next:
      return 0;
    case to::first_of_several:
      return static_cast<std::uint8_t>(steps.size() - from - 1);
    case to::pass:
      return static_cast<std::uint8_t>(steps.size() + 2 - from - 1);
    case to::drop:
      return static_cast<std::uint8_t>(steps.size() + 3 - from - 1);
  }
  return 0;
}

constexpr auto assembled = [] {
  std::array<::sock_filter, steps.size() + ends.size()> made = {};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    made[i] = {static_cast<std::uint16_t>(steps[i].code), distance(i, steps[i].if_true),
               distance(i, steps[i].if_false), steps[i].k};
  }
  for (std::size_t i = 0; i < ends.size(); ++i) made[steps.size() + i] = ends[i];
  return made;
}();

}  // namespace

std::span<const ::sock_filter> program() noexcept { return assembled; }

bool attach(int listening) noexcept {
  if constexpr (std::endian::native != std::endian::little) return false;
  // The system copies it, and has no use for the right to write it.
  const ::sock_fprog given{assembled.size(), const_cast<::sock_filter*>(assembled.data())};
  return ::setsockopt(listening, SOL_SOCKET, SO_ATTACH_FILTER, &given, sizeof given) == 0;
}

void detach(int connection) noexcept {
  const int ignored = 0;
  ::setsockopt(connection, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored);
}

}  // namespace ucx::detail::greeting_filter
