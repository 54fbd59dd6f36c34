#include "core/api/json_fields.h"
#include "core/api/json_text.h"

#include <millrace/run_spec.h>

#include <array>
#include <limits>
#include <span>
#include <utility>

namespace mr {

using nlohmann::json;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr IntRange kAnyInteger{std::numeric_limits<std::int64_t>::min(), kMost};

// The words of an enumeration, in the order of its values.
constexpr std::array<std::string_view, 5> kFormats = {"auto", "text", "jsonl", "json", "csv"};
constexpr std::array<std::string_view, 3> kPrecisions = {"auto", "bf16", "fp32"};
constexpr std::array<std::string_view, 3> kRecomputes = {"auto", "none", "block"};
constexpr std::array<std::string_view, 3> kSchedules = {"constant", "linear", "cosine"};
constexpr std::array<std::string_view, 3> kDevices = {"auto", "cpu", "cuda"};

template <typename E>
std::string_view word(std::span<const std::string_view> words, E v) noexcept
{
    const auto index = static_cast<std::size_t>(v);
    return index < words.size() ? words[index] : std::string_view("?");
}

template <typename E>
Result<E> parseWord(
    std::span<const std::string_view> words, std::string_view what, std::string_view text)
{
    std::string known;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == text)
            return static_cast<E>(i);
        known += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + std::string(words[i]);
    }
    return Status::error(ErrorKind::InvalidArgument,
        std::string(what) + " \"" + std::string(text) + "\" is not known; use " + known);
}

// A word of an enumeration; the value stays as it is if the field is missing.
template <typename E>
void readWord(
    JsonFields& fields, std::string_view key, Result<E> (*parse)(std::string_view), E& out)
{
    const std::string text = fields.text(key, std::string(name(out)));
    Result<E> value = parse(text);
    fields.take(value.status());
    if (value.ok())
        out = value.value();
}

json sourcesToJson(const std::vector<DataSource>& sources)
{
    json list = json::array();
    for (const DataSource& s : sources) {
        list.push_back(
            {{"path", s.path}, {"format", name(s.format)}, {"columns", json(s.columns)}});
        if (s.skipBadRows) // earlier programs do not know it
            list.back()["skip_bad_rows"] = true;
    }
    return list;
}

Status noUnknown(const JsonFields& fields, const std::string& source)
{
    const std::vector<std::string> unknown = fields.unknown();
    if (unknown.empty())
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        source + ": field " + shown(unknown.front()) + " is not known to this program");
}

void readTexts(JsonFields& fields, std::string_view key, std::map<std::string, std::string>& out)
{
    const json* value = fields.find(key);
    if (value == nullptr)
        return;
    if (!value->is_object())
        return fields.fail(key, "must be an object of strings");
    for (const auto& item : value->items()) {
        if (!item.value().is_string())
            return fields.fail(key, "must be an object of strings");
        out[item.key()] = item.value().get<std::string>();
    }
}

void readTextList(JsonFields& fields, std::string_view key, std::vector<std::string>& out)
{
    const json* value = fields.find(key);
    if (value == nullptr)
        return;
    if (!value->is_array())
        return fields.fail(key, "must be a list of strings");
    out.clear();
    for (const json& item : *value) {
        if (!item.is_string())
            return fields.fail(key, "must be a list of strings");
        out.push_back(item.get<std::string>());
    }
}

void readSources(JsonFields& fields, std::string_view key, std::vector<DataSource>& out)
{
    const json* list = fields.find(key);
    if (list == nullptr)
        return;
    if (!list->is_array())
        return fields.fail(key, "must be a list");
    for (const json& item : *list) {
        const std::string source = "run settings, " + std::string(key);
        JsonFields entry(item, source);
        DataSource data;
        data.path = entry.text("path", "");
        readWord(entry, "format", parseDataFormat, data.format);
        readTexts(entry, "columns", data.columns);
        data.skipBadRows = entry.boolean("skip_bad_rows", data.skipBadRows);
        entry.take(noUnknown(entry, source));
        fields.take(entry.status());
        out.push_back(std::move(data));
    }
}

