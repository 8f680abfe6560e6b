#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# urnic sim from the command line: same seed same bytes, shards add up, captures are good RoCE,
# mistakes name file, line and field, an interrupted run writes what there is.
# usage: test_sim_cli.sh URNIC SCENARIOS
# shellcheck disable=SC2016 # "$p" is a variable of a scenario
set -eu
urnic=$1
scenarios=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
    echo "FAIL: $*" >&2
    exit 1
}

# Two runs of one scenario, everything that they write: equal to the octet. Another seed: not.
for i in 1 2; do
    "$urnic" sim -q "$scenarios/two-flows.sim" -o "$tmp/$i.jsonl" -p "$tmp/$i.svg" \
        -c "host0=$tmp/$i.pcapng" || fail "two-flows does not hold"
done
cmp "$tmp/1.jsonl" "$tmp/2.jsonl"
cmp "$tmp/1.svg" "$tmp/2.svg"
cmp "$tmp/1.pcapng" "$tmp/2.pcapng"
sed 's/^seed.*/seed 2/; /^expect/d' "$scenarios/two-flows.sim" >"$tmp/other.sim"
"$urnic" sim -q "$tmp/other.sim" -o "$tmp/3.jsonl"
! cmp -s <(tail -1 "$tmp/1.jsonl") <(tail -1 "$tmp/3.jsonl") || fail "the seed changes nothing"

# Every line is JSON, and the last one says where the run ended.
python3 - "$tmp/1.jsonl" <<'PY'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
assert lines[0]["type"] == "run" and lines[-1]["type"] == "end"
assert lines[-1]["t_us"] == 60000 and len(lines[-1]["trace"]) == 16
assert sum(l["type"] == "flow" for l in lines) == 2
assert sum(l["type"] == "sample" for l in lines) == 600
assert all(l["ok"] for l in lines if l["type"] == "expect")
# Rate limit and alpha of each queue pair: full and 0 while flow 0 is alone, cut and 1 when flow 1 has come.
samples = [l for l in lines if l["type"] == "sample"]
assert samples[0]["limit_gbps"] == [40, None] and samples[0]["alpha"] == [0, None], samples[0]
assert max(l["alpha"][1] or 0 for l in samples) > 0.9 and all(0 < l["alpha"][0] < 1 for l in samples[-50:])
assert all(0 < r < 40 for l in samples[-50:] for r in l["limit_gbps"])
PY
python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$tmp/1.svg"

# The axes of a chart have units, and a legend of numbers says of what.
"$urnic" sim -q "$scenarios/gains.sim" -s g=1/256 -s timer=55us --chart queue_p99/timer/bytes="$tmp/c.svg"
for text in "timer, us" "queue_p99, kB" "bytes=10M" "bytes=150K"; do
    grep -q ">$text<" "$tmp/c.svg" || fail "the chart lacks $text"
done

# People read numbers, however large.
"$urnic" sim "$scenarios/gains.sim" -s g=1/256 -s timer=55us -s bytes=10M >"$tmp/gains.txt"
grep -Eq '  hops [1-9][0-9]{5,} ' "$tmp/gains.txt" || fail "hops: $(grep hops "$tmp/gains.txt")"
! grep -q 'e+' "$tmp/gains.txt" || fail "$(grep 'e+' "$tmp/gains.txt")"

# A figure that no run has is known before the first run.
for option in "--figure=zork" "--figure=jain.1" "--chart=zork/timer=$tmp/z.svg" "--chart=zork/time=$tmp/z.svg"; do
    rc=0
    timeout 5 "$urnic" sim -q "$scenarios/websearch.sim" "$option" 2>"$tmp/err" || rc=$?
    [ $rc = 2 ] && grep -q 'metric' "$tmp/err" || fail "$option: status $rc, $(cat "$tmp/err")"
done

# So is a variable that the scenario hasn't, with its name.
for chart in goodput/zork goodput/load/zork queue/time/zork; do
    rc=0
    timeout 5 "$urnic" sim -q "$scenarios/all-reduce-load.sim" --chart "$chart=$tmp/z.svg" 2>"$tmp/err" || rc=$?
    [ $rc = 2 ] && grep -q "no variable 'zork'" "$tmp/err" || fail "--chart $chart: status $rc, $(cat "$tmp/err")"
done

# Runs that differ in what the chart doesn't name have lines of their own; what isn't drawn is said.
printf 'duration 100us\nsample 20us\nsweep n 1 2\nsweep pfc on off\nsweep cc none dcqcn\nsweep x a 5
topology dumbbell hosts=2 rate=40G\nswitch pfc=$pfc\ncc $cc\nflow from=0 to=2 size=forever count=$n\n' >"$tmp/four.sim"
"$urnic" sim -q "$tmp/four.sim" -s x=a --chart "queue/time/cc=$tmp/q.svg" --chart "rate/time/cc=$tmp/r.svg" \
    --chart "goodput/n/cc=$tmp/g.svg"
