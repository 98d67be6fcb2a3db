#!/bin/sh
# Machine 2 of tests/run-rdma.sh: does what machine 1 tells it, a line of the shell for each connection.
#   tests/rdma/obey.sh 2 BUILD forever|FUNCTION ARGUMENT...
. tests/rdma/common.sh
if [ "$1" != forever ]; then
  "$@"
  exit
fi
while true; do
  nc -ll -p $control -e /bin/sh
  sleep 1
done
