// What the ends of a pipe say to each other, and to a broker: whole, cut off, and mangled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "message/matches.hpp"
#include "pipes/pipe_frame.hpp"
#include "pipes/pipe_introduction.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::detail {
namespace {

using bytes = std::vector<std::byte>;

template <class Array>
bytes bytes_of(const Array& made) {
  return {made.begin(), made.end()};
}

bytes numbers(std::initializer_list<unsigned> values) {
  bytes made;
  for (const unsigned each : values) made.push_back(static_cast<std::byte>(each));
  return made;
}

TEST(PipeFrame, TagsSayWhatIsInIt) {
  EXPECT_EQ(pipe_tag(pipe_said::hello), 0x7563786970697011U);
  EXPECT_EQ(pipe_tag(pipe_said::data, 0x1234), 0x7563786964123401U);
  EXPECT_EQ(pipe_said_of(0x7563786964123409U), pipe_said::placed);
  EXPECT_EQ(pipe_number_of(0x7563786964123409U), 0x1234U);
  for (const pipe_said of_reader :
       {pipe_said::hello, pipe_said::taken, pipe_said::left, pipe_said::ring}) {
    EXPECT_TRUE(detail::matches(pipe_of_reader(), pipe_tag(of_reader)));
    EXPECT_FALSE(detail::matches(pipe_of_data(), pipe_tag(of_reader)));
  }
  EXPECT_FALSE(detail::matches(pipe_of_reader(), pipe_tag(pipe_said::end)));
  EXPECT_FALSE(detail::matches(pipe_of_data(), pipe_tag(pipe_said::end)));
  for (const pipe_said of_writer : {pipe_said::data, pipe_said::placed}) {
    for (const unsigned each : {0U, 1U, 0x6d65U, 0xffffU}) {
      const auto number = static_cast<std::uint16_t>(each);
      EXPECT_FALSE(detail::matches(pipe_of_reader(), pipe_tag(of_writer, number)));
      EXPECT_TRUE(detail::matches(pipe_of_data(), pipe_tag(of_writer, number)));
    }
  }
}

TEST(PipeFrame, HelloIsTheseBytes) {
  const pipe_hello said{.receives = 0x203, .piece = 0x1234, .window = 0x123456};
  const bytes wire = bytes_of(encode(said));
  EXPECT_EQ(wire, numbers({'U', 'X', 'P', 'I', 1,    0,    3,    2, 0x34, 0x12, 0, 0,
                           0,   0,   0,   0,   0x56, 0x34, 0x12, 0, 0,    0,    0, 0}));
  const auto heard = decode_pipe_hello(wire);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->version, pipe_version);
  EXPECT_EQ(heard->receives, said.receives);
  EXPECT_EQ(heard->piece, said.piece);
  EXPECT_EQ(heard->window, said.window);
}

TEST(PipeFrame, HelloOfAnotherVersionTellsItAlone) {
  bytes wire = bytes_of(encode(pipe_hello{.piece = 4096, .window = 65536}));
  wire[4] = std::byte{2};
  wire.resize(100, std::byte{0xff});
  const auto heard = decode_pipe_hello(wire);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->version, 2);
  wire[4] = std::byte{0};
  EXPECT_FALSE(decode_pipe_hello(wire));
}

TEST(PipeFrame, HelloHasToMakeSense) {
  const auto is_taken = [](std::uint64_t piece, std::uint64_t window) {
    return decode_pipe_hello(encode(pipe_hello{.piece = piece, .window = window})).has_value();
  };
  EXPECT_TRUE(is_taken(least_pipe_piece, least_pipe_piece));
  EXPECT_TRUE(is_taken(most_pipe_window, most_pipe_window));
  EXPECT_FALSE(is_taken(least_pipe_piece - 1, 65536));
  EXPECT_FALSE(is_taken(0, 0));
  EXPECT_FALSE(decode_pipe_hello(encode(pipe_hello{.receives = 0, .piece = 4096, .window = 4096})));
  EXPECT_FALSE(is_taken(65536, 65535));
  EXPECT_FALSE(is_taken(65536, most_pipe_window + 1));
  EXPECT_FALSE(is_taken(~std::uint64_t{0}, ~std::uint64_t{0}));
}

TEST(PipeFrame, EndIsTheseBytes) {
  const bytes wire = bytes_of(encode(pipe_end{0x0102030405060708, 18}));
  EXPECT_EQ(wire, numbers({8, 7, 6, 5, 4, 3, 2, 1, 18, 0, 0, 0, 0, 0, 0, 0}));
  const auto heard = decode_pipe_end(wire);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->total, 0x0102030405060708U);
  EXPECT_EQ(heard->status, 18U);
}

