#include "core/save/gguf_export.h"

#include "core/base/file.h"
#include "core/exchange/gguf_values.h"
#include "core/exchange/gguf_vocabulary.h"
#include "core/gguf/gguf_file.h"
#include "core/model/gguf_limits.h"
#include "core/save/gguf_sources.h"
#include "core/save/opened_model.h"
#include "core/save/written_aside.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>
#include <utility>

namespace mr {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kPiece = std::int64_t{1} << 20; // elements
constexpr float kMostF16 = 65504.0F;

constexpr std::array<std::pair<std::string_view, GgufForm>, 7> kForms = {{{"f32", GgufForm::F32},
    {"f16", GgufForm::F16}, {"bf16", GgufForm::BF16}, {"q8_0", GgufForm::Q8_0},
    {"q4_0", GgufForm::Q4_0}, {"q4_k_m", GgufForm::Q4_K_M}, {"q6_k", GgufForm::Q6_K}}};

Status refuseGguf(std::string message)
{
    return Status::error(ErrorKind::InvalidArgument, std::move(message));
}

// fn(first, values) for all of an entry, whole rows at a time, in the order of the file.
template <typename Fn>
Status forRows(const GgufEntry& entry, const ParamTable& table, MasterReader& model, Fn fn)
{
    const std::int64_t rows = std::max<std::int64_t>(1, kPiece / entry.columns);
    std::vector<float> values;
    for (std::int64_t row = 0; row < entry.rows; row += rows) {
        const std::int64_t count = std::min(rows, entry.rows - row) * entry.columns;
        values.resize(static_cast<std::size_t>(count));
        MR_TRY(readGgufRows(entry, table, model, row * entry.columns, values));
        MR_TRY(fn(row * entry.columns, std::span<const float>(values)));
    }
    return {};
}

// In a file whose name says Phi-3 llama.cpp lets control tokens take the space behind them, as
// Phi-3 does, and looks for a token that other tokenizers lack.
std::string nameFor(const fs::path& folder, const GgufValues& vocabulary)
{
    constexpr std::string_view kEnd = "<|endoftext|>";
    bool isPhi = false;
    for (const auto& [key, value] : vocabulary)
        if (const auto* tokens = std::get_if<std::vector<std::string>>(&value.data))
            isPhi =
                isPhi || (key == "tokenizer.ggml.tokens" && std::ranges::count(*tokens, kEnd) > 0);
    std::string name = folder.filename().string();
    for (const std::string_view part : {"phi-3", "phi3", "Phi-3", "Phi3"})
        if (const std::size_t at = name.find(part); !isPhi && at != std::string::npos)
            name.replace(at, part.size(), "phi 3");
    return name.empty() ? "model" : name;
}

class GgufExport
{
public:
    GgufExport(const ModelPlace& place, const GgufOptions& options)
        : m_place(place)
        , m_options(options)
    {
    }

    Result<GgufReport> write(const fs::path& file)
    {
        MR_TRY(m_opened.open(m_place, m_options.original));
        MR_TRY(checkGguf(config()).status());
        MR_ASSIGN(m_layout, ggufLayout(config(), m_opened.table()));
        m_model = &m_opened.whole();
        MR_ASSIGN(m_report.form, chooseForm());
        MR_ASSIGN(const GgufValues values, allValues());
        const auto sources =
            ggufSources(m_layout, config(), m_opened.table(), *m_model, m_report.form);
        MR_TRY(writeGguf(file, values, sources, m_options.progress));
        MR_TRY(readBack(file));
        m_report.notes = ggufNotes(config());
        if (m_report.normalises)
            m_report.notes.emplace_back(
                "The tokenizer joins runs of spaces, normalises letters or puts a space before "
                "some texts, which llama.cpp does otherwise: such texts become other tokens "
                "there.");
        return std::move(m_report);
    }

private:
    const ModelConfig& config() const { return m_opened.config(); }

    // F16 holds more digits than BF16, but no large number.
    Result<GgufForm> chooseForm()
    {
        const bool isF16 = !m_options.form || *m_options.form == GgufForm::F16;
        if (!isF16)
            return *m_options.form;
        float largest = 0.0F;
        for (const GgufEntry& entry : m_layout.entries)
            if (!entry.isWide)
                MR_TRY(forRows(entry, m_opened.table(), *m_model,
                    [&](std::int64_t, std::span<const float> values) -> Status {
                        for (const float value : values)
                            largest = std::max(largest, std::abs(value));
                        return {};
                    }));
        if (largest <= kMostF16)
            return GgufForm::F16;
        if (!m_options.form)
            return GgufForm::BF16;
        return refuseGguf(fmt::format("{}: holds a weight of {}, beyond the largest number of F16 "
                                      "({}); use bf16",
            m_place.model, largest, kMostF16));
    }

