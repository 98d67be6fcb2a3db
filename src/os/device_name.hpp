// The names of UCX's network devices: how they are asked for, and how UCX lists them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ucx::detail {

/// A name taken apart: "mlx5_0:1" is port 1 of the device mlx5_0, "eth0" has no port.
struct device_name {
  std::string_view device;
  std::string_view port;
};

device_name parse_device_name(std::string_view text) noexcept;

/// Returns whether `asked`, one word of a list of devices, stands for the device that UCX lists as
/// `listed`. A word is a whole name, a name without the port (UCX 1.21), a range of numbers
/// ("mlx5_[0-3]:1", UCX 1.22), or "all". Names are compared whole: "mlx5_1" is not "mlx5_10:1".
bool names_device(std::string_view asked, std::string_view listed) noexcept;

/// Returns a list without its blanks, which UCX takes for parts of names that then nothing has.
std::string without_blanks(std::string_view list);

/// Returns a list with the names of the `listed` devices in place of words that stand for several,
/// such as "mlx5_0". UCX before 1.22 knows whole names only.
std::string spelled_out(std::string_view list, const std::vector<std::string>& listed);

/// Takes the first word off the front of a list with commas.
std::string_view take_word(std::string_view& list) noexcept;

/// Returns whether a list as UCX takes it ("eth0,mlx5_0:1", "^eth1") lets the device be used.
bool allows_device(std::string_view list, std::string_view listed) noexcept;

/// UCX ends the process where a list names more (`ucp_is_resource_in_device_list`).
constexpr std::size_t most_devices = 64;

/// Returns how many devices a list names, with ranges counted in full.
std::size_t count_devices(std::string_view list) noexcept;

/// Returns the transport of one of UCX's resources, "rc_verbs/rxe0:1", and its device.
std::string_view transport_of(std::string_view resource) noexcept;
std::string_view device_of(std::string_view resource) noexcept;

}  // namespace ucx::detail
