#include "support/streams/stream_script.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <istream>
#include <ostream>
#include <sstream>
#include <utility>
#include <vector>

namespace ucx::test {
namespace {

std::size_t position_of(std::iostream& stream) {
  // Not tellg(): that would change the state.
  const auto position = stream.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in | std::ios::out);
  return static_cast<std::size_t>(std::streamoff(position));
}

std::string bits(std::ios_base::iostate state) {
  std::string shown;
  if ((state & std::ios::badbit) != 0) shown += " bad";
  if ((state & std::ios::failbit) != 0) shown += " fail";
  if ((state & std::ios::eofbit) != 0) shown += " eof";
  return shown.empty() ? " good" : shown;
}

/// Long observations are told apart by their ends and a sum.
std::string brief(const std::string& text) {
  if (text.size() <= 80) return text;
  return text.substr(0, 40) + "..." + text.substr(text.size() - 30) + " (" +
         std::to_string(text.size()) + " bytes, " + std::to_string(std::hash<std::string>()(text)) +
         ")";
}

std::string observe(std::iostream& stream, const std::string& result, bool tells_position) {
  std::ostringstream all;
  all << result << " |" << bits(stream.rdstate()) << " gcount " << stream.gcount();
  if (tells_position) all << " at " << position_of(stream);
  return all.str();
}

}  // namespace

std::string sample_text(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text;
  while (text.size() < size) {
    switch (random() % 8) {
      case 0:
        text += '\n';
        break;
      case 1:
        text += std::to_string(random() % 100000);
        break;
      case 2:
        text += '-' + std::to_string(random() % 300);
        break;
      case 3:
        text += static_cast<char>(random() % 256);
        break;
      default:
        for (std::size_t letters = random() % 9; letters > 0; --letters) {
          text += static_cast<char>('a' + random() % 26);
        }
    }
    if (random() % 3 != 0) text += ' ';
  }
  text.resize(size);
  return text;
}

stream_script::stream_script(std::uint64_t seed, std::string content, std::size_t reach,
                             const script_limits& limits)
    : random_(seed), content_(std::move(content)), reach_(reach), limits_(limits) {}

std::uint64_t stream_script::below(std::uint64_t limit) { return random_() % limit; }

/// Mostly short, sometimes as long as it goes.
std::size_t stream_script::length(std::size_t most) {
  const std::size_t limit = std::min(most, reach_) + 1;
  const std::size_t usual = std::min<std::size_t>(limit, 12);
  return static_cast<std::size_t>(below(below(4) == 0 ? limit : usual));
}

testing::AssertionResult stream_script::play(std::iostream& ours, std::iostream& oracle,
                                             std::size_t steps) {
  for (std::size_t i = 0; i < steps; ++i) {
    position_ = position_of(oracle);
    const step current = next(oracle);
    recent_.push_back(current.text);
    if (recent_.size() > 12) recent_.pop_front();
    const bool tells = limits_.tells_always || below(4) == 0;
    const std::string expected = observe(oracle, current.run(oracle), tells);
    ours_in_turn_ = true;
    const std::string actual = observe(ours, current.run(ours), tells);
    ours_in_turn_ = false;
    if (actual == expected) continue;
    auto failure = testing::AssertionFailure();
    failure << "oracle: " << brief(expected) << "\nours:   " << brief(actual) << "\nafter:";
    for (const std::string& text : recent_) failure << "\n  " << text;
    return failure;
  }
  return testing::AssertionSuccess();
}

stream_script::step stream_script::next(std::iostream& oracle) {
  if (!oracle.good() && below(10) < 8) return restore();
  const std::uint64_t kind = below(100);
  if (kind < 20) return seek();
  const bool wants_to_write = limits_.writes && (kind >= 75 || !limits_.reads);
  const direction wanted = wants_to_write ? direction::writing : direction::reading;
  if (direction_ != direction::either && direction_ != wanted) return seek();
  direction_ = wanted;
  if (wants_to_write) return write();
  if (kind < 40) return read_one();
  return kind < 60 ? read_text() : read_block();
}

