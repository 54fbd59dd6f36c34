# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu.sh
# The parts of gpu.sh, in the order in which it runs them: first what may crash or hang, each in a
# process of its own, then numbers, then speed, last the tools that slow everything down.
#
# Needs: timed and skip of gpu_run.sh, the figures of gpu_figures.sh, gpu_machine.sh, millrace, here.

ops=(accumulate adamw adamwCompact adapterNorms add attention attentionBackward averageSquares
    biasGradient cast causalConv causalConvBackward codeProduct columnDots columnEnergy columnSquares copyColumns crossEntropy decodeInputs
    dequantizeNf4 dropout embed embedBackward encodeInputs fill finishGradient gateHeads
    gateHeadsBackward gatedDelta gatedDeltaBackward gatedNorm gatedNormBackward gatherColumns
    headNormRope headNormRopeBackward join joinSoftmax lightStepSize lightUpdate linear
    linearBackwardInput linearBackwardWeight normBlocks
    normJoin projectedStep projectGradient projectionSigns quantize rmsNorm rmsNormBackward rope
    rowAdamw rowSquares scale scaleColumns scatterColumns selectRows softcap softmaxGradient softmaxPart
    split splitQueries sum swiglu swigluBackward windowProduct)

was_skipped() { [[ $verdict == skipped* ]]; }

# bench_step NAME LIMIT MODEL OPTIONS...: on the card.
bench_step() {
    local name=$1 limit=$2 model=$3
    shift 3
    timed "$name" "$limit" "$millrace" bench step --device cuda --json \
        --model "$here/configs/$model.json" "$@"
}

# part_ops: every op alone, so that an error that breaks the context hides no other op. After three
# that hang one after the other, the card is given up for this part.
part_ops() {
    local op hanging=0
    for op in "${ops[@]}"; do
        if [ "$hanging" -ge 3 ]; then
            skip "op $op" "three ops before it hung"
            continue
        fi
        timed "op $op" 20 "$millrace" selftest --device cuda --op "$op" --json
        case $verdict in
        hung*) hanging=$((hanging + 1)) ;;
        *) hanging=0 ;;
        esac
    done
}

# part_suspects: ops alone, where selftest did not pass; shorter than part_ops where it did.
part_suspects() {
    local i
    for i in "${!names[@]}"; do
        [ "${names[i]}" != selftest ] || [ "${verdicts[i]}" != ok ] || return 0
    done
    part_ops
}

# fresh NAME OPTIONS...: a step in a new process. The CUDA driver loads a kernel when it is first
# launched, and may wait for the card then, which may wait for us. With CUDA_MODULE_LOADING=EAGER
# it loads all kernels at once: a run that passes only with it has this fault.
fresh() {
    local name=$1
    shift
    bench_step "fresh $name" 40 0.5b --seq-len 1024 "$@" && return 0
    was_skipped || CUDA_MODULE_LOADING=EAGER bench_step "fresh $name, eager" 40 0.5b --seq-len 1024 "$@"
}

# part_fresh: schedules in which a stream waits for the host while kernels are launched for the first
# time, and (tile=512KiB, some 1,900 tiles) more copies than the driver's queue takes.
part_fresh() {
    fresh "deep-optimizer-states device-share=0.1" --steps 4 \
        --policy deep-optimizer-states --policy-option device-share=0.1
    fresh "zero-offload clip-mode=per-group" --steps 4 \
        --policy zero-offload --policy-option clip-mode=per-group
    fresh "zero-offload tile=512KiB" --steps 4 --policy zero-offload --policy-option tile=512KiB
    fresh "streamed" --steps 4 --policy streamed
    fresh "zenflow interval=4" --steps 8 --policy zenflow --policy-option interval=4
}

part_selftest() {
    local known op
    timed selftest 90 "$millrace" selftest --device cuda --json
    was_skipped && return 0
    grep -q '"pass":' "$output.txt" || return 0
    figure "selftest: $(grep -c '"pass":true' "$output.txt") cases passed," \
        "$(grep -c '"pass":false' "$output.txt") failed"
    known=" ${ops[*]} policy "
    for op in $(field case <"$output.txt" | cut -d ' ' -f 1 | sort -u); do
        [[ $known == *" $op "* ]] || figure "selftest: no process of its own for op $op"
    done
}

