#include "core/telemetry/step_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace mr {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 3> kLevelNames = {"info", "warning", "error"};

// Microseconds as milliseconds, exactly.
std::string milliseconds(std::int64_t us)
{
    const std::string_view sign = us < 0 ? "-" : "";
    const std::int64_t magnitude = us < 0 ? -us : us;
    return fmt::format("{}{}.{:03}", sign, magnitude / 1000, magnitude % 1000);
}

// The shortest text that reads back as the same double.
std::string number(double value)
{
    return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

std::string jsonText(std::string_view text)
{
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string stallsJson(const std::array<std::int64_t, kStallCauses>& us)
{
    std::string text;
    for (std::size_t i = 0; i < kStallCauses; ++i)
        text += fmt::format(
            R"({}"{}":{})", i == 0 ? "" : ",", kStallCauseNames[i], milliseconds(us[i]));
    return text;
}

Status missing(std::string_view field)
{
    return Status::error(
        ErrorKind::DataCorrupt, fmt::format("field \"{}\" is missing or no number", field));
}

// Reads fields one after the other and remembers the first that is missing.
class Fields
{
public:
    explicit Fields(const Json& object)
        : m_object(object)
    {
    }

    std::int64_t integer(const char* key)
    {
        const auto found = m_object.find(key);
        if (found != m_object.end() && found->is_number_integer())
            return found->get<std::int64_t>();
        fail(key);
        return 0;
    }

    double real(const char* key)
    {
        const auto found = m_object.find(key);
        if (found != m_object.end() && found->is_number())
            return found->get<double>();
        if (found == m_object.end() || !found->is_null())
            fail(key);
        return std::numeric_limits<double>::quiet_NaN();
    }

    std::int64_t microseconds(const char* key)
    {
        const double ms = real(key);
        // 2^53 us is 285 years; above that a double is no longer exact.
        if (!(std::abs(ms) < 9.0e12)) {
            fail(key);
            return 0;
        }
        return std::llround(ms * 1000.0);
    }

    std::string text(const char* key)
    {
        const auto found = m_object.find(key);
        if (found != m_object.end() && found->is_string())
            return found->get<std::string>();
        fail(key);
        return {};
    }

    Status status() const { return m_status; }

private:
    void fail(const char* key)
    {
        if (m_status.ok())
            m_status = missing(key);
    }

    const Json& m_object;
    Status m_status;
};

Result<Json> parseObject(std::string_view line)
{
    Json object = Json::parse(line, nullptr, false);
    if (!object.is_object())
        return Status::error(ErrorKind::DataCorrupt, "the line is no JSON object");
    return object;
}

constexpr std::int64_t kMaxStep = (std::int64_t{1} << 40) - 1;

Status readStalls(const Json& object, std::array<std::int64_t, kStallCauses>& us)
{
    const auto stalls = object.find("stall_ms");
    if (stalls == object.end() || !stalls->is_object())
        return missing("stall_ms");
    Fields stall(*stalls);
    for (std::size_t i = 0; i < kStallCauses; ++i)
        us[i] = stall.microseconds(std::string(kStallCauseNames[i]).c_str());
    return stall.status();
}

} // namespace

std::string toJson(const StepRow& r)
{
    return fmt::format(
        R"({{"event":"step","step":{},"loss":{},"lr":{},"grad_norm":{},"tokens":{},)"
        R"("loss_tokens":{},"wall_ms":{},"compute_ms":{},"stall_ms":{{{}}},"h2d_bytes":{},)"
        R"("d2h_bytes":{},"disk_read_bytes":{},"disk_write_bytes":{},"device_peak_bytes":{},)"
        R"("host_peak_bytes":{},"staleness":{}}})",
        r.step, number(r.loss), number(r.learningRate), number(r.gradNorm), r.tokens, r.lossTokens,
        milliseconds(r.wallUs), milliseconds(r.computeUs), stallsJson(r.stallUs), r.h2dBytes,
        r.d2hBytes, r.diskReadBytes, r.diskWriteBytes, r.devicePeakBytes, r.hostPeakBytes,
        r.staleness);
}

Result<StepRow> stepFromJson(std::string_view line)
{
    MR_ASSIGN(Json parsed, parseObject(line));
    Fields in(parsed);
    StepRow r;
    r.step = in.integer("step");
    r.loss = in.real("loss");
    r.learningRate = in.real("lr");
    r.gradNorm = in.real("grad_norm");
    r.tokens = in.integer("tokens");
    r.lossTokens = in.integer("loss_tokens");
    r.wallUs = in.microseconds("wall_ms");
    r.computeUs = in.microseconds("compute_ms");
    r.h2dBytes = in.integer("h2d_bytes");
    r.d2hBytes = in.integer("d2h_bytes");
    r.diskReadBytes = in.integer("disk_read_bytes");
    r.diskWriteBytes = in.integer("disk_write_bytes");
    r.devicePeakBytes = in.integer("device_peak_bytes");
    r.hostPeakBytes = in.integer("host_peak_bytes");
    r.staleness = in.integer("staleness");
    MR_TRY(in.status());
    MR_TRY(readStalls(parsed, r.stallUs));
    if (r.step < 0 || r.step > kMaxStep)
        return missing("step");
    return r;
}

std::string toJson(const IntervalRow& r)
{
    return fmt::format(
        R"({{"event":"interval","kind":"{}","step":{},"begin_ms":{},"end_ms":{},"compute_ms":{},)"
        R"("stall_ms":{{{}}},"h2d_bytes":{},"d2h_bytes":{},"disk_read_bytes":{},)"
        R"("disk_write_bytes":{}}})",
        kIntervalKindNames.at(static_cast<std::size_t>(r.kind)), r.step, milliseconds(r.beginUs),
        milliseconds(r.endUs), milliseconds(r.computeUs), stallsJson(r.stallUs), r.h2dBytes,
        r.d2hBytes, r.diskReadBytes, r.diskWriteBytes);
}

Result<IntervalRow> intervalFromJson(std::string_view line)
{
    MR_ASSIGN(Json parsed, parseObject(line));
    Fields in(parsed);
    const std::string kind = in.text("kind");
    IntervalRow r;
    r.step = in.integer("step");
    r.beginUs = in.microseconds("begin_ms");
    r.endUs = in.microseconds("end_ms");
    r.computeUs = in.microseconds("compute_ms");
    r.h2dBytes = in.integer("h2d_bytes");
    r.d2hBytes = in.integer("d2h_bytes");
    r.diskReadBytes = in.integer("disk_read_bytes");
    r.diskWriteBytes = in.integer("disk_write_bytes");
    MR_TRY(in.status());
    MR_TRY(readStalls(parsed, r.stallUs));
    if (r.step < 0 || r.step > kMaxStep)
        return missing("step");
    const auto known = std::find(kIntervalKindNames.begin(), kIntervalKindNames.end(), kind);
    if (known == kIntervalKindNames.end())
        return missing("kind");
    r.kind = static_cast<IntervalKind>(known - kIntervalKindNames.begin());
    return r;
}

std::string toJson(const EventRow& row)
{
    const auto level = std::min<std::size_t>(static_cast<std::size_t>(row.level), 2);
    const std::string data = row.data.empty() ? std::string() : ",\"data\":" + row.data;
    return fmt::format(R"({{"event":"{}","code":{},"step":{},"time_ms":{},"text":{}{}}})",
        kLevelNames.at(level), jsonText(row.code), row.step, row.timeMs, jsonText(row.text), data);
}

std::string toJson(std::string_view metric, const ScalarRow& row)
{
    return fmt::format(R"({{"event":"scalar","metric":{},"step":{},"time_ms":{},"value":{}}})",
        jsonText(metric), row.step, row.timeMs, number(row.value));
}

std::string toJson(const MachineSample& sample)
{
    std::string line = fmt::format(R"({{"event":"sample","time_ms":{})", sample.timeMs);
    for (std::size_t i = 0; i < kMachineMetrics; ++i) {
        // The history keeps seven digits too.
        if (sample.values[i] && std::isfinite(*sample.values[i]))
            line += fmt::format(
                R"(,"{}":{})", kMachineMetricInfos[i].name, static_cast<float>(*sample.values[i]));
    }
    return line + "}";
}

Result<MachineSample> sampleFromJson(std::string_view line)
{
    MR_ASSIGN(Json parsed, parseObject(line));
    Fields in(parsed);
    MachineSample sample;
    sample.timeMs = in.integer("time_ms");
    MR_TRY(in.status());
    constexpr std::int64_t kMostMs = std::int64_t{1} << 40; // 34 years
    if (sample.timeMs < 0 || sample.timeMs > kMostMs)
        return missing("time_ms");
    for (std::size_t i = 0; i < kMachineMetrics; ++i) {
        const auto found = parsed.find(kMachineMetricInfos[i].name);
        if (found != parsed.end() && found->is_number())
            sample.values[i] = found->get<double>();
    }
    return sample;
}

Status eventFromJson(std::string_view line, StoreBatch& batch)
{
    MR_ASSIGN(Json parsed, parseObject(line));
    Fields in(parsed);
    const std::string kind = in.text("event");
    const std::int64_t step = in.integer("step");
    const std::int64_t timeMs = in.integer("time_ms");
    if (kind == "scalar") {
        NamedScalar scalar{in.text("metric"), {step, timeMs, in.real("value")}};
        MR_TRY(in.status());
        batch.scalars.push_back(std::move(scalar));
        return {};
    }
    EventRow event{0, step, timeMs, EventLevel::Info, in.text("code"), in.text("text")};
    MR_TRY(in.status());
    if (const auto data = parsed.find("data"); data != parsed.end())
        event.data = data->dump(-1, ' ', false, Json::error_handler_t::replace);
    for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
        if (kind == kLevelNames.at(i)) {
            event.level = static_cast<EventLevel>(i);
            batch.events.push_back(std::move(event));
            return {};
        }
    }
    return missing("event");
}

} // namespace mr
