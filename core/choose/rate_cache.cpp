#include "core/choose/rate_cache.h"

#include "core/base/file.h"

#include <millrace/run_reader.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

namespace mr {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 20;
constexpr int kVersion = 2; // 1 had one time for blocks of all kinds

template <typename Rates>
struct Field {
    const char* name;
    double& (*of)(Rates&);
};

// One row per number; both directions go through it.
constexpr std::array<Field<Feedback>, 29> kFields = {{
    {"h2d_bytes_per_s", [](Feedback& f) -> double& { return f.hostToDeviceBytesPerSecond; }},
    {"d2h_bytes_per_s", [](Feedback& f) -> double& { return f.deviceToHostBytesPerSecond; }},
    {"host_adamw_per_s", [](Feedback& f) -> double& { return f.hostAdamwElementsPerSecond; }},
    {"device_adamw_per_s", [](Feedback& f) -> double& { return f.deviceAdamwElementsPerSecond; }},
    {"device_flops_per_s", [](Feedback& f) -> double& { return f.deviceFlopsPerSecond; }},
    {"gradient_per_s", [](Feedback& f) -> double& { return f.deviceGradientElementsPerSecond; }},
    {"packed_per_s", [](Feedback& f) -> double& { return f.packedElementsPerSecond; }},
    {"embedding_forward_s", [](Feedback& f) -> double& { return f.embedding.forward; }},
    {"embedding_backward_s", [](Feedback& f) -> double& { return f.embedding.backward; }},
    {"embedding_recompute_s", [](Feedback& f) -> double& { return f.embedding.recompute; }},
    {"block_forward_s", [](Feedback& f) -> double& { return f.block.forward; }},
    {"block_backward_s", [](Feedback& f) -> double& { return f.block.backward; }},
    {"block_recompute_s", [](Feedback& f) -> double& { return f.block.recompute; }},
    {"block_cheap_s", [](Feedback& f) -> double& { return f.block.cheap; }},
    {"block2_forward_s", [](Feedback& f) -> double& { return f.blockOf(1).forward; }},
    {"block2_backward_s", [](Feedback& f) -> double& { return f.blockOf(1).backward; }},
    {"block2_recompute_s", [](Feedback& f) -> double& { return f.blockOf(1).recompute; }},
    {"block2_cheap_s", [](Feedback& f) -> double& { return f.blockOf(1).cheap; }},
    {"block3_forward_s", [](Feedback& f) -> double& { return f.blockOf(2).forward; }},
    {"block3_backward_s", [](Feedback& f) -> double& { return f.blockOf(2).backward; }},
    {"block3_recompute_s", [](Feedback& f) -> double& { return f.blockOf(2).recompute; }},
    {"block3_cheap_s", [](Feedback& f) -> double& { return f.blockOf(2).cheap; }},
    {"block4_forward_s", [](Feedback& f) -> double& { return f.blockOf(3).forward; }},
    {"block4_backward_s", [](Feedback& f) -> double& { return f.blockOf(3).backward; }},
    {"block4_recompute_s", [](Feedback& f) -> double& { return f.blockOf(3).recompute; }},
    {"block4_cheap_s", [](Feedback& f) -> double& { return f.blockOf(3).cheap; }},
    {"head_forward_s", [](Feedback& f) -> double& { return f.head.forward; }},
    {"head_backward_s", [](Feedback& f) -> double& { return f.head.backward; }},
    {"head_recompute_s", [](Feedback& f) -> double& { return f.head.recompute; }},
}};

constexpr std::array<Field<RateStamp>, 2> kStampFields = {{
    {"measured_unix_s", [](RateStamp& s) -> double& { return s.unixSeconds; }},
    {"others_percent", [](RateStamp& s) -> double& { return s.othersPercent; }},
}};

constexpr double kCalmSeconds = 30.0 * 24.0 * 3600.0;
constexpr double kBusySeconds = 600.0;

constexpr std::array<Field<ScratchSpeed>, 4> kDiskFields = {{
    {"read_bytes_per_s", [](ScratchSpeed& s) -> double& { return s.readBytesPerSecond; }},
    {"write_bytes_per_s", [](ScratchSpeed& s) -> double& { return s.writeBytesPerSecond; }},
    {"mixed_read_bytes_per_s",
        [](ScratchSpeed& s) -> double& { return s.mixedReadBytesPerSecond; }},
    {"mixed_write_bytes_per_s",
        [](ScratchSpeed& s) -> double& { return s.mixedWriteBytesPerSecond; }},
}};

// Every entry of the object at `name`.
template <typename Rates, std::size_t N>
void readEntries(const json& document, const char* name, const std::array<Field<Rates>, N>& fields,
    std::map<std::string, Rates>& out)
{
    const auto entries = document.find(name);
    if (entries == document.end() || !entries->is_object())
        return;
    for (const auto& [key, entry] : entries->items()) {
        if (!entry.is_object())
            continue;
        Rates& rates = out[key];
        for (const Field<Rates>& field : fields) {
            const auto found = entry.find(field.name);
            if (found != entry.end() && found->is_number() && found->template get<double>() > 0.0)
                field.of(rates) = found->template get<double>();
        }
    }
}

template <typename Rates, std::size_t N>
json entriesOf(const std::map<std::string, Rates>& all, const std::array<Field<Rates>, N>& fields)
{
    json entries = json::object();
    for (const auto& [key, rates] : all) {
        Rates copy = rates;
        json& entry = entries[key] = json::object();
        for (const Field<Rates>& field : fields)
            entry[field.name] = field.of(copy);
    }
    return entries;
}

template <typename Rates>
const Rates* findIn(const std::map<std::string, Rates>& all, const std::string& key)
{
    const auto found = all.find(key);
    return found == all.end() ? nullptr : &found->second;
}

} // namespace

