#!/usr/bin/env bash
# Plants one difference of each kind that check_rows.sh looks for in a small tree, and expects it to
# be found.
set -euo pipefail
check=$(cd "$(dirname "$0")" && pwd)/check_rows.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
page=docs/coming-from.md
tests=tests/conformance/messages_test.cpp

fresh_tree() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/docs "$tree"/tests/{conformance,unit}
  cat >"$tree/$page" <<'PAGE'
# Coming from other systems

| there | here | what is different |
| --- | --- | --- |
| X1 | `no_such_test.cpp` | not a row |

## Rows and their tests

| row | feature | here | tests |
| --- | --- | --- | --- |
| C1 | Sends | `send()` | `messages_test.cpp`: `C1_Sends`, `C1_C2_SendsAndReceives`; `run()` in words |
| C2 | Receives | `receive()` | `messages_test.cpp`: `C1_C2_SendsAndReceives`; `tests/unit/pool_test.cpp`: `Pool.Grows` |
| C3 | Later | - | not there: later |

Tests of no row: `messages_test.cpp`: `CancelsAtAny`,
`OfTheLastLine`; `tests/unit/pool_test.cpp` (all of it).
PAGE
  cat >"$tree/$tests" <<'CODE'
TEST_P(Messages, C1_Sends) {}
TEST_F(Messages, C1_C2_SendsAndReceives) {}
TEST(Messages, CancelsAtAny) {}
TEST(MessagesWithALongName,
     OfTheLastLine) {}
CODE
  echo 'TEST(Pool, Grows) {}' >"$tree/tests/unit/pool_test.cpp"
}
catches() { # WHERE SED_SCRIPT FILE
  fresh_tree
  sed -i "$2" "$tree/$3"
  if "$check" "$tree" 2>"$tree/said"; then echo "not caught in $3: $2"; exit 1; fi
  grep -q "^$1:" "$tree/said" || { echo "caught, but not in $1: $(cat "$tree/said")"; exit 1; }
}

fresh_tree
"$check" "$tree" || { echo "a tidy tree is refused"; exit 1; }
catches "$page" 's/`C1_Sends`/`C1_Send`/' $page
catches "$page" 's/`CancelsAtAny`/`CancelsAtNone`/' $page
catches "$page" 's/`OfTheLastLine`/`OfNoLine`/' $page
catches "$page" 's/Pool.Grows/Pools.Grows/' $page
catches "$page" 's/^\(| C1 .*\)`messages_test.cpp`/\1`massages_test.cpp`/' $page
catches "$page" 's/(all of it)/(of it: all)/; s/pool_test.cpp` (/pools_test.cpp` (/' $page
catches "$page" 's/not there: later/no test/' $page
catches "$page" '/^| C/d' $page
catches "$page" 's/^\(| C2 .*\)`C1_C2_SendsAndReceives`/\1`C1_Sends_`/' $page
catches "$tests" 's/; `run()` in words/&/; s/^\(| C1 .*\), `C1_C2_SendsAndReceives`/\1/' $page
catches "$tests" '$aTEST(Messages, C2_Receives) {}' $tests
catches "$tests" '$aTEST_P(Messages,\n       C3_IsThere) {}' $tests
catches "$page" 's/C1_Sends/C1_SendsNot/' $tests
catches "$page" 's/Grows/Shrinks/' tests/unit/pool_test.cpp