for text in "none n=1 pfc=on" "dcqcn n=2 pfc=off"; do
    grep -q ">$text<" "$tmp/q.svg" && grep -q ">flow 0 $text<" "$tmp/r.svg" || fail "no line '$text'"
done
[ "$(grep -c '<polyline' "$tmp/q.svg")" = 8 ] && [ "$(grep -c '<polyline' "$tmp/r.svg")" = 12 ] &&
    [ "$(grep -c '<polyline' "$tmp/g.svg")" = 4 ] || fail "not a line a run"
# Over a variable the points stand in its order, not in the sweep's.
"$urnic" sim -q "$tmp/four.sim" -s x=a -s pfc=on -s cc=none --chart "goodput/n=$tmp/up.svg"
sed -i 's/^sweep n.*/sweep n 2 1/' "$tmp/four.sim"
"$urnic" sim -q "$tmp/four.sim" -s x=a -s pfc=on -s cc=none --chart "goodput/n=$tmp/down.svg"
cmp "$tmp/up.svg" "$tmp/down.svg"
complaint() { # WHAT IT SAYS, OPTIONS
    local said=$1 rc=0
    shift
    "$urnic" sim -q "$tmp/four.sim" "$@" 2>"$tmp/err" || rc=$?
    [ $rc = 1 ] && grep -q "$said" "$tmp/err" || fail "$*: status $rc, $(cat "$tmp/err")"
}
# Values that are no numbers are categories.
"$urnic" sim -q "$tmp/four.sim" -s n=1 -s pfc=on --chart "goodput/cc/x=$tmp/cat.svg" --chart "goodput/x/cc=$tmp/mixed.svg"
for text in none dcqcn a x=5; do
    grep -q ">$text<" "$tmp/cat.svg" || fail "the chart over categories lacks $text"
done
[ "$(grep -c '<polyline' "$tmp/cat.svg")" = 0 ] || fail "categories are joined by lines"
grep -q '>a<' "$tmp/mixed.svg" && grep -q '>5<' "$tmp/mixed.svg" || fail "a number among categories"
complaint "run 0 .* has no fct_p50" --chart "fct_p50/n/cc=$tmp/z.svg"
complaint "32 lines" --chart "rate/time=$tmp/z.svg" -s n=40 -s x=a
sed -i '/^sample/d' "$tmp/four.sim"
echo 'when x=5 sample 20us' >>"$tmp/four.sim"
complaint "no 'sample' was taken" --chart "rate/time=$tmp/z.svg"
# What no run can have is known before the first one.
hopeless() { # WHAT IT SAYS, OPTIONS
    local said=$1 rc=0 way
    shift
    for way in --check "--output=$tmp/none.jsonl"; do
        "$urnic" sim "$tmp/four.sim" "$way" "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
        [ $rc = 2 ] && grep -q "$said" "$tmp/err" || fail "$way $*: status $rc, $(cat "$tmp/err")"
        [ ! -s "$tmp/out" ] && [ ! -e "$tmp/none.jsonl" ] && [ ! -e "$tmp/none.svg" ] || fail "$way $*: something ran"
    done
}
hopeless "figure goodput.2: .*no flow 2: the run has [12]" --figure goodput.2
hopeless "figure faulted.3: .*no fault rule 3" --figure jain --figure faulted.3
hopeless "figure queue_p99: .*no 'sample' is taken" --figure queue_p99 -s x=a
hopeless "none.svg: .*no flow 2: the run has [12]" --chart "goodput.2/n=$tmp/none.svg"
hopeless "none.svg: .*no 'sample' is taken" --chart "queue/time=$tmp/none.svg" -s x=a
# ... but one may have what another hasn't, also if that is another shard's.
"$urnic" sim -q "$tmp/four.sim" --check --figure goodput.1 --chart "goodput.1/n=$tmp/none.svg" || fail "flow 1 of n=2"
"$urnic" sim -q "$tmp/four.sim" --check --figure goodput.1 --shard 1/16 -s pfc=on || fail "flow 1 of another shard"

# A row for each flow of each run, with all that is swept, and those that are still open.
printf 'duration 100us\nsweep size 1K 1M\nsweep cc none "sr,overtake=0"\ntopology incast hosts=2 rate=10G
incast to=2 size=$size\nflow from=0 to=1 size=forever\n' | sed 's/"//g; s/cc none sr/cc none none,recovery=sr/' >"$tmp/csv.sim"
echo 'cc $cc' >>"$tmp/csv.sim"
"$urnic" sim -q "$tmp/csv.sim" --csv "$tmp/flows.csv"
"$urnic" sim "$tmp/csv.sim" --csv - -s size=1K 2>/dev/null >"$tmp/out.csv"
python3 - "$tmp/flows.csv" "$tmp/out.csv" <<'PY'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
assert len(rows) == 12 and len({tuple(r) for r in rows}) == 1, rows
assert {(r["run"], r["size"], r["cc"]) for r in rows} == {
    ("0", "1K", "none"), ("1", "1M", "none"), ("2", "1K", "none,recovery=sr,overtake=0"),
    ("3", "1M", "none,recovery=sr,overtake=0")}, rows
