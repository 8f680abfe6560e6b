#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The programs in scripts/ say what they are for and what is wrong with a command line, before they do anything;
# and one that builds first ends when that fails.
#
#     test_scripts.sh SCRIPTS
set -uo pipefail
scripts=$(realpath "$1")
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" scripts

# refuses TEXT SCRIPT ARGUMENT...: exit status 2, and a message with the text
refuses() {
    local text=$1 name=$2 status=0
    shift 2
    timeout 100 "$scripts/$name" "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
    [ "$status" = 2 ] || fail "$name $*: exit status $status"
    grep -q -- "$text" "$dir/err" || { cat "$dir/err"; fail "$name $*: does not say \"$text\""; }
}

checked=0 picking=0
cd "$dir" || exit 1
for path in "$scripts"/*; do
    name=${path##*/}
    [ -x "$path" ] || continue
    checked=$((checked + 1))
    timeout 100 "$path" --help >"$dir/help" 2>&1 </dev/null || fail "$name --help: exit status $?"
    grep -q "usage: .*$name" "$dir/help" || fail "$name --help: no usage"
    tr -s ' \n' ' ' <"$dir/help" | grep -qE "Exit status:? 0:? .*[,;] 1:? .*[,;] 2:? " ||
        fail "$name --help: does not say what the exit statuses 0, 1 and 2 mean"
    # What takes programs of a build says which, before and when it does.
    if grep -Eq 'app/urnicd?/urnic|"app", "urnic"|tests/net/record|interop/peer_rdma' "$path"; then
        picking=$((picking + 1))
        grep -Eq 'build(-test)?/' "$dir/help" || fail "$name --help: does not say whose programs it runs"
        grep -Eq "with (\\\$build|\{)|the hosts run" "$path" || fail "$name: does not print whose programs it runs"
    fi
    [ "$name" = wire-suite ] || refuses usage "$name" --bogus # that passes on what it doesn't know
done
[ "$picking" -ge 9 ] || fail "only $picking scripts take programs of a build"
[ "$checked" -ge 15 ] || fail "only $checked scripts in $scripts"

refuses "'--bogus' is not" build --bogus
refuses "'a/b' is not" build a/b
refuses "'--bogus' is not" setup --bogus
refuses "--cc: a value" wire-suite --cc
refuses "'nofile'" quickstart nofile
refuses "'$0' is one FILE too many" quickstart "$0" "$0"
refuses "--loss: '2'" quickstart --loss 2
refuses "--only: 'x'" test --only x
refuses "--fuzz: 'x'" test --fuzz x
refuses usage test-count --failed
refuses usage test-targets --read-others build
refuses "--for: tests and NAME" build --for unit
refuses "no such experiment: 'nosuch'" experiments nosuch
refuses "--jobs: 0" experiments --jobs 0
refuses "nofile: No such file" live --scenario nofile
refuses "--output: a folder is missing" record-pcaps --output
refuses "no such rule" mutate NOSUCH
refuses usage lab
refuses "no command \"sideways\"" lab sideways
refuses "--name: which?" lab --name
refuses "--name: up to 12" lab --name A up
refuses "which host?" lab socket
refuses "which host?" lab socket x
refuses "'sideways' is not an option" setup sideways

# A reader may close a list early, and gets no error message.
for command in "rules --json" "interop --list"; do
    # shellcheck disable=SC2086 # words
    { timeout 100 "$scripts/"$command 2>err || true; } | true
    ! grep -q BrokenPipe err || { cat err; fail "$command | true: complains"; }
done

# A list of mutations that is wrong is wrong input, too.
mkdir -p wrong/scripts wrong/tests
cp "$scripts/mutate" wrong/scripts
for list in 'ACK-01' "$(printf 'ACK-01 scripts/mutate\n- nowhere\n+ somewhere')"; do
    status=0
    echo "$list" >wrong/tests/mutations.txt
    timeout 100 wrong/scripts/mutate --list >out 2>&1 </dev/null || status=$?
    [ "$status" = 2 ] && grep -q "mutations.txt:1: " out || { cat out; fail "a wrong list: exit status $status"; }
done

# Without root for what needs it something was tried and failed. In a place that everybody may read, which
# the project's needn't be.
if [ "$(id -u)" = 0 ]; then nobody=(setpriv --reuid 65534 --clear-groups); else nobody=(); fi
mkdir "$dir/public" "$dir/public/scripts"
cp "$scripts"/{interop,lab} "$dir/public/scripts"
chmod -R a+rX "$dir"
for name in interop lab; do
    status=0
    (cd / && "${nobody[@]}" bash "$dir/public/scripts/$name" up >"$dir/out" 2>&1 </dev/null) || status=$?
    [ "$status" = 1 ] && grep -q "needs root" out || { cat out; fail "$name without root: exit status $status"; }
