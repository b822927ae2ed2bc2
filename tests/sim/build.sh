#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds the simulated Jetson and its test programs:  tests/sim/build.sh OUTDIR [CC]
#
# Libraries go to OUTDIR, programs to OUTDIR/programs, a libcuda.so.1 without unwind tables to OUTDIR/nounwind, a program on
# either of two JetPacks to OUTDIR/jetpack-*, the launcher of a board with device nodes to OUTDIR/jmsim-board. CC (a cross
# compiler, say) and CFLAGS are honoured. Nothing is done when OUTDIR is newer than all sources and was built with the same
# compiler and flags (but for the copies). With JMSIM_REAL_CUDART set to a directory that holds NVIDIA's own libcudart, programs/cuda_real_shared and
# cuda_real_static are linked with that.
set -euo pipefail

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: $0 OUTDIR [CC]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
read -r -a cc <<<"${2:-${CC:-gcc}}" # may have arguments
ar=${cc[-1]%gcc}ar
command -v "$ar" >/dev/null 2>&1 || ar="ar"
read -r -a extra <<<"${CFLAGS:-}"

# What train.py (docs/examples) imports, and the rules that tell what its tensors are for.
mkdir -p "$out/site-packages/jmsim"
cp "$here"/site-packages/jmsim/*.py "$out/site-packages/jmsim/"
cp "$here/jmsim.rules" "$out/"

stamp="$out/.built"
built_with="${cc[*]} ${CFLAGS:-} ${JMSIM_REAL_CUDART:-}"
sources=(-type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.packages' -o -name build.sh \))
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$built_with" ] &&
    [ -z "$(find "$here" "${sources[@]}" -newer "$stamp" -print -quit)" ]; then
    exit 0
fi
rm -f "$stamp"
echo "$built_with" >"$stamp.unfinished" # now, so that a source changed meanwhile is newer

objects="$out/objects"
mkdir -p "$objects" "$out/programs" "$out/nounwind"

base=(-std=gnu11 -O1 -fPIC -Wall -Wextra -Werror -fvisibility=hidden)
with_unwind=("${base[@]}" -g -fasynchronous-unwind-tables)
without_unwind=("${base[@]}" -fno-asynchronous-unwind-tables -fno-unwind-tables -fomit-frame-pointer)
# Libraries are looked for beside what needs them, and in LD_LIBRARY_PATH before that.
beside=("-Wl,--enable-new-dtags" "-Wl,-rpath,\$ORIGIN")
above=("-Wl,--enable-new-dtags" "-Wl,-rpath,\$ORIGIN/..")

compile() { # SOURCE OBJECT FLAGS...
    local source=$1 object=$2
    shift 2
    "${cc[@]}" -c "$@" "${extra[@]}" -o "$objects/$object" "$here/$source"
}

link() { # LIBRARY ARGUMENTS...
    local library=$1
    shift
    "${cc[@]}" -shared -Wl,-Bsymbolic-functions -Wl,-soname,"${library##*/}" "${beside[@]}" \
        "${extra[@]}" -o "$out/$library" "$@"
}

# The driver, with unwind tables and without.
driver=() driver_bare=()
for name in board context copy launch memory nodes nodes_nvmap nodes_rm objects pool proc_address region resources sharing vmm; do
    compile "driver/$name.c" "driver_$name.o" "${with_unwind[@]}"
    compile "driver/$name.c" "bare_$name.o" "${without_unwind[@]}"
    driver+=("$objects/driver_$name.o")
    driver_bare+=("$objects/bare_$name.o")
done
echo '{ global: cu*; jmsim_*; local: *; };' >"$objects/exports"
exports="-Wl,--version-script=$objects/exports"
link libcuda.so.1 "${driver[@]}" "$exports" -pthread
link nounwind/libcuda.so.1 "${driver_bare[@]}" "$exports" -s -pthread

# The runtime under each of its names. Those of wheels are stripped and have versioned symbols.
for name in runtime memory; do
    compile "runtime/$name.c" "runtime_$name.o" "${with_unwind[@]}"
    compile "runtime/$name.c" "static_$name.o" "${with_unwind[@]}" -DRUNTIME_STATIC
