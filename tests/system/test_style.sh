#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/style finds what is written otherwise: in C files, in scripts, in the subjects of commits.
# usage: test_style.sh SOURCE-ROOT
# shellcheck disable=SC2016 # for the scripts to expand
set -eu
top=$1
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" style
cd "$dir"

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
commit() { git add -A && git commit -q --allow-empty -m "$1"; }

mkdir tree tree/scripts tree/lib tree/build
cp "$top/scripts/style" tree/scripts
cp "$top"/.clang-format "$top"/.clang-tidy "$top"/.shellcheckrc tree
cd tree
printf 'int good(int a);\n' >lib/good.h
printf '#include "good.h"\n\nint good(int a)\n{\n    return a;\n}\n' >lib/good.c
printf '#!/bin/sh\necho "$1"\n' >scripts/hello
printf '/build\n' >.gitignore
cat >build/compile_commands.json <<E
[{"directory": "$PWD/build", "file": "../lib/good.c", "command": "clang -c ../lib/good.c"},
 {"directory": "$PWD/build", "file": "../lib/bad.c", "command": "clang -c ../lib/bad.c"}]
E
git init -q -b main .
commit "a subject from before there was a rule."
printf '# from here on\n%s\n' "$(git rev-parse HEAD)" >scripts/style-since
commit "scripts: commits have subjects

Why: they are read."

# style STATUS TEXT [OPTION ...]: exits so and says that
style() {
    local want=$1 text=$2 status=0
    shift 2
    scripts/style --build build "$@" >../said 2>&1 || status=$?
    [ "$status" = "$want" ] || { cat ../said; fail "style $*: exit status $status, not $want ($text)"; }
    grep -qF -- "$text" ../said || { cat ../said; fail "style $*: does not say: $text"; }
}
back() { git reset -q --hard "$1"; }

style 0 "2 C files, 0 documents, 2 scripts, 1 commits, 1 files by clang-tidy: all is well"
style 0 "1 C files, 1 files by clang-tidy: all is well" lib/good.h # by the source of its name

printf 'int  bad( int a );\n' >lib/bad.h
style 1 "lib/bad.h:1:4: warning: code should be clang-formatted" --no-tidy
style 1 "lib/bad.h:1:4" --no-tidy lib/bad.h
rm lib/bad.h

printf 'int bad(int a); // NOLINT\n' >lib/bad.h
style 1 "lib/bad.h:1: NOLINT without a reason" --no-tidy
printf 'int bad(int a); // NOLINT(misc-*): the kernel wants it so\n' >lib/bad.h
style 0 "all is well" --no-tidy
rm lib/bad.h

long=$(printf 'word %.0s' {1..21})
printf '%s\n\n    %s\n| %s |\n' "$long" "$long" "$long" >README.md
git add README.md
style 1 "README.md:1: 105 columns, more than 100" --no-tidy
if grep -q "README.md:3:\|README.md:4:" ../said; then fail "code and tables may be wide"; fi
git rm -qf README.md

printf 'int bad(int a);\n\nint bad(int a)\n{\n    int *none = 0;\n    return a ? a : *none;\n}\n' >lib/bad.c
style 1 "lib/bad.c:6:20: warning: Dereference of null pointer"
style 1 "lib/bad.c:6:20" --changed # not in a commit yet
style 0 "all is well" --no-tidy
commit "lib: it is bad

To be found."
style 1 "lib/bad.c:6:20" --changed # one of the last commits
style 0 "2 changed ones left when time was over" --changed --minutes 0.000000001
git branch side
git checkout -q side
commit "lib: a branch that touches no C file

Nothing differs from main."
style 0 "0 files by clang-tidy: all is well" --changed
git checkout -q main
back HEAD~1

printf '#!/bin/sh\necho $1\n' >scripts/bad
style 1 "scripts/bad:2:6" --no-tidy
printf '#!/usr/bin/env python3\nimport os\n' >scripts/bad
style 1 "scripts/bad:2:1: 'os' imported but unused" --no-tidy
rm scripts/bad

bad_subject() { # TEXT MESSAGE
    commit "$2"
    style 1 "$1" --no-tidy
    back HEAD~1
}
bad_subject "no body that says why" "lib: a subject alone"
bad_subject "not 'area: what the software does now'" "it has no area

Why."
bad_subject "not 'area: what the software does now'" "lib: a sentence.

Why."
bad_subject "a subject of 73 characters, more than 72" "lib: $(printf '%068d' 1)

Why."
commit "README, doc/a.md, tests/x-y_z: $(printf '%041d' 1)

72 characters, and areas."
style 0 "2 commits: all is well" --no-tidy
back HEAD~1
printf '%040d\n' 1 >scripts/style-since
style 1 "is not in the history of HEAD" --no-tidy
back HEAD

style 2 "'lib/none.c' is not a file" lib/none.c
style 2 "no compile_commands.json" --build "$dir"
style 2 "is not a time" --minutes 0