double unixSecondsNow()
{
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

fs::path RateCache::defaultPath()
{
    return fs::path(defaultDatabasePath()).parent_path() / "rates.json";
}

RateCache RateCache::load(const fs::path& path)
{
    RateCache cache;
    auto text = readWholeFile(path, kMostBytes);
    if (!text.ok())
        return cache;
    const json document = json::parse(text.value(), nullptr, false);
    if (!document.is_object())
        return cache;
    const auto version = document.find("version");
    if (version == document.end() || *version != kVersion)
        return cache;
    readEntries(document, "entries", kFields, cache.m_entries);
    readEntries(document, "stamps", kStampFields, cache.m_stamps);
    readEntries(document, "disks", kDiskFields, cache.m_disks);
    return cache;
}

const Feedback* RateCache::find(const std::string& key) const
{
    return findIn(m_entries, key);
}

bool RateCache::isFresh(const std::string& key, double unixSeconds) const
{
    const RateStamp* stamp = findIn(m_stamps, key);
    if (!find(key) || !stamp)
        return false;
    const double age = unixSeconds - stamp->unixSeconds;
    const bool isCalm = stamp->othersPercent <= kMostOthersPercent;
    return age >= 0.0 && age <= (isCalm ? kCalmSeconds : kBusySeconds);
}

void RateCache::putMeasured(const std::string& key, const Feedback& rates, const RateStamp& stamp)
{
    RateStamp& kept = m_stamps[key];
    const bool isCalm = stamp.othersPercent <= kMostOthersPercent;
    const bool wasCalm =
        find(key) && kept.unixSeconds > 0.0 && kept.othersPercent <= kMostOthersPercent;
    if (wasCalm && !isCalm) { // they are tried again as soon as busy ones would be
        kept.unixSeconds = stamp.unixSeconds - (kCalmSeconds - kBusySeconds);
        return;
    }
    m_entries[key] = rates;
    kept = stamp;
}

const ScratchSpeed* RateCache::findDisk(const std::string& key) const
{
    return findIn(m_disks, key);
}

Status RateCache::save(const fs::path& path) const
{
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    const json document = {{"version", kVersion}, {"entries", entriesOf(m_entries, kFields)},
        {"stamps", entriesOf(m_stamps, kStampFields)}, {"disks", entriesOf(m_disks, kDiskFields)}};
    return replaceFile(path, document.dump(1) + "\n");
}

} // namespace mr
