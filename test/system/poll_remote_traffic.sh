#!/bin/bash
# The cases of remote_traffic.sh, with polls instead of io_uring.
CASES_OF=poll ROCEFS_LOOP=poll exec "$(dirname "$0")/remote_traffic.sh"