void readWhat(JsonFields& f, RunSpec& s)
{
    s.name = f.text("name", s.name);
    s.modelDir = f.text("model_dir", s.modelDir);
    s.scratchConfig = f.text("scratch_config", s.scratchConfig);
    s.scratchTokenizer = f.text("scratch_tokenizer", s.scratchTokenizer);
    readSources(f, "data", s.data);
    readSources(f, "eval_data", s.evalData);
    s.holdOut = f.number("hold_out", s.holdOut);
    s.split = f.text("split", s.split);
    s.pack = f.boolean("pack", s.pack);
    s.evalEvery = f.integer("eval_every", kAnyInteger, s.evalEvery);
    s.evalAnswers = f.integer("eval_answers", kAnyInteger, s.evalAnswers);
    s.outDir = f.text("out_dir", s.outDir);
    s.saveDir = f.text("save_dir", s.saveDir);
    s.database = f.text("database", s.database);
}

void readTraining(JsonFields& f, RunSpec& s)
{
    s.steps = f.integer("steps", kAnyInteger, s.steps);
    s.epochs = f.number("epochs", s.epochs);
    s.seqLen = f.integer("seq_len", kAnyInteger, s.seqLen);
    s.microBatch = f.integer("micro_batch", kAnyInteger, s.microBatch);
    s.accumulate = f.integer("accumulate", kAnyInteger, s.accumulate);
    s.learningRate = f.number("learning_rate", s.learningRate);
    readWord(f, "schedule", parseSchedule, s.schedule);
    s.warmupSteps = f.integer("warmup_steps", kAnyInteger, s.warmupSteps);
    s.weightDecay = f.number("weight_decay", s.weightDecay);
    s.beta1 = f.number("beta1", s.beta1);
    s.beta2 = f.number("beta2", s.beta2);
    s.eps = f.number("eps", s.eps);
    s.clipNorm = f.number("clip_norm", s.clipNorm);
    s.seed = f.unsignedInteger("seed", s.seed);
    readWord(f, "precision", parsePrecision, s.precision);
    s.method = f.text("method", s.method);
    readWord(f, "recompute", parseRecompute, s.recompute);
    s.checkpointEvery = f.integer("checkpoint_every", kAnyInteger, s.checkpointEvery);
    s.checkpointMinutes = f.integer("checkpoint_minutes", kAnyInteger, s.checkpointMinutes);
    s.keepCheckpoints = f.integer("keep_checkpoints", kAnyInteger, s.keepCheckpoints);
    s.keepBest = f.boolean("keep_best", s.keepBest);
}

void readMachine(JsonFields& f, RunSpec& s)
{
    readWord(f, "device", parseDevice, s.device);
    s.threadedDevice = f.boolean("threaded_device", s.threadedDevice);
    s.threads = f.integer("threads", kAnyInteger, s.threads);
    s.policy = f.text("policy", s.policy);
    readTexts(f, "policy_options", s.policyOptions);
    s.allowStale = f.boolean("allow_stale", s.allowStale);
    s.deviceMemoryBytes = f.unsignedInteger("device_memory_bytes", s.deviceMemoryBytes);
    s.hostMemoryBytes = f.unsignedInteger("host_memory_bytes", s.hostMemoryBytes);
    s.diskBytes = f.unsignedInteger("disk_bytes", s.diskBytes);
    readTextList(f, "disk_paths", s.diskPaths);
    if (const std::string one = f.text("disk_path", {}); !one.empty()) // of earlier programs
        s.diskPaths = {one};
    s.maxDiskWriteBytes = f.unsignedInteger("max_disk_write_bytes", s.maxDiskWriteBytes);
    s.linkBytesPerSecond = f.number("link_bytes_per_second", s.linkBytesPerSecond);
}

} // namespace

