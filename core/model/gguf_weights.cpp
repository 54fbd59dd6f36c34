#include "core/model/gguf_weights.h"

#include "core/base/shown_text.h"
#include "core/model/tensor_reader.h"
#include "core/model/weight_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <system_error>
#include <utility>

namespace mr {
namespace {

namespace fs = std::filesystem;
// A model's file and where its tensors lie in it.
struct MatchedFile {
    GgufFile file;
    GgufLayout layout;
    std::vector<const GgufTensor*> of; // by entry
};

// The tensors of the file that the layout explains, each once.
Status match(MatchedFile& matched)
{
    std::vector<std::string> missing;
    std::vector<std::string> misshapen;
    std::set<std::string, std::less<>> known{matched.layout.inputTable};
    for (const GgufMade& made : matched.layout.made)
        known.insert(made.name);
    for (const GgufEntry& entry : matched.layout.entries) {
        const GgufTensor* tensor = matched.file.tensor(entry.name);
        matched.of.push_back(tensor);
        known.insert(entry.name);
        if (tensor == nullptr)
            missing.push_back(entry.name);
        else if (tensor->ne != entry.ne())
            misshapen.push_back(entry.name);
    }
    const std::string& table = matched.layout.inputTable;
    if (!table.empty() && matched.file.tensor(table) == nullptr)
        missing.push_back(table);
    std::vector<std::string> surplus;
    for (const GgufTensor& tensor : matched.file.tensors())
        if (!known.contains(tensor.name))
            surplus.push_back(shownName(tensor.name));
    std::string text;
    const auto add = [&text](const char* what, const std::vector<std::string>& names) {
        if (!names.empty())
            text += (text.empty() ? "" : "; ") + std::string(what) + listedNames(names);
    };
    add("missing tensors: ", missing);
    add("wrong shapes: ", misshapen);
    add("tensors that its metadata does not explain: ", surplus);
    if (text.empty())
        return {};
    return Status::error(ErrorKind::InvalidArgument, matched.file.path().string() + ": " + text);
}

// Tensors that follow from the config are those of the file.
Status checkMade(const MatchedFile& matched)
{
    constexpr float kRounding = 1e-4F;
    for (const GgufMade& made : matched.layout.made) {
        const GgufTensor* tensor = matched.file.tensor(made.name);
        std::vector<float> values(made.values.size());
        const bool isLong = tensor != nullptr && tensor->count() == std::ssize(values);
        if (isLong)
            MR_TRY(matched.file.readFloats(*tensor, 0, values));
        const bool isEqual = std::ranges::equal(values, made.values, [](float own, float wanted) {
            return std::abs(own - wanted) <= kRounding * std::abs(wanted);
        });
        if (tensor != nullptr && !(isLong && isEqual))
            return Status::error(ErrorKind::InvalidArgument,
                matched.file.path().string() + ": tensor " + made.name +
                    " holds numbers that do not follow from its metadata; take the model's "
                    "folder of Hugging Face instead");
    }
    return {};
}

Result<MatchedFile> openMatched(
    const fs::path& path, const ModelConfig& config, const ParamTable& table)
{
    MR_ASSIGN(GgufFile file, GgufFile::open(path));
    MR_ASSIGN(GgufLayout layout, ggufLayout(config, table));
    MatchedFile matched{std::move(file), std::move(layout), {}};
    MR_TRY(match(matched));
    MR_TRY(checkMade(matched));
    return matched;
}

float weightOf(float stored, GgufStored how)
{
    switch (how) {
    case GgufStored::PlusOne:
        return stored - 1.0F;
    case GgufStored::MinusExp:
        return std::log(-stored);
    case GgufStored::Weight:
        break;
    }
    return stored;
}

class GgufWeights final : public FloatReader
{
public:
    GgufWeights(const ParamTable& table, MatchedFile matched)
        : FloatReader(table)
        , m_matched(std::move(matched))
        , m_entries(table.tensors.size())
    {
        for (std::size_t i = 0; i < m_matched.layout.entries.size(); ++i)
            m_entries[m_matched.layout.entries[i].tensor].push_back(i);
    }

private:
    const fs::path& fileOf(std::size_t /*index*/) const override { return m_matched.file.path(); }

