// checkSpec: ranges and contradictions of a RunSpec, and what is known but not built.

#include <millrace/run_spec.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace mr {

namespace {

// A step of so many tokens no machine finishes; keeps products far from overflow.
constexpr std::int64_t kMostSteps = 1'000'000'000;
constexpr std::int64_t kMostSeqLen = 1 << 24;
constexpr std::int64_t kMostMicroBatch = 1 << 16;
constexpr std::int64_t kMostAccumulate = 1 << 20;
constexpr std::int64_t kMostThreads = 4096;
constexpr std::int64_t kMostMinutes = 30 * 24 * 60;
constexpr double kMostEpochs = 1e6;
constexpr std::size_t kMostDiskPaths = 32; // DiskStore::kMostFiles

constexpr std::array<std::string_view, 5> kMethodsToCome = {
    "lora", "qlora", "dora", "galore", "mezo"};

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

Status inRange(std::string_view field, std::int64_t value, std::int64_t least, std::int64_t most)
{
    if (value >= least && value <= most)
        return {};
    return refuse(std::string(field) + " is " + std::to_string(value) + "; it must be from " +
                  std::to_string(least) + " to " + std::to_string(most));
}

std::string number(double value)
{
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%g", value);
    return text.data();
}

struct Interval {
    double least = 0.0;
    double most = 0.0;
    bool leastIncluded = true;
    bool mostIncluded = true;
};

Status inRange(std::string_view field, double value, Interval in)
{
    const bool above = in.leastIncluded ? value >= in.least : value > in.least;
    const bool below = in.mostIncluded ? value <= in.most : value < in.most;
    if (std::isfinite(value) && above && below)
        return {};
    return refuse(std::string(field) + " is " + number(value) + "; it must be " +
                  (in.leastIncluded ? "at least " : "above ") + number(in.least) + " and " +
                  (in.mostIncluded ? "at most " : "below ") + number(in.most));
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

Status checkRun(const RunSpec& s)
{
    MR_TRY(inRange("eval-every", s.evalEvery, -1, kMostSteps));
    MR_TRY(inRange("eval-answers", s.evalAnswers, 0, kMostSteps));
    MR_TRY(inRange("hold-out", s.holdOut, {0.0, 0.5}));
    MR_TRY(inRange("steps", s.steps, 0, kMostSteps));
    MR_TRY(inRange("epochs", s.epochs, {0.0, kMostEpochs, false, true}));
    if (s.seqLen != 0)
        MR_TRY(inRange("seq-len", s.seqLen, 2, kMostSeqLen));
    MR_TRY(inRange("micro-batch", s.microBatch, 1, kMostMicroBatch));
    MR_TRY(inRange("accumulate", s.accumulate, 1, kMostAccumulate));
    MR_TRY(inRange("warmup", s.warmupSteps, -1, kMostSteps));
    MR_TRY(inRange("checkpoint-every", s.checkpointEvery, 0, kMostSteps));
    MR_TRY(inRange("checkpoint-minutes", s.checkpointMinutes, 0, kMostMinutes));
    MR_TRY(inRange("keep", s.keepCheckpoints, 1, kMostSteps));
    return inRange("threads", s.threads, 0, kMostThreads);
}

Status checkOptimizer(const RunSpec& s)
{
    MR_TRY(inRange("lr", s.learningRate, {0.0, 10.0}));
    MR_TRY(inRange("weight-decay", s.weightDecay, {0.0, 10.0}));
    MR_TRY(inRange("beta1", s.beta1, {0.0, 1.0, true, false}));
    MR_TRY(inRange("beta2", s.beta2, {0.0, 1.0, true, false}));
    MR_TRY(inRange("eps", s.eps, {0.0, 1.0, false, true}));
    return inRange("clip", s.clipNorm, {0.0, 1e6});
}

Status checkMethod(const std::string& method)
{
    if (method == "full")
        return {};
    if (contains(kMethodsToCome, method))
        return refuse("method " + inQuotes(method) + " is known but not built yet; use full");
    return refuse("method " + inQuotes(method) + " is not known; use full");
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
        return refuse("link is " + number(s.linkBytesPerSecond) +
                      " bytes/s; it must be above 0, or left out");
    if (s.device == DeviceChoice::Cuda && s.linkBytesPerSecond > 0.0)
        return refuse("link slows the copies of the CPU device down; leave it out with cuda");
    return checkScratch(s);
}

} // namespace

Status checkSpec(const RunSpec& spec)
{
    MR_TRY(checkModel(spec));
    MR_TRY(checkMethod(spec.method));
    MR_TRY(checkDevice(spec));
    MR_TRY(checkRun(spec));
    return checkOptimizer(spec);
}

} // namespace mr