stream_script::step stream_script::restore() {
  return {"clear()", [](std::iostream& stream) {
            stream.clear();
            return std::string();
          }};
}

stream_script::step stream_script::seek() {
  direction_ = direction::either;
  read_past_buffer_ = false;
  const bool to_put = below(2) == 0;
  const auto size = static_cast<std::streamoff>(content_.size());
  const auto here = static_cast<std::streamoff>(position_);
  const std::streamoff last = limits_.grows ? size + 300 : size;
  std::streamoff target = static_cast<std::streamoff>(below(content_.size() + 1));
  if (below(2) == 0) {
    const auto near = static_cast<std::streamoff>(length(64));
    target = std::clamp<std::streamoff>(here + near - 6, 0, last);
  }
  std::ios::seekdir from = std::ios::beg;
  std::streamoff base = 0;
  switch (below(4)) {
    case 0:
      from = std::ios::cur, base = here;
      break;
    case 1:
      from = std::ios::end, base = size;
      break;
    case 2:
      target = here;
      break;
    default:
      break;
  }
  if (limits_.seeks_outside && below(40) == 0) target = -1 - static_cast<std::streamoff>(below(5));
  // No movement at all would not count as a seek.
  if (from == std::ios::cur && target == here) from = std::ios::beg, base = 0;
  const std::streamoff offset = target - base;
  std::ostringstream text;
  text << (to_put ? "seekp " : "seekg ") << offset << " from " << int(from) << ", to " << target;
  const bool asks_what_left = limits_.asks_what_left;
  return {text.str(), [to_put, offset, from, asks_what_left](std::iostream& stream) {
            if (to_put) {
              stream.seekp(offset, from);
            } else {
              stream.seekg(offset, from);
            }
            // What is left; a file says so only while it has nothing buffered.
            const bool asks = asks_what_left && stream.good();
            const std::streamsize left = asks ? stream.rdbuf()->in_avail() : 0;
            std::ostringstream seen;
            seen << stream.tellg() << ' ' << stream.tellp() << ' ' << left;
            return seen.str();
          }};
}

stream_script::step stream_script::read_one() {
  // libstdc++ 12's files read more than a buffer past the buffer, but still go back inside of it.
  constexpr std::array<std::uint64_t, 3> goes_ahead{0, 2, 7};
  std::uint64_t kind = 7;
  // Behind the end, where there is nothing to go back to, its failing unget moves them all the
  // same.
  const bool goes_back = limits_.goes_back && position_ <= content_.size();
  if (!read_past_buffer_) kind = goes_back ? below(7) : goes_ahead[below(3)];
  switch (kind) {
    case 0:
      return {"peek", [](std::iostream& s) { return std::to_string(s.peek()); }};
    case 1:
      return {"unget", [](std::iostream& s) {
                s.unget();
                return std::string();
              }};
    case 2:
      return {"get, putback of the same", [](std::iostream& s) {
                const int c = s.get();
                if (c != std::char_traits<char>::eof()) s.putback(static_cast<char>(c));
                return std::to_string(c);
              }};
    case 3:
      if (position_ > 0 && position_ <= content_.size()) {
        const char before = content_[position_ - 1];
        return {"putback of what is there", [before](std::iostream& s) {
                  s.putback(before);
                  return std::string();
                }};
      }
      [[fallthrough]];
    default: {
      const std::size_t count = length(64);
      return {"get x " + std::to_string(count), [count](std::iostream& s) {
                std::string got;
                for (std::size_t i = 0; i < count; ++i) got += std::to_string(s.get()) + ' ';
                return got;
              }};
    }
  }
}