    Status readFloats(std::size_t index, std::int64_t first, std::span<float> out) override
    {
        for (const std::size_t i : m_entries[index]) {
            const GgufEntry& entry = m_matched.layout.entries[i];
            const std::int64_t begin = entry.firstRow * entry.columns;
            const std::int64_t end = begin + entry.rows * entry.columns;
            const std::int64_t from = std::max(first, begin);
            const std::int64_t to = std::min(first + std::ssize(out), end);
            if (from < to)
                MR_TRY(readEntry(i, from - begin,
                    out.subspan(static_cast<std::size_t>(from - first),
                        static_cast<std::size_t>(to - from))));
        }
        return {};
    }

    // `first`: element of the entry, in the order of the model.
    Status readEntry(std::size_t i, std::int64_t first, std::span<float> out)
    {
        const GgufEntry& entry = m_matched.layout.entries[i];
        const bool isInOrder = entry.rowOrder.isSame() && entry.columnOrder.isSame();
        if (isInOrder)
            MR_TRY(m_matched.file.readFloats(*m_matched.of[i], first, out));
        else
            MR_TRY(readRows(i, first, out));
        if (entry.stored != GgufStored::Weight)
            for (float& value : out)
                value = weightOf(value, entry.stored);
        return {};
    }

    Status readRows(std::size_t i, std::int64_t first, std::span<float> out)
    {
        const GgufEntry& entry = m_matched.layout.entries[i];
        m_row.resize(static_cast<std::size_t>(entry.columns));
        while (!out.empty()) {
            const std::int64_t row = entry.rowOrder.place(first / entry.columns);
            const std::int64_t column = first % entry.columns;
            const auto count = static_cast<std::size_t>(
                std::min<std::int64_t>(entry.columns - column, std::ssize(out)));
            MR_TRY(m_matched.file.readFloats(*m_matched.of[i], row * entry.columns, m_row));
            for (std::size_t c = 0; c < count; ++c)
                out[c] = m_row[static_cast<std::size_t>(
                    entry.columnOrder.place(column + static_cast<std::int64_t>(c)))];
            out = out.subspan(count);
            first += static_cast<std::int64_t>(count);
        }
        return {};
    }

    MatchedFile m_matched;
    std::vector<std::vector<std::size_t>> m_entries; // by tensor of the table
    std::vector<float> m_row;
};

} // namespace

fs::path ggufOf(const fs::path& folder)
{
    std::error_code error;
    const fs::path file = fs::read_symlink(folder / kGgufLink, error);
    return error ? fs::path() : file;
}

Status readGgufScales(const fs::path& path, ModelConfig& config)
{
    if (config.layerScalars.empty())
        return {};
    MR_ASSIGN(const GgufFile file, GgufFile::open(path));
    config.outputScales.assign(static_cast<std::size_t>(config.layers), 1.0F);
    for (std::int64_t block = 0; block < config.layers; ++block)
        if (const GgufTensor* tensor = file.tensor(ggufScaleName(block));
            tensor != nullptr && tensor->count() == 1)
            MR_TRY(file.readFloats(
                *tensor, 0, {&config.outputScales[static_cast<std::size_t>(block)], 1}));
    return {};
}

Result<std::unique_ptr<MasterReader>> openGgufWeights(
    const fs::path& file, const ModelConfig& config, const ParamTable& table)
{
    MR_ASSIGN(MatchedFile matched, openMatched(file, config, table));
    return std::unique_ptr<MasterReader>(std::make_unique<GgufWeights>(table, std::move(matched)));
}

Result<GgufFacts> checkGgufWeights(
    const fs::path& file, const ModelConfig& config, const ParamTable& table)
{
    MR_ASSIGN(const MatchedFile matched, openMatched(file, config, table));
    std::map<std::string_view, std::int64_t> counts;
    GgufFacts facts;
    for (const GgufTensor& tensor : matched.file.tensors()) {
        counts[ggufTypeInfo(tensor.type).name] += tensor.count();
        facts.bytes += tensor.bytes;
    }
    const auto most =
        std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; });
    if (most != counts.end())
        facts.type = most->first;
    return facts;
}

} // namespace mr
