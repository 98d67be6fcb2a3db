// The handlers of connections that options had before `connection_events`; for one version.
#pragma once

#include <utility>

#include "ucx/connection_report.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/worker_options.hpp"

namespace ucx::detail {

/// Returns the events of `options`, and where they say nothing, the handlers of before.
template <class Options>
connection_events events_of(Options& options) {
  connection_events events = std::move(options.events);
  if (auto& before = options.on_established.handler; before && !events.on_established) {
    events.on_established = [before = std::move(before)](const endpoint&,
                                                         const connection_report& report) mutable {
      before(report);
    };
  }
  if (!events.on_refused) events.on_refused = std::move(options.on_refused.handler);
  if (!events.on_closed) events.on_closed = std::move(options.on_closed.handler);
  return events;
}

inline connection_events events_of(const worker_options& options) {
  return {options.on_established.handler, options.on_refused.handler, options.on_closed.handler};
}

}  // namespace ucx::detail
