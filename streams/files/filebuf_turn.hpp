// How a filebuf hands a call to the buffer that does it, which has the areas meanwhile.
#pragma once

#include <cerrno>
#include <ios>
#include <streambuf>
#include <system_error>
#include <utility>

#include "files/errno_of.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"

namespace ucx {

namespace detail {

/// Names the protected members of std::streambuf, so that pointers to them can be used on any.
struct exposed_streambuf : std::streambuf {
  using std::streambuf::eback;
  using std::streambuf::egptr;
  using std::streambuf::epptr;
  using std::streambuf::gptr;
  using std::streambuf::overflow;
  using std::streambuf::pbackfail;
  using std::streambuf::pbase;
  using std::streambuf::pbump;
  using std::streambuf::pptr;
  using std::streambuf::seekoff;
  using std::streambuf::seekpos;
  using std::streambuf::setg;
  using std::streambuf::setp;
  using std::streambuf::showmanyc;
  using std::streambuf::sync;
  using std::streambuf::underflow;
  using std::streambuf::xsgetn;
  using std::streambuf::xsputn;
};

/// Whether what a call returned says that it failed.
inline constexpr auto no_result_fails = [](auto&&) { return false; };
inline constexpr auto minus_one_fails = [](auto&& result) { return std::streamoff(result) == -1; };

}  // namespace detail

/// The inner buffer's turn: while it lasts, that one has the areas, and errno is about it alone.
class filebuf::turn {
 public:
  explicit turn(filebuf& front) noexcept : front_(front), errno_before_(std::exchange(errno, 0)) {
    front.lend_areas();
  }
  ~turn() {
    front_.take_areas();
    if (errno == 0) errno = errno_before_;
  }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

 private:
  filebuf& front_;
  const int errno_before_;
};

template <class Failed, class Remote, class Local, class... Arguments>
auto filebuf::pass_to(Failed failed, Remote by_url, Local by_path, Arguments... arguments) {
  const turn inner_turn(*this);
  if (is_open()) error_.clear();
  try {
    const auto result = by_url_ ? (remote_.*by_url)(arguments...) : (local_.*by_path)(arguments...);
    if (!is_open()) {
      if (!error_) fail(errc::closed);  // else it tells why nothing is open
    } else if (failed(result)) {
      if (by_url_) {
        errno = detail::errno_of(remote_.error());
      } else {
        fail_by_errno();
      }
    } else if (by_url_) {
      errno = 0;  // what the transfers left there is no failure
    }
    return result;
  } catch (const std::system_error& failure) {
    if (!by_url_) fail(failure.code(), failure.what());
    errno = detail::errno_of(failure.code());
    throw;
  }
}

template <class Failed, class Member, class... Arguments>
auto filebuf::pass(Failed failed, Member member, Arguments... arguments) {
  return pass_to(failed, member, member, arguments...);
}

}  // namespace ucx