TEST(PipeFrame, PlaceIsTheseBytes) {
  const bytes wire = bytes_of(encode(pipe_place{0x0102, 0x03040506}));
  EXPECT_EQ(wire, numbers({2, 1, 0, 0, 6, 5, 4, 3}));
  const auto heard = decode_pipe_place(wire);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->place, 0x0102U);
  EXPECT_EQ(heard->length, 0x03040506U);
  EXPECT_FALSE(decode_pipe_place(std::span(wire).first(7)));
  EXPECT_FALSE(decode_pipe_place(numbers({0, 0, 0, 0, 0, 0, 0, 0, 0})));
}

TEST(PipeFrame, RingIsTheseBytes) {
  const pipe_ring said{.places = 33, .stride = 4096, .descriptor = numbers({7, 8, 9})};
  const bytes wire = encode(said);
  EXPECT_EQ(wire, numbers({33, 0, 0, 0, 0, 16, 0, 0, 7, 8, 9}));
  const auto heard = decode_pipe_ring(wire);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->places, said.places);
  EXPECT_EQ(heard->stride, said.stride);
  EXPECT_EQ(heard->descriptor, said.descriptor);
}

TEST(PipeFrame, RingHasToMakeSense) {
  const auto is_taken = [](std::uint32_t places, std::uint32_t stride, std::size_t length) {
    return decode_pipe_ring(encode(pipe_ring{places, stride, bytes(length)})).has_value();
  };
  EXPECT_TRUE(is_taken(1, 1024, 1));
  EXPECT_TRUE(is_taken(pipe_ring::most_places, pipe_ring::most_stride, longest_of_reader - 8));
  EXPECT_FALSE(is_taken(0, 1024, 1));
  EXPECT_FALSE(is_taken(pipe_ring::most_places + 1, 1024, 1));
  EXPECT_FALSE(is_taken(1, 1023, 1));
  EXPECT_FALSE(is_taken(1, pipe_ring::most_stride + 1, 1));
  EXPECT_FALSE(is_taken(1, 1024, 0));
  EXPECT_FALSE(is_taken(1, 1024, longest_of_reader - 7));
  EXPECT_FALSE(decode_pipe_ring({}));
}

TEST(PipeFrame, TakesNothingCutOff) {
  const bytes hello = bytes_of(encode(pipe_hello{.piece = 4096, .window = 65536}));
  for (std::size_t size = 0; size < hello.size(); ++size) {
    EXPECT_FALSE(decode_pipe_hello(std::span(hello).first(size))) << size;
  }
  const bytes end = bytes_of(encode(pipe_end{1, 0}));
  for (std::size_t size = 0; size < end.size(); ++size) {
    EXPECT_FALSE(decode_pipe_end(std::span(end).first(size))) << size;
  }
  const bytes count = bytes_of(encode_pipe_count(77));
  for (std::size_t size = 0; size < count.size(); ++size) {
    EXPECT_FALSE(decode_pipe_count(std::span(count).first(size))) << size;
  }
  EXPECT_EQ(decode_pipe_count(count), 77U);
  bytes longer = count;
  longer.push_back({});
  EXPECT_FALSE(decode_pipe_count(longer));
}

TEST(PipeFrame, SurvivesEveryFlippedBit) {
  const bytes hello = bytes_of(encode(pipe_hello{.piece = 4096, .window = 65536}));
  const bytes end = bytes_of(encode(pipe_end{1000, 0}));
  for (std::size_t bit = 0; bit < 8 * hello.size(); ++bit) {
    bytes flipped = hello;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    const auto heard = decode_pipe_hello(flipped);
    if (bit < 32 || bit == 48) {
      EXPECT_FALSE(heard) << bit;
    }
    if (heard && heard->version == pipe_version) {
      EXPECT_GE(heard->piece, least_pipe_piece);
      EXPECT_GE(heard->window, heard->piece);
      EXPECT_LE(heard->window, most_pipe_window);
    }
  }
  for (std::size_t bit = 0; bit < 8 * end.size(); ++bit) {
    bytes flipped = end;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_EQ(decode_pipe_end(flipped).has_value(), bit < 96) << bit;
  }
}

pipe_question question() {
  return {.role = pipe_role::reader, .wanted = 3, .name = "a/name", .address = "127.0.0.1:7471"};
}

worker_address worker_of(std::size_t size) {
  return worker_address::from_native(bytes(size, std::byte{0x77}));
}

/// The same by a worker's address, as where there is no IP address.
pipe_question question_by_worker() {
  pipe_question said = question();
  said.address.clear();
  said.worker = worker_of(300);
  return said;
}