std::string_view name(DataFormat v) noexcept
{
    return word(kFormats, v);
}
std::string_view name(PrecisionChoice v) noexcept
{
    return word(kPrecisions, v);
}
std::string_view name(RecomputeChoice v) noexcept
{
    return word(kRecomputes, v);
}
std::string_view name(ScheduleKind v) noexcept
{
    return word(kSchedules, v);
}
std::string_view name(DeviceChoice v) noexcept
{
    return word(kDevices, v);
}

Result<DataFormat> parseDataFormat(std::string_view text)
{
    return parseWord<DataFormat>(kFormats, "data format", text);
}

Result<PrecisionChoice> parsePrecision(std::string_view text)
{
    return parseWord<PrecisionChoice>(kPrecisions, "precision", text);
}

Result<RecomputeChoice> parseRecompute(std::string_view text)
{
    return parseWord<RecomputeChoice>(kRecomputes, "recompute", text);
}

Result<ScheduleKind> parseSchedule(std::string_view text)
{
    return parseWord<ScheduleKind>(kSchedules, "schedule", text);
}

Result<DeviceChoice> parseDevice(std::string_view text)
{
    return parseWord<DeviceChoice>(kDevices, "device", text);
}

std::string toJson(const RunSpec& spec)
{
    const RunSpec& s = spec;
    const json value = {{"name", s.name}, {"model_dir", s.modelDir},
        {"scratch_config", s.scratchConfig}, {"scratch_tokenizer", s.scratchTokenizer},
        {"data", sourcesToJson(s.data)}, {"eval_data", sourcesToJson(s.evalData)},
        {"hold_out", s.holdOut}, {"split", s.split}, {"pack", s.pack}, {"eval_every", s.evalEvery},
        {"eval_answers", s.evalAnswers}, {"out_dir", s.outDir}, {"save_dir", s.saveDir},
        {"database", s.database}, {"steps", s.steps}, {"epochs", s.epochs}, {"seq_len", s.seqLen},
        {"micro_batch", s.microBatch}, {"accumulate", s.accumulate},
        {"learning_rate", s.learningRate}, {"schedule", name(s.schedule)},
        {"warmup_steps", s.warmupSteps}, {"weight_decay", s.weightDecay}, {"beta1", s.beta1},
        {"beta2", s.beta2}, {"eps", s.eps}, {"clip_norm", s.clipNorm}, {"seed", s.seed},
        {"precision", name(s.precision)}, {"method", s.method}, {"recompute", name(s.recompute)},
        {"checkpoint_every", s.checkpointEvery}, {"checkpoint_minutes", s.checkpointMinutes},
        {"keep_checkpoints", s.keepCheckpoints}, {"keep_best", s.keepBest},
        {"device", name(s.device)}, {"threaded_device", s.threadedDevice}, {"threads", s.threads},
        {"policy", s.policy}, {"policy_options", json(s.policyOptions)},
        {"allow_stale", s.allowStale}, {"device_memory_bytes", s.deviceMemoryBytes},
        {"host_memory_bytes", s.hostMemoryBytes}, {"disk_bytes", s.diskBytes},
        {"disk_paths", s.diskPaths}, {"max_disk_write_bytes", s.maxDiskWriteBytes},
        {"link_bytes_per_second", s.linkBytesPerSecond}};
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<RunSpec> runSpecFromJson(std::string_view text)
{
    const std::string source = "run settings";
    Result<json> value = parseJson(text, source);
    MR_TRY(value.status());
    JsonFields fields(value.value(), source);
    RunSpec spec;
    readWhat(fields, spec);
    readTraining(fields, spec);
    readMachine(fields, spec);
    MR_TRY(fields.status());
    MR_TRY(noUnknown(fields, source));
    return spec;
}

} // namespace mr