# train DEVICE: a short run in fp32 of the sample model; its losses go to DEVICE-losses.txt.
train() {
    local sample=$root/resources/sample
    timed "train, $1" 60 "$millrace" train --device "$1" --json --model "$sample/model" \
        --data "$sample/train.jsonl" --pack --seq-len 128 --micro-batch 4 --accumulate 1 --steps 60 \
        --lr 5e-4 --warmup 20 --seed 3 --precision fp32 --policy resident --hold-out 0.05 \
        --eval-every 60 --checkpoint-every 0 --out "$work/runs/$1" --db "$work/runs/$1.db" || return 1
    grep '"event":"step"' "$output.txt" | field loss | head -n 20 >"$work/$1-losses.txt"
    grep '"event":"eval"' "$output.txt" | field loss >"$work/$1-evals.txt"
}

# step_loss PRECISION DEVICE: the loss of the third step of 0.5b, whose weights and batch are equal on
# both devices; products have the shapes of a real model.
step_loss() {
    timed "loss of 0.5b $1, $2" 60 "$millrace" bench step --device "$2" --json \
        --model "$here/configs/0.5b.json" --seq-len 512 --steps 1 --policy resident --precision "$1" || return 1
    grep '"event":"summary"' "$output.txt" | field loss >"$work/$1-$2.txt"
}

part_losses() {
    local precision limit may_not_fit=yes
    if train cpu && train cuda; then
        compare "train, 20 losses" 2e-5 "$work/cpu-losses.txt" "$work/cuda-losses.txt"
        compare "train, evaluated loss" 5e-3 "$work/cpu-evals.txt" "$work/cuda-evals.txt"
    fi
    for precision in fp32 bf16; do
        [ "$precision" = fp32 ] && limit=1e-4 || limit=5e-3
        step_loss "$precision" cpu && step_loss "$precision" cuda &&
            compare "loss of 0.5b $precision" "$limit" "$work/$precision-cpu.txt" "$work/$precision-cuda.txt"
    done
}

# part_bench: attention has 32/8 heads at 4,096 tokens; 12/2 and 8/4 at 2,048 where the program offers it.
part_bench() {
    local name
    for name in attention matmul elements adamw copy; do
        timed "bench $name" 50 "$millrace" bench "$name" --device cuda --json && bench_figures "$name"
    done
}

part_steps() {
    local model may_not_fit=yes cupti
    for model in 0.5b 1.5b 7b; do
        cupti=()
        [ "$model" != 1.5b ] || cupti=(--cupti)
        bench_step "step $model resident" 75 "$model" --seq-len 2048 --policy resident --steps 5 \
            "${cupti[@]}" && step_figures "step $model resident"
    done
}

# part_offload: needs 88 GiB of host memory. MemAvailable of a virtual machine may grow while it is
# used, so the budget is given and not read; but a machine whose memory is far too small would only
# end other programs.
part_offload() {
    local name='step 7b zero-offload' budget=${MILLRACE_GPU_HOST_MEMORY:-100GiB} total_kib remark
    remark=$(memory_words)
    total_kib=$(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo)
    if [ -z "${MILLRACE_GPU_HOST_MEMORY:-}" ] && [ "$total_kib" -lt $((88 << 20)) ]; then
        file_verdict "$name" "failed 3: does not fit, needs 88 GiB; $(memory_words)"
        return 0
    fi
    bench_step "$name" 170 7b --seq-len 2048 --policy zero-offload --accumulate 4 --steps 2 \
        --host-memory "$budget" && step_figures "$name"
    figure "$name: $remark before it"
}

# part_light: small steps of 1.5B, by where the state is and what updates the weights.
part_light() {
    local row name model=1.5b may_not_fit=yes options
    for row in "adamw resident" "adamw zero-offload" "adamw zero-offload --policy-option state=compact" "adamw streamed" \
        "factored resident" "factored zero-offload" "factored streamed" "factored streamed --weights bf16-random"; do
        read -ra options <<<"$row"
        name="light 1.5b ${row/--policy-option /}"
        bench_step "$name" 40 1.5b --seq-len 2048 --steps 3 --optimizer "${options[0]}" \
            --policy "${options[1]}" "${options[@]:2}" && step_figures "$name"
    done
}

# part_pc: 8B, every weight trained, as a PC of 32 GB with a card of 12 or of 6 GB has it.
part_pc() {
    local row name may_not_fit=yes options
    for row in 12GB "6GB --policy-option vocabulary=host"; do
        read -ra options <<<"$row"
        name="8b in ${row/ --policy-option/,} and 27.5GB"
        bench_step "$name" 80 qwen3-8b --seq-len 2048 --steps 2 --optimizer factored --policy streamed \
            --host-memory 27.5GB --device-memory "${options[@]}" && step_figures "$name"
    done
}

