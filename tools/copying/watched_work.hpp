// Work that shows how far it is, and ends as it would without that when it is interrupted.
#pragma once

#include <functional>

#include "output/progress_line.hpp"
#include "output/transfer_counters.hpp"

namespace ucx::tool {

/// Runs `work`, which counts, and shows how it ended. A signal ends the process at once, as
/// always; what is shown says so. Errors: those of `work`. REQUIRES: called before any other
/// thread is made, which inherits what is done about signals.
void run_watched(progress_mode mode, const transfer_counters& counters, bool may_be_drawn,
                 const std::function<void(progress_line&)>& work);

}  // namespace ucx::tool
