#include "os/greeting_filter.hpp"

#include <linux/filter.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cstdint>

namespace ucx::detail::greeting_filter {
namespace {

/// Where a test leads: to the next step, to one that is named, or to one of the filter's ends.
enum class to { next, whole, body, second_version, address, pass, drop };

struct step {
  unsigned code;
  std::uint32_t k = 0;
  to if_true = to::next;
  to if_false = to::next;
  to name = to::next;  // of this step
};

constexpr unsigned load_byte = BPF_LD | BPF_B | BPF_IND;
constexpr unsigned load_word = BPF_LD | BPF_W | BPF_IND;
constexpr unsigned equals = BPF_JMP | BPF_JEQ | BPF_K;
constexpr unsigned is_at_least = BPF_JMP | BPF_JGE | BPF_K;
constexpr unsigned is_more = BPF_JMP | BPF_JGT | BPF_K;

// Places in the filter's memory.
constexpr std::uint32_t payload = 0;
constexpr std::uint32_t high_byte = 1;
constexpr std::uint32_t header_end = 2;  // of TCP's header

// Behind UCX's header come a number of eight bytes, and a byte with version and flags. In the first
// version two bytes follow: the kind of the address, and the number of a device. The address comes
// last. UCX ends the process at an address of a version that it does not know.
constexpr std::uint32_t version_place = header_size + 8;
constexpr std::uint32_t version_shift = 5;
constexpr std::uint32_t kind_place = version_place + 1;
constexpr std::uint32_t kind_of_listeners = 2;
constexpr std::uint32_t first_address = version_place + 3;
constexpr std::uint32_t second_address = version_place + 1;
constexpr std::uint32_t address_version_bits = 0x0f;  // of the address's first byte
constexpr std::uint32_t newest_address = 1;           // UCX's name for it is v2

// Loads are big-endian; the length in UCX's header is as its host has it, little-endian.
constexpr std::array steps{
    step{BPF_LD | BPF_B | BPF_ABS, 12},  // how long TCP's header is, in X from now on
    step{BPF_ALU | BPF_RSH | BPF_K, 4},
    step{BPF_ALU | BPF_LSH | BPF_K, 2},
    step{BPF_ST, header_end},
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
    step{is_more, longest_greeting, to::drop},
    step{BPF_LDX | BPF_MEM, payload},
    step{BPF_JMP | BPF_JGT | BPF_X, 0, to::next, to::whole},
    step{BPF_LD | BPF_MEM, payload},
    step{is_at_least, least_full_segment, to::body, to::drop},
    step{BPF_JMP | BPF_JEQ | BPF_X, 0, to::next, to::drop, to::whole},
    step{equals, header_size, to::pass},
    step{is_at_least, least_greeting, to::next, to::drop},
    step{BPF_LDX | BPF_MEM, header_end, to::next, to::next, to::body},
    step{load_byte, version_place},
    step{BPF_ALU | BPF_RSH | BPF_K, version_shift},
    step{equals, 0, to::next, to::second_version},
    step{load_byte, kind_place},
    step{equals, kind_of_listeners, to::next, to::drop},
    step{load_byte, first_address},
    step{is_at_least, 0, to::address},  // always
    step{equals, 1, to::next, to::drop, to::second_version},
    step{load_byte, second_address},
    step{BPF_ALU | BPF_AND | BPF_K, address_version_bits, to::next, to::next, to::address},
    step{is_more, newest_address, to::drop, to::pass},
};

constexpr std::array ends{
    ::sock_filter{BPF_RET | BPF_K, 0, 0, 0xffffffff},  // to::pass
    ::sock_filter{BPF_RET | BPF_K, 0, 0, 0},           // to::drop
};

/// Returns how many steps are left out on the way.
constexpr std::uint8_t distance(std::size_t from, to where) {
  if (where == to::next) return 0;
  std::size_t found = steps.size() + (where == to::drop ? 1 : 0);
  for (std::size_t i = from + 1; i < steps.size(); ++i) {
    if (steps[i].name == where) found = i;
  }
  return static_cast<std::uint8_t>(found - from - 1);
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
