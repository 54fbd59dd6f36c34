#include "models/setting_looks.h"

#include <algorithm>
#include <array>

namespace mr::ui {

namespace {

constexpr bool kAdvanced = true;

constexpr SettingLook simple(const char* key, const char* name, const char* help,
    const char* special = nullptr, const char* unit = nullptr)
{
    return {key, name, help, !kAdvanced, special, unit};
}

constexpr SettingLook advanced(const char* key, const char* name, const char* help,
    const char* special = nullptr, const char* unit = nullptr)
{
    return {key, name, help, kAdvanced, special, unit};
}

constexpr SettingLook number(const char* key, const char* name, const char* help, int decimals,
    double step, const char* special = nullptr)
{
    return {key, name, help, kAdvanced, special, nullptr, nullptr, decimals, step};
}

constexpr SettingLook anyNumber(const char* key, const char* name, const char* help,
    bool isAdvanced, const char* special, const char* adapterSpecial = nullptr)
{
    return {key, name, help, isAdvanced, special, nullptr, nullptr, kAnyDigits, 1.0, {},
        adapterSpecial};
}

constexpr SettingLook choice(const char* key, const char* name, const char* help, bool isAdvanced,
    std::span<const ChoiceLook> choices)
{
    return {key, name, help, isAdvanced, nullptr, nullptr, nullptr, 0, 0.0, choices};
}

// Edited by the sections of model, dataset, method and disk folders, or beside `steps`.
constexpr std::array<std::string_view, 12> kElsewhere = {"model_dir", "data", "eval_data", "pack",
    "method", "train", "block_steps", "adapter_dir", "epochs", "disk_paths", "disk_bytes",
    "max_disk_write_bytes"};

} // namespace

std::span<const SettingLook> SettingWords::looks()
{
    static constexpr std::array kPrecisions{ChoiceLook{"auto", QT_TR_NOOP("Automatic")},
        ChoiceLook{"bf16", "bf16"}, ChoiceLook{"fp32", "fp32"}, ChoiceLook{"fp8", "fp8"}};
    static constexpr std::array kRecomputes{ChoiceLook{"auto", QT_TR_NOOP("Automatic")},
        ChoiceLook{"none", QT_TR_NOOP("Nothing")},
        ChoiceLook{"cheap", QT_TR_NOOP("Norms and activation functions")},
        ChoiceLook{"block", QT_TR_NOOP("Each block")}};
    static constexpr std::array kKept{ChoiceLook{"bf16", QT_TR_NOOP("As they are: 2 bytes")},
        ChoiceLook{"int8", QT_TR_NOOP("8 bit: 1 byte")}};
    static constexpr std::array kOptimizers{ChoiceLook{"adamw", "AdamW"},
        ChoiceLook{"factored", QT_TR_NOOP("Light (Adafactor)")},
        ChoiceLook{"adalomo", QT_TR_NOOP("Light (AdaLomo)")},
        ChoiceLook{"sgd-normalised", QT_TR_NOOP("Normalised SGD (experiment)")},
        ChoiceLook{"apollo-mini", QT_TR_NOOP("APOLLO-mini (experiment)")},
        ChoiceLook{"grass", QT_TR_NOOP("GRASS (experiment)")},
        ChoiceLook{"mezo", QT_TR_NOOP("MeZO (experiment)")}};
    static constexpr std::array kWeights{ChoiceLook{"auto", QT_TR_NOOP("Automatic")},
        ChoiceLook{"fp32", QT_TR_NOOP("Exact: 4 bytes")},
        ChoiceLook{"24bit", QT_TR_NOOP("24 bit: 3 bytes")},
        ChoiceLook{"bf16-random", QT_TR_NOOP("16 bit at random: 2 bytes")}};
    static constexpr std::array kAllowed{ChoiceLook{"exact", QT_TR_NOOP("Exact policies")},
        ChoiceLook{"stale", QT_TR_NOOP("Also those that lag")}};
    static constexpr std::array kDevices{ChoiceLook{"auto", QT_TR_NOOP("Automatic")},
        ChoiceLook{"cpu", QT_TR_NOOP("Processor (CPU)")},
        ChoiceLook{"cuda", QT_TR_NOOP("GPU (CUDA)")}};
    static constexpr std::array kSchedules{ChoiceLook{"cosine", QT_TR_NOOP("Cosine to zero")},
        ChoiceLook{"linear", QT_TR_NOOP("Linear to zero")},
        ChoiceLook{"constant", QT_TR_NOOP("Constant")}};

    static constexpr std::array kLooks{
        simple("steps", QT_TR_NOOP("Train for"),
            QT_TR_NOOP("Passes over the dataset, or optimizer steps.")),
        anyNumber("learning_rate", QT_TR_NOOP("Learning rate"),
            QT_TR_NOOP("Peak of the schedule, for example 2e-5."), !kAdvanced,
            QT_TR_NOOP("Automatic (2e-5)"), QT_TR_NOOP("Automatic (2e-4)")),
        simple("seq_len", QT_TR_NOOP("Sequence length"),
            QT_TR_NOOP("Tokens of one sequence; longer rows are cut."), QT_TR_NOOP("Automatic"),
            QT_TR_N_NOOP(" token(s)")),
        simple("micro_batch", QT_TR_NOOP("Micro-batch"),
            QT_TR_NOOP("Sequences that are on the device at the same time."), nullptr,
            QT_TR_N_NOOP(" sequence(s)")),
        simple("accumulate", QT_TR_NOOP("Accumulate"),
            QT_TR_NOOP("Micro-batches whose gradients are summed into one optimizer step."),
            nullptr, QT_TR_N_NOOP(" micro-batch(es)")),
        choice("precision", QT_TR_NOOP("Precision"),
            QT_TR_NOOP("bf16: 2 bytes a number in the model's products. fp32: 4 bytes. fp8: 1 byte "
                       "in most of them, less exact; for GPUs from compute capability 8.9 on."),
            !kAdvanced, kPrecisions),
        choice("recompute", QT_TR_NOOP("Recompute"),
            QT_TR_NOOP("Computes activations again in the backward pass instead of keeping them."),
            !kAdvanced, kRecomputes),
        choice("keep_inputs", QT_TR_NOOP("Layer inputs kept as"),
            QT_TR_NOOP("How the input of a block waits for the backward pass. 8 bits halve what "
                       "long contexts take of memory, disk and link; results differ by rounding, "
                       "and each block is recomputed."),
            kAdvanced, kKept),
        choice("device", QT_TR_NOOP("Device"), QT_TR_NOOP("The device that computes the model."),
            !kAdvanced, kDevices),
        simple("policy", QT_TR_NOOP("Offload policy"),
            QT_TR_NOOP("Where weights and optimizer state live, and who updates them.")),
        choice("allow_stale", QT_TR_NOOP("Automatic may take"),
            QT_TR_NOOP(
                "Exact policies give the bits of training on the device alone. Others hide the "
                "host's work by letting a part of each update come some steps late."),
            !kAdvanced, kAllowed),
        simple("device_memory_bytes", QT_TR_NOOP("Device memory"),
            QT_TR_NOOP("The most bytes the run may hold on the device."), QT_TR_NOOP("Automatic")),
        simple("threads", QT_TR_NOOP("Threads"), QT_TR_NOOP("Processor threads of the run."),
            QT_TR_NOOP("Automatic")),

        choice("schedule", QT_TR_NOOP("Schedule"),
            QT_TR_NOOP("How the learning rate falls after the warm-up."), kAdvanced, kSchedules),
        advanced("warmup_steps", QT_TR_NOOP("Warm-up"),
            QT_TR_NOOP("Steps in which the learning rate rises."),
            QT_TR_NOOP("Automatic (3 %, light: 5 %)"), QT_TR_N_NOOP(" step(s)")),
        anyNumber("weight_decay", QT_TR_NOOP("Weight decay"),
            QT_TR_NOOP("Applies to matrices; norms and biases have none."), kAdvanced,
            QT_TR_NOOP("Automatic (0.01)"), QT_TR_NOOP("Automatic (0)")),
        number("clip_norm", QT_TR_NOOP("Gradient clipping"),
            QT_TR_NOOP("The largest norm of the whole gradient that is applied."), 3, 0.1,
            QT_TR_NOOP("Off")),
        choice("optimizer", QT_TR_NOOP("Optimizer"),
            QT_TR_NOOP("AdamW keeps two numbers for every weight. A light optimizer keeps one for "
                       "each row and column of a matrix, or none, and updates a layer right behind "
                       "its backward pass: results differ, and much less memory is needed."),
            kAdvanced, kOptimizers),
        choice("weights", QT_TR_NOOP("Weights kept as"),
            QT_TR_NOOP(
                "How a light optimizer keeps weights between steps. 24 bits give the result of "
                "4 bytes within noise; 16 bits are rounded at random. AdamW keeps 4 bytes."),
            kAdvanced, kWeights),
        number(
            "beta1", QT_TR_NOOP("Adam beta 1"), QT_TR_NOOP("Memory of the first moment."), 5, 0.01),
        number("beta2", QT_TR_NOOP("Adam beta 2"), QT_TR_NOOP("Memory of the second moment."), 5,
            0.001),
        advanced("seed", QT_TR_NOOP("Seed"), QT_TR_NOOP("Equal seed and plan give equal bits.")),
        advanced("eval_every", QT_TR_NOOP("Evaluate every"),
            QT_TR_NOOP("Steps between evaluations."), QT_TR_NOOP("Automatic (ten times a run)"),
            QT_TR_N_NOOP(" step(s)")),
        advanced("checkpoint_every", QT_TR_NOOP("Checkpoint every"),
            QT_TR_NOOP("Steps between checkpoints."), QT_TR_NOOP("Not by steps"),
            QT_TR_N_NOOP(" step(s)")),
        advanced("checkpoint_minutes", QT_TR_NOOP("Checkpoint after"),
            QT_TR_NOOP("Writes a checkpoint when this much time has passed since the last one."),
            QT_TR_NOOP("Not by time"), QT_TR_N_NOOP(" minute(s)")),
        advanced("keep_checkpoints", QT_TR_NOOP("Checkpoints kept"),
            QT_TR_NOOP("Older ones are deleted.")),
        SettingLook{"keep_best", QT_TR_NOOP("Best checkpoint"),
            QT_TR_NOOP(
                "An evaluation that is the best so far saves a checkpoint of its step. Without, "
                "the best of those that were saved anyway is kept."),
            kAdvanced, nullptr, nullptr, QT_TR_NOOP("Keep the best by evaluation loss")},
        advanced("host_memory_bytes", QT_TR_NOOP("Host memory"),
            QT_TR_NOOP("The most pinned memory the run may hold."), QT_TR_NOOP("Automatic")),
        number("link_bytes_per_second", QT_TR_NOOP("Simulated link"),
            QT_TR_NOOP(
                "Slows copies between host and device down, each way, to study stalls without "
                "a GPU. Results are labelled as simulated."),
            2, 1.0, QT_TR_NOOP("Off")),
    };

    return kLooks;
}

std::span<const SettingLook> SettingWords::adapterLooks()
{
    static constexpr std::array kLooks{
        simple("rank", QT_TR_NOOP("Rank"),
            QT_TR_NOOP("Width of the adapter's matrices: a larger one learns more, and takes more "
                       "memory.")),
        anyNumber("alpha", QT_TR_NOOP("Alpha"),
            QT_TR_NOOP("The adapter's output is multiplied by alpha / rank."), !kAdvanced,
            QT_TR_NOOP("Automatic (the rank)")),
        advanced("targets", QT_TR_NOOP("Modules"),
            QT_TR_NOOP("Linear modules that get an adapter, for example q_proj,v_proj, or an "
                       "expression for whole names between slashes."),
            QT_TR_NOOP("All of the blocks")),
        advanced("exclude_targets", QT_TR_NOOP("Modules left out"),
            QT_TR_NOOP("Modules that get no adapter, for example down_proj."), QT_TR_NOOP("None")),
        advanced("modules_to_save", QT_TR_NOOP("Trained whole"),
            QT_TR_NOOP(
                "Modules that are trained whole beside the adapter: embed_tokens, lm_head or "
                "both, with a comma between them."),
            QT_TR_NOOP("None")),
        advanced("trainable_tokens", QT_TR_NOOP("Tokens trained"),
            QT_TR_NOOP(
                "Ids of tokens whose rows of the embedding are trained beside the adapter, "
                "for example 300,310-319: for chat tokens that the model does not know yet."),
            QT_TR_NOOP("None")),
        advanced("train_layers", QT_TR_NOOP("Blocks"),
            QT_TR_NOOP("Blocks that get an adapter, for example 0-15,20."), QT_TR_NOOP("All")),
        SettingLook{"rslora", QT_TR_NOOP("Scaling"),
            QT_TR_NOOP("Scales by alpha / √rank instead, so that a large rank learns as fast as "
                       "a small one."),
            kAdvanced, nullptr, nullptr, QT_TR_NOOP("By the root of the rank (rsLoRA)")},
        SettingLook{"dora", QT_TR_NOOP("Lengths"),
            QT_TR_NOOP("Trains the length of each row of the adapted weights beside the adapter, "
                       "which often learns more at a small rank. A step takes about a third "
                       "longer."),
            kAdvanced, nullptr, nullptr, QT_TR_NOOP("Trained, too (DoRA)")},
        anyNumber("dropout", QT_TR_NOOP("Dropout"),
            QT_TR_NOOP("Share of the adapter's input that is set to zero at random in training, "
                       "against overfitting on little data. 0.05 to 0.1 is common."),
            kAdvanced, QT_TR_NOOP("Automatic (0, or that of the adapter)")),
        number("lora_plus", QT_TR_NOOP("Rate of B (LoRA+)"),
            QT_TR_NOOP("Learning rate of the adapter's second matrices, as a multiple of that of "
                       "the first. 16 is common."),
            1, 1.0),
    };
    return kLooks;
}

const SettingLook& SettingWords::layersLook()
{
    static constexpr SettingLook kLook = simple("train_layers", QT_TR_NOOP("Layers"),
        QT_TR_NOOP("Numbers of blocks, embedding and head, with commas between them."));
    return kLook;
}

const SettingLook& SettingWords::turnsLook()
{
    static constexpr SettingLook kLook = simple("block_steps", QT_TR_NOOP("Steps of a block"),
        QT_TR_NOOP("Steps after which the next block is trained."),
        QT_TR_NOOP("Automatic (two rounds)"), QT_TR_N_NOOP(" step(s)"));
    return kLook;
}

QString SettingWords::text(const char* text, int n)
{
    return tr(text, nullptr, n);
}

bool hasEditor(std::string_view key)
{
    const auto isIn = [key](std::span<const SettingLook> looks) {
        return std::any_of(
            looks.begin(), looks.end(), [key](const SettingLook& look) { return look.key == key; });
    };
    return std::find(kElsewhere.begin(), kElsewhere.end(), key) != kElsewhere.end() ||
           isIn(SettingWords::looks()) || isIn(SettingWords::adapterLooks());
}

} // namespace mr::ui