    Result<GgufValues> allValues()
    {
        const std::string_view architecture = m_layout.family->architecture;
        MR_ASSIGN(m_tokenizer, Tokenizer::openFor(m_place.model, config().vocab));
        MR_ASSIGN(const std::string taught, m_place.chatTemplate());
        const fs::path folder = m_place.model;
        MR_ASSIGN(GgufVocabulary vocabulary,
            ggufVocabulary({folder, *m_tokenizer, config(), architecture, m_options.ends, taught}));
        GgufValues values = ggufModelValues(
            config(), m_layout, typeOfForm(m_report.form), nameFor(folder, vocabulary.values));
        values.insert(values.end(), std::make_move_iterator(vocabulary.values.begin()),
            std::make_move_iterator(vocabulary.values.end()));
        m_report.normalises = vocabulary.normalises;
        return values;
    }

    Status readBack(const fs::path& path)
    {
        MR_ASSIGN(const GgufFile file, GgufFile::open(path));
        std::error_code error;
        m_report.bytes = fs::file_size(path, error);
        for (const GgufEntry& entry : m_layout.entries)
            MR_TRY(compare(file, entry));
        for (auto& [type, sums] : m_sums)
            m_report.errors[type] = {sums.weights, sums.largest,
                sums.squares > 0.0 ? std::sqrt(sums.errors / sums.squares) : 0.0};
        return {};
    }

    struct Sums {
        std::int64_t weights = 0;
        double largest = 0.0;
        double errors = 0.0;  // squares of differences
        double squares = 0.0; // of the weights
    };

    Status compare(const GgufFile& file, const GgufEntry& entry)
    {
        const GgufTensor* tensor = file.tensor(entry.name);
        if (tensor == nullptr || tensor->ne != entry.ne())
            return damaged(file, entry, "is not there as it was written");
        Sums own;
        std::vector<float> read;
        const auto add = [&](std::int64_t first, std::span<const float> values) -> Status {
            read.resize(values.size());
            MR_TRY(file.readFloats(*tensor, first, read));
            for (std::size_t i = 0; i < values.size(); ++i) {
                const double error = std::abs(double{read[i]} - double{values[i]});
                own.largest = std::max(own.largest, error);
                own.errors += error * error;
                own.squares += double{values[i]} * double{values[i]};
            }
            own.weights += std::ssize(values);
            return {};
        };
        MR_TRY(forRows(entry, m_opened.table(), *m_model, add));
        if (!(own.errors <= mostError(tensor->type) * mostError(tensor->type) * own.squares))
            return damaged(file, entry,
                fmt::format("lies {:.3g} of its weights off, more than {} allows",
                    std::sqrt(own.errors / own.squares), ggufTypeInfo(tensor->type).name));
        Sums& all = m_sums[std::string(ggufTypeInfo(tensor->type).name)];
        all.weights += own.weights;
        all.largest = std::max(all.largest, own.largest);
        all.errors += own.errors;
        all.squares += own.squares;
        return {};
    }

    // Root mean square error over that of the weights: several times that of Gaussian weights
    // (export section 6), because small models have odd ones.
    static double mostError(GgufType type)
    {
        switch (type) {
        case GgufType::F32:
            return 0.0;
        case GgufType::F16:
            return 1e-3;
        case GgufType::BF16:
            return 4e-3;
        case GgufType::Q8_0:
            return 3e-2;
        case GgufType::Q6_K:
            return 0.1;
        default:
            return 0.4;
        }
    }

    static Status damaged(const GgufFile& file, const GgufEntry& entry, const std::string& what)
    {
        return Status::error(ErrorKind::DataCorrupt,
            file.path().string() + ": tensor " + entry.name + " " + what + "; export it again");
    }

    const ModelPlace& m_place;
    const GgufOptions& m_options;
    OpenedModel m_opened;
    MasterReader* m_model = nullptr;
    GgufLayout m_layout;
    std::unique_ptr<Tokenizer> m_tokenizer;
    std::map<std::string, Sums> m_sums;
    GgufReport m_report;
};

} // namespace

std::optional<GgufForm> parseGgufForm(std::string_view name)
{
    for (const auto& [text, form] : kForms)
        if (text == name)
            return form;
    return {};
}

std::string_view ggufFormName(GgufForm form) noexcept
{
    for (const auto& [text, each] : kForms)
        if (each == form)
            return text;
    return {};
}

Result<GgufReport> exportGguf(
    const ModelPlace& place, const fs::path& out, const GgufOptions& options)
{
    GgufReport report;
    MR_TRY(writeAside(out, [&](const fs::path& file) -> Status {
        GgufExport work(place, options);
        MR_ASSIGN(report, work.write(file));
        return {};
    }));
    return report;
}

} // namespace mr
