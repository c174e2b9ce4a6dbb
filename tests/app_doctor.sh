#!/bin/sh
# app_doctor.sh - imagenet doctor: what it finds on good and on bad machines
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

cd "$tmp" || exit 99
run "$imagenet" doctor
exits 0 "a machine on which the tests run is fit for training"
says "^result: training will work" "and that is the result"
awk '!/^[A-Za-z0-9 -]+: ./ { bad = 1 } END { exit bad }' out
point $? "each line is a name and a value"
for name in version machine processor cores "numa nodes" caches \
    "huge pages" bf16 memory "memory limit" "cpu quota" "limit of open files" "folder of runs" \
    "folder of StarPU" devices gpus advice; do
    says "^$name: " "it tells: $name"
done
version=$("$imagenet" --version)
says "^version: ${version#imagenet of }" "the version is the program's"
says "^environment: STARPU_NCPU=2$" "variables that matter are shown"
! grep -q "nothing reads" out
point $? "and all of these tests are known"
kib=$(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo)
tell=$(sed -n 's/^memory: \([0-9.]*\) GiB.*/\1/p' out)
[ -z "$tell" ] || holds "($tell - $kib / 1048576) ^ 2 < 1" "so much memory is there"

# The weights of all workers and of one, and those of the plain kernels.
all=$(sed -n 's/^self-test on all devices: weights \([^,]*\),.*/\1/p' out)
one=$(sed -n 's/^self-test on one worker: weights //p' out)
[ -n "$all" ] && [ "$all" = "$one" ]
point $? "two workers and one have the same weights: $all $one"
far=$(sed -n 's/^self-test against plain C: steps differ by \([^,]*\),.*/\1/p' out)
holds "${far:-1} < 0.001" "which are near those of plain C: $far"

run env -u STARPU_NCPU "$imagenet" doctor --workers 3 --backend ref
exits 0 "with other workers and kernels"
says "^devices: 3 CPU workers \(plain C" "they are those that were asked for"
says "steps differ by 0," "and do not differ from themselves"

run env DDP_SEGMENTS_US=1 STARPU_SHED=x "$imagenet" doctor
exits 0 "misspelt variables keep nobody from training"
says "^warning: nothing reads .*STARPU_SHED" "but are named"
says "^warning: nothing reads .*DDP_SEGMENTS_US" "all of them"
run env STARPU_NCPU=two "$imagenet" doctor
exits 2 "a variable that StarPU would abort on"
says "^problem: STARPU_NCPU is 'two'" "is a problem"
says "^result: training will not work here: 1 problem$" "the only one"
run env STARPU_SCHED=none "$imagenet" doctor
exits 2 "a scheduler that does not exist is another"

# A home that cannot be written, by root either.
run env -u XDG_CACHE_HOME -u STARPU_HOME HOME=/proc/none "$imagenet" doctor
exits 0 "without a home StarPU's files are temporary"
says "^folder of StarPU: /proc/none, cannot be written" "the folder is named"
says "^warning: StarPU's files are temporary: cannot write /proc/none" \
    "and what it leads to"
run "$imagenet" doctor --output /proc/none
exits 74 "a folder of runs that cannot be written"
says "^problem: /proc/none: .*--output" "is a problem"
[ -z "$(ls -A "$tmp" | grep -v -x -e out -e err)" ]
point $? "no file is left behind"

(ulimit -f 100 && "$imagenet" doctor >"$tmp/out" 2>"$tmp/err")
says "^limit of file size: (50|100)[.0-9]* KiB$" "a limit is shown"
says "^warning: file size is limited to .*ulimit -f" "and warned of"
(ulimit -t 600 && exec "$imagenet" doctor >"$tmp/out" 2>"$tmp/err")
says "^warning: processor time is limited to 600 s" "and another"

# Too little address space to start the workers' threads in.
if (ulimit -v 1000000) 2>/dev/null && ! ldd "$builddir/.libs/libddp.so" | grep -q libasan; then
    (ulimit -v 90000 && exec "$imagenet" doctor >"$tmp/out" 2>"$tmp/err")
    [ $? != 0 ]
    point $? "without memory training does not work"
else
    skip 1 "the sanitizer needs its address space"
fi

done_testing
