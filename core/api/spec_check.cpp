// checkSpec: ranges and contradictions of a RunSpec, and values that are known but not built.

#include <millrace/spec_fields.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace mr {

namespace {

constexpr std::size_t kMostDiskPaths = 32; // DiskStore::kMostFiles

constexpr std::array<std::string_view, 2> kMethodsToCome = {"galore", "mezo"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word)
{
    return std::find(words.begin(), words.end(), word) != words.end();
}

Status refuse(std::string message)
{
    return Status::error(ErrorKind::InvalidArgument, std::move(message));
}

std::string inQuotes(std::string_view text)
{
    return "'" + std::string(text) + "'";
}

Status checkRange(const SpecField& field, std::int64_t value)
{
    const SpecRange& range = *field.range;
    const auto least = static_cast<std::int64_t>(range.least);
    const auto most = static_cast<std::int64_t>(range.most);
    if ((value >= least && value <= most) || (range.orZero && value == 0))
        return {};
    return refuse(
        fmt::format("{} is {}; it must be from {} to {}", field.option, value, least, most));
}

Status checkRange(const SpecField& field, double value)
{
    const SpecRange& range = *field.range;
    const bool above = range.hasLeast ? value >= range.least : value > range.least;
    const bool below = range.hasMost ? value <= range.most : value < range.most;
    if (std::isfinite(value) && above && below)
        return {};
    return refuse(fmt::format("{} is {:g}; it must be {} {:g} and {} {:g}", field.option, value,
        range.hasLeast ? "at least" : "above", range.least, range.hasMost ? "at most" : "below",
        range.most));
}

template <typename Value>
Status checkRange(const SpecField& /*field*/, const Value& /*value*/)
{
    return {}; // only numbers have ranges
}

Status checkModel(const RunSpec& s)
{
    if (!s.modelDir.empty() && !s.scratchConfig.empty())
        return refuse("a model folder and a config to start from scratch are both given; "
                      "use one of them");
    if (s.modelDir.empty() && s.scratchConfig.empty())
        return refuse("no model is given; name a model folder, or a config.json to start from "
                      "scratch");
    if (!s.modelDir.empty() && !s.scratchTokenizer.empty())
        return refuse("a tokenizer file is only used when training from scratch; the model "
                      "folder has its own");
    for (const auto* list : {&s.data, &s.evalData})
        for (const DataSource& source : *list)
            if (source.path.empty())
                return refuse("a dataset has an empty path");
    return {};
}

// An option of adapters that is not at its default; empty: none.
std::string_view adapterOption(const RunSpec& s)
{
    const RunSpec plain;
    for (const std::string_view key : adapterKeys()) {
        const SpecField& field = *findSpecField(key);
        if (std::visit([&](auto member) { return s.*member != plain.*member; }, field.member))
            return field.option;
    }
    return {};
}

Status checkAdapter(const RunSpec& s)
{
    if (s.modelDir.empty())
        return refuse("an adapter goes beside a trained model; name its folder with model");
    if (s.alpha != RunSpec().alpha && s.alpha <= 0.0)
        return refuse(fmt::format("alpha is {:g}, and the adapter would add nothing; it must be "
                                  "above 0, or left out for the rank",
            s.alpha));
    if (s.dropout != RunSpec().dropout && s.dropout < 0.0)
        return refuse(fmt::format("dropout is {:g}; it must be 0 or more, and below 1", s.dropout));
    return {};
}

Status checkMethod(const RunSpec& s)
{
    if (isAdapterRun(s))
        return checkAdapter(s);
    if (s.method == "dora")
        return refuse("method " + inQuotes(s.method) +
                      " is an option of adapters; use lora or qlora, and dora beside it");
    if (contains(kMethodsToCome, s.method))
        return refuse("method " + inQuotes(s.method) +
                      " is known but not built yet; use full, lora or qlora");
    if (s.method != "full")
        return refuse("method " + inQuotes(s.method) + " is not known; use full, lora or qlora");
    if (const std::string_view option = adapterOption(s); !option.empty())
        return refuse(std::string(option) +
                      " is an option of adapters, and method is full; add method lora, or leave it "
                      "out");
    return {};
}

Status checkScratch(const RunSpec& s)
{
    if (s.diskBytes != 0 && s.diskPaths.empty())
        return refuse("disk-space says how much, but not where; name a folder on an SSD with "
                      "disk-path, or leave disk-space out");
    if (s.diskPaths.size() > kMostDiskPaths)
        return refuse("disk-path names " + std::to_string(s.diskPaths.size()) +
                      " folders; at most " + std::to_string(kMostDiskPaths) + " can be used");
    for (auto path = s.diskPaths.begin(); path != s.diskPaths.end(); ++path) {
        if (path->empty())
            return refuse("disk-path is empty; name a folder, or leave it out");
        if (std::find(s.diskPaths.begin(), path, *path) != path)
            return refuse("disk-path names " + *path + " twice; name each folder once");
    }
    return {};
}

Status checkDevice(const RunSpec& s)
{
    if (!std::isfinite(s.linkBytesPerSecond) || s.linkBytesPerSecond < 0.0)
        return refuse(fmt::format(
            "link is {:g} bytes/s; it must be above 0, or left out", s.linkBytesPerSecond));
    if (s.device == DeviceChoice::Cuda && s.linkBytesPerSecond > 0.0)
        return refuse("link slows the copies of the CPU device down; leave it out with cuda");
    return checkScratch(s);
}

// AdamW has another rate, and formats of its own (policy option state).
Status checkOptimizer(const RunSpec& s)
{
    constexpr double kMostRate = 0.1;
    const bool isAdamw = s.optimizer == Optimizer::AdamW;
    if (isAdamw && s.weights != WeightFormat::Auto && s.weights != WeightFormat::F32)
        return refuse(fmt::format(
            "weights {} need an optimizer without moments; add optimizer factored, or keep AdamW's "
            "state compact with policy-option state=compact",
            name(s.weights)));
    const bool isNarrow = s.weights == WeightFormat::Bits24 || s.weights == WeightFormat::Random16;
    if (isNarrow && s.precision == PrecisionChoice::F32)
        return refuse(fmt::format(
            "weights {} need precision bf16; choose that, or weights fp32", name(s.weights)));
    if (!isAdamw && s.loraPlus != 1.0)
        return refuse(
            fmt::format("lora-plus gives the matrices B a rate of their own, which {} does not "
                        "know; leave it out, or use optimizer adamw",
                name(s.optimizer)));
    if (!isAdamw && s.learningRate > kMostRate)
        return refuse(
            fmt::format("lr is {:g}; a step of {} is about as large as its rate, so it must "
                        "be at most {:g}",
                s.learningRate, name(s.optimizer), kMostRate));
    return {};
}

// Its passes read moved copies of whole layers, and it needs many more steps than the others.
Status checkForwardOnly(const RunSpec& s)
{
    constexpr std::int64_t kMostTokens = std::int64_t{1} << 17; // of a micro-batch
    constexpr std::int64_t kMostMicros = std::int64_t{1} << 16;
    if (s.optimizer != Optimizer::Mezo)
        return {};
    const std::string subject = fmt::format("optimizer {} ", name(s.optimizer));
    if (s.method != "full" || !s.trainLayers.empty())
        return refuse(subject + "trains every weight; leave method and train-layers out, or use "
                                "another optimizer");
    if (s.keepInputs != KeepInputs::Bf16)
        return refuse(subject + "makes no backward that would need inputs of blocks; leave "
                                "keep-inputs out");
    if (s.seqLen * s.microBatch > kMostTokens || s.accumulate > kMostMicros)
        return refuse(
            fmt::format("{}takes at most {} tokens in a micro-batch and {} micro-batches; "
                        "make seq-len, micro-batch or accumulate smaller",
                subject, kMostTokens, kMostMicros));
    return {};
}

// Backward makes a block again from the codes of its input, so nothing else of it may be kept.
Status checkKept(const RunSpec& s)
{
    if (s.keepInputs == KeepInputs::Bf16)
        return {};
    if (s.recompute != RecomputeChoice::Auto && s.recompute != RecomputeChoice::Block)
        return refuse(fmt::format(
            "keep-inputs {} keeps nothing of a block but its input, and recompute is {}; use "
            "recompute block, or keep-inputs bf16",
            name(s.keepInputs), name(s.recompute)));
    const auto share = s.policyOptions.find("activations-on-host");
    if (share != s.policyOptions.end() &&
        share->second.find_first_of("123456789") != std::string::npos)
        return refuse(
            fmt::format("keep-inputs {} keeps nothing of a block but its input, and policy-option "
                        "activations-on-host is {}; leave that out, or use keep-inputs bf16",
                name(s.keepInputs), share->second));
    return {};
}

// Backward comes twice and writes over what it reads of a block but its input.
Status checkTwoPass(const RunSpec& s)
{
    if (!asksTwoPasses(s.policyOptions))
        return {};
    if (s.recompute != RecomputeChoice::Auto && s.recompute != RecomputeChoice::Block)
        return refuse(fmt::format(
            "policy option clip-mode=two-pass makes every backward twice from the inputs of "
            "blocks, and recompute is {}; use recompute block, or clip-mode=own",
            name(s.recompute)));
    if (s.keepInputs != KeepInputs::Bf16)
        return refuse(fmt::format(
            "policy option clip-mode=two-pass makes every backward twice from the inputs of "
            "blocks as they were, and keep-inputs is {}; use keep-inputs bf16, or clip-mode=own",
            name(s.keepInputs)));
    return {};
}

// AdamW with the state of one block, whose weights are plain.
Status checkTurns(const RunSpec& s)
{
    if (!trainsInTurns(s)) {
        if (s.blockSteps != 0)
            return refuse("block-steps is an option of train blocks; add that, or leave it out");
        return {};
    }
    if (isAdapterRun(s))
        return refuse("train blocks trains the model's own weights, and method is " + s.method +
                      "; leave one of them out");
    if (s.optimizer != Optimizer::AdamW)
        return refuse(fmt::format(
            "train blocks keeps AdamW's state of one block, and optimizer is {}, which keeps next "
            "to none for all of them; leave one of them out",
            name(s.optimizer)));
    return {};
}

} // namespace

Status checkRanges(const RunSpec& spec)
{
    for (const SpecField& field : specFields())
        if (field.range)
            MR_TRY(std::visit(
                [&](auto member) { return checkRange(field, spec.*member); }, field.member));
    return {};
}

Status checkSpec(const RunSpec& spec)
{
    MR_TRY(checkModel(spec));
    MR_TRY(checkDevice(spec));
    MR_TRY(checkRanges(spec));
    if (spec.weightDecay < 0.0 && spec.weightDecay != RunSpec().weightDecay)
        return refuse(fmt::format(
            "weight-decay is {:g}; it must be at least 0, or left out", spec.weightDecay));
    MR_TRY(checkOptimizer(spec));
    MR_TRY(checkForwardOnly(spec));
    MR_TRY(checkKept(spec));
    MR_TRY(checkTwoPass(spec));
    MR_TRY(checkTurns(spec));
    return checkMethod(spec);
}

} // namespace mr
