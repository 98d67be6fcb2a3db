#include "ucp/configuration_key.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace ucx::detail {
namespace {

using form = value_rule::form;
using arity = value_rule::arity;

/// The prefix of a key: since UCX 1.17, and before.
struct prefix {
  std::string_view now;
  std::string_view before;
};

// One list for each layer of UCX's transports that has separate keys.
constexpr prefix process[]{{"", ""}};
constexpr prefix hooks[]{{"MEM_", "MEM_"}};
constexpr prefix tcp[]{{"TCP_", ""}};
constexpr prefix tcp_manager[]{{"TCP_CM_", ""}};
constexpr prefix managers[]{{"CM_", "CM_"}, {"TCP_CM_", "CM_"}, {"RDMA_CM_", "CM_"}};
constexpr prefix rdma_manager[]{{"RDMA_CM_", ""}};
constexpr prefix self[]{{"SELF_", ""}};
constexpr prefix every_interface[]{
    {"TCP_", ""}, {"SELF_", ""}, {"CUDA_COPY_", ""}, {"CUDA_IPC_", ""}, {"GDR_COPY_", ""}};
constexpr prefix shared_memory[]{{"SM_", "SM_"},    {"POSIX_", "SM_"}, {"SYSV_", "SM_"},
                                 {"XPMEM_", "SM_"}, {"CMA_", "SM_"},   {"KNEM_", "SM_"}};
constexpr prefix mapped[]{{"MM_", "MM_"}, {"POSIX_", "MM_"}, {"SYSV_", "MM_"}, {"XPMEM_", "MM_"}};
constexpr prefix posix[]{{"POSIX_", ""}};
constexpr prefix copied[]{{"SCOPY_", "SCOPY_"}, {"CMA_", "SCOPY_"}, {"KNEM_", "SCOPY_"}};
constexpr prefix cma[]{{"CMA_", ""}};
constexpr prefix ib_domain[]{{"IB_", ""}};
constexpr prefix ib[]{{"IB_", "IB_"},       {"RC_", "RC_"},       {"UD_", "UD_"},
                      {"DC_", "DC_"},       {"RC_VERBS_", "RC_"}, {"RC_MLX5_", "RC_"},
                      {"UD_VERBS_", "UD_"}, {"UD_MLX5_", "UD_"},  {"DC_MLX5_", "DC_"}};
constexpr prefix mlx5[]{{"IB_", "IB_"},      {"RC_", "RC_"},      {"DC_", "DC_"},
                        {"RC_MLX5_", "RC_"}, {"UD_MLX5_", "IB_"}, {"DC_MLX5_", "DC_"}};
constexpr prefix rc[]{
    {"RC_", "RC_"}, {"DC_", "DC_"}, {"RC_VERBS_", "RC_"}, {"RC_MLX5_", "RC_"}, {"DC_MLX5_", "DC_"}};
constexpr prefix rc_alone[]{{"RC_", "RC_"}, {"RC_VERBS_", "RC_"}, {"RC_MLX5_", "RC_"}};
constexpr prefix rc_verbs[]{{"RC_VERBS_", ""}};
constexpr prefix rc_mlx5[]{
    {"RC_", "RC_"}, {"DC_", "DC_"}, {"RC_MLX5_", "RC_"}, {"DC_MLX5_", "DC_"}};
constexpr prefix dc[]{{"DC_", "DC_"}, {"DC_MLX5_", "DC_"}};
constexpr prefix ud[]{{"UD_", "UD_"}, {"UD_VERBS_", "UD_"}, {"UD_MLX5_", "UD_"}};
constexpr prefix ud_mlx5[]{{"UD_", "UD_"}, {"UD_MLX5_", "UD_"}, {"DC_MLX5_", "UD_"}};
constexpr prefix cuda[]{{"CUDA_COPY_", ""}, {"CUDA_IPC_", ""}};
constexpr prefix cuda_copy[]{{"CUDA_COPY_", ""}};
constexpr prefix cuda_ipc[]{{"CUDA_IPC_", ""}};
constexpr prefix gdr_copy[]{{"GDR_COPY_", ""}};

constexpr std::string_view log_levels =
    "FATAL|ERROR|WARN|DIAG|INFO|DEBUG|TRACE|REQ|DATA|ASYNC|FUNC|POLL";
constexpr std::string_view allocators = "thp|md|heap|mmap|huge";

struct row {
  std::span<const prefix> prefixes;
  std::string_view stems;  // separated by blanks
  form kind;
  std::string_view choices = {};
  arity count = arity::one;
  unsigned since = 13;  // the minor version of UCX 1
  bool environment_only = false;
};

constexpr arity list = arity::list;
constexpr arity one = arity::one;

constexpr row rows[]{
    {process, "LOG_LEVEL LOG_LEVEL_TRIGGER MODULE_LOG_LEVEL", form::choice, log_levels},
    {process, "LOG_PRINT_ENABLE WARN_UNUSED_ENV_VARS", form::boolean},
    {process, "LOG_BUFFER MEMTRACK_LIMIT", form::size},
    {process, "LOG_DATA_SIZE", form::count},
    {process, "LOG_FILE_FILTER GDB_COMMAND ERROR_MAIL_TO ERROR_MAIL_FOOTER", form::text},
    {process, "HANDLE_ERRORS", form::choice, "bt|freeze|debug|none", list},
    {process, "MEMTYPE_CACHE", form::ternary},
    {process, "RCACHE_CHECK_PFN", form::natural},
    {process, "TOPO_PRIO", form::text, {}, list},
    {process,
     "LOG_FILE LOG_FILE_SIZE LOG_FILE_ROTATE MODULES MODULE_DIR ERROR_SIGNALS DEBUG_SIGNO "
     "ASYNC_SIGNO BUILTIN_MEMCPY_MIN BUILTIN_MEMCPY_MAX MEMTRACK_DEST PROFILE_FILE PROFILE_MODE "
     "PROFILE_LOG_SIZE RCACHE_STAT_MIN RCACHE_STAT_MAX VFS_ENABLE VFS_SOCK_PATH "
     "VFS_THREAD_AFFINITY STATS_DEST STATS_TRIGGER STATS_FILTER STATS_FORMAT",
     form::text,
     {},
     one,
     13,
     true},
    {hooks,
     "ALLOC_ALIGN CUDA_HOOK_MODE DLOPEN_PROCESS_RPATH DYNAMIC_MMAP_THRESH EVENTS LOG_LEVEL "
     "MALLOC_HOOKS MALLOC_RELOC MMAP_HOOK_MODE MODULE_UNLOAD_PREVENT_MODE",
     form::text,
     {},
     one,
     13,
     true},
    {hooks, "BISTRO_GRACE_DURATION", form::text, {}, one, 21, true},

    {tcp, "TX_SEG_SIZE RX_SEG_SIZE SENDV_THRESH SNDBUF RCVBUF", form::size},
    {tcp, "SYN_CNT KEEPCNT", form::count_or_auto},
    {tcp, "MAX_IOV", form::count},
    {tcp, "PREFER_DEFAULT PUT_ENABLE CONN_NB NODELAY", form::boolean},
    {tcp, "MAX_POLL MAX_CONN_RETRIES TX_BUFS_GROW RX_BUFS_GROW", form::natural},
    {tcp, "TX_MAX_BUFS RX_MAX_BUFS", form::integer},
    {tcp, "PORT_RANGE", form::range},
    {tcp, "KEEPIDLE KEEPINTVL", form::duration_or_auto},
    {tcp, "AF_PRIO", form::choice, "inet|inet6", list},
    {tcp, "TX_MAX_CHUNK_SIZE RX_MAX_CHUNK_SIZE", form::size, {}, one, 14},
    {tcp, "TX_GROW_FACTOR RX_GROW_FACTOR", form::real, {}, one, 14},
    {tcp, "MAX_BW", form::bandwidth, {}, one, 14},
    {tcp, "BRIDGE_ENABLE", form::boolean, {}, one, 16},
    {tcp, "EP_BIND_SRC_ADDR", form::ternary, {}, one, 18},
    {tcp, "USER_TIMEOUT", form::duration_or_auto, {}, one, 22},
    {managers, "REUSEADDR", form::boolean},
    {managers, "FAILURE", form::choice, log_levels},
    {tcp_manager, "PRIV_DATA_LEN SNDBUF RCVBUF", form::size},
    {tcp_manager, "SYN_CNT", form::count_or_auto},
    {tcp_manager, "USER_TIMEOUT", form::duration_or_auto, {}, one, 22},
    {rdma_manager, "TIMEOUT", form::duration},
    {rdma_manager, "SOURCE_ADDRESS", form::text},
    {rdma_manager, "RESERVED_QPN", form::ternary},
    {self, "NUM_DEVICES", form::integer},
    // Before 1.17 this would be UCX's own key of that name.
    {self, "SEG_SIZE", form::size, {}, one, 17},
    {every_interface, "ALLOC", form::choice, allocators, list},
    {every_interface, "FAILURE", form::choice, log_levels},
    {every_interface, "MAX_NUM_EPS", form::count_or_auto},

    {shared_memory, "ALLOC", form::choice, allocators, list},
    {shared_memory, "FAILURE", form::choice, log_levels},
    {shared_memory, "MAX_NUM_EPS", form::count_or_auto},
    {shared_memory, "BW", form::bandwidth},
    {mapped, "HUGETLB_MODE FIFO_HUGETLB", form::ternary},
    {mapped, "FIFO_SIZE FIFO_ELEM_SIZE RX_BUFS_GROW", form::natural},
    {mapped, "FIFO_MAX_POLL", form::count_or_auto},
    {mapped, "FIFO_RELEASE_FACTOR", form::real},
    {mapped, "SEG_SIZE", form::size},
    {mapped, "RX_MAX_BUFS", form::integer},
    {mapped, "ERROR_HANDLING", form::boolean},
    {mapped, "RX_MAX_CHUNK_SIZE", form::size, {}, one, 14},
    {mapped, "RX_GROW_FACTOR", form::real, {}, one, 14},
    {mapped, "SEND_OVERHEAD RECV_OVERHEAD", form::duration, "am_short,am_bcopy", arity::keyed, 17},
    {posix, "DIR", form::text},
    {posix, "USE_PROC_LINK", form::boolean},
    {posix, "SHM_MIN_SIZE", form::size, {}, one, 14},
    {copied, "MAX_IOV", form::count},
    {copied, "SEG_SIZE", form::size},
    {copied, "TX_QUOTA TX_BUFS_GROW", form::natural},
    {copied, "TX_MAX_BUFS", form::integer},
    {copied, "TX_MAX_CHUNK_SIZE", form::size, {}, one, 14},
    {copied, "TX_GROW_FACTOR", form::real, {}, one, 14},
    {cma, "MEMORY_INVALIDATE", form::boolean},

    {ib_domain, "REG_METHODS DEVICE_SPECS", form::text, {}, list},
    {ib_domain, "RCACHE_MEM_PRIO RCACHE_ADDR_ALIGN MAX_IDLE_RKEY_COUNT", form::natural},
    {ib_domain, "RCACHE_OVERHEAD", form::duration_or_auto},
    {ib_domain, "RCACHE_MAX_REGIONS GID_INDEX", form::count_or_auto},
    {ib_domain, "RCACHE_MAX_SIZE RCACHE_MAX_UNRELEASED ODP_MAX_SIZE REG_MT_THRESH REG_MT_CHUNK",
     form::size},
    {ib_domain,
     "RCACHE_PURGE_ON_FORK ASYNC_EVENTS ETH_PAUSE_ON ODP_PREFETCH PREFER_NEAREST_DEVICE "
     "INDIRECT_ATOMIC REG_MT_BIND",
     form::boolean},
    {ib_domain, "MEM_REG_OVERHEAD MEM_REG_GROWTH", form::duration},
    {ib_domain, "FORK_INIT GPU_DIRECT_RDMA MLX5_DEVX", form::ternary},
    {ib_domain, "ODP_NUMA_POLICY", form::choice, "default|bind|preferred"},
    {ib_domain, "SUBNET_PREFIX PCI_BW", form::text},
    {ib_domain, "MLX5_DEVX_OBJECTS", form::choice, "rcqp|rcsrq|dct|dcsrq|dci", list},
    {ib_domain, "PCI_RELAXED_ORDERING", form::on_off_auto},
    {ib, "ALLOC", form::choice, allocators, list},
    {ib, "FAILURE", form::choice, log_levels},
    {ib, "MAX_NUM_EPS SL TRAFFIC_CLASS NUM_PATHS ROCE_SUBNET_PREFIX_LEN", form::count_or_auto},
    {ib, "SEG_SIZE TX_MIN_INLINE TX_INLINE_RESP RX_INLINE", form::size},
    {ib,
     "TX_QUEUE_LEN TX_MAX_BATCH TX_MAX_POLL TX_MIN_SGE TX_BUFS_GROW RX_QUEUE_LEN RX_MAX_BATCH "
     "RX_MAX_POLL RX_BUFS_GROW HOP_LIMIT ROCE_PATH_FACTOR",
     form::natural},
    {ib, "TX_MAX_BUFS RX_MAX_BUFS", form::integer},
    {ib, "ADDR_TYPE", form::choice, "ib_local|ib_site_local|ib_global|eth|auto"},
    {ib, "IS_GLOBAL ROCE_LOCAL_SUBNET", form::boolean},
    {ib, "LID_PATH_BITS", form::range, {}, list},
    {ib, "PKEY", form::hexadecimal},
    {ib, "PATH_MTU", form::choice, "default|512|1024|2048|4096"},
    {mlx5, "DM_SIZE", form::size},
    {mlx5, "DM_COUNT", form::natural},
    {mlx5, "MMIO_MODE", form::choice, "bf_post|bf_post_mt|db|auto"},
    {mlx5, "AR_ENABLE", form::ternary_or_auto},
    {mlx5, "CQE_ZIPPING_ENABLE", form::ternary},
    {rc, "MAX_RD_ATOMIC", form::count_or_auto},
    {rc, "RETRY_COUNT RNR_RETRY_COUNT FC_WND_SIZE", form::natural},
    {rc, "TIMEOUT RNR_TIMEOUT", form::duration},
    {rc, "FC_ENABLE TX_POLL_ALWAYS", form::boolean},
    {rc, "FC_HARD_THRESH", form::real},
    {rc, "FENCE", form::choice, "none|weak|auto"},
    {rc, "MAX_GET_ZCOPY TX_NUM_GET_BYTES", form::size},
    {rc_alone, "FC_SOFT_THRESH", form::real},
    {rc_alone, "TX_CQ_MODERATION TX_CQ_LEN", form::natural},
    {rc_verbs, "MAX_AM_HDR", form::size},
    {rc_verbs, "TX_MAX_WR", form::natural},
    {rc_verbs, "FLUSH_MODE", form::choice, "write0|fc|auto"},
    {rc_mlx5, "TX_MAX_BB TM_LIST_SIZE EXP_BACKOFF LOG_ACK_REQ_FREQ", form::natural},
    {rc_mlx5, "TM_ENABLE", form::boolean},
    {rc_mlx5, "TM_SEG_SIZE TM_MAX_BCOPY", form::size},
    {rc_mlx5, "TM_MP_SRQ_ENABLE", form::ternary},
    {rc_mlx5, "TM_MP_NUM_STRIDES", form::count_or_auto},
    {rc_mlx5, "SRQ_TOPO", form::text, {}, list},
    {dc, "NUM_DCI RAND_DCI_SEED QUOTA RX_QUEUE_LEN_INIT", form::natural},
    {dc, "TX_POLICY", form::choice, "dcs|dcs_quota|rand"},
    {dc, "DCI_FULL_HANDSHAKE DCI_KA_FULL_HANDSHAKE DCT_FULL_HANDSHAKE", form::ternary},
    {dc, "FC_HARD_REQ_TIMEOUT", form::duration_or_auto},
    {ud, "RX_QUEUE_LEN_INIT MAX_WINDOW RX_ASYNC_MAX_POLL", form::natural},
    {ud, "TIMEOUT LINGER_TIMEOUT TIMER_TICK ASYNC_TIMER_TICK MIN_POKE_TIME", form::duration},
    {ud, "TIMER_BACKOFF", form::real},
    {ud, "ETH_DGID_CHECK", form::boolean},
    {ud_mlx5, "COMPACT_AV", form::boolean},

    {cuda, "MAX_POLL MAX_EVENTS", form::natural},
    {cuda_copy, "REG_WHOLE_ALLOC", form::on_off_auto},
    {cuda_copy, "MAX_REG_RATIO", form::real},
    {cuda_copy, "DMABUF", form::ternary, {}, one, 16},
    {cuda_ipc, "MAX_STREAMS", form::natural},
    {cuda_ipc, "CACHE", form::boolean},
    {cuda_ipc, "ENABLE_GET_ZCOPY", form::on_off_auto},
    {gdr_copy, "RCACHE", form::boolean},
    {gdr_copy, "MEM_REG_OVERHEAD MEM_REG_GROWTH", form::duration},
};

struct transport_name {
  std::string_view name;
  unsigned since = 13;
  unsigned until = 1000;
};

constexpr transport_name transports[]{
    {"all"},
    {"sm"},
    {"shm"},
    {"mm"},
    {"posix"},
    {"sysv"},
    {"xpmem"},
    {"cma"},
    {"knem"},
    {"self"},
    {"tcp"},
    {"ib"},
    {"rc"},
    {"rc_v"},
    {"rc_x"},
    {"rc_verbs"},
    {"rc_mlx5"},
    {"ud"},
    {"ud_v"},
    {"ud_x"},
    {"ud_verbs"},
    {"ud_mlx5"},
    {"dc"},
    {"dc_x"},
    {"dc_mlx5"},
    {"ugni"},
    {"ugni_smsg"},
    {"ugni_rdma"},
    {"ugni_udt"},
    {"cuda"},
    {"cuda_ipc"},
    {"cuda_copy"},
    {"gdr_copy"},
    {"rocm"},
    {"rocm_copy"},
    {"rocm_ipc"},
    {"rocm_gdr", 13, 13},
    {"ze", 17},
    {"ze_copy", 17},
    {"ze_ipc", 17},
    {"ze_gdr", 17},
    {"gga_mlx5", 17},
    {"gga", 19},
    {"srd", 19},
    {"rc_gda", 20},
    {"gaudi", 21},
    {"gaudi_gdr", 21},
};

/// Takes the first word off the front of `rest`.
std::string_view next_word(std::string_view& rest) noexcept {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

bool is_joined(std::string_view text, std::string_view front, std::string_view back) noexcept {
  return text.size() == front.size() + back.size() && text.starts_with(front) &&
         text.ends_with(back);
}

std::string joined(std::string_view front, std::string_view back) {
  std::string text(front);
  return text += back;
}

bool at_least(version_number version, unsigned minor) noexcept {
  return version.major > 1 || version.minor >= minor;
}

/// Returns the spellings of `key` under one row of the table; empty where the row has no such key.
std::vector<std::string> spellings_of(std::string_view key, const row& under, bool with_transport) {
  std::vector<std::string> found;
  std::string_view stems = under.stems;
  while (!stems.empty()) {
    const std::string_view stem = next_word(stems);
    if (!key.ends_with(stem)) continue;
    for (const prefix& front : under.prefixes) {
      if (is_joined(key, front.now, stem)) {
        return {with_transport ? std::string(key) : joined(front.before, stem)};
      }
    }
    for (const prefix& front : under.prefixes) {
      if (!is_joined(key, front.before, stem)) continue;
      if (!with_transport) return {std::string(key)};
      found.push_back(joined(front.now, stem));
    }
    if (!found.empty()) return found;
  }
  return found;
}

}  // namespace

configuration_key find_configuration_key(std::string_view key, version_number version) {
  using standing = configuration_key::standing;
  configuration_key result;
  for (const row& each : rows) {
    std::vector<std::string> spellings = spellings_of(key, each, at_least(version, 17));
    if (spellings.empty()) continue;
    if (!at_least(version, each.since)) {
      if (result.where == standing::unknown) result.where = standing::later;
      continue;
    }
    if (result.where != standing::settable) {
      result.where = each.environment_only ? standing::environment_only : standing::settable;
      result.rule = each.count == arity::keyed ? value_rule::keyed(each.kind, each.choices)
                                               : value_rule(each.kind, each.choices, each.count);
    }
    for (std::string& spelling : spellings) {
      if (std::find(result.spellings.begin(), result.spellings.end(), spelling) ==
          result.spellings.end()) {
        result.spellings.push_back(std::move(spelling));
      }
    }
  }
  return result;
}

std::vector<std::string> configuration_key_names() {
  std::vector<std::string> names;
  for (const row& each : rows) {
    if (each.environment_only) continue;
    for (std::string_view stems = each.stems; !stems.empty();) {
      const std::string_view stem = next_word(stems);
      for (const prefix& front : each.prefixes) names.push_back(joined(front.now, stem));
    }
  }
  return names;
}

bool is_transport_name(std::string_view name, version_number version) noexcept {
  return std::any_of(std::begin(transports), std::end(transports), [&](const transport_name& each) {
    return each.name == name && at_least(version, each.since) && !at_least(version, each.until + 1);
  });
}

std::string transport_names(version_number version) {
  std::string names;
  for (const transport_name& each : transports) {
    if (!is_transport_name(each.name, version)) continue;
    if (!names.empty()) names += ", ";
    names += each.name;
  }
  return names;
}

}  // namespace ucx::detail