done
compile runtime/kernels.c runtime_kernels.o "${with_unwind[@]}" # linked by ../torch-cuda and ../field
runtime=("$objects/runtime_runtime.o" "$objects/runtime_memory.o")
link_runtime() { # LIBRARY VERSION ARGUMENTS...
    local library=$1 version=$2
    shift 2
    compile runtime/version.c "version_$version.o" "${with_unwind[@]}" -DRUNTIME_VERSION="$version"
    link "$library" "${runtime[@]}" "$objects/version_$version.o" -ldl -pthread "$@"
}
echo 'libcudart.so.11.0 { global: cuda*; local: *; };' >"$objects/versions-11.0"
echo 'libcudart.so.12 { global: cuda*; local: *; };' >"$objects/versions-12"
link_runtime libcudart.so.10.2 10020
link_runtime libcudart.so.11.0 11080
link_runtime libcudart-9335f6a2.so.11.0 11030 -s -Wl,--version-script="$objects/versions-11.0"
link_runtime libcudart.so.12 12060 -s -Wl,--version-script="$objects/versions-12"
link_runtime libcudart.so.13 13000
rm -f "$out/libcudart_static.a"
"$ar" rcs "$out/libcudart_static.a" "$objects/static_runtime.o" "$objects/static_memory.o" \
    "$objects/version_10020.o"

# The other libraries: LIBRARY SOURCE DEFINE.
while read -r library source define; do
    compile "libraries/$source" "$define.o" "${with_unwind[@]}" -D"$define"
    link "$library" "$objects/$define.o" "$out/libcudart.so.10.2" "$out/libcuda.so.1"
done <<'LIBRARIES'
libcudnn.so.8 cudnn.c LIBRARY_CUDNN
libcublas.so.10 cublas.c LIBRARY_CUBLAS
libcublasLt.so.10 cublas.c LIBRARY_CUBLASLT
libcufft.so.10 other.c LIBRARY_CUFFT
libcusparse.so.10 other.c LIBRARY_CUSPARSE
libcusolver.so.10 other.c LIBRARY_CUSOLVER
libcurand.so.10 other.c LIBRARY_CURAND
libnccl.so.2 other.c LIBRARY_NCCL
libnvinfer.so.8 other.c LIBRARY_NVINFER
LIBRARIES

# The programs.
program() { # PROGRAM SOURCE ARGUMENTS...
    local program=$1 source=$2
    shift 2
    "${cc[@]}" -std=gnu11 -g -O1 -Wall -Wextra -Werror -pthread "${above[@]}" "${extra[@]}" \
        -o "$out/programs/$program" "$here/programs/$source" "$@"
}
cuda="$out/libcuda.so.1"
cudart="$out/libcudart.so.10.2"
static=("$out/libcudart_static.a" -ldl)
program cuda_each cuda_each.c "$cudart" "$cuda" -ldl
program cuda_each_11 cuda_each.c "$out/libcudart.so.11.0" "$cuda" -ldl
program cuda_each_12 cuda_each.c "$out/libcudart.so.12" "$cuda" -ldl
program cuda_each_13 cuda_each.c "$out/libcudart.so.13" "$cuda" -ldl
program cuda_each_hashed cuda_each.c "$out/libcudart-9335f6a2.so.11.0" "$cuda" -ldl
program cuda_fail cuda_fail.c "$cudart" "$cuda"
program cuda_lifetime cuda_lifetime.c "$cudart" "$cuda"
program cuda_mixed cuda_mixed.c "$cudart" "$cuda" "$out/libcudnn.so.8" "$out/libcublas.so.10"
program cuda_driver cuda_driver.c "$cuda"
program cuda_lazy cuda_lazy.c "$cuda"
program cuda_dlsym cuda_dlsym.c -ldl
program cuda_static cuda_static.c "${static[@]}"
program cuda_storm cuda_storm.c "$cudart"
program cuda_real cuda_real.c "$cudart"
program driver_threads driver_threads.c
program driver_random random/driver_random.c "$here/programs/random/nvmap.c" "$here/programs/random/rm.c"
program scopes scopes.c "$cudart" "$cuda" -ldl "$out/libcudnn.so.8" "$out/libcublas.so.10" \
    "$out/libcublasLt.so.10" "$out/libcufft.so.10" "$out/libcusparse.so.10" \
    "$out/libcusolver.so.10" "$out/libcurand.so.10" "$out/libnccl.so.2" "$out/libnvinfer.so.8"