bytes mangled(bytes wire, std::size_t bit) {
  wire[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  return wire;
}

TEST(PipeIntroduction, QuestionIsTheseBytes) {
  pipe_question said{.role = pipe_role::both, .wanted = 1, .name = "n", .address = "h:1"};
  EXPECT_EQ(encode(said), numbers({'U', 'X', 'P', 'Q', 2, 0,   0, 0, 3,   0,   0,   0, 1,
                                   0,   0,   0,   1,   0, 'n', 3, 0, 'h', ':', '1', 0, 0}));
  said.version = oldest_meeting_version;
  EXPECT_EQ(encode(said), numbers({'U', 'X', 'P', 'Q', 1, 0, 0,   0, 3, 0,   0,   0,
                                   1,   0,   0,   0,   1, 0, 'n', 3, 0, 'h', ':', '1'}));
  said.version = keyed_meeting_version;
  EXPECT_EQ(encode(said), numbers({'U', 'X', 'P', 'Q', 3, 0,   0, 0, 3,   0,   0,   0, 1,
                                   0,   0,   0,   1,   0, 'n', 3, 0, 'h', ':', '1', 0, 0}));
  said.version = pipe_meeting_version;
  said.address.clear();
  said.worker = worker_of(1);
  const bytes wire = encode(said);
  EXPECT_EQ(bytes(wire.begin(), wire.begin() + 27),
            numbers({'U', 'X', 'P', 'Q', 2,   0, 0, 0,  3, 0,   0,   0,   1,  0,
                     0,   0,   1,   0,   'n', 0, 0, 21, 0, 'U', 'X', 'W', 'A'}));
}

TEST(PipeIntroduction, CarriesQuestionAndAnswer) {
  const auto asked = decode_pipe_question(encode(question()));
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->version, pipe_meeting_version);
  EXPECT_TRUE(asked->worker.empty());
  EXPECT_EQ(asked->role, pipe_role::reader);
  EXPECT_EQ(asked->wanted, 3U);
  EXPECT_EQ(asked->name, "a/name");
  EXPECT_EQ(asked->address, "127.0.0.1:7471");
  pipe_answer said{.status = 7, .address = "[::1]:5"};
  std::fill(said.token.begin(), said.token.end(), std::byte{0xab});
  const auto heard = decode_pipe_answer(encode(said));
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->status, 7U);
  EXPECT_EQ(heard->token, said.token);
  EXPECT_EQ(heard->address, "[::1]:5");
}

TEST(PipeIntroduction, CarriesWorkerAddresses) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{300}, longest_pipe_worker - 20}) {
    pipe_question said = question_by_worker();
    said.worker = worker_of(size);
    EXPECT_LE(encode(said).size(), pipe_question::longest);
    const auto asked = decode_pipe_question(encode(said));
    ASSERT_TRUE(asked) << size;
    EXPECT_EQ(asked->worker, worker_of(size));
    EXPECT_EQ(asked->address, "");
    const bytes answered = encode(pipe_answer{.worker = worker_of(size)});
    EXPECT_LE(answered.size(), pipe_answer::longest);
    const auto heard = decode_pipe_answer(answered);
    ASSERT_TRUE(heard) << size;
    EXPECT_EQ(heard->worker, worker_of(size));
  }
}

TEST(PipeIntroduction, IsReadInTheVersionOfWhoKnowsSocketsOnly) {
  pipe_question said = question();
  said.version = oldest_meeting_version;
  const auto asked = decode_pipe_question(encode(said));
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->version, oldest_meeting_version);
  EXPECT_EQ(asked->address, "127.0.0.1:7471");
  const auto heard = decode_pipe_answer(
      encode(pipe_answer{.version = oldest_meeting_version, .address = "127.0.0.1:1"}));
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->version, oldest_meeting_version);
  for (const unsigned unknown : {0U, 4U, 0x101U}) {
    bytes later = encode(question());
    later[4] = static_cast<std::byte>(unknown & 0xffU);
    later[5] = static_cast<std::byte>(unknown >> 8U);
    EXPECT_FALSE(decode_pipe_question(later)) << unknown;
  }
}