for r in rows:
    ended = r["size"] == "1K" and r["flow"] != "2"
    assert r["open"] == str(int(not ended)) and (r["state"] == "done") == ended, r
    assert (r["octets"] == "forever") == (r["flow"] == "2"), r
    assert bool(r["fct_us"]) == ended == bool(r["slowdown"]), r
    assert not ended or abs(float(r["fct_us"]) / float(r["ideal_us"]) - float(r["slowdown"])) < .01, r
assert len(list(csv.DictReader(open(sys.argv[2], newline="")))) == 6
PY
rc=0
"$urnic" sim -q "$tmp/csv.sim" --csv /nowhere/x.csv 2>"$tmp/err" || rc=$?
[ $rc = 1 ] && grep -q '/nowhere/x.csv' "$tmp/err" || fail "--csv into a folder that isn't there: status $rc"
# How completion times and slowdowns are distributed.
"$urnic" sim -q "$tmp/csv.sim" -s size=1K --chart "slowdown/cdf/cc=$tmp/cdf.svg" --chart "fct/cdf=$tmp/fct.svg"
for text in "slowdown" "part of the flows" none none,recovery=sr,overtake=0; do
    grep -q ">$text<" "$tmp/cdf.svg" || fail "the distribution lacks $text"
done
grep -q '>fct, us<' "$tmp/fct.svg" || fail "the distribution has no unit"
# ... of all flows with an end: when only some of them have reached it, the curve stops below 1.
printf 'duration 50us\ntopology incast hosts=2 rate=10G\nflow from=0 to=2 size=1K count=3\nflow from=1 to=2 size=1M\n' >"$tmp/part.sim"
"$urnic" sim -q "$tmp/part.sim" --chart "fct/cdf=$tmp/part.svg"
python3 - "$tmp/part.svg" <<'PY'
import re, sys
svg = open(sys.argv[1]).read()
ys = [float(p.split(",")[1]) for p in re.search(r'points="([^"]+)"', svg).group(1).split()]
top, bottom = 34.0, 252.0 # of the panel: 1 and 0
assert abs((bottom - min(ys)) / (bottom - top) - .75) < .01, ys
PY
rc=0
"$urnic" sim -q "$tmp/csv.sim" --chart "naks/cdf=$tmp/cdf.svg" 2>"$tmp/err" || rc=$?
[ $rc = 2 ] && grep -q 'slowdown/cdf' "$tmp/err" || fail "naks/cdf: status $rc, $(cat "$tmp/err")"
# A sweep over decades has a logarithmic axis, with a place for 0.
printf 'duration 20us\nsweep p 0 0.01%% 0.1%% 1%%\ntopology incast hosts=1 rate=10G\nnoise loss=$p\nflow from=0 to=1 size=forever\n' >"$tmp/dec.sim"
"$urnic" sim -q "$tmp/dec.sim" --chart "goodput/p=$tmp/dec.svg"
for text in 0 0.0001 0.001 0.01; do
    grep -q ">$text<" "$tmp/dec.svg" || fail "the logarithmic axis lacks $text"
done
# When a run has ended, nothing is left of it, however long it might have lasted.
python3 - "$urnic" "$tmp" <<'PY'
import os, pty, subprocess, sys
urnic, tmp = sys.argv[1:]
with open(tmp + "/ends.sim", "w") as f:
    f.write("duration 100s\ntopology incast hosts=4 rate=10G\nincast to=4 size=40M\n")
master, slave = pty.openpty()
done = subprocess.Popen([urnic, "sim", tmp + "/ends.sim"], stdout=subprocess.DEVNULL, stderr=slave)
os.close(slave)
said = b""
while True:
    try:
        part = os.read(master, 65536)
    except OSError:
        break
    if not part:
        break
    said += part
assert done.wait() == 0
last = said.decode().strip().split("\r")[-1]
assert not said or ("100%" in last and "done after" in last and "left" not in last), last
PY
# Figures of queues say of which ports they are.
printf 'duration 1ms\nsample 10us\ntopology incast hosts=8 rate=100G\nswitch pfc=on\nincast to=0 size=1M senders=7\n' >"$tmp/q.sim"
"$urnic" sim "$tmp/q.sim" -o "$tmp/q.jsonl" 2>/dev/null | grep -q 'queue_max is of switch0 > host0, the other figures of queues of switch0 > host8' ||
    fail "whose queue is it?"
