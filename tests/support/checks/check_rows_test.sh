#!/usr/bin/env bash
# Plants one difference of each kind that check_rows.sh looks for in a small tree, and expects it to
# be found.
set -euo pipefail
check=$(cd "$(dirname "$0")" && pwd)/check_rows.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
list=tests/rows.txt
tests=tests/conformance/messages_test.cpp

# All rows, of which most have the same test.
rows() {
  local letter last i
  echo "# A comment."
  echo
  while read -r letter last; do
    for ((i = 1; i <= last; ++i)); do
      case $letter$i in
        C1) echo "C1 | sends | $tests: C1_Sends, C1_C2_SendsAndReceives" ;;
        C2) echo "C2 | receives: with a mask | $tests: C1_C2_SendsAndReceives; tests/unit/base/pool_test.cpp: Pool.Grows" ;;
        C3) echo "C3 | whole files | tests/unit/base/pool_test.cpp; examples/any.cpp" ;;
        C4) echo "C4 | later | absent: for now" ;;
        *) echo "$letter$i | name | tests/unit/base/pool_test.cpp: Grows" ;;
      esac
    done
  done <<<$'A 13\nB 30\nC 26\nD 20\nE 22\nF 12\nG 9'
}
fresh_tree() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/examples "$tree"/tests/{conformance,unit/base}
  rows >"$tree/$list"
  cat >"$tree/$tests" <<'CODE'
TEST_P(Messages, C1_Sends) {}
TEST_F(Messages, C1_C2_SendsAndReceives) {}
TEST(MessagesWithALongName,
     OfNoRow) {}
CODE
  echo 'TEST(Pool, Grows) {}' >"$tree/tests/unit/base/pool_test.cpp"
  echo 'int main() {}' >"$tree/examples/any.cpp"
}
catches() { # WHERE SED_SCRIPT FILE
  fresh_tree
  sed -i "$2" "$tree/$3"
  if "$check" "$tree" 2>"$tree/said"; then echo "not caught in $3: $2"; exit 1; fi
  grep -q "^$1:" "$tree/said" || { echo "caught, but not in $1: $(cat "$tree/said")"; exit 1; }
}

fresh_tree
"$check" "$tree" || { echo "a tidy tree is refused"; exit 1; }
for id in A1 A13 B30 C26 D20 E22 F7 F12 G9; do catches $list "/^$id |/d" $list; done
catches $list 's/^F12 |/F13 |/' $list
catches $list 's/^G9 |/G10 |/' $list
catches $list '/^F12 |/{p;s/F12/F13/}' $list
catches $list '/^C3 |/p' $list
catches $list 's/^C4 |/c4 |/' $list
catches $list 's/^C4 | later/C4 | /' $list
catches $list 's/absent: for now/absent/' $list
catches $list 's/absent: for now/absent: /' $list
catches $list 's/absent: for now/later/' $list
catches $list 's/absent: for now//' $list
catches $list 's/: C1_Sends,/: C1_Send,/' $list
catches $list 's/Pool.Grows/Pools.Grows/' $list
catches $list '/^C1 /s/messages_test.cpp/massages_test.cpp/' $list
catches $list '/^C3 /s/pool_test.cpp/pools_test.cpp/' $list
catches $list 's/any.cpp/none.cpp/' $list
catches $list 's|examples/any.cpp|/etc/passwd|' $list
catches $list '/^C3 /s/pool_test.cpp/&:/' $list
catches "$tests" '/^C1 /s/, C1_C2_SendsAndReceives//' $list
catches "$tests" '$aTEST(Messages, C2_Receives) {}' $tests
catches "$tests" '$aTEST_P(Messages,\n       C4_IsThere) {}' $tests
catches "$list" 's/C1_Sends/C1_SendsNot/' $tests
catches "$list" 's/Grows/Shrinks/' tests/unit/base/pool_test.cpp