TEST(PipeIntroduction, RefusesWhatMakesNoSense) {
  const auto is_taken = [](auto change) {
    pipe_question said = question();
    change(said);
    return decode_pipe_question(encode(said)).has_value();
  };
  EXPECT_TRUE(is_taken([](auto&) {}));
  EXPECT_TRUE(is_taken([](auto& said) { said.wanted = pipe_options::max_peers; }));
  EXPECT_FALSE(is_taken([](auto& said) { said.wanted = pipe_options::max_peers + 1; }));
  EXPECT_FALSE(is_taken([](auto& said) { said.wanted = 0; }));
  EXPECT_FALSE(is_taken([](auto& said) { said.name.clear(); }));
  EXPECT_FALSE(is_taken([](auto& said) { said.name.assign(1025, 'n'); }));
  EXPECT_FALSE(is_taken([](auto& said) { said.address.assign(129, '1'); }));
  EXPECT_FALSE(is_taken([](auto& said) { said.address.clear(); }));
  EXPECT_FALSE(is_taken([](auto& said) { said.role = pipe_role::writer; }));
  EXPECT_FALSE(is_taken([](auto& said) { said.role = static_cast<pipe_role>(4); }));
  EXPECT_FALSE(is_taken([](auto& said) { said.role = static_cast<pipe_role>(0); }));
  EXPECT_FALSE(is_taken([](auto& said) { said.worker = worker_of(300); })) << "it has two";
  EXPECT_FALSE(is_taken([](auto& said) {
    said = question_by_worker();
    said.role = pipe_role::writer;
  }));
  EXPECT_FALSE(is_taken([](auto& said) {
    said = question_by_worker();
    said.worker = worker_of(longest_pipe_worker - 19);
  }));
  EXPECT_FALSE(
      decode_pipe_answer(encode(pipe_answer{.address = "127.0.0.1:1", .worker = worker_of(300)})));
  // An address that reaches nobody is none.
  const bytes envelope = worker_address().encode();
  bytes wire = encode(pipe_answer{});
  wire[wire.size() - 2] = static_cast<std::byte>(envelope.size());
  wire.insert(wire.end(), envelope.begin(), envelope.end());
  EXPECT_FALSE(decode_pipe_answer(wire));
}

TEST(PipeIntroduction, RefusesEveryDamageToAWorkerAddress) {
  const bytes asked = encode(question_by_worker());
  const bytes answered = encode(pipe_answer{.worker = worker_of(300)});
  // The address, and its length before it, are the last of both.
  const std::size_t length = 2 + worker_of(300).encode().size();
  for (std::size_t bit = 8 * (asked.size() - length); bit < 8 * asked.size(); ++bit) {
    EXPECT_FALSE(decode_pipe_question(mangled(asked, bit))) << bit;
  }
  for (std::size_t bit = 8 * (answered.size() - length); bit < 8 * answered.size(); ++bit) {
    EXPECT_FALSE(decode_pipe_answer(mangled(answered, bit))) << bit;
  }
}

TEST(PipeIntroduction, TakesNothingCutOffOrLonger) {
  for (const pipe_question& said : {question(), question_by_worker()}) {
    bytes asked = encode(said);
    for (std::size_t size = 0; size < asked.size(); ++size) {
      EXPECT_FALSE(decode_pipe_question(std::span(asked).first(size))) << size;
    }
    bytes answered = encode(pipe_answer{.address = said.address, .worker = said.worker});
    for (std::size_t size = 0; size < answered.size(); ++size) {
      EXPECT_FALSE(decode_pipe_answer(std::span(answered).first(size))) << size;
    }
    asked.push_back({});
    answered.push_back({});
    EXPECT_FALSE(decode_pipe_question(asked));
    EXPECT_FALSE(decode_pipe_answer(answered));
  }
}

TEST(PipeIntroduction, SurvivesEveryFlippedBit) {
  constexpr std::size_t to_keyed = 32;  // from version 2 to version 3
  for (const pipe_question& said : {question(), question_by_worker()}) {
    const bytes asked = encode(said);
    for (std::size_t bit = 0; bit < 8 * asked.size(); ++bit) {
      const auto heard = decode_pipe_question(mangled(asked, bit));
      if (bit < 64) {
        EXPECT_EQ(heard.has_value(), bit == to_keyed) << bit;
      }
      if (heard) {
        EXPECT_GE(heard->wanted, 1U);
        EXPECT_LE(heard->wanted, pipe_options::max_peers);
        EXPECT_FALSE(heard->name.empty());
        EXPECT_EQ(heard->worker, said.worker);
      }
    }
    const bytes answered = encode(pipe_answer{.address = said.address, .worker = said.worker});
    for (std::size_t bit = 0; bit < 8 * answered.size(); ++bit) {
      const auto heard = decode_pipe_answer(mangled(answered, bit));
      if (bit < 64) {
        EXPECT_EQ(heard.has_value(), bit == to_keyed) << bit;
      }
      if (heard) {
        EXPECT_EQ(heard->worker, said.worker);
      }
    }
  }
}

}  // namespace
}  // namespace ucx::detail
