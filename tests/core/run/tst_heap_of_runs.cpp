// Beside its plan a run takes little of the heap: opening, checkpoints, resuming, hashing and the
// export are done piece by piece, so a model may be larger than the memory that is left.

#include "core/run/engine.h"
#include "core/run/run_rig.h"
#include "support/heap_counter.h"
#include "support/test_room.h"

#include <QtTest>

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace mr::test::tst_heap_of_runs {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Nearly all of it is one group, of four pieces. Its master is 17 MiB, the high halves of it 8.
const char* const kConfig = R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 512,
  "intermediate_size": 64,
  "num_hidden_layers": 1,
  "num_attention_heads": 8,
  "num_key_value_heads": 1,
  "vocab_size": 8192,
  "max_position_embeddings": 64,
  "rms_norm_eps": 1e-05,
  "torch_dtype": "float32",
  "tie_word_embeddings": true
}
)";

// Hash of all bytes after the header, by one call.
std::string hashOfData(const fs::path& file)
{
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    const XXH128_hash_t hash =
        XXH3_128bits(bytes.data() + sizeof header + header, bytes.size() - sizeof header - header);
    return QString::asprintf("%016llx%016llx", static_cast<unsigned long long>(hash.high64),
        static_cast<unsigned long long>(hash.low64))
        .toStdString();
}

} // namespace

class TestHeapOfRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        m_rig = std::make_unique<RunRig>();
        m_rig->folder.write("config.json", kConfig);
    }

    void noCopyOfTheModelIsMade_data()
    {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<bool>("wide");
        QTest::addColumn<QString>("state");
        QTest::newRow("resident, fp32") << "resident" << true << "fp32";
        QTest::newRow("zero-offload, compact") << "zero-offload" << false << "compact";
        QTest::newRow("zenflow") << "zenflow" << false << "fp32";
        QTest::newRow("zenflow, compact") << "zenflow" << false << "compact";
    }

    void noCopyOfTheModelIsMade()
    {
        QFETCH(QString, policy);
        QFETCH(bool, wide);
        QFETCH(QString, state);
        const std::string name = QTest::currentDataTag();
        RunSpec spec = m_rig->spec(name);
        spec.modelDir.clear();
        spec.scratchConfig = m_rig->folder.path("config.json");
        spec.scratchTokenizer = m_rig->model.path("tokenizer.model");
        spec.steps = 2;
        spec.checkpointEvery = 1;
        spec.microBatch = 1;
        spec.policy = policy.toStdString();
        spec.policyOptions["state"] = state.toStdString();
        spec.precision = wide ? PrecisionChoice::F32 : PrecisionChoice::BF16;
        CpuDeviceOptions options;
        options.memoryBytes = 512 * kMiB;
        const auto device = std::move(makeCpuDevice(options)).value();
        const std::size_t before = heapBytes();
        resetHeapPeak();

        const auto stop = [](Engine& engine, std::int64_t) { engine.requestStop(); };
        const Outcome opened = m_rig->train(spec, *device, stop);
        QVERIFY2(opened.opened.ok(), opened.opened.message().c_str());
        const Outcome resumed = m_rig->resume(opened.dir.string(), *device);

        const std::size_t taken = heapPeakBytes() - before;
        QVERIFY2(opened.ended.ok(), opened.ended.message().c_str());
        QVERIFY2(resumed.opened.ok(), resumed.opened.message().c_str());
        QVERIFY2(resumed.ended.ok(), resumed.ended.message().c_str());
        // The writer's piece of 8 MiB and one of a master; columns that move take 10 MiB more.
        const std::size_t most = policy == QLatin1String("zenflow") ? 27 * kMiB : 18 * kMiB;
        QVERIFY2(taken < most, std::to_string(taken).c_str());
        if (wide) // the file has the tensors in the order of the hash, in F32
            QCOMPARE(hashOfData(resumed.dir / "model" / "model.safetensors"),
                resumed.progress.weightsHash);
    }

private:
    std::unique_ptr<RunRig> m_rig;
};

MR_TEST(TestHeapOfRuns)

} // namespace mr::test::tst_heap_of_runs

#include "tst_heap_of_runs.moc"