stream_script::step stream_script::read_text() {
  switch (below(6)) {
    case 0:
      return {"getline", [](std::iostream& s) {
                std::string line;
                std::getline(s, line);
                return line;
              }};
    case 1: {
      const std::size_t room = length(200) + 1;
      return {"getline into " + std::to_string(room), [room](std::iostream& s) {
                std::vector<char> line(room, '#');
                s.getline(line.data(), static_cast<std::streamsize>(room), ' ');
                return std::string(line.data());
              }};
    }
    case 2: {
      const std::size_t room = length(200) + 1;
      return {"get into " + std::to_string(room), [room](std::iostream& s) {
                std::vector<char> line(room, '#');
                s.get(line.data(), static_cast<std::streamsize>(room));
                return std::string(line.data());
              }};
    }
    case 3:
      return {">> int", [](std::iostream& s) {
                int number = -7;
                s >> number;
                return std::to_string(number);
              }};
    case 4:
      return {">> word", [](std::iostream& s) {
                std::string word;
                s >> word;
                return word;
              }};
    default:
      return {"get into a streambuf", [](std::iostream& s) {
                std::ostringstream rest;
                s.get(*rest.rdbuf(), '\n');
                return rest.str();
              }};
  }
}

stream_script::step stream_script::read_block() {
  const std::size_t count = length(content_.size() + 3);
  const auto size = static_cast<std::streamsize>(count);
  const std::string suffix = " " + std::to_string(count);
  switch (below(6)) {
    case 0:
      return {"ignore" + suffix, [size](std::iostream& s) {
                s.ignore(size);
                return std::string();
              }};
    case 1:
      return {"ignore up to a line's end" + suffix, [size](std::iostream& s) {
                s.ignore(size, '\n');
                return std::string();
              }};
    case 2:
      if (!limits_.asks_what_left) return read_one();
      // After a seek, because what a file has buffered depends on the size of its buffer.
      return {"seekg to here, readsome" + suffix, [size](std::iostream& s) {
                std::string bytes(static_cast<std::size_t>(size), '#');
                if (!s.good()) return std::string("not good");
                s.seekg(s.tellg());
                return std::to_string(s.readsome(bytes.data(), size)) + bytes;
              }};
    case 3:
      return {"sync", [](std::iostream& s) { return std::to_string(s.sync()); }};
    default:
      read_past_buffer_ = read_past_buffer_ || count > 4000;
      return {"read" + suffix, [this, size](std::iostream& s) {
                std::string bytes(static_cast<std::size_t>(size), '#');
                with_memory(bytes, [&](char* there) { s.read(there, size); });
                return bytes;
              }};
  }
}

stream_script::step stream_script::write() {
  const std::size_t room =
      limits_.grows ? reach_ : content_.size() - std::min(position_, content_.size());
  switch (below(6)) {
    case 0:
      return {"flush", [](std::iostream& s) {
                s.flush();
                return std::string();
              }};
    case 1: {
      const std::string number = std::to_string(below(1000000));
      return number.size() <= room ? put(number, true) : put("", false);
    }
    case 2: {
      std::string bytes = sample_text(std::min<std::size_t>(room, 3), random_());
      return put(std::move(bytes), true);
    }
    default:
      return put(sample_text(length(room), random_()), false);
  }
}

void stream_script::with_memory(std::string& bytes, const std::function<void(char*)>& use) const {
  if (memory_ && ours_in_turn_) {
    memory_(bytes, use);
  } else {
    use(bytes.data());
  }
}

/// REQUIRES: `bytes` fit. They are in the content only if the stream was good.
stream_script::step stream_script::put(std::string bytes, bool formatted) {
  const std::string text = (formatted ? "<< " : "write ") + std::to_string(bytes.size()) + " bytes";
  const std::size_t at = limits_.appends ? content_.size() : position_;
  return {text, [this, at, bytes, formatted](std::iostream& s) {
            if (s.good() && !bytes.empty()) {
              content_.resize(std::max(content_.size(), at + bytes.size()));
              std::copy(bytes.begin(), bytes.end(), content_.begin() + std::ptrdiff_t(at));
            }
            if (formatted) {
              s << bytes;
            } else {
              std::string same = bytes;
              with_memory(same, [&](char* there) {
                s.write(there, static_cast<std::streamsize>(bytes.size()));
              });
            }
            // libstdc++ tells a wrong place of what is still to be appended.
            if (limits_.appends) s.flush();
            return std::string();
          }};
}

}  // namespace ucx::test
