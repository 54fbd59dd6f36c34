#include <millrace/spec_fields.h>

#include <algorithm>
#include <array>

namespace mr {

namespace {

// A step of so many tokens no machine finishes; keeps products far from overflow.
constexpr double kMostSteps = 1e9;
constexpr double kMostSeqLen = 1 << 24;
constexpr double kMostMicroBatch = 1 << 16;
constexpr double kMostAccumulate = 1 << 20;
constexpr double kMostThreads = 4096;
constexpr double kMostMinutes = 30 * 24 * 60;
constexpr double kMostEpochs = 1e6;
constexpr double kMostRank = 1 << 20;

constexpr SpecRange above(double least, double most)
{
    return {least, most, false};
}

constexpr SpecRange below(double most)
{
    return {0.0, most, true, false};
}

constexpr SpecRange orZero(double least, double most)
{
    return {least, most, true, true, true};
}

constexpr SpecField place(
    std::string_view key, std::string_view option, std::string_view help, SpecMember member)
{
    return {key, option, help, member, std::nullopt, SpecUnit::None, {}, true};
}

constexpr SpecField bytes(
    std::string_view key, std::string_view option, std::string_view help, SpecMember member)
{
    return {key, option, help, member, std::nullopt, SpecUnit::Bytes};
}

using S = RunSpec;

constexpr std::array kFields{
    SpecField{"model_dir", "model", "Model folder (Hugging Face layout)", &S::modelDir},
    SpecField{"scratch_config", "from-scratch", "config.json of a model to initialise",
        &S::scratchConfig},
    SpecField{
        "scratch_tokenizer", "tokenizer", "Tokenizer of --from-scratch", &S::scratchTokenizer},
    SpecField{"data", "data", "Dataset file; may be repeated", &S::data},
    SpecField{"split", "split", "Text files: cut into documents at this string", &S::split},
    SpecField{"pack", "pack",
        "Short sequences share rows of the micro-batches, each seeing itself alone: fewer steps an "
        "epoch, more sequences a step",
        &S::pack},
    SpecField{"eval_data", "eval-data", "Evaluation file; may be repeated", &S::evalData},
    SpecField{"hold_out", "hold-out",
        "Share of the data held out for evaluation without --eval-data (0: none)", &S::holdOut,
        SpecRange{0.0, 0.5}},
    SpecField{"eval_every", "eval-every", "Steps between evaluations (0: never)", &S::evalEvery,
        SpecRange{-1.0, kMostSteps}},
    SpecField{"eval_answers", "eval-answers",
        "Evaluation pairs that are also answered and compared (0: none)", &S::evalAnswers,
        SpecRange{0.0, kMostSteps}},
    place("out_dir", "out", "Run folder: checkpoints, log, trained model", &S::outDir),
    place("save_dir", "", "", &S::saveDir),
    place("database", "db", "History database", &S::database),
    place("name", "name", "Name of the run", &S::name),

    SpecField{
        "steps", "steps", "Optimizer steps (0: by epochs)", &S::steps, SpecRange{0.0, kMostSteps}},
    SpecField{"epochs", "epochs", "Passes over the data", &S::epochs, above(0.0, kMostEpochs)},
    SpecField{"seq_len", "seq-len", "Tokens of a sequence", &S::seqLen, orZero(2.0, kMostSeqLen)},
    SpecField{"micro_batch", "micro-batch", "Sequences computed at once", &S::microBatch,
        SpecRange{1.0, kMostMicroBatch}},
    SpecField{"accumulate", "accumulate", "Micro-batches of one optimizer step", &S::accumulate,
        SpecRange{1.0, kMostAccumulate}},
    SpecField{"learning_rate", "lr", "Peak learning rate", &S::learningRate, SpecRange{0.0, 10.0}},
    SpecField{"schedule", "schedule", "constant, linear or cosine", &S::schedule},
    SpecField{
        "warmup_steps", "warmup", "Warm-up steps", &S::warmupSteps, SpecRange{-1.0, kMostSteps}},
    SpecField{"weight_decay", "weight-decay", "AdamW weight decay", &S::weightDecay,
        SpecRange{-1.0, 10.0}},
    SpecField{"optimizer", "optimizer",
        "adamw; or one that keeps a number a row and column, or nothing, and updates a layer right "
        "behind its backward: factored, adalomo; experimental, to compare: sgd-normalised, "
        "apollo-mini, grass, and mezo, which makes no backward at all",
        &S::optimizer},
    SpecField{"weights", "weights",
        "How weights are kept between steps: fp32 (4 bytes), 24bit (3), or bf16-random: 2 bytes, "
        "rounded at random (left out: fp32 with adamw, else 24bit)",
        &S::weights},
    SpecField{"beta1", "beta1", "AdamW beta1", &S::beta1, below(1.0)},
    SpecField{"beta2", "beta2", "AdamW beta2", &S::beta2, below(1.0)},
    SpecField{"eps", "eps", "AdamW epsilon", &S::eps, above(0.0, 1.0)},
    SpecField{
        "clip_norm", "clip", "Gradient norm limit (0: off)", &S::clipNorm, SpecRange{0.0, 1e6}},
    SpecField{"seed", "seed", "Seed", &S::seed},
    SpecField{"precision", "precision",
        "bf16, fp32, or fp8: bf16 with FP8 products in the blocks (GPUs from compute "
        "capability 8.9 on; emulated on the CPU)",
        &S::precision},
    SpecField{"method", "method",
        "full; lora: an adapter beside the model, whose own weights stay as they are; or qlora: an "
        "adapter beside a model whose matrices are held in 4 bits",
        &S::method},
    SpecField{"rank", "rank", "Rank of the adapter", &S::rank, SpecRange{1.0, kMostRank}},
    SpecField{"alpha", "alpha",
        "Scale of the adapter: its output is multiplied by alpha / rank (left out: the rank)",
        &S::alpha, SpecRange{-1.0, kMostRank}},
    SpecField{"rslora", "rslora", "Scale by alpha / sqrt(rank) instead", &S::rankStabilised},
    SpecField{"dora", "dora",
        "DoRA: train the length of each row of the adapted weights beside the adapter", &S::dora},
    SpecField{"dropout", "dropout",
        "Share of the adapter's input that is zeroed at random in training (left out: 0, or that "
        "of --adapter)",
        &S::dropout, SpecRange{-1.0, 1.0, true, false}},
    SpecField{"lora_plus", "lora-plus",
        "LoRA+: the learning rate of the matrices B, as a multiple of that of A", &S::loraPlus,
        above(0.0, 1e6)},
    SpecField{"targets", "targets",
        "Modules with an adapter, as q_proj,v_proj, or an expression for whole names between "
        "slashes (left out: all linear modules of the blocks)",
        &S::targets},
    SpecField{
        "exclude_targets", "exclude-targets", "Modules that get no adapter", &S::excludedTargets},
    SpecField{"rank_pattern", "rank-pattern",
        "expression=rank for the modules it matches; may be repeated", &S::rankPattern},
    SpecField{"alpha_pattern", "alpha-pattern",
        "expression=alpha for the modules it matches; may be repeated", &S::alphaPattern},
    SpecField{"modules_to_save", "modules-to-save",
        "Modules that are trained whole beside the adapter: embed_tokens, lm_head or both",
        &S::savedModules},
    SpecField{"trainable_tokens", "trainable-tokens",
        "Ids of tokens whose rows of the embedding are trained beside the adapter, as 300,310-319",
        &S::trainedTokens},
    place("adapter_dir", "adapter", "Adapter to go on from: a PEFT folder", &S::adapterDir),
    SpecField{"train_layers", "train-layers",
        "Layers that are trained, or that get an adapter, as 20-31,head: numbers of blocks, "
        "embedding, head (left out: all)",
        &S::trainLayers},
    SpecField{"train", "train",
        "together; or blocks: one block after the other, for some steps each, with AdamW's state "
        "of that block alone; the others are only read",
        &S::train},
    SpecField{"block_steps", "block-steps",
        "Steps of a block's turn with --train blocks (0: for two rounds, and at least 20)",
        &S::blockSteps, SpecRange{0.0, kMostSteps}},
    SpecField{"recompute", "recompute", "none, cheap or block", &S::recompute},
    SpecField{"head_part", "", "", &S::headPart, SpecRange{-1.0, kMostSteps}},
    SpecField{"keep_inputs", "keep-inputs",
        "How a block's input waits for backward: bf16 (as it is), or int8: half the bytes, "
        "rounded, with recompute block",
        &S::keepInputs},
    SpecField{"checkpoint_every", "checkpoint-every",
        "Steps between checkpoints (0: not by steps); there is one at the end in any case",
        &S::checkpointEvery, SpecRange{0.0, kMostSteps}},
    SpecField{"checkpoint_minutes", "checkpoint-minutes",
        "Minutes after which a checkpoint follows the last one (0: not by time)",
        &S::checkpointMinutes, SpecRange{0.0, kMostMinutes}},
    SpecField{"keep_checkpoints", "keep",
        "Newest checkpoints to keep; the best by evaluation loss is kept, too", &S::keepCheckpoints,
        SpecRange{1.0, kMostSteps}},
    SpecField{"keep_best", "keep-best",
        "Make a checkpoint whenever an evaluation is the best so far, not only where both fall on "
        "one step",
        &S::keepBest},

    SpecField{"device", "device", "auto, cpu or cuda", &S::device},
    SpecField{"threaded_device", "threaded-device",
        "CPU device: every stream is a thread of its own, as on a GPU", &S::threadedDevice},
    SpecField{"threads", "threads", "Compute threads", &S::threads, SpecRange{0.0, kMostThreads}},
    SpecField{"policy", "policy", "", &S::policy},
    SpecField{"allow_stale", "allow",
        "auto: exact policies only (exact), or also those whose updates lag some steps (stale). "
        "AdamW alone (adamw), or, where it does not fit or writes to an SSD in every step, the "
        "first "
        "of its compact state, factored at 24 and at 16 bits, and blocks in turn that fits "
        "(other-optimizer). May be repeated",
        &S::allowStale, std::nullopt, SpecUnit::None, {"exact", "stale"}},
    SpecField{"allow_other_optimizer", "allow", "", &S::allowOther, std::nullopt, SpecUnit::None,
        {"adamw", "other-optimizer"}},
    SpecField{"policy_options", "policy-option", "", &S::policyOptions},
    bytes("device_memory_bytes", "device-memory", "Budget, as 6GiB", &S::deviceMemoryBytes),
    bytes("host_memory_bytes", "host-memory", "Budget, as 24GiB", &S::hostMemoryBytes),
    bytes(
        "disk_bytes", "disk-space", "Budget in all --disk-path together, as 200GB", &S::diskBytes),
    SpecField{"disk_paths", "disk-path",
        "Folder on an SSD, for policies that keep state there; may be repeated: drives work side "
        "by side",
        &S::diskPaths},
    bytes("max_disk_write_bytes", "max-disk-writes",
        "Most that the run may write to disk, as 100TB; a run that would write more is refused",
        &S::maxDiskWriteBytes),
    SpecField{"link_bytes_per_second", "link",
        "CPU device: slows copies down to this rate, as 12GB/s (results are a simulated link)",
        &S::linkBytesPerSecond, std::nullopt, SpecUnit::BytesPerSecond},
};

// Converts to any member; counts them.
struct AnyValue {
    template <typename T>
    operator T() const; // NOLINT(google-explicit-constructor)
};

template <typename Aggregate, typename... Values>
consteval std::size_t memberCount()
{
    if constexpr (requires { Aggregate{Values{}..., AnyValue{}}; })
        return memberCount<Aggregate, Values..., AnyValue>();
    else
        return sizeof...(Values);
}

static_assert(memberCount<RunSpec>() == kFields.size(), "a member of RunSpec has no row");

} // namespace

std::span<const SpecField> specFields()
{
    return kFields;
}

std::span<const std::string_view> adapterKeys()
{
    static constexpr std::array<std::string_view, 13> kKeys = {"rank", "alpha", "rslora", "dora",
        "dropout", "lora_plus", "targets", "exclude_targets", "rank_pattern", "alpha_pattern",
        "modules_to_save", "trainable_tokens", "adapter_dir"};
    return kKeys;
}

const SpecField* findSpecField(std::string_view key)
{
    const auto* found = std::find_if(
        kFields.begin(), kFields.end(), [key](const SpecField& field) { return field.key == key; });
    return found == kFields.end() ? nullptr : found;
}

} // namespace mr
