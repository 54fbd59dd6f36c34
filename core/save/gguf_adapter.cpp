#include "core/device/adamw.h"
#include "core/exchange/gguf_values.h"
#include "core/gguf/gguf_file.h"
#include "core/gguf/gguf_writer.h"
#include "core/model/gguf_layout.h"
#include "core/model/gguf_limits.h"
#include "core/save/adapter_export.h"
#include "core/save/gguf_sources.h"
#include "core/save/opened_model.h"
#include "core/save/written_aside.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace mr {
namespace {

namespace fs = std::filesystem;

Status refuseAdapter(std::string message)
{
    return Status::error(ErrorKind::InvalidArgument, std::move(message));
}

// The part that the file has of one module: some rows of B, and A whole.
struct AdapterPair {
    const GgufEntry* entry = nullptr;
    const AdapterModule* module = nullptr;
    GroupId group;
};

class GgufAdapterExport
{
public:
    GgufAdapterExport(const ModelPlace& place, const WriteProgress& progress)
        : m_place(place)
        , m_progress(progress)
    {
    }

    Result<AdapterReport> write(const fs::path& file)
    {
        MR_TRY(m_opened.open(m_place, false));
        MR_TRY(checkSettings());
        MR_ASSIGN(m_layout, ggufLayout(m_opened.config(), m_opened.table()));
        MR_TRY(findPairs());
        const std::vector<GgufSource> sources = makeSources();
        MR_TRY(writeGguf(file, values(), sources, m_progress));
        MR_TRY(compare(file));
        std::error_code error;
        AdapterReport report{m_modules, m_place.model, fs::file_size(file, error)};
        if (m_opened.isNf4())
            report.notes.emplace_back("It was trained beside the model in NF4: beside a file of "
                                      "the original weights it answers a little otherwise; --to "
                                      "gguf merges it into what it was trained beside.");
        return report;
    }

private:
    const ParamTable& table() const { return m_opened.trainedTable(); }

    Status checkSettings() const
    {
        const AdapterSettings& settings = table().frozen->settings;
        const std::string merge = "; export it --to gguf, with the adapter in the model";
        if (settings.dora)
            return refuseAdapter(
                m_place.adapter + ": is a DoRA adapter, and GGUF adapters are LoRA alone" + merge);
        if (!settings.saved.empty() || !settings.tokens.empty())
            return refuseAdapter(m_place.adapter +
                                 ": trains the embedding or the head beside its matrices, which a "
                                 "GGUF adapter cannot hold" +
                                 merge);
        return checkGguf(m_opened.config()).status();
    }

    Status findPairs()
    {
        const ParamTable& model = m_opened.table();
        for (std::size_t g = 0; g < table().groups.size(); ++g)
            for (const AdapterModule& module : table().frozen->adapters[g]) {
                const GroupId group{static_cast<std::int32_t>(g)};
                const std::int64_t begin =
                    model.find(group, module.product)->first + module.firstRow * module.in;
                const std::size_t before = m_pairs.size();
                for (const GgufEntry& entry : m_layout.entries) {
                    const NamedTensor& tensor = model.tensors[entry.tensor];
                    if (tensor.group == group && tensor.first == begin)
                        m_pairs.push_back({&entry, &module, group});
                }
                if (m_pairs.size() == before)
                    return refuseAdapter(m_place.adapter + ": changes " + module.name +
                                         ", which is no matrix of a GGUF file; export it --to "
                                         "gguf, with the adapter in the model");
                ++m_modules;
            }
        const AdapterModule& first = *m_pairs.front().module;
        m_alpha = first.scale * static_cast<float>(first.rank);
        return {};
    }

    // llama.cpp scales each module by alpha over its rank.
    float factorOf(const AdapterModule& module) const
    {
        return module.scale * static_cast<float>(module.rank) / m_alpha;
    }

    Status readRow(GroupId group, std::int64_t first, std::span<float> out)
    {
        const MasterView view = m_piece.view(std::ssize(out));
        MR_TRY(m_opened.adapter().read(group, first, view));
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = joinHalves(view.high[i], view.low[i]);
        return {};
    }

    GgufSource sourceOfA(const AdapterPair& pair)
    {
        const AdapterModule& module = *pair.module;
        return {pair.entry->name + ".lora_a", {module.in, module.rank}, GgufType::F32,
            [this, pair](std::int64_t first, std::span<float> out) -> Status {
                const AdapterModule& from = *pair.module;
                std::vector<float> row(static_cast<std::size_t>(from.in));
                for (; !out.empty(); out = out.subspan(row.size()), first += from.in) {
                    MR_TRY(readRow(pair.group, from.a + first, row));
                    for (std::size_t c = 0; c < row.size(); ++c)
                        out[c] = row[static_cast<std::size_t>(
                            pair.entry->columnOrder.source(static_cast<std::int64_t>(c)))];
                }
                return {};
            }};
    }

