#!/bin/bash
# The scenarios of tools/scenarios: the numbers of each support its title.
. "$(dirname "$0")/lib/common.bash"

# run NAME: its outputs are in $dir/NAME from then on.
run() {
  name=$1
  "$ROCEFS" sim "tools/scenarios/$name.ini" --out "$dir/$name" >"$dir/$name.txt" 2>"$dir/$name.err" ||
    fail "$name: $(cat "$dir/$name.err")"
}
# flow VARIANT FLOW COLUMN: a number of flows.csv.
flow() {
  awk -F, -v variant="$1" -v flow="$2" -v column="$3" '
    NR == 2 { for (i = 1; i <= NF; ++i) if ($i == column) at = i }
    $1 == variant && $2 == flow { print $at }' "$dir/$name/flows.csv"
}
# flows sum|max VARIANT COLUMN: of all flows.
flows() {
  awk -F, -v what="$1" -v variant="$2" -v column="$3" '
    NR == 2 { for (i = 1; i <= NF; ++i) if ($i == column) at = i }
    $1 == variant { sum += $at; if ($at > max) max = $at }
    END { print what == "sum" ? sum : max }' "$dir/$name/flows.csv"
}
# series max|mean|last VARIANT SAMPLE, and first: the time in ns when it was not 0 for the first time.
series() {
  awk -F, -v what="$1" -v variant="$2" -v column="$3" '
    NR == 2 { for (i = 1; i <= NF; ++i) if ($i == column) at = i }
    $1 == variant { last = $at; sum += $at; ++count; if ($at > max) max = $at; if (!first && $at > 0) first = $2 }
    END { print what == "max" ? max + 0 : what == "mean" ? sum / count : what == "last" ? last + 0 : first + 0 }' "$dir/$name/series.csv"
}
holds() {  # AN AWK CONDITION, WHY
  awk "BEGIN { exit !($1) }" || fail "$name: $1: $2"
}

test_case "selective retransmission keeps the rate that go-back-N halves"
# Payloads get 97.85 of 100 Gb/s. Selective retransmission costs the lost packets and, at the end of the
# run, a time-out or two; go-back-N costs D = RTT in packet times for each loss:
# (1-p)/(1-p+pD) is 0.57 for the 75 packets that are under way in 25 us.
run loss
holds "$(flow no_loss f slowdown) < 1.005" "nothing disturbs the flow"
holds "$(flow SR f slowdown) < 1.05" "1 % is lost, and 2 % for the end"
holds "$(flow go-back-N f slowdown) > 1.5 && $(flow go-back-N f slowdown) < 2" "1/0.57"
holds "$(flow SR f retransmitted) < 0.012 * 32000" "each lost packet once"

test_case "a sprayed load fits the paths that ECMP overloads"
# Three flows of 80G cannot share 100G; a sprayed load of 0.8 fits each path.
run spray
holds "$(flows max ECMP slowdown) > 1.5" "some path has several flows"
holds "$(flows max spraying_with_SR slowdown) < 1.02" "the load is even"
holds "$(flows sum spraying_with_SR retransmitted) == 0" "overtaking is no loss"
holds "$(flows sum spraying_without_SR retransmitted) > 8 * 3840" "going back takes overtaking for loss"

test_case "PFC stops a victim, and DCQCN spares it"
run victim
holds "$(flow PFC_off victim slowdown) < 1.02" "the cable has room for it"
holds "$(flow PFC victim slowdown) > 3" "PAUSE stops it with the others: it gets a fifth, as they do"
holds "$(flows sum PFC retransmitted) == 0" "with PFC nothing is lost"
holds "$(flows sum PFC_off retransmitted) > 0" "without it something is"
holds "$(flow PFC_and_DCQCN victim slowdown) < 0.6 * $(flow PFC victim slowdown)" "the others give way"

test_case "DCQCN keeps the queue short, which PFC alone fills"
# The queue before h0 is as long as PFC allows, or as ECN's thresholds, after the start.
for scenario in pfc incast; do
  run $scenario
  holds "$(flows sum PFC retransmitted) + $(flows sum PFC_and_DCQCN retransmitted) == 0" "nothing is lost"
  holds "$(series mean PFC_and_DCQCN queue) < 0.3 * $(series mean PFC queue)" "the senders give way"
  holds "$(flows sum PFC cnps) == 0 && $(flows sum PFC_and_DCQCN cnps) > 0" "by what CNPs tell them"
  holds "$(flows max PFC_and_DCQCN slowdown) < 1.25 * $(flows max PFC slowdown)" "and take the link again"
done

test_case "PAUSE goes to every sender without DCQCN, and to none with it"
name=pfc
for port in 2 3 4 5 6 7 8 9; do
  holds "$(series last PFC port$port) > 100" "PAUSE goes to every sender, all the time"
  holds "$(series last PFC_and_DCQCN port$port) <= 5" "none is needed, but perhaps at the start"
done

test_case "CFR alone halves the loss"
# CFR takes reordering at the receiver for congestion: no switch marks, and far fewer packets are lost.
run cfr
holds "$(series last CFR_off cnps) == 0 && $(series last CFR cnps) > 0" "CNPs come from CFR alone"
holds "$(series last CFR lost) < 0.5 * $(series last CFR_off lost)" "windows are smaller"
holds "$(flows max CFR slowdown) < $(flows max CFR_off slowdown)" "and all have ended earlier"

test_case "NPCC notifies the senders earlier than the long link does"
# The switch is 2 us from the senders, the receivers are 1 ms there and back behind it.
run npcc
holds "$(series first NPCC h0_cnps) > 0 && $(series first NPCC h0_cnps) <= 100000" "tens of microseconds"
holds "$(series first ECN_and_the_receivers_NP h0_cnps) >= 1000000" "the long link, both ways"
holds "$(series max NPCC queue) < 0.2 * $(series max ECN_and_the_receivers_NP queue)" "it is told in time"

test_case "PCC's algorithms avoid PAUSE"
# SONiC's incast: without congestion control PFC does all the work, with windows hardly any. Vegas takes the
# queue at its start for a part of the path, and keeps it.
run pcc
for port in 2 3 4; do
  holds "$(series last no_CC pause$port) > 1000" "PAUSE goes to every sender, all the time"
  for algorithm in dcqcn aimd rttvegas; do
    holds "$(series last $algorithm pause$port) == 0" "$algorithm: none is needed"
  done
done
for algorithm in dcqcn aimd; do
  holds "$(series mean $algorithm queue) < 0.05 * $(series mean no_CC queue)" "the queue stays short"
  holds "$(flows sum $algorithm cnps) > 50" "by what CNPs tell"
done
holds "$(flows max dcqcn slowdown) < 1.1 * $(flows max no_CC slowdown)" "and the link is used"
holds "$(flows sum no_CC cnps) == 0" "no switch marks"