grep -q '"queue_ports":\["switch0>host8"\],"queue_max_port":"switch0>host0"' "$tmp/q.jsonl" || fail "whose queue is it, in JSON?"
# A long list of flows is read whole, also through a pipe.
{
    printf 'duration 1s\ntopology incast hosts=9 rate=100G\n'
    seq 0 39999 | sed 's/.*/flow from=0 to=9 size=1 start=&ns # one of a list/'
} >"$tmp/long.sim"
[ "$(stat -c %s "$tmp/long.sim")" -gt 1048576 ] || fail "the list is too short for this test"
"$urnic" sim -q --check /dev/stdin <"$tmp/long.sim" || fail "a list of 40,000 flows"

# A page without a curve is no page.
printf 'duration 1ms\ntopology dumbbell hosts=1 rate=40G\nflow from=0 to=1 size=forever\n' >"$tmp/bare.sim"
rc=0
"$urnic" sim -q "$tmp/bare.sim" -p "$tmp/bare.svg" 2>"$tmp/err" || rc=$?
[ $rc = 1 ] && grep -q 'nothing to draw' "$tmp/err" || fail "an empty page is no mistake"
[ ! -e "$tmp/bare.svg" ] || fail "an empty page was written"

# A page of a run shows what the run has.
printf 'duration 4ms\nsample 50us\ntopology incast hosts=4 rate=40G\nswitch pfc=on xoff=64K
noise loss=0.2%%\narrivals sizes=hadoop load=40%%\n' >"$tmp/busy.sim"
"$urnic" sim -q "$tmp/busy.sim" -o "$tmp/busy.jsonl" -p "$tmp/busy.svg"
for title in "goodput, Gb/s" "queue, kB" "Jain&apos;s index\|Jain's index" "packets sent again" "pause frames" \
    "time, us" "slowdown" "99 %"; do
    grep -q "$title" "$tmp/busy.svg" || fail "the plot lacks $title"
done
python3 - "$tmp/busy.jsonl" <<'PY'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
last = [l for l in lines if l["type"] == "sample"][-1]
summary = next(l for l in lines if l["type"] == "summary")
assert 0 < last["retransmits"] <= summary["retransmits"], (last, summary)
assert 0 < last["pauses"] <= summary["pauses"], (last, summary)
assert all(l["jain"] is None or 0 < l["jain"] <= 1.000001 for l in lines if l["type"] == "sample")
assert all(0 < l["fct_p50"] <= l["fct_p95"] <= l["fct_p99"] for l in lines if l["type"] == "size")
PY

# What a run says about its parameters is all of them: stated again as a scenario, it is the same run to
# the octet. The object in the JSON output has the same names.
restate() { # scenario, settings
    "$urnic" sim "$@" -o "$tmp/said.jsonl" >"$tmp/said" || fail "$*"
    # the statements stand between the variables and the figures
    sed -n '/^  seed /,/^  [a-z0-9_]* [0-9.e+]* Gb/p' "$tmp/said" | sed '$d' |
        sed '1{s/, urnic .*//; s/, /\n/g}' >"$tmp/again.sim"
    "$urnic" sim -q "$tmp/again.sim" -o "$tmp/again.jsonl" || fail "what $* stated is no scenario"
    cmp <(tail -1 "$tmp/said.jsonl") <(tail -1 "$tmp/again.jsonl") || fail "$* states not all that is in force"
    python3 - "$tmp/said.jsonl" "$tmp/again.jsonl" "$tmp/again.sim" <<'PY'
import json, sys
said, again = (json.loads(open(name).readline()) for name in sys.argv[1:3])
assert said["parameters"] == again["parameters"], (said["parameters"], again["parameters"])
assert said["urnic"].count(".") == 2 and said["cc"] == again["cc"]
p, traffic = said["parameters"], []
for words in (line.split() for line in open(sys.argv[3])):
    names = [w.split("=")[0] for w in words if "=" in w]
    if words[0] in ("host", "switch", "noise"):
        assert set(names) == set(p[words[0]]) - {"headroom_in_force"}, words
    elif words[0] == "topology":
        assert set(names) | {"kind"} == set(p["topology"]) and words[1] == p["topology"]["kind"]
    elif words[0] == "cc":
        assert {"algorithm", "preset"} | {w.split("=")[0] for w in words[1].split(",")[1:]} == set(p["cc"])
    elif words[0] in ("watch", "fault"):
        assert words[-1] in str(p["faults" if words[0] == "fault" else "watch"])
    elif words[0] in ("seed", "duration", "sample", "measure", "payload"):
        assert words[0] in p
    else:
        traffic.append({words[0]} | set(names))
assert traffic == [{t["kind"]} | set(t) - {"kind"} for t in p["traffic"]], traffic
PY
}
restate "$scenarios/two-flows.sim"
restate "$scenarios/one-loss.sim" -s recovery=sr
restate "$scenarios/parking-lot.sim" -s cc=dcqcn:paper,g=1/19
restate "$scenarios/spray.sim" -s balance=spray -s recovery=sr
restate "$scenarios/all-reduce.sim" -s hosts=8 -s cc=swift
# CC-31: a preset is made to fit the line; what is printed is in force, and not fitted once more.
restate "$scenarios/line-rates.sim" -s rate=10G
"$urnic" sim "$scenarios/line-rates.sim" -s rate=10G >"$tmp/out" || fail "line-rates at 10G"
grep -q 'cc dcqcn:paper,.*timer=220us,.*ai=10M,' "$tmp/out" || fail "dcqcn:paper isn't fitted to 10 Gb/s"
grep -q '# cc:' "$tmp/out" && fail "a comment on what fits"
rc=0
"$urnic" sim "$scenarios/line-rates.sim" -s rate=1G -s scale=0 >"$tmp/out" || rc=$?
[ $rc = 1 ] && grep -q '# cc: a step of ai=40000000 is 4.0 % of the line' "$tmp/out" ||
    fail "no comment on steps that are too large: status $rc"