    GgufSource sourceOfB(const AdapterPair& pair)
    {
        const AdapterModule& module = *pair.module;
        return {pair.entry->name + ".lora_b", {module.rank, pair.entry->rows}, GgufType::F32,
            [this, pair](std::int64_t first, std::span<float> out) -> Status {
                const AdapterModule& from = *pair.module;
                const auto rank = static_cast<std::size_t>(from.rank);
                for (; !out.empty(); out = out.subspan(rank), first += from.rank) {
                    const std::int64_t row =
                        pair.entry->firstRow + pair.entry->rowOrder.source(first / from.rank);
                    MR_TRY(readRow(pair.group, from.b + row * from.rank, out.first(rank)));
                    for (float& value : out.first(rank))
                        value *= factorOf(from);
                }
                return {};
            }};
    }

    std::vector<GgufSource> makeSources()
    {
        std::vector<GgufSource> sources;
        for (const AdapterPair& pair : m_pairs) {
            sources.push_back(sourceOfA(pair));
            sources.push_back(sourceOfB(pair));
        }
        return sources;
    }

    GgufValues values() const
    {
        return {{"general.type", GgufValue::string("adapter")},
            {"general.architecture", GgufValue::string(std::string(m_layout.family->architecture))},
            {"adapter.type", GgufValue::string("lora")},
            {"adapter.lora.alpha", GgufValue::f32(m_alpha)}};
    }

    // Rows of the file's alpha / rank * B A against what the merged model adds to the model there.
    Status compare(const fs::path& path)
    {
        MR_ASSIGN(const GgufFile file, GgufFile::open(path));
        for (const AdapterPair& pair : m_pairs) {
            constexpr std::int64_t kRows = 16; // of each matrix
            const std::int64_t apart = std::max<std::int64_t>(1, pair.entry->rows / kRows);
            for (std::int64_t row = 0; row < pair.entry->rows; row += apart)
                MR_TRY(compareRow(file, pair, row));
        }
        return {};
    }

    Status compareRow(const GgufFile& file, const AdapterPair& pair, std::int64_t row)
    {
        const auto in = static_cast<std::size_t>(pair.module->in);
        std::vector<float> want(in);
        std::vector<float> plain(in);
        const std::int64_t first = row * pair.entry->columns;
        MR_TRY(readGgufRows(*pair.entry, m_opened.table(), m_opened.whole(), first, want));
        MR_TRY(readGgufRows(*pair.entry, m_opened.table(), m_opened.unmerged(), first, plain));
        MR_ASSIGN(const std::vector<double> got, addedRow(file, pair, row));
        double size = 0.0;
        double error = 0.0;
        for (std::size_t c = 0; c < in; ++c) {
            const double weight = std::abs(double{plain[c]}) + std::abs(got[c]);
            size = std::max(size, weight);
            error = std::max(error, std::abs(double{want[c]} - double{plain[c]} - got[c]));
        }
        constexpr double kRounding = 1e-5; // of sums in F32, beside the largest weight
        if (error <= kRounding * size)
            return {};
        return Status::error(ErrorKind::DataCorrupt,
            fmt::format("{}: row {} of {} adds {:.3g} more than the adapter does; export it again",
                file.path().string(), row, pair.entry->name, error));
    }

    Result<std::vector<double>> addedRow(
        const GgufFile& file, const AdapterPair& pair, std::int64_t row) const
    {
        const GgufTensor* a = file.tensor(pair.entry->name + ".lora_a");
        const GgufTensor* b = file.tensor(pair.entry->name + ".lora_b");
        if (a == nullptr || b == nullptr)
            return Status::error(ErrorKind::DataCorrupt,
                file.path().string() + ": " + pair.entry->name + " was not written");
        const std::int64_t rank = b->ne[0];
        const auto in = static_cast<std::size_t>(a->ne[0]);
        std::vector<float> left(static_cast<std::size_t>(rank));
        MR_TRY(file.readFloats(*b, row * rank, left));
        std::vector<float> right(in);
        std::vector<double> sum(in);
        for (std::int64_t k = 0; k < rank; ++k) {
            MR_TRY(file.readFloats(*a, k * a->ne[0], right));
            const double scale = double{m_alpha} / static_cast<double>(rank) *
                                 double{left[static_cast<std::size_t>(k)]};
            for (std::size_t c = 0; c < in; ++c)
                sum[c] += scale * double{right[c]};
        }
        return sum;
    }

    const ModelPlace& m_place;
    const WriteProgress& m_progress;
    OpenedModel m_opened;
    GgufLayout m_layout;
    std::vector<AdapterPair> m_pairs;
    std::int64_t m_modules = 0;
    float m_alpha = 0.0F;
    MasterPiece m_piece;
};

} // namespace

Result<AdapterReport> exportGgufAdapter(
    const ModelPlace& place, const fs::path& out, const WriteProgress& progress)
{
    if (place.adapter.empty())
        return refuseAdapter(place.model + ": has no adapter; export it --to gguf");
    AdapterReport report;
    MR_TRY(writeAside(out, [&](const fs::path& file) -> Status {
        GgufAdapterExport work(place, progress);
        MR_ASSIGN(report, work.write(file));
        return {};
    }));
    return report;
}

} // namespace mr
