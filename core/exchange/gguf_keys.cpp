// GgufKeys: typed reads of a GGUF file's metadata.

#include "core/exchange/gguf_config.h"

#include <type_traits>
#include <variant>

namespace mr {
namespace {

// A whole number or a flag; false: neither.
bool wholeOf(const GgufValue& value, std::int64_t& out)
{
    if (const auto* flag = std::get_if<bool>(&value.data))
        out = *flag ? 1 : 0;
    else if (const auto* whole = std::get_if<std::int64_t>(&value.data))
        out = *whole;
    else if (const auto* natural = std::get_if<std::uint64_t>(&value.data))
        out = static_cast<std::int64_t>(*natural);
    else
        return false;
    return true;
}

} // namespace

GgufKeys::GgufKeys(const GgufFile& file)
    : m_file(file)
{
    if (const GgufValue* value = file.find("general.architecture"))
        if (const auto* text = std::get_if<std::string>(&value->data))
            m_architecture = *text;
}

const GgufValue* GgufKeys::own(const std::string& key) const
{
    return m_file.find(m_architecture + "." + key);
}

Result<std::int64_t> GgufKeys::count(const std::string& key) const
{
    std::int64_t value = 0;
    const GgufValue* found = own(key);
    if (found != nullptr && wholeOf(*found, value) && value >= 0)
        return value;
    return Status::error(ErrorKind::InvalidArgument,
        m_file.path().string() + ": " + m_architecture + "." + key +
            (found == nullptr ? " is missing" : " is no whole number") +
            "; the file is no model that llama.cpp loads, fetch or export it again");
}

std::int64_t GgufKeys::count(const std::string& key, std::int64_t missing) const
{
    std::int64_t value = 0;
    const GgufValue* found = own(key);
    return found != nullptr && wholeOf(*found, value) ? value : missing;
}

double GgufKeys::number(const std::string& key, double missing) const
{
    const GgufValue* found = own(key);
    const auto* value = found == nullptr ? nullptr : std::get_if<double>(&found->data);
    return value == nullptr ? missing : *value;
}

bool GgufKeys::flag(const std::string& key, bool missing) const
{
    const GgufValue* found = own(key);
    const auto* value = found == nullptr ? nullptr : std::get_if<bool>(&found->data);
    return value == nullptr ? missing : *value;
}

std::string GgufKeys::text(const std::string& key) const
{
    const GgufValue* found = own(key);
    const auto* value = found == nullptr ? nullptr : std::get_if<std::string>(&found->data);
    return value == nullptr ? std::string() : *value;
}

std::vector<std::int64_t> GgufKeys::each(const std::string& key, std::int64_t layers) const
{
    const GgufValue* found = own(key);
    std::int64_t one = 0;
    if (found == nullptr)
        return {};
    if (wholeOf(*found, one))
        return std::vector<std::int64_t>(static_cast<std::size_t>(layers), one);
    const auto* list = std::get_if<std::vector<std::int64_t>>(&found->data);
    if (list == nullptr || std::ssize(*list) < layers)
        return {};
    return {list->begin(), list->begin() + layers};
}

std::int64_t GgufKeys::id(const std::string& name) const
{
    const GgufValue* found = m_file.find("tokenizer.ggml." + name + "_token_id");
    std::int64_t value = 0;
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    const bool isId = found != nullptr && wholeOf(*found, value) && value >= 0 && value < kMost;
    return isId ? value : -1;
}

} // namespace mr