cat >"$tmp/all.sim" <<'SIM'
seed 77
duration 1.234567ms
measure 100us
payload carry
topology fat-tree k=4 rate=25G core=40G delay=1333ns
host mtu=2048 window=99 timeout=9 retries=6 dscp=10
switch buffer=1000001 headroom=33333 xoff=70K xon_gap=3K alpha=1/3 kmin=10K kmax=55555 pmax=7% pfc=on balance=spray
noise loss=1/300 reorder=0.7% late=1.5us
cc timely,beta=0.7,recovery=sr,rto_low=77us
watch switch3 switch10
flow from=0 to=5 size=100001 count=3 start=1.5us message=12345
flow from=1 to=5 size=forever stop=333333ns cc=dcqcn:paper,g=1/77,timer=56us,recovery=gbn-ooo
incast to=7 size=3000 times=2 every=10us
permutation size=4999
all-to-all size=2K start=7us
all-reduce size=99999 hosts=5 first=3 times=2 cc=swift
arrivals sizes=hadoop load=12.5% stop=0.5ms
fault at switch0-switch8 drop prob 1%
fault at host3 delay 2us nth 3
fault mark data prob 2%
SIM
restate "$tmp/all.sim"

# Shards, run side by side by GNU parallel (by the shell where it is missing), add up to the whole sweep.
"$urnic" sim -q "$scenarios/reorder.sim" -o "$tmp/whole.jsonl"
if parallel --version 2>/dev/null | grep -q 'GNU parallel'; then
    PARALLEL_HOME=$tmp parallel --will-cite --jobs 2 \
        "$urnic" sim -q "$scenarios/reorder.sim" --shard {}/3 -o "$tmp/part-{}.jsonl" ::: 1 2 3 </dev/null ||
        fail "parallel: a shard fails"
else
    for i in 1 2 3; do
        "$urnic" sim -q "$scenarios/reorder.sim" --shard $i/3 -o "$tmp/part-$i.jsonl" &
    done
    wait
fi
cmp <(sort "$tmp/whole.jsonl") <(sort "$tmp"/part-?.jsonl) || fail "shards don't add up"
# The lines that doc/scenarios.md gives for Slurm and mpirun, with the variables that those set.
for i in 1 2 3; do
    SLURM_ARRAY_TASK_ID=$i sh -c '"$1" sim -q "$2" --shard $SLURM_ARRAY_TASK_ID/3 -o "$3/slurm-$SLURM_ARRAY_TASK_ID.jsonl"' \
        - "$urnic" "$scenarios/one-loss.sim" "$tmp"
    OMPI_COMM_WORLD_RANK=$((i - 1)) sh -c '"$1" sim -q "$2" --shard $((OMPI_COMM_WORLD_RANK+1))/3 -o "$3/mpi-$OMPI_COMM_WORLD_RANK.jsonl"' \
        - "$urnic" "$scenarios/one-loss.sim" "$tmp"
