// A context of UCX's whose memory and workers other programs reach by UCX alone, for Python.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/context.hpp>

namespace ucxio_python {

/// The context, for Python: `UCXContext` is made of it.
class plain_context_object {
 public:
  /// Makes a context, without the GIL. `features` are names of `ucx::feature`'s values. Without
  /// `transports` the configuration decides.
  plain_context_object(const std::map<std::string, std::string>& configuration,
                       const std::vector<std::string>& transports,
                       const std::vector<std::string>& features);
  plain_context_object(const plain_context_object&) = delete;
  plain_context_object& operator=(const plain_context_object&) = delete;
  ~plain_context_object();

  /// Keeps the context.
  const std::shared_ptr<ucx::context>& shared() const noexcept { return of_; }

  std::vector<std::pair<std::string, std::string>> configuration() const;
  std::string description() const;
  bool supports_cuda() const;
  std::uintptr_t native_handle() const;

 private:
  std::shared_ptr<ucx::context> of_;
};

void add_plain_context(nanobind::module_& module);

}  // namespace ucxio_python