done

# A build that fails: nothing is started.
mkdir tree tree/scripts
cp "$scripts"/{quickstart,record-pcaps,wire-suite} tree/scripts
printf '#!/bin/sh\nexit 0\n' >tree/scripts/setup
printf '#!/bin/sh\necho "no compiler" >&2\nexit 1\n' >tree/scripts/build
chmod +x tree/scripts/*
for name in quickstart record-pcaps wire-suite; do
    if timeout 100 "tree/scripts/$name" >out 2>&1 </dev/null; then fail "$name: succeeds although the build fails"; fi
    grep -q "no compiler" out && [ "$(grep -vcE '^$|^== building|no compiler' out)" = 0 ] ||
        { cat out; fail "$name goes on although the build has failed"; }
done

# Without a place for ccache's files compilations are not cached, rather than not done.
mkdir bin
printf '#!/bin/sh\nexit 0\n' >bin/ccache
# shellcheck disable=SC2016 # for the stubs to expand
printf '#!/bin/sh\necho "$@" >asked\nfor dir; do case $dir in */build*) mkdir -p "$dir" && touch "$dir/build.ninja" ;; esac; done\n' >bin/meson
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "${CCACHE_DISABLE:-cached}" >seen\n' >bin/ninja
chmod +x bin/*
cp "$scripts/build" tree/scripts/build
built() { PATH=$dir/bin:$PATH CCACHE_DIR=$1 tree/scripts/build >out 2>&1 || { cat out; fail "build"; }; }
built "$dir/cache"
grep -qx cached seen || fail "with a cache: $(cat seen)"
touch file
built "$dir/file/cache"
grep -qx 1 seen || fail "without a cache: $(cat seen)"
grep -q -- -Dinvariants asked && fail "scripts/build: what is installed checks its invariants: meson $(cat asked)"
PATH=$dir/bin:$PATH CCACHE_DIR=$dir/cache tree/scripts/build some -Dlto=disabled >out 2>&1 || { cat out; fail "build some"; }
grep -q -- '-Dinvariants=true .*-Dlto=disabled' asked || fail "scripts/build some: it doesn't check its invariants: meson $(cat asked)"
grep -q -- -Dwerror=true asked || fail "scripts/build lets warnings pass: meson $(cat asked)"

# What some of the tests need is built; the compiler reads all other sources, and its warnings are errors.
mkdir made
cat >bin/meson <<'EOF'
#!/bin/sh
case $2 in
    --targets) echo "[{\"id\": \"1\", \"filename\": [\"$3/tests/one\"]}, {\"id\": \"2\", \"filename\": [\"$3/tests/two\"]}]" ;;
    --tests) echo '[{"name": "one", "suite": ["urnic:unit"], "depends": ["1"]}, {"name": "two", "suite": ["urnic:net"], "depends": ["2"]}]' ;;
esac
EOF
printf '#!/bin/sh\necho one.o\n' >bin/ninja
for name in one two; do
    printf '{"directory": "%s", "command": "cc -Wall -Werror -MD -MQ %s.o -MF %s.d -o %s.o -c %s.c", "file": "%s.c", "output": "%s.o"}\n' \
        "$dir" "$name" "$name" "$name" "$name" "$name" "$name"
done | jq -s . >made/compile_commands.json
targets() { PATH=$dir/bin:$PATH timeout 100 "$scripts/test-targets" "$@" >out 2>&1; }
targets made one && [ "$(cat out)" = tests/one ] || { cat out; fail "test-targets made one"; }
targets made unit net && [ "$(cat out)" = $'tests/one\ntests/two' ] || { cat out; fail "test-targets made unit net"; }
targets made unit three && fail "test-targets made three: succeeds"
grep -q "'three' is neither a suite nor a test" out || { cat out; fail "test-targets made three"; }
echo 'no C at all' >one.c
echo 'int two(void); int two(void) { return 2; }' >two.c
targets --read-others made one || { cat out; fail "test-targets --read-others: reads what a test needs, or refuses good sources"; }
echo 'int two(void); int two(void) { int three; return 2; }' >two.c
targets --read-others made one && fail "test-targets --read-others: a warning passes"
grep -q "unused variable" out || { cat out; fail "test-targets --read-others: does not print the warning"; }
[ ! -e two.o ] || fail "test-targets --read-others: makes code"