# The kernel's side of driver memory.
"${cc[@]}" -std=gnu11 -g -O1 -Wall -Wextra -Werror "${extra[@]}" -o "$out/jmsim-board" "$here"/board/*.c

# The static runtime inside a library, and a program that knows nothing of it.
"${cc[@]}" -std=gnu11 -g -O1 -fPIC -shared -Wall -Wextra -Werror -pthread -DAS_LIBRARY "${extra[@]}" \
    "${beside[@]}" -Wl,-soname,libcuda_user.so -o "$out/libcuda_user.so" \
    "$here/programs/cuda_static.c" "${static[@]}"
program cuda_static_library cuda_static.c -DLIBRARY_USER "$out/libcuda_user.so"

# The same program on two JetPacks, in jetpack-RELEASE: libraries by the names that the release has for them, and below root/
# the files that describe its board. What the newer one spends is in jetpacks/; the older one spends what costs.h says.
versioned() { # FILE SONAME ARGUMENTS...
    local file=$1 soname=$2
    shift 2
    "${cc[@]}" -shared -Wl,-Bsymbolic-functions -Wl,-soname,"$soname" "${beside[@]}" "${extra[@]}" -o "$at/$file" "$@"
    ln -sf "$file" "$at/$soname"
}

# The files that describe a board, for --board-root.
describe() { # DIRECTORY JETPACK MODEL L4T REVISION
    mkdir -p "$1/etc" "$1/proc/device-tree" "$1/var/lib/dpkg"
    echo "# R$4 (release), REVISION: $5, GCID: 0, BOARD: simulated" >"$1/etc/nv_tegra_release"
    printf '%s' "$3" >"$1/proc/device-tree/model"
    grep -v '^#' "$here/jetpacks/$2.packages" | while read -r package version; do
        printf 'Package: %s\nStatus: install ok installed\nVersion: %s\n\n' "$package" "$version"
    done >"$1/var/lib/dpkg/status"
}

# JetPack 7.2 is for two boards, with one root file system.
for board in Orin Thor; do
    describe "$out/jetpack-7.2/$board" 7.2 "NVIDIA Jetson AGX $board Developer Kit" 39 2.0
done

while read -r release board l4t revision runtime_version cudart cudart_soname cublas cublas_soname cudnn; do
    at="$out/jetpack-$release"
    describe "$at/root" "$release" "Simulated Jetson $board" "$l4t" "$revision"

    costs=()
    if [ -e "$here/jetpacks/$release.h" ]; then costs=(-DJMSIM_COSTS="\"jetpacks/$release.h\""); fi
    changed=() # what costs.h is compiled into, the runtime apart: that is the same
    for source in driver/context driver/resources libraries/cudnn libraries/cublas; do
        object="${release}_${source##*/}.o"
        compile "$source.c" "$object" "${with_unwind[@]}" "${costs[@]}" -DLIBRARY_CUBLAS
        changed+=("$objects/$object")
    done
    rest=()
    for object in "${driver[@]}"; do
        case $object in
        */driver_context.o | */driver_resources.o) ;;
        *) rest+=("$object") ;;
        esac
    done
    versioned "libcuda.so.1.$l4t" libcuda.so.1 "${changed[@]:0:2}" "${rest[@]}" "$exports" -pthread
    versioned "$cudart" "$cudart_soname" "${runtime[@]}" "$objects/version_$runtime_version.o" -ldl -pthread
    versioned "$cudnn" libcudnn.so.8 "${changed[2]}" "$at/$cudart" "$at/libcuda.so.1"
    versioned "$cublas" "$cublas_soname" "${changed[3]}" "$at/$cudart" "$at/libcuda.so.1"
    "${cc[@]}" -std=gnu11 -g -O1 -Wall -Wextra -Werror "${beside[@]}" "${extra[@]}" -o "$at/jetpack" \
        "$here/programs/jetpack.c" "$at/$cudart" "$at/libcuda.so.1" "$at/$cudnn" "$at/$cublas"
done <<'JETPACKS'
4.6.1 Nano 32 7.1 10020 libcudart.so.10.2.300 libcudart.so.10.2 libcublas.so.10.2.3.300 libcublas.so.10 libcudnn.so.8.2.1
5.1.2 Xavier 35 4.1 11030 libcudart.so.11.4.298 libcudart.so.11.0 libcublas.so.11.6.6.84 libcublas.so.11 libcudnn.so.8.6.0
JETPACKS

# With no loader path to the simulation, or they would find its libraries first.
if [ -n "${JMSIM_REAL_CUDART:-}" ]; then
    real=("${cc[@]}" -std=gnu11 -g -O1 -Wall -Wextra -Werror -pthread "${extra[@]}" "$here/programs/cuda_real.c")
    "${real[@]}" -o "$out/programs/cuda_real_shared" "$JMSIM_REAL_CUDART/libcudart.so" -Wl,-rpath,"$JMSIM_REAL_CUDART"
    "${real[@]}" -o "$out/programs/cuda_real_static" "$JMSIM_REAL_CUDART/libcudart_static.a" -ldl -lrt
fi
mv "$stamp.unfinished" "$stamp"
