#include "core/engine/rate_book.h"

#include "core/base/file.h"

#include <millrace/run_reader.h>

#include <array>
#include <nlohmann/json.hpp>

namespace mr {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 20;
constexpr int kVersion = 1;

struct Field {
    const char* name;
    double& (*of)(Feedback&);
};

// One row per number; both directions go through it.
constexpr std::array<Field, 15> kFields = {{
    {"h2d_bytes_per_s", [](Feedback& f) -> double& { return f.hostToDeviceBytesPerSecond; }},
    {"d2h_bytes_per_s", [](Feedback& f) -> double& { return f.deviceToHostBytesPerSecond; }},
    {"host_adamw_per_s", [](Feedback& f) -> double& { return f.hostAdamwElementsPerSecond; }},
    {"device_adamw_per_s", [](Feedback& f) -> double& { return f.deviceAdamwElementsPerSecond; }},
    {"device_flops_per_s", [](Feedback& f) -> double& { return f.deviceFlopsPerSecond; }},
    {"gradient_per_s", [](Feedback& f) -> double& { return f.deviceGradientElementsPerSecond; }},
    {"embedding_forward_s", [](Feedback& f) -> double& { return f.embedding.forward; }},
    {"embedding_backward_s", [](Feedback& f) -> double& { return f.embedding.backward; }},
    {"embedding_recompute_s", [](Feedback& f) -> double& { return f.embedding.recompute; }},
    {"block_forward_s", [](Feedback& f) -> double& { return f.block.forward; }},
    {"block_backward_s", [](Feedback& f) -> double& { return f.block.backward; }},
    {"block_recompute_s", [](Feedback& f) -> double& { return f.block.recompute; }},
    {"head_forward_s", [](Feedback& f) -> double& { return f.head.forward; }},
    {"head_backward_s", [](Feedback& f) -> double& { return f.head.backward; }},
    {"head_recompute_s", [](Feedback& f) -> double& { return f.head.recompute; }},
}};

Feedback ratesFrom(const json& entry)
{
    Feedback rates;
    for (const Field& field : kFields) {
        const auto found = entry.find(field.name);
        if (found != entry.end() && found->is_number() && found->get<double>() > 0.0)
            field.of(rates) = found->get<double>();
    }
    return rates;
}

} // namespace

fs::path RateBook::defaultPath()
{
    return fs::path(defaultDatabasePath()).parent_path() / "rates.json";
}

RateBook RateBook::load(const fs::path& path)
{
    RateBook book;
    auto text = readWholeFile(path, kMostBytes);
    if (!text.ok())
        return book;
    const json document = json::parse(text.value(), nullptr, false);
    if (!document.is_object())
        return book;
    const auto version = document.find("version");
    if (version == document.end() || *version != kVersion)
        return book;
    const auto entries = document.find("entries");
    if (entries == document.end() || !entries->is_object())
        return book;
    for (const auto& [key, entry] : entries->items())
        if (entry.is_object())
            book.put(key, ratesFrom(entry));
    return book;
}

const Feedback* RateBook::find(const std::string& key) const
{
    const auto found = m_entries.find(key);
    return found == m_entries.end() ? nullptr : &found->second;
}

Status RateBook::save(const fs::path& path) const
{
    json entries = json::object();
    for (const auto& [key, rates] : m_entries) {
        Feedback copy = rates;
        json& entry = entries[key] = json::object();
        for (const Field& field : kFields)
            entry[field.name] = field.of(copy);
    }
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    return replaceFile(path, json{{"version", kVersion}, {"entries", entries}}.dump(1) + "\n");
}

} // namespace mr
