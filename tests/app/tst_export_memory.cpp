// An export holds pieces of tensors and never a model: what it adds to the memory of the process
// stays the same for a model of any size.

// The engine's headers come before those of Qt.
// clang-format off
#include "app/exports.h"
#include "core/base/kernel_files.h"
#include "core/model/model_config.h"
#include "core/model/param_table.h"
#include "core/model/safetensors.h"
#include "core/tokenizer/small_tokenizer.h"
#include "support/test_room.h"
// clang-format on

#include <QTest>

#include <malloc.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

namespace mr::test::tst_export_memory {

namespace {

namespace fs = std::filesystem;

// 1.07 GB in BF16. The largest tensors, embedding and head, have 131 MB each.
constexpr const char* kConfig = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 9,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-05, "torch_dtype": "bfloat16",
    "tie_word_embeddings": false})";

constexpr std::uint64_t kModelBytes = 1'000'000'000; // at least
constexpr std::uint64_t kRoomBytes = 5'000'000'000;

// The most by which the peak may grow. Pieces have 2^20 elements: 4 MiB as floats or as the halves
// of a master, and an export holds some of them at a time (read, rounded, encoded, read back).
// Measured: 22 MB for both forms, of this model and of one of a third of its layers. 96 MiB leave
// room for threads and for heaps of other systems, and are less than a tenth of the model and less
// than one of its largest tensors in any type, so that no tensor is held whole either.
constexpr std::uint64_t kMostGrowth = std::uint64_t{96} << 20;

// "VmHWM:" of "VmHWM:\t    3132 kB"
std::uint64_t bytesOfStatus(std::string_view name)
{
    return numberOfLine(readKernelFile("/proc/self/status"), name, '\t').value_or(0) * 1024;
}

// Growth of the peak of resident memory since it was made.
//
// The peak (VmHWM) misses nothing that was held between two looks at it. It counts the mapped pages
// of files, too; weights are read and not mapped, so that all it counts here is memory and code.
class PeakGrowth
{
public:
    PeakGrowth()
    {
        malloc_trim(0); // free memory that is still resident would take in what is measured
        std::ofstream("/proc/self/clear_refs") << "5";
        m_before = bytesOfStatus("VmRSS:");
    }
    std::uint64_t bytes() const
    {
        const std::uint64_t peak = bytesOfStatus("VmHWM:");
        return peak - std::min(peak, m_before);
    }

private:
    std::uint64_t m_before = 0;
};

// Bits of BF16 of 2^-8 to 2^-5 of either sign, again and again from a block whose length no row
// has.
class RandomWeights
{
public:
    RandomWeights()
    {
        constexpr std::size_t kBlock = 1'048'573;
        std::mt19937 random(7);
        for (std::size_t i = 0; i < kBlock; ++i) {
            const auto bits = static_cast<std::uint32_t>(random());
            m_block.push_back(
                static_cast<std::uint16_t>((bits & 0x807FU) | (119U + (bits >> 8U & 3U)) << 7U));
        }
    }
    void fill(std::uint64_t offset, std::span<std::byte> out) const
    {
        const std::uint64_t all = m_block.size() * sizeof(std::uint16_t);
        while (!out.empty()) {
            const std::size_t at = offset % all;
            const std::size_t count = std::min<std::size_t>(all - at, out.size());
            std::memcpy(out.data(), reinterpret_cast<const std::byte*>(m_block.data()) + at, count);
            out = out.subspan(count);
            offset += count;
        }
    }

private:
    std::vector<std::uint16_t> m_block;
};

void writeModel(const Folder& folder)
{
    trainTokenizer(folder);
    folder.write("config.json", kConfig);
    const ModelConfig config = readModelConfig(folder.path()).value();
    const ParamTable table = buildParamTable(config);
    const RandomWeights weights;
    std::vector<SafetensorSource> sources;
    for (const NamedTensor& tensor : table.tensors)
        sources.push_back(
            {tensor.name, "BF16", tensor.shape, static_cast<std::uint64_t>(tensor.count()) * 2,
                [&weights](std::uint64_t offset, std::span<std::byte> out) -> Status {
                    weights.fill(offset, out);
                    return {};
                }});
    const Status written = writeSafetensors(folder.path("model.safetensors"), sources);
    if (!written.ok())
        qFatal("writing a test model failed: %s", written.message().c_str());
}

} // namespace

class TestExportMemory : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void anExportHoldsPieces_data();
    void anExportHoldsPieces();

private:
    Folder m_folder;
};

void TestExportMemory::initTestCase()
{
    std::error_code error;
    if (fs::space(m_folder.path(), error).available < kRoomBytes || error)
        QSKIP("the temporary folder has less than 5 GB free");
    if (!std::ofstream("/proc/self/clear_refs"))
        QSKIP("this kernel does not begin the peak of resident memory anew");
    constexpr std::size_t kTouched = std::size_t{200} << 20;
    constexpr std::size_t kPage = 4096;
    const PeakGrowth growth;
    {
        std::vector<std::byte> held(kTouched);
        volatile std::byte* touched = held.data(); // or the compiler leaves the memory out
        for (std::size_t at = 0; at < kTouched; at += kPage)
            touched[at] = std::byte{1};
    }
    const std::uint64_t seen = growth.bytes();
    // The kernel counts pages in batches.
    QVERIFY2(seen > kTouched / 10 * 9 && seen < kTouched + kMostGrowth,
        qPrintable(QString::number(seen)));
    writeModel(m_folder);
    QVERIFY(fs::file_size(m_folder.path("model.safetensors")) > kModelBytes);
}

void TestExportMemory::anExportHoldsPieces_data()
{
    QTest::addColumn<int>("form");
    QTest::newRow("safetensors") << static_cast<int>(ExportForm::Safetensors);
    QTest::newRow("gguf") << static_cast<int>(ExportForm::Gguf);
}

void TestExportMemory::anExportHoldsPieces()
{
    QFETCH(int, form);
    ExportOrder order;
    order.model = m_folder.path();
    order.out = m_folder.path("out");
    order.form = static_cast<ExportForm>(form);
    order.asks = false;
    std::uint64_t written = 0;
    const PeakGrowth growth;

    const auto made =
        app::writeExport(order, [&written](std::uint64_t done, std::uint64_t /*all*/) {
            written = done;
            return true;
        });

    const std::uint64_t grown = growth.bytes();
    QVERIFY2(made.ok(), made.status().message().c_str());
    QVERIFY(written > kModelBytes && Result(made).value().bytes > kModelBytes);
    qInfo("the peak grew by %.1f MB", static_cast<double>(grown) / 1e6);
    QVERIFY2(grown < kMostGrowth, qPrintable(QString::number(grown)));
    fs::remove_all(order.out);
}

MR_TEST(TestExportMemory)

} // namespace mr::test::tst_export_memory

#include "tst_export_memory.moc"
