// Code that a child of fork() runs, for tests of what it inherits and what it makes.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <system_error>

#include "ucx/error.hpp"

namespace ucx::test {

/// What went wrong in a child, line by line; its status says how much that was.
class faults_of_child {
 public:
  void unless(bool holds, const std::string& what) {
    if (holds) return;
    ++count_;
    std::fprintf(stderr, "in the child %d: %s\n", static_cast<int>(::getpid()), what.c_str());
  }
  void unless_inherited(const std::error_code& ec, const std::string& what) {
    unless(ec == errc::forked_child, what + ": " + ec.message());
  }
  /// The same of what throws.
  template <class Call>
  void unless_inherited_thrown(const std::string& what, Call&& call) {
    std::error_code ec;
    try {
      call();
    } catch (const std::system_error& thrown) {
      ec = thrown.code();
    }
    unless_inherited(ec, what);
  }
  /// Does it, and counts what is thrown as a fault.
  void doing(const std::string& what, const std::function<void()>& work) {
    try {
      work();
    } catch (const std::exception& failed) {
      unless(false, what + ": " + failed.what());
    }
  }
  int count() const noexcept { return count_; }

 private:
  int count_ = 0;
};

enum class end_of_child { at_once, by_exit };

/// Returns the status of a child that does this: 0, if nothing went wrong. One that hangs is ended.
inline int status_of_child(const std::function<void(faults_of_child&)>& work,
                           end_of_child how = end_of_child::at_once) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    faults_of_child wrong;
    wrong.doing("the work of a child", [&] { work(wrong); });
    if (how == end_of_child::by_exit) std::exit(wrong.count());  // NOLINT(concurrency-mt-unsafe)
    ::_exit(wrong.count());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace ucx::test
