#!/usr/bin/env bash
# Fails where an include points upwards (tools -> streams -> src -> UCX, and among the folders of each), where a
# public header reaches beyond the standard library and ucx/, and where UCX is called past the seam.
#   check_layers.sh [PROJECT_DIR]
set -euo pipefail
cd "${1:-$(dirname "$0")/../../..}"

# What the public headers of the streams are, says the file that installs them.
declare -A upper=()
for header in $(grep -o 'ucx/[a-z_]*\.hpp' streams/CMakeLists.txt); do upper[$header]=yes; done
failures=0

# The folders of each, from the lowest: a file includes what is of its own folder, or of one before it.
declare -A folders=(
  [src]='base os wire call ucp carrier cuda worker connection file memory region/exposed region/paths region/remote message rpc store server client api'
  [streams]='engine files pipes adapters'
  [tools]='output process agent copying commands')
declare -A siblings=([client]=server) # see nothing of each other
knows_ucx=' ucp carrier worker connection region/exposed region/paths region/remote message rpc '
declare -A rank=()
for top in "${!folders[@]}"; do
  height=0
  for folder in ${folders[$top]}; do rank[$top/$folder]=$((++height)); done
  rank[$top/.]=$((++height)) # tools/main.cpp
done

# FILE LINE INCLUDE (with its <> or "") of each source below the given folders.
includes() {
  find "$@" -name '*.[ch]pp' -print0 2>/dev/null | sort -z |
    xargs -0r grep -HnoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"][^>"]+[>"]' |
    sed -E 's/^([^:]+):([0-9]+):.*([<"][^>"]+[>"])$/\1 \2 \3/'
}
complain() { # FILE LINE WHAT WHY
  echo "$1:$2: $3: $4" >&2
  failures=$((failures + 1))
}
is_standard() { [[ $1 =~ ^\<[a-z_0-9]+\>$ ]]; }
is_of_streams() { [ -n "${upper[${1//[\"<>]/}]:-}" ]; }
is_public() { [[ $1 =~ ^\"ucx/(experimental/)?[a-z_]+\.hpp\"$ ]]; }
is_old_names() { [[ $1 =~ ^\"ucx/old_names/[a-z_]+\.ipp\"$ ]]; } # a part of the header that includes it
is_ucx() { [[ $1 =~ ^\<uc[pstm]/ ]]; }
is_of_tools() { [[ $1 =~ ^\<(CLI|fmt|nlohmann)/ ]]; }

while read -r file line what; do
  below=${file#include/}
  if is_of_streams "${below#compatibility/}"; then by_streams=1; else by_streams=0; fi
  case "$file $what" in
    include/ucx/boost_device.hpp\ \<boost/* | include/ucx/boost_stream.hpp\ \<boost/* | include/compatibility/ucx/boost_mapped.hpp\ \<boost/*) continue ;;
    # The names of std::execution, where they are NVIDIA's.
    include/ucx/execution_names.hpp\ \<stdexec/execution.hpp\>) continue ;;
    # The type of the operating system's addresses can not be declared without it.
    include/ucx/socket_address.hpp\ \<sys/socket.h\>) continue ;;
  esac
  if ! is_standard "$what" && ! is_public "$what" && ! is_old_names "$what"; then
    complain "$file" "$line" "$what" "a public header includes the standard library and \"ucx/...\" only"
  elif [ $by_streams = 0 ] && is_of_streams "$what"; then
    complain "$file" "$line" "$what" "the core does not know the streams"
  fi
done < <(includes include)

# The folder of a file below src/, streams/ or tools/; "." where it is in none. Those within a folder
# are one with it, but for those of regions, which are storeys of their own.
folder_of() { # FILE
  local below=${1#*/}
  if [[ $below =~ ^(region/[a-z]+)/ ]]; then
    echo "${BASH_REMATCH[1]}"
  elif [[ $below == */* ]]; then echo "${below%%/*}"; else echo .; fi
}
check_folder() { # FILE LINE INCLUDE
  local top=${1%%/*} own other=${3//\"/}
  own=$(folder_of "$1")
  other=$(folder_of "$top/$other")
  if [ -z "${rank[$top/$own]:-}" ]; then
    complain "$1" "$2" "$3" "$top/$own is none of the folders: ${folders[$top]}"
  elif [ -z "${rank[$top/$other]:-}" ] || [ "${rank[$top/$other]}" -gt "${rank[$top/$own]}" ]; then
    complain "$1" "$2" "$3" "$top/$own does not see $other, which is above it"
  elif [ "${siblings[$own]:-}" = "$other" ]; then
    complain "$1" "$2" "$3" "$own and $other see nothing of each other"
  fi
}

while read -r file line what; do
  if is_of_streams "$what" || [[ $what =~ ^\"(\.\./|streams/|tools/) ]]; then
    complain "$file" "$line" "$what" "the core does not know what is above it"
  elif is_ucx "$what" && [[ $knows_ucx != *" $(folder_of "$file") "* ]]; then
    complain "$file" "$line" "$what" "UCX's headers are included in these folders only:$knows_ucx"
  elif [[ $what == \"* ]] && ! is_public "$what"; then
    check_folder "$file" "$line" "$what"
  fi
done < <(includes src)

while read -r file line what; do
  if is_of_tools "$what"; then
    complain "$file" "$line" "$what" "what the tool is made with is the tool's own"
  fi
done < <(includes src streams)

while read -r file line what; do
  own=${what//\"/}
  if [[ $what == \"* ]] && ! is_public "$what" && [[ $own == *..* || ! -e ${file%%/*}/$own ]]; then
    complain "$file" "$line" "$what" "${file%%/*}/ sees public headers and its own only"
  elif is_ucx "$what"; then
    complain "$file" "$line" "$what" "${file%%/*}/ does not see UCX"
  elif [[ $what == \"* ]] && ! is_public "$what"; then
    check_folder "$file" "$line" "$what"
  fi
done < <(includes streams tools)

# Users may include an old path for one version more.
while read -r file line what; do
  if [[ $what =~ ^[\<\"](ucx/[a-z_]+\.hpp)[\>\"]$ ]] && [ -e "include/compatibility/${BASH_REMATCH[1]}" ]; then
    complain "$file" "$line" "$what" "the path is old: see include/compatibility/${BASH_REMATCH[1]}"
  fi
done < <(includes include/ucx src streams tools examples benchmarks)

while read -r file line what; do
  beside=${what//\"/}
  # What lies beside it is an example, too.
  if [[ $what == \"* && $beside != */* && -f $(dirname "$file")/$beside ]]; then continue; fi
  # One side of these has UCX alone, and shows UCX's own calls.
  if [[ $file == examples/@(plain_|ucxx_)* && $what == *ucp/api/ucp.h* ]]; then continue; fi
  if [[ $what == \"* ]] || is_ucx "$what"; then
    complain "$file" "$line" "$what" "an example shows what users have: public headers, in <>"
  fi
done < <(includes examples)

# Calls of UCX's own functions: through the seam, but for the code that is the seam.
nouns='config|context|worker|ep|listener|conn_request|mem|rkey|get|put|am|tag|stream|atomic|request'
call="ucp_(init|cleanup|($nouns)_[a-z_]+)"
while IFS=: read -r file line _; do
  complain "$file" "$line" "ucp_*()" "UCX is called through detail::ucp_api only"
done < <(find src streams tools -name '*.[ch]pp' ! -name 'ucp_api.[ch]pp' -print0 2>/dev/null | sort -z |
  xargs -0r grep -HnE "^([^/\"]|/[^/\"])*\\b$call\\(" || true)

[ $failures = 0 ] || { echo "$failures violations of the layers" >&2; exit 1; }