# equal_losses NAME LIMIT MODEL OPTIONS ROW...: a step under each row, a policy and its options, has the bits of the
# first row's losses.
equal_losses() {
    local name=$1 limit=$2 model=$3 options row first=
    read -ra options <<<"$4"
    shift 4
    for row in "$@"; do
        bench_step "$name, $row" "$limit" "$model" "${options[@]}" --policy ${row//+/ --policy-option } || continue
        step_figures "$name, $row"
        grep '"event":"step"' "$output.txt" | field loss >"$work/${row//[^a-z0-9]/-}.txt"
        [ -z "$first" ] || compare "$name, $row, loss" 0 "$work/${first//[^a-z0-9]/-}.txt" "$work/${row//[^a-z0-9]/-}.txt"
        first=${first:-$row}
    done
}

# part_tiles: embedding and head on the host, whose rows and tiles come; a second backward. Inputs of blocks in 8 bits.
part_tiles() {
    equal_losses "tiles 7b" 60 7b "--seq-len 2048 --accumulate 3 --steps 3 --optimizer factored" resident streamed \
        streamed+vocabulary=host
    equal_losses "two passes 7b" 60 7b "--seq-len 2048 --accumulate 3 --steps 3 --optimizer factored" \
        resident+clip-mode=two-pass streamed+clip-mode=two-pass
    equal_losses "8-bit inputs 1.5b" 40 1.5b "--seq-len 4096 --accumulate 3 --steps 3 --keep-inputs int8" resident \
        zero-offload streamed
}

# part_soak: runs of the sample under every policy, killed and resumed, six at a time; one soak.sh for each.
part_soak() {
    local policies=(resident zero-offload zero-offload:tile=64KiB zero-offload-dpu deep-optimizer-states zenflow:interval=3
        streamed streamed:buffers=1 ssd-vertical ssd-vertical:weights-on-disk=1:gradients-on-disk=1:tile=64KiB
        light/resident light/streamed:tile=64KiB light/ssd-vertical:weights-on-disk=1:tile=64KiB random/resident
        random/streamed blocks/resident blocks/streamed:buffers=1 adalomo/resident adalomo/zero-offload
        apollo/streamed:tile=64KiB grass/streamed:tile=64KiB mezo/streamed lora/resident lora/streamed qlora/resident qlora/streamed:buffers=1)
    local line
    timed soak 150 bash -c 'printf "%s\n" "${@:2}" | MILLRACE=$0 xargs -P 6 -I{} bash "$1" --device cuda --kills 2 \
        --steps 24 --every 4 --policy {}' "$millrace" "$here/soak.sh" "${policies[@]}"
    was_skipped && return 0
    while read -r line; do
        figure "soak: $line"
    done < <(grep -E '[(a-z]' "$output.txt" | grep -v '^| policy\|^seed')
}

part_peers() {
    local python
    if ! python=$(find_python); then
        skip peers "no Python with a PyTorch that sees the card"
        return 0
    fi
    timed "peer attention, 32/8 heads" 40 "$python" "$here/peers/torch_attention.py" --device cuda &&
        peer_figures
    timed "peer attention, 12/2 heads" 40 "$python" "$here/peers/torch_attention.py" --device cuda \
        --tokens 2048 --heads 12 --kv-heads 2 && peer_figures
    timed "peer step 1.5b" 60 "$python" "$here/peers/torch_gpu_step.py" --device cuda \
        --model "$here/configs/1.5b.json" --seq-len 2048 --steps 5 && peer_figures
}

part_driver() { note_driver; }

# part_sanitizer: ops only. Under these tools a launch may wait for the one before, and a schedule
# whose streams wait for the host would stand still.
part_sanitizer() {
    local tool op check
    if ! tool=$(find_tool compute-sanitizer); then
        skip compute-sanitizer "not on this machine"
        return 0
    fi
    for op in attention attentionBackward rmsNormBackward crossEntropy; do
        for check in memcheck racecheck; do
            timed "$check $op" 30 "$tool" --tool "$check" --error-exitcode 9 \
                "$millrace" selftest --device cuda --op "$op"
        done
    done
}

part_profiler() {
    local tool kernel
    if ! tool=$(find_tool ncu); then
        skip ncu "not on this machine"
        return 0
    fi
    for kernel in attentionForwardKernel attentionBackwardKernel; do
        timed "ncu $kernel" 40 "$tool" --kernel-name "$kernel" --launch-count 4 --section SpeedOfLight \
            "$millrace" bench attention --device cuda
    done
}