done
cmp <(sort "$tmp"/slurm-?.jsonl) <("$urnic" sim -q --json "$scenarios/one-loss.sim" | sort) || fail "Slurm's shards"
cmp <(sort "$tmp"/slurm-?.jsonl) <(sort "$tmp"/mpi-?.jsonl) || fail "mpirun's shards"
[ "$("$urnic" sim "$scenarios/reorder.sim" --list | wc -l)" = 16 ] || fail "--list"
[ "$("$urnic" sim "$scenarios/reorder.sim" --list --set part=1%)" = "0 part=1% recovery=gbn
1 part=1% recovery=gbn-ooo
2 part=1% recovery=sr,overtake=0
3 part=1% recovery=sr" ] || fail "--set replaces its sweep"

"$urnic" sim "$scenarios/reorder.sim" --list --json --set part=1% >"$tmp/list.json" || fail "--list --json"
[ "$(wc -l <"$tmp/list.json")" = 4 ] && grep -q '^{"point":2,"points":4,"set":{.*"part":"1%".*"recovery":"sr,overtake=0".*}}$' "$tmp/list.json" ||
    fail "--list --json: $(cat "$tmp/list.json")"
python3 -c 'import json, sys; [json.loads(line) for line in sys.stdin]' <"$tmp/list.json" || fail "--list --json is no JSON"
"$urnic" sim "$scenarios/reorder.sim" --list --set part=1% -o "$tmp/list.out" --chart "goodput/part=$tmp/list.svg"
cmp "$tmp/list.json" "$tmp/list.out" || fail "--list -o"
[ ! -e "$tmp/list.svg" ] || fail "--list draws a chart of nothing"

# The packets of a capture are well formed, also for tshark, with payload skipped and carried.
head -c 200000 "$scenarios/loss.sim" >"$tmp/carry.sim"
echo "payload carry" >>"$tmp/carry.sim"
for s in "$scenarios/loss.sim" "$tmp/carry.sim"; do
    sed 's/^duration.*/duration 200us/; /expect/d' "$s" >"$tmp/short.sim"
    "$urnic" sim -q "$tmp/short.sim" -s recovery=gbn -s loss=1% -c "switch0=$tmp/c.pcapng"
    if command -v tshark >/dev/null; then
        tshark -r "$tmp/c.pcapng" --disable-protocol rpcordma -T fields -e frame.protocols \
            -e _ws.malformed 2>/dev/null | sort -u >"$tmp/seen"
        grep -q infiniband "$tmp/seen" || fail "tshark sees no RoCE"
        ! grep -qi malformed "$tmp/seen" || fail "tshark calls a frame malformed"
    fi
    "$urnic" lint "$tmp/c.pcapng" >"$tmp/lint" || { cat "$tmp/lint"; fail "lint finds a rule broken"; }
done

# ... and so is what other nodes record: marks and CNPs, pause frames, frames sprayed, late, selective repeat.
record() { # scenario, node, settings
    sed 's/^duration.*/duration 1ms/; /expect/d; /^measure/d' "$scenarios/$1.sim" >"$tmp/short.sim"
    "$urnic" sim -q "$tmp/short.sim" -c "$2=$tmp/n.pcapng" "${@:3}"
    "$urnic" lint "$tmp/n.pcapng" >"$tmp/lint" || { cat "$tmp/lint"; fail "lint finds a rule broken: $*"; }
    rm "$tmp/n.pcapng"
}
record incast host20 -s cc=dcqcn:paper
record incast switch0 -s cc=none
record spray switch4 -s balance=spray -s recovery=gbn
record reorder host1 -s recovery=sr -s part=1%

# Mistakes.
check() { # text, what stderr must say
    printf '%b' "$1" >"$tmp/bad.sim"
    set +e
    "$urnic" sim "$tmp/bad.sim" 2>"$tmp/err"
    [ $? = 2 ] || fail "exit status of: $1"
    set -e
    grep -qF -- "$2" "$tmp/err" || { cat "$tmp/err"; fail "no '$2'"; }
}
check 'duration 1ms\ntopology dumbbell hosts=2 rate=40G\nflow from=0 to=9 size=1K\n' 'bad.sim:3: to: there is no host 9'
check 'duration 1ms\ntopology dumbbell hosts=x rate=40G\n' "bad.sim:2: hosts: 'x' is not a number"
check 'duration 1ms\n' 'bad.sim: topology: it is missing'
check 'duration 1ms\ntopology dumbbell hosts=1 rate=1G\nflow from=0 to=1 size=1K\nwatch host0 switch1\n' \
    'bad.sim:4: watch: there is no cable between host0 and switch1'
check 'duration 1ms\ntopology dumbbell hosts=1 rate=1G\nflow from=0 to=1 size=1K\nswitch buffer=2K pfc=on\n' \
    'bad.sim:4: buffer: the head-room of all ports'
check 'duration 1ms\ntopology dumbbell hosts=1 rate=1G\nflow from=0 to=1 size=1K\nfault drop nth=1\n' 'bad.sim:4: fault:'
# An error in a later run of a sweep, or a value that doesn't fit its network, is reported before the first run, and by --check.
early() { # text, what stderr must say
    printf '%b' "$1" >"$tmp/bad.sim"
    for option in --check "--output=$tmp/early.jsonl"; do
        rc=0
        "$urnic" sim "$tmp/bad.sim" "$option" >"$tmp/out" 2>"$tmp/err" || rc=$?
        [ $rc = 2 ] && grep -qF -- "$2" "$tmp/err" || { cat "$tmp/err"; fail "$option: status $rc, no '$2'"; }
        [ ! -s "$tmp/out" ] && [ ! -e "$tmp/early.jsonl" ] || fail "$option: something ran: $1"
    done
}
two='duration 1ms\ntopology dumbbell hosts=2 rate=1G\nflow from=0 to=2 size=1K\n'
early "sweep m 256 512 333\n${two}host mtu=\$m\n" 'bad.sim:5: mtu: 333 is not'
early "sweep n 1 2\n${two}watch host0 switch\$n\n" 'bad.sim:5: watch: there is no cable between host0 and switch1'
early "sweep b 1M 9K\n${two}switch buffer=\$b pfc=on\n" "bad.sim:5: buffer: the head-room of all ports"
early "sweep n 0 1\n${two}expect goodput.\$n >= 0\n" 'bad.sim:5: expect: goodput.1: there is no flow 1: the run has 1'
early "sweep t 0 1ms\n${two}flow from=0 to=2 size=1K start=\$t\n" 'bad.sim:5: start: 1000000ns is not before the end'
early "${two}fault at switch7 drop\n" 'bad.sim:4: fault: there is no cable at switch7'
printf '%b' "sweep m 256 512 333\n${two}host mtu=\$m\n" >"$tmp/shard.sim"
"$urnic" sim -q --check --shard 2/3 "$tmp/shard.sim" || fail "another shard's mistake is not ours"
# Rules from a file, beside the scenario's own.
printf 'duration 9ms\ntopology dumbbell hosts=1 rate=1G\nflow from=0 to=1 size=9K\nfault drop nth 99\nexpect faulted.1 <= 0\n' >"$tmp/f.sim"
printf '# two\ndrop psn +4 first-tx\n\nmark nth 1\n' >"$tmp/f.faults"
"$urnic" sim --json --rules "$tmp/f.faults" "$tmp/f.sim" >"$tmp/f.out" 2>/dev/null || fail "--rules"
python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$tmp/f.out" ||
    fail "--json: there is a summary, too"
grep -qF '"line":2,"rule":"drop psn +4 first-tx","matched":1,"done":1,"failed":0}' "$tmp/f.out" ||
    fail "a rule of the file did nothing"
grep -qF '"line":4,"rule":"drop nth 99","matched":' "$tmp/f.out" || fail "the scenario's rule is gone"
printf 'mark\n%.0s' $(seq 32) >"$tmp/many.faults"
rc=0
"$urnic" sim --rules "$tmp/many.faults" "$tmp/f.sim" 2>"$tmp/err" || rc=$?
[ $rc = 2 ] && grep -q 'more than 32' "$tmp/err" || fail "33 rules are not refused"
points() { # text, what stderr must say
    printf '%b' "$1" >"$tmp/bad.jsonl"
    set +e
    "$urnic" sim -q "$scenarios/two-flows-live.sim" --points "$tmp/bad.jsonl" -p "$tmp/x.svg" 2>"$tmp/err"
    [ $? = 2 ] || fail "exit status of points: $1"
    set -e
    grep -qF -- "$2" "$tmp/err" || { cat "$tmp/err"; fail "no '$2'"; }
}
points '' 'bad.jsonl: no sample'
points '{"type":"run"}\n{"type":"sample"}\n' 'bad.jsonl:2: t_us: not a number'
points '{"type":"sample","t_us":1,"gbps":7}\n' 'bad.jsonl:1: gbps: not an array'
points '[1,2\n' 'bad.jsonl:1:'
undrawn() { # rates measured, flows simulated, what stderr must say
    printf '{"type":"sample","t_us":1000,"gbps":[%s]}\n' "$1" >"$tmp/few.jsonl"
    printf 'duration 3ms\n%s\ntopology dumbbell hosts=20 rate=1G\n' "$4" >"$tmp/few.sim"
    for i in $(seq "$2"); do printf 'flow from=%s to=20 size=9K\n' $((i - 1)); done >>"$tmp/few.sim"
    rc=0
    "$urnic" sim -q "$tmp/few.sim" --points "$tmp/few.jsonl" -p "$tmp/few.svg" 2>"$tmp/err" || rc=$?
    [ $rc = "$5" ] && { [ -z "$3" ] || grep -qF -- "$3" "$tmp/err"; } || { cat "$tmp/err"; fail "points: $*"; }
}
undrawn 1,2 2 '' 'sample 10us' 0
undrawn 1,2,3 2 'few.jsonl: the rates of 2 of its 3 flows are drawn: no more are' 'sample 10us' 1
undrawn 1,2 17 'the rates of 0 of its 2 flows are drawn: more than 16' 'sample 10us' 1
undrawn 1,2 2 'drawn: the run ended before its first sample' 'sample 1ms' 1
undrawn 1,2 17 'the rates of 0 of its 2 flows are drawn: there are curves only' '' 1
rc=0
"$urnic" sim -q "$tmp/few.sim" --points "$tmp/few.jsonl" 2>"$tmp/err" || rc=$?
[ $rc = 2 ] && grep -q 'drawn with --plot' "$tmp/err" || fail "--points without --plot"
set +e
"$urnic" sim -q "$scenarios/two-flows.sim" --set colour=red 2>/dev/null
[ $? = 2 ] || fail "a variable that the scenario lacks is not refused"
"$urnic" sim -q "$scenarios/two-flows.sim" --set preset=strawman -o /nonexistent/x 2>/dev/null
[ $? = 1 ] || fail "exit status without output"
printf 'duration 1ms\ntopology dumbbell hosts=1 rate=1G\nflow from=0 to=1 size=1K\nexpect goodput >= 99\n' >"$tmp/low.sim"
"$urnic" sim -q "$tmp/low.sim"
[ $? = 1 ] || fail "an expectation that fails is not reported"

# Ctrl-C: what there is, and its end.
printf 'duration 1000s\nsample 1ms\nsweep x 1 2\ntopology dumbbell hosts=1 rate=40G\nflow from=0 to=1 size=forever\n' >"$tmp/long.sim"
"$urnic" sim -q "$tmp/long.sim" -o "$tmp/long.jsonl" -p "$tmp/long.svg" --chart "goodput/x=$tmp/longx.svg" \
    --chart "rate/time=$tmp/longr.svg" 2>"$tmp/err" &
pid=$!
for _ in $(seq 300); do # the file is there once signals are caught
    [ -e "$tmp/long.jsonl" ] && break
    sleep 0.1
done
kill -INT $pid
wait $pid
[ $? = 1 ] && grep -q "interrupted: the last run isn't whole, 1 not started" "$tmp/err" ||
    fail "nobody is told that a run was interrupted: $(cat "$tmp/err")"
tail -2 "$tmp/long.jsonl" | head -1 | grep -q '"type":"end".*"interrupted":true' ||
    fail "an interrupted run writes nothing, or doesn't say that it was"
grep -q '>Rates (interrupted at .* of simulated time)<' "$tmp/long-0.svg" || fail "a plot of half a run looks whole"
grep -q '>(interrupted: runs are missing' "$tmp/longx.svg" && grep -q '>(interrupted: ' "$tmp/longr.svg" ||
    fail "a chart of half a sweep looks whole"
grep -q "run 0 isn't in it.*it was interrupted" "$tmp/err" || fail "a figure of half a run is in the chart"
! grep -q '<circle\|<polyline' "$tmp/longx.svg" || fail "half a run's figure is drawn"
grep -q '<polyline' "$tmp/longr.svg" || fail "half a run's curve isn't drawn"
[ "$(tail -1 "$tmp/long.jsonl")" = '{"type":"interrupted","left":1}' ] || fail "runs that did not start aren't counted"
# ... also between short runs, all of which are whole.
printf 'sweep n 0..19999\nduration 1s\ntopology incast hosts=20 rate=10G\nincast to=3 size=10K\n' >"$tmp/many.sim"
"$urnic" sim -q "$tmp/many.sim" -o "$tmp/many.jsonl" 2>"$tmp/err" &
pid=$!
for _ in $(seq 300); do
    [ -s "$tmp/many.jsonl" ] && break
    sleep 0.1
done
kill -TERM $pid
rc=0
wait $pid || rc=$?
[ $rc = 1 ] && grep -q 'interrupted: .* not started' "$tmp/err" || fail "status $rc: $(cat "$tmp/err")"
tail -1 "$tmp/many.jsonl" | grep -q '^{"type":"interrupted","left":[1-9][0-9]*}$' || fail "half a sweep looks whole"
# ... and before the first one, which is said, and leaves alone what earlier runs have written.
printf 'sweep n 0..19999\nduration 1s\ntopology incast hosts=2 rate=10G\nflow from=0 to=2 size=1K count=10000\nflow from=1 to=2 size=1K count=10000\n' >"$tmp/slow.sim"
mkfifo "$tmp/fifo.sim"
for option in --check "--output=$tmp/slow.jsonl"; do
    echo earlier | tee "$tmp/slow.jsonl" >"$tmp/slow.svg"
    "$urnic" sim -q "$tmp/fifo.sim" "$option" --chart "goodput/n=$tmp/slow.svg" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    cat "$tmp/slow.sim" >"$tmp/fifo.sim" # which is read once signals are caught
    sleep 0.2
    kill -INT $pid
    rc=0
    wait $pid || rc=$?
    [ $rc = 1 ] && grep -q 'interrupted: no run was started' "$tmp/err" || fail "$option: status $rc: $(cat "$tmp/err")"
    [ "$(cat "$tmp/slow.jsonl" "$tmp/slow.svg")" = "earlier
earlier" ] && [ ! -s "$tmp/out" ] || fail "$option: there is output of runs that did not start"
done
echo ok
